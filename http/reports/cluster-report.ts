/** What the cluster looks like, in the words of the API. */

import type { ClusterApi, ClusterStatus } from '../../actors/consensus/cluster-api.js';
import type { LocalShard } from '../../actors/requests/node-api.js';
import type { LongWork } from '../../actors/runtime/long-works.js';
import { collectionMissing } from '../../cluster/apply/aliases.js';
import { copyTransfers } from '../../cluster/apply/migration.js';
import { busyShards, isClosed } from '../../cluster/apply/resharding.js';
import type { PeerDetails } from '../../cluster/peer-messages.js';
import type { LeaderRole, RaftState } from '../../cluster/raft/state.js';
import type { ClusterState, CollectionRecord, Resharding, ShardRecord, TransferRecord } from '../../cluster/state/state.js';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import { vectorNamesOf } from '../../protocols/model/collection.js';
import { LongObject } from '../context/long-value.js';

type Json = Record<string, unknown>;

/** `GET /cluster`. Source: contract, `ClusterStatus`. */
export function clusterReport(cluster: ClusterApi): Json {
  const status = cluster.status();
  const { peerId, raft } = status;
  const uris = urisOf(cluster.state());
  // A follower sends the other followers nothing, and is to say all the same whom it cannot reach.
  const failures = [...status.connections].filter(
    ([, { connected, failures, lastError }]) => failures > 0 || (!connected && lastError !== null),
  );
  return {
    status: 'enabled',
    peer_id: peerId,
    peers: Object.fromEntries([...uris].map(([peer, uri]) => [peer, { uri }])),
    raft_info: { ...raftFigures(status), leader: raft?.leader ?? null },
    consensus_thread_status: threadStatus(status),
    message_send_failures: Object.fromEntries(
      failures.map(([peer, { failures, lastError, lastErrorMs }]) => [
        uris.get(peer) ?? String(peer),
        { count: failures, latest_error: lastError, latest_error_timestamp: timestamp(lastErrorMs) },
      ]),
    ),
  };
}

/** What the cluster has agreed on, as this node knows it. Errors: `unavailable` as long as it is in none. */
export function agreedState(cluster: ClusterApi): ClusterState {
  const state = cluster.state();
  if (state !== null) return state;
  const { error, phase } = cluster.status();
  const detail = `this node is not part of its cluster yet (${phase}${error === null ? '' : `: ${error}`})`;
  throw new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
}

/** The collection of this name or alias. Errors: `notFound`. */
export function collectionRecord({ aliases, collections }: ClusterState, name: string): CollectionRecord {
  const record = collections.get(name) ?? collections.get(aliases.get(name) ?? '');
  if (record === undefined) throw errorFromFacts(collectionMissing(name));
  return record;
}

/**
 * `GET /collections/{name}/cluster`. local: the replicas on this node. full: peers with full disks. comment: how far a transfer is, where this node knows.
 * Source: contract, `CollectionClusterInfo`.
 */
export function collectionReport(
  record: CollectionRecord,
  self: PeerId,
  local: ReadonlyMap<ShardId, LocalShard>,
  full: ReadonlySet<PeerId>,
  comment: (transfer: TransferRecord) => string | null,
): Json {
  const { autoReplication, resharding, shards, transfers } = record;
  const replicas = sortedShards(shards).flatMap(([shardId, shard]) =>
    [...shard.replicas].map(([peerId, state]) => ({
      peerId,
      shard: { shard_id: shardId, ...keyOf(shard.key) },
      state: shownState(record, shard, state),
    })),
  );
  const fullHolders = [...full].filter((peer) => replicas.some(({ peerId }) => peerId === peer));
  return {
    peer_id: self,
    shard_count: shards.size,
    local_shards: replicas
      .filter(({ peerId }) => peerId === self)
      .map(({ shard, state }) => {
        const own = local.get(shard.shard_id);
        return { ...shard, points_count: own?.points ?? 0, state: ownState(state, own?.state ?? 'Initializing') };
      }),
    remote_shards: replicas
      .filter(({ peerId }) => peerId !== self)
      .map(({ peerId, shard, state }) => ({ ...shard, peer_id: peerId, state })),
    shard_transfers: [...transfers, ...copyTransfers(record)].map((transfer) => {
      const leader = shards.get(transfer.shardId)?.leader ?? null;
      return { ...transferReport(transfer), comment: comment(transfer) ?? runnerOf(leader) };
    }),
    ...(resharding === null ? {} : { resharding_operations: [reshardingReport(resharding)] }),
    // Troupe's own.
    ...(autoReplication ? { auto_replication: true } : {}),
    ...(fullHolders.length === 0 ? {} : { full_disk_peers: fullHolders }),
  };
}

