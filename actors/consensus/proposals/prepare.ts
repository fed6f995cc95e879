/** Turns a request into a command of the log, decided on the state that this node has applied. */

import { peerMissing, shardMissing } from '../../../cluster/apply/change.js';
import type { ClusterCommand, TransferKey } from '../../../cluster/state/commands.js';
import { placeShards } from '../../../cluster/state/placement.js';
import type { ClusterState, CollectionRecord } from '../../../cluster/state/state.js';
import { type ErrorReason, errorFromFacts, TroupeError } from '../../../protocols/errors.js';
import type { CollectionClusterUpdate, PeerId, TransferMethod } from '../../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import type { Settings } from '../state.js';

/** A request for an agreement, in the caller's form. */
export type Submission =
  /** Creates a collection; its shards are placed on the present peers. */
  | { readonly kind: 'createCollection'; readonly name: string; readonly config: CollectionConfig }
  /**
   * Updates a collection. `change` computes the new configuration from the newest one, again if another change was agreed on first. An
   * error that it throws is the answer.
   */
  | { readonly kind: 'updateCollection'; readonly name: string; readonly change: (config: CollectionConfig) => CollectionConfig }
  | { readonly kind: 'updateCollectionCluster'; readonly collection: string; readonly update: CollectionClusterUpdate }
  | { readonly kind: 'operation'; readonly operation: ClusterCommand };

/**
 * The command for a request. settings: this node's settings. Errors: `notFound` for a collection, `wrongInput`; whatever `change` throws.
 */
export function prepare(submission: Submission, agreed: ClusterState, settings: Pick<Settings, 'transferMethod'>): ClusterCommand {
  switch (submission.kind) {
    case 'createCollection':
      return createCollection(submission.name, submission.config, agreed);
    case 'updateCollection': {
      const { name, record } = recordOf(submission.name, agreed);
      return { kind: 'updateCollection', name, config: submission.change(record.config), basedOn: record.revision };
    }
    case 'updateCollectionCluster':
      return commandOf(submission.collection, submission.update, agreed, settings.transferMethod);
    case 'operation':
      return submission.operation;
    default:
      return submission satisfies never;
  }
}

/**
 * When a refused request is prepared again from the newest state. atOnce: another change was agreed on first. later: a peer chosen for a
 * replica has left, and this node may not know the next state yet. never: the result would be the same.
 */
export function retryOfRefused(submission: Submission, reason: ErrorReason | undefined): 'never' | 'atOnce' | 'later' {
  switch (reason) {
    case 'changedMeanwhile':
      return submission.kind === 'updateCollection' ? 'atOnce' : 'never';
    case 'placementChanged':
      return submission.kind === 'operation' ? 'never' : 'later';
    case 'addressTaken':
    case 'notLeader':
    case 'shardMapChanged':
    case 'shardMigrating':
    case 'replicaNotHere':
    case 'replicaNotServing':
    case 'peerRefused':
    case 'staleCopy':
    case 'otherCollection':
    case 'failedOnApply':
    case 'damaged':
    case 'checkpointLost':
    case 'segmentTooLarge':
    case 'notReached':
    case 'answerLost':
    case 'actorCrashed':
    case undefined:
      return 'never';
    default:
      return reason satisfies never;
  }
}

/** The collection whose new replicas become Active before the caller is answered; null for commands without new replicas. */
export function newReplicasOf(command: ClusterCommand): string | null {
  if (command.kind === 'createCollection') return command.name;
  return command.kind === 'createShardKey' || command.kind === 'recreateShard' ? command.collection : null;
}

/** The collection of this name or alias. */
export function recordOf(name: string, agreed: ClusterState): { readonly name: string; readonly record: CollectionRecord } {
  const own = agreed.collections.has(name) ? name : agreed.aliases.get(name);
  const record = own === undefined ? undefined : agreed.collections.get(own);
  if (own === undefined || record === undefined) throw new TroupeError('notFound', `Collection \`${name}\` doesn't exist!`);
  return { name: own, record };
}

function createCollection(name: string, config: CollectionConfig, agreed: ClusterState): ClusterCommand {
  const { replication_factor: replicationFactor, shard_number: shards, sharding_method: method } = config.params;
  // With custom sharding, shards are made with their keys.
  const placement = method === 'custom' ? [] : placeShards(agreed, { shards, replicationFactor, peers: null });
  return { kind: 'createCollection', name, config, placement };
}

