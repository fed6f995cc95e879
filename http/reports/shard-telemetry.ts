/** The parts of `GET /telemetry` about the shards of a collection, from `details_level` 2 on. Source: contract, `CollectionTelemetry`. */

import type { NodeApi, ReplicaReport } from '../../actors/requests/node-api.js';
import type { BuildView } from '../../actors/requests/report.js';
import { copyTransfers } from '../../cluster/apply/migration.js';
import type { CollectionRecord, ShardRecord } from '../../cluster/state/state.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import { type CollectionConfig, vectorNamesOf } from '../../protocols/model/collection.js';
import { cleaningShards, countsByName, reshardingReport, shownState, sortedShards, transferReport } from './cluster-report.js';
import { segmentTelemetry } from './segment-telemetry.js';

type Json = Record<string, unknown>;

/** From this `details_level` on each segment is told of. */
const SEGMENTS_LEVEL = 3;

export interface ShardTelemetryOptions {
  readonly level: number;
  /** Keys of shards and payload fields are replaced by hashes, messages left out. */
  readonly anonymize: boolean;
  /** What to show of a name. */
  readonly shown: (name: string) => string;
  /** By the clock that durations go by. */
  readonly nowMs: number;
}

/** How long this node took to open the collection, its shards, and what moves between them. Errors: `notFound`. */
export function shardTelemetry(node: NodeApi, name: string, options: ShardTelemetryOptions): Json {
  const local = new Map(node.replicas(name).map((replica) => [replica.shardId, replica]));
  const opened = [...local.values()].flatMap(({ openedInMs }) => openedInMs ?? []);
  const record = node.cluster?.state()?.collections.get(name) ?? null;
  const { config } = node.info(name);
  return {
    init_time_ms: opened.length === 0 ? undefined : Math.max(...opened),
    shards:
      record === null
        ? shardsAlone(local, { config, peer: ALONE }, options)
        : shardsAgreed(record, local, { config, peer: selfOf(node) }, options),
    ...(record === null ? {} : moves(node, name, record, options)),
  };
}

/** A node without a cluster is peer 0. */
const ALONE: PeerId = 0;

function selfOf({ cluster }: NodeApi): PeerId {
  return cluster?.status().peerId ?? ALONE;
}

/** A collection as it is on this peer. */
interface Here {
  readonly config: CollectionConfig;
  readonly peer: PeerId;
}

function shardsAlone(local: ReadonlyMap<ShardId, ReplicaReport>, here: Here, options: ShardTelemetryOptions): Json[] {
  return [...local].map(([id, replica]) => ({
    id,
    local: localReport(replica, here, options),
    remote: [],
    replicate_states: { [ALONE]: replica.state },
    partial_snapshot: partialSnapshot(replica.state),
  }));
}

function shardsAgreed(
  record: CollectionRecord,
  local: ReadonlyMap<ShardId, ReplicaReport>,
  here: Here,
  options: ShardTelemetryOptions,
): Json[] {
  return sortedShards(record.shards).map(([id, shard]) => {
    const replica = local.get(id);
    const others = [...shard.replicas.keys()].filter((peer) => peer !== here.peer);
    return {
      id,
      ...(shard.key === null ? {} : { key: shownKey(shard.key, options) }),
      ...(replica === undefined ? {} : { local: localReport(replica, here, options) }),
      remote: others.map((peer_id) => ({ shard_id: id, peer_id })),
      replicate_states: Object.fromEntries([...shard.replicas].map(([peer, state]) => [peer, shownState(record, shard, state)])),
      ...(replica === undefined ? {} : { partial_snapshot: partialSnapshot(shard.replicas.get(here.peer)) }),
    };
  });
}

function shownKey(key: NonNullable<ShardRecord['key']>, { anonymize, shown }: ShardTelemetryOptions): ShardRecord['key'] {
  return anonymize ? shown(String(key)) : key;
}

/** Nobody can ask for a part of a snapshot; a replica may wait for files of another one. */
function partialSnapshot(state: ReplicaState | undefined): Json {
  return { ongoing_create_snapshot_requests: 0, is_recovering: state === 'PartialSnapshot', recovery_timestamp: 0 };
}

function localReport(replica: ReplicaReport, { config, peer }: Here, options: ShardTelemetryOptions): Json {
  const { builds, optimizer, stats, status } = replica;
  const segments = stats?.segments ?? [];
  const sum = (of: (segment: (typeof segments)[number]) => number) => segments.reduce((total, segment) => total + of(segment), 0);
  const points = stats?.points ?? 0;
  const names = vectorNamesOf(config.params);
  return {
    variant_name: 'local shard',
    status,
    total_optimized_points: optimizer?.published?.points ?? 0,
    vectors_size_bytes: sum(({ vectorBytes }) => vectorBytes),
    payloads_size_bytes: sum(({ payloadBytes }) => payloadBytes),
    num_points: points,
    num_vectors: points * names.length,
    num_vectors_by_name: countsByName(points, names),
    ...(options.level < SEGMENTS_LEVEL
      ? {}
      : {
          segments: segments.map((segment) =>
            segmentTelemetry(segment, {
              peer,
              shardId: replica.shardId,
              config,
              fields: stats?.fields ?? new Map(),
              shownField: options.anonymize ? options.shown : (field) => field,
            }),
          ),
        }),
    optimizations: {
      status: optimizer?.error == null ? 'ok' : { error: options.anonymize ? 'hidden' : optimizer.error.detail },
      optimizations: { count: optimizer?.published?.builds ?? 0 },
      log: builds.map((build) => trackerReport(build, options)),
    },
    async_scorer: false,
    update_queue: {
      length: stats?.queuedOperations ?? 0,
      op_num: stats?.appliedOperation ?? 0,
      ...(config.optimizer_config.prevent_unoptimized === true ? { deferred_points: stats?.deferredPoints ?? 0 } : {}),
    },
  };
}

/** Source: contract, `TrackerTelemetry`. */
function trackerReport({ segmentIds, view }: BuildView, options: ShardTelemetryOptions): Json {
  const { optimizer, progress, segments, status, uuid } = view;
  return {
    name: optimizer,
    uuid,
    segment_ids: segmentIds,
    segment_uuids: segments.map((segment) => segment.uuid),
    status: typeof status === 'object' && options.anonymize ? { error: 'hidden' } : status,
    start_at: progress.started_at,
    end_at: progress.finished_at,
  };
}

function moves({ cluster }: NodeApi, name: string, record: CollectionRecord, { anonymize, nowMs }: ShardTelemetryOptions): Json {
  const cleaning = cleaningShards(record);
  return {
    transfers: [...record.transfers, ...copyTransfers(record)].map((transfer) => {
      // A comment may have the text of an error.
      const comment = anonymize ? null : (cluster?.transfers.comment(name, transfer, nowMs) ?? null);
      return { ...transferReport(transfer), ...(comment === null ? {} : { comment }) };
    }),
    resharding: record.resharding === null ? [] : [reshardingReport(record.resharding)],
    shard_clean_tasks: Object.fromEntries(cleaning),
  };
}