/** How far each shard is that removes points which belong to another one now: the last stage of a resharding. */
export function cleaningShards({ resharding, ...record }: CollectionRecord): Map<ShardId, 'started' | 'done'> {
  if (resharding?.stage !== 'cleaning') return new Map();
  const busy = busyShards({ ...record, resharding }, resharding);
  return new Map(busy.map((shardId) => [shardId, resharding.done.includes(shardId) ? 'done' : 'started']));
}

/** Replicas of a key that waits to be filled have what was copied so far, and serve nobody. */
export function shownState(record: CollectionRecord, shard: ShardRecord, state: ReplicaState): ReplicaState {
  return isClosed(record, shard) && (state === 'Active' || state === 'Initializing') ? 'Partial' : state;
}

/** Of a replica on this node: what is agreed may not be so yet (Node-N8). */
function ownState(agreed: ReplicaState, here: LocalShard['state']): ReplicaState {
  return agreed === 'Active' ? here : agreed;
}

function runnerOf(leader: PeerId | null): string {
  return leader === null ? 'waiting for the shard to have a leader' : `carried out by peer ${leader}, which knows how far it is`;
}

/** `GET /collections/{name}/shards`: keys are those of custom sharding. */
export function shardKeysReport({ config, shards }: CollectionRecord): Json {
  if (config.params.sharding_method !== 'custom') return {};
  const keys = new Set(sortedShards(shards).flatMap(([, { key }]) => (key === null ? [] : [key])));
  return { shard_keys: [...keys].map((key) => ({ key })) };
}

/**
 * `GET /cluster/telemetry`. details: of each peer, null where it did not answer. level: 0 says who answers and which collections
 * there are, 1 how the peers and the replicas are, 2 what the replicas hold. Source: contract, `DistributedTelemetryData`.
 */
export function* nodesReport(state: ClusterState, details: ReadonlyMap<PeerId, PeerDetails | null>, level: number): LongWork<LongObject> {
  const figures = level < 2 ? NO_FIGURES : yield* figuresByReplica(details);
  return LongObject.of({
    collections: new LongObject(collectionReports(state, figures, level)),
    cluster: {
      enabled: true,
      number_of_peers: state.membership.length,
      peers: Object.fromEntries(
        state.membership.map(({ peerId, uri }) => {
          const known = details.get(peerId) ?? null;
          return [peerId, { uri, responsive: known !== null, ...(known === null || level < 1 ? {} : { details: peerReport(known) }) }];
        }),
      ),
    },
  });
}

function* collectionReports({ collections }: ClusterState, figures: ReplicaFigures, level: number): Generator<[string, Json]> {
  for (const name of [...collections.keys()].sort()) {
    const record = collections.get(name) as CollectionRecord;
    yield [name, level < 1 ? { id: name } : shardsReport(name, record, figures)];
  }
}

type ReplicaOfPeer = PeerDetails['replicas'][number];
/** What each peer tells of its replicas, by collection and shard. */
type ReplicaFigures = ReadonlyMap<PeerId, ReadonlyMap<string, ReadonlyMap<ShardId, ReplicaOfPeer>>>;