function commandOf(collection: string, setup: CollectionClusterUpdate, agreed: ClusterState, usual: TransferMethod): ClusterCommand {
  const { name, record } = recordOf(collection, agreed);
  switch (setup.kind) {
    case 'moveShard':
    case 'replicateShard': {
      const sync = setup.kind === 'replicateShard';
      const asked = setup.method ?? usual;
      // A replica that does not exist yet has no difference to send.
      const hasReplica = record.shards.get(setup.shardId)?.replicas.has(setup.to) === true;
      const method = asked === 'wal_delta' && !hasReplica ? 'stream_records' : asked;
      return { kind: 'startTransfer', collection: name, transfer: transferOf(setup), method, sync };
    }
    case 'abortTransfer':
      return { kind: 'abortTransfer', collection: name, transfer: transferOf(setup), reason: 'asked for', term: null };
    case 'restartTransfer':
      return { kind: 'restartTransfer', collection: name, transfer: transferOf(setup), method: setup.method, term: null };
    case 'dropReplica':
      return { kind: 'dropReplica', collection: name, shardId: setup.shardId, peerId: setup.peerId };
    case 'activateReplica':
      return activateReplica(name, record, setup);
    case 'createShardKey': {
      const { params } = record.config;
      const shards = setup.shardsNumber ?? params.shard_number;
      const replicationFactor = setup.replicationFactor ?? params.replication_factor;
      const stranger = setup.placement?.find((peer) => !agreed.membership.some(({ peerId }) => peerId === peer));
      if (stranger !== undefined) throw errorFromFacts(peerMissing(stranger));
      const placement = placeShards(agreed, { shards, replicationFactor, peers: setup.placement });
      // A closed key's shards have leaders and take writes like all others, and are hidden until a copy has filled them.
      const closed = setup.initialState === 'Partial';
      const initialState = closed ? null : setup.initialState;
      return { kind: 'createShardKey', collection: name, key: setup.key, placement, initialState, closed };
    }
    case 'autoReplication':
      return { kind: 'setAutoReplication', collection: name, enabled: setup.enabled };
    case 'startResharding':
      return startResharding(name, record, setup, agreed);
    case 'abortResharding':
      return { kind: 'abortResharding', collection: name };
    case 'replicatePoints':
      return { kind: 'startKeyCopy', collection: name, source: setup.source, target: setup.target, filter: setup.filter };
    case 'dropShardKey':
      return { kind: 'dropShardKey', collection: name, key: setup.key };
    default:
      return setup satisfies never;
  }
}

/**
 * Activates a replica by hand. Errors: `badRequest` without such a shard; `wrongInput` if the shard has a usable Active replica, from which all others are
 * repaired, or if another peer has to be named.
 */
function activateReplica(
  collection: string,
  { shards, uid }: CollectionRecord,
  { lost, peerId, shardId }: Extract<CollectionClusterUpdate, { kind: 'activateReplica' }>,
): ClusterCommand {
  const shard = shards.get(shardId);
  if (shard === undefined) throw errorFromFacts(shardMissing(collection, shardId));
  const { replicas, term } = shard;
  const active = [...replicas].filter(([, state]) => state === 'Active').map(([peer]) => peer);
  const healthy = active.find((peer) => !lost.includes(peer));
  if (healthy !== undefined) {
    const detail = `shard ${shardId} has an Active replica on peer ${healthy}, and its others heal from it: nothing has to be given up`;
    throw new TroupeError('wrongInput', detail);
  }
  const others = [...replicas].filter(([peer]) => !active.includes(peer));
  const from = replicas.get(peerId);
  if (from !== undefined && from !== 'Active') {
    const change = { collection, uid, shardId };
    const given = active.map((peer) => ({ ...change, peerId: peer, from: 'Active', to: 'Dead', term: null }) as const);
    // Transfers to it begin and fail while no replica serves the shard.
    return { kind: 'setReplicaStates', changes: [...given, { ...change, peerId, from: null, to: 'Active', term }] };
  }
  if (others.length === 0 && (replicas.size === 0 || from !== undefined)) return { kind: 'recreateShard', collection, shardId, peerId };
  const holders = others.map(([peer, state]) => `peer ${peer} (${state})`).join(', ');
  const detail =
    from === undefined ? `shard ${shardId} has no replica on peer ${peerId}` : `the replica on peer ${peerId} is the one that is lost`;
  throw new TroupeError('wrongInput', `${detail}: name ${holders === '' ? `peer ${active.join(' or ')}` : `one of ${holders}`}`);
}

function startResharding(
  collection: string,
  record: CollectionRecord,
  { direction, key, peerId }: Extract<CollectionClusterUpdate, { kind: 'startResharding' }>,
  agreed: ClusterState,
): ClusterCommand {
  if (direction === 'down') return { kind: 'startResharding', collection, direction, key, placement: [] };
  if (peerId !== null && !agreed.membership.some((member) => member.peerId === peerId)) throw errorFromFacts(peerMissing(peerId));
  const { replication_factor: replicationFactor } = record.config.params;
  const [placed] = placeShards(agreed, { shards: 1, replicationFactor, peers: null }) as [readonly PeerId[]];
  // The named peer replaces the last of the chosen ones.
  const named = peerId === null || placed.includes(peerId) ? placed : [peerId, ...placed.slice(0, -1)];
  const placement = peerId === null ? [placed] : [[peerId, ...named.filter((peer) => peer !== peerId)]];
  return { kind: 'startResharding', collection, direction, key, placement };
}

function transferOf({ from, shardId, to, toShardId }: TransferKey): TransferKey {
  return { shardId, from, to, toShardId };
}