const NO_FIGURES: ReplicaFigures = new Map();

function* figuresByReplica(details: ReadonlyMap<PeerId, PeerDetails | null>): LongWork<ReplicaFigures> {
  const figures = new Map<PeerId, Map<string, Map<ShardId, ReplicaOfPeer>>>();
  for (const [peerId, known] of details) {
    const ofPeer = new Map<string, Map<ShardId, ReplicaOfPeer>>();
    figures.set(peerId, ofPeer);
    for (const replica of known?.replicas ?? []) {
      const { collection, shardId } = replica;
      const ofCollection = ofPeer.get(collection);
      if (ofCollection === undefined) ofPeer.set(collection, new Map([[shardId, replica]]));
      else ofCollection.set(shardId, replica);
      yield;
    }
  }
  return figures;
}

/** `cluster` of `GET /telemetry`: as the API has it, with `raft` beside. shown: what to show of an address. */
export function telemetryClusterReport(cluster: ClusterApi | null, shown: (uri: string) => string): Json {
  if (cluster === null) return { enabled: false };
  const status = cluster.status();
  const state = cluster.state();
  const members = state?.membership ?? [];
  const { config } = cluster;
  return {
    enabled: true,
    status: {
      number_of_peers: members.length,
      ...raftFigures(status),
      peer_id: status.peerId,
      consensus_thread_status: threadStatus(status, shown),
    },
    config: {
      grpc_timeout_ms: config.requestMs,
      // A pair of peers has one stream for both directions.
      p2p: { connection_pool_size: 1 },
      consensus: {
        max_message_queue_size: config.queuedMessagesMax,
        tick_period_ms: config.tickMs,
        bootstrap_timeout_sec: Math.ceil(config.joinMs / 1000),
      },
    },
    peers: Object.fromEntries(members.map(({ peerId, uri }) => [peerId, { uri: shown(uri) }])),
    peer_metadata: Object.fromEntries(members.map(({ peerId, version }) => [peerId, { version }])),
    resharding_enabled: true,
    internal_port: internalPortReport(status),
    raft: { phase: status.phase, applied: state?.appliedIndex ?? 0, carried_out: status.carriedOut, ...raftReport(status, shown) },
  };
}

function internalPortReport({ internalPort: { callStreams, calls, connections, plainConnections } }: ClusterStatus): Json {
  return { connections, plain_connections: plainConnections, call_streams: callStreams, calls };
}

function raftReport({ connections, pledgedBy, raft }: ClusterStatus, shown: (text: string) => string): Json {
  const links = [...connections].map(([peer, { connected, failures, lastError, protocolVersion, queued }]) => {
    const shownError = lastError === null ? null : shown(lastError);
    return [peer, { connected, queued, failures, last_error: shownError, protocol_version: protocolVersion }];
  });
  if (raft === null) return { connections: Object.fromEntries(links) };
  return {
    leader: raft.leader,
    last_index: lastIndex(raft),
    persisted: raft.persistedIndex,
    snapshot: raft.log.snapshot?.index ?? 0,
    pledged_by: pledgedBy,
    gone: raft.gone,
    ...(raft.role.kind === 'Leader' ? { progress: progressReport(raft.role) } : {}),
    connections: Object.fromEntries(links),
  };
}

/** What the leader knows of each follower. */
function progressReport({ progress }: LeaderRole): Json {
  return Object.fromEntries(
    [...progress].map(([peer, { matchIndex, mode, nextIndex, recentlyActive }]) => [
      peer,
      { mode: mode.kind, match: matchIndex, next: nextIndex, recently_active: recentlyActive },
    ]),
  );
}

function lastIndex({ log }: RaftState): number {
  return log.entries.at(-1)?.index ?? log.snapshot?.index ?? 0;
}

/** Figures that several reports share. */
export function raftFigures({ peerId, pendingOperations, raft }: ClusterStatus) {
  return {
    term: raft?.term ?? 0,
    commit: raft?.commitIndex ?? 0,
    pending_operations: pendingOperations,
    role: raft?.role.kind ?? null,
    is_voter: raft?.membership.some((member) => member.peerId === peerId && member.voter) ?? false,
  };
}

/** Source: contract, `ConsensusThreadStatus`; nothing is a thread here. */
function threadStatus({ error, lastUpdateMs }: ClusterStatus, shown: (text: string) => string = (text) => text): Json {
  if (error !== null) return { consensus_thread_status: 'stopped_with_err', err: shown(error) };
  return working(lastUpdateMs);
}

function working(lastUpdateMs: number): Json {
  return { consensus_thread_status: 'working', last_update: timestamp(lastUpdateMs) };
}

function peerReport({ commit, isVoter, lastUpdateMs, pendingOperations, role, term, version }: PeerDetails): Json {
  return {
    version,
    role,
    is_voter: isVoter,
    term,
    commit,
    num_pending_operations: pendingOperations,
    consensus_thread_status: working(lastUpdateMs),
  };
}

function shardsReport(name: string, record: CollectionRecord, told: ReplicaFigures): Json {
  const cleaning = cleaningShards(record);
  const vectorNames = vectorNamesOf(record.config.params);
  return {
    id: name,
    shards: sortedShards(record.shards).map(([shardId, shard]) => ({
      id: shardId,
      ...(shard.key === null ? {} : { key: shard.key }),
      replicas: [...shard.replicas].map(([peerId, state]) => {
        const own = told.get(peerId)?.get(name)?.get(shardId);
        const cleaned = cleaning.get(shardId);
        return {
          peer_id: peerId,
          state: shownState(record, shard, state),
          ...(own === undefined ? {} : replicaReport(own, vectorNames)),
          ...(cleaned === undefined ? {} : { shard_cleaning_status: cleaned }),
        };
      }),
    })),
    ...(record.resharding === null ? {} : { reshardings: [reshardingReport(record.resharding)] }),
    shard_transfers: [...record.transfers, ...copyTransfers(record)].map(transferReport),
  };
}

/** What a peer says of its replica. */
function replicaReport(
  { bytes, optimizedPoints, payloadBytes, pointsCount, status, vectorsCount }: ReplicaOfPeer,
  vectorNames: readonly string[],
): Json {
  return {
    status,
    total_optimized_points: optimizedPoints,
    vectors_size_bytes: bytes,
    payloads_size_bytes: payloadBytes,
    num_points: pointsCount,
    num_vectors: vectorsCount,
    num_vectors_by_name: countsByName(pointsCount, vectorNames),
  };
}

/** As in `GET /metrics`, each point counts as one with each of its collection's vectors, which it need not have. */
export function countsByName(points: number, vectorNames: readonly string[]): Json {
  return Object.fromEntries(vectorNames.map((name) => [name, points]));
}

export function transferReport({ from, method, shardId, sync, to, toShardId }: TransferRecord): Json {
  return { shard_id: shardId, ...(toShardId === null ? {} : { to_shard_id: toShardId }), from, to, sync, method };
}

/** Source: contract, `ReshardingInfo`. */
export function reshardingReport({ direction, key, peerId, shardId }: Resharding): Json {
  return { direction, shard_id: shardId, peer_id: peerId, ...keyOf(key) };
}

function keyOf(key: ShardRecord['key']): { shard_key?: ShardRecord['key'] } {
  return key === null ? {} : { shard_key: key };
}

export function sortedShards(shards: CollectionRecord['shards']): [ShardId, ShardRecord][] {
  return [...shards].sort(([one], [other]) => one - other);
}

function urisOf(state: ClusterState | null): Map<PeerId, string> {
  return new Map((state?.membership ?? []).map(({ peerId, uri }) => [peerId, uri]));
}

function timestamp(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString();
}
