/** Commands by which points move to other shards: see `migration.ts`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CommandOf } from '../state/commands.js';
import type { ClusterState, CollectionRecord, Resharding, ShardRecord } from '../state/state.js';
import { refusedKey, refusedPlacement, shownKey, withShards } from './apply-collections.js';
import { afterCopyStage, refusedBusy, refusedClosed } from './apply-key-copy.js';
import { badRequest, type Change, done, onCollection, refused, unchanged, withCollection, wrongInput } from './change.js';
import { migrationOf, shardsOfKey } from './migration.js';

export function startResharding(state: ClusterState, command: CommandOf<'startResharding'>): Change {
  const { collection, direction, key, placement } = command;
  return onCollection(state, collection, (record) => {
    const error = refusedStart(record, command) ?? refusedPlacement(state, placement);
    if (error !== null) return refused(state, error);
    const index = state.appliedIndex;
    const shardId = direction === 'up' ? record.nextShardId : Math.max(...shardsOfKey(record, key));
    const made = direction === 'up' ? withShards(record, key, placement, { first: 'Initializing', since: index }) : record;
    const peers = (made.shards.get(shardId) as ShardRecord).replicas.keys();
    // The lowest id: peers have another order in a state that was read from a snapshot.
    const peerId = placement[0]?.[0] ?? Math.min(...peers);
    const resharding: Resharding = { direction, shardId, peerId, key, stage: 'copying', done: [], startedAt: index };
    return done(withCollection(state, collection, { ...made, shardMapVersion: index, resharding }));
  });
}

function refusedStart(
  record: CollectionRecord,
  { collection, direction, key, placement }: CommandOf<'startResharding'>,
): ErrorFacts | null {
  const busy = refusedBusy(collection, record);
  if (busy !== null) return busy;
  const custom = record.config.params.sharding_method === 'custom';
  if (custom && key === null) return wrongInput(`Collection \`${collection}\` has shard keys: say which one's shards are to be resharded`);
  if (key !== null) {
    const notCustom = refusedKey(collection, record) ?? refusedClosed(record, key);
    if (notCustom !== null) return notCustom;
  }
  const shards = shardsOfKey(record, key);
  if (shards.length === 0) return wrongInput(key === null ? 'the collection has no shards' : `Shard key ${shownKey(key)} not found`);
  if (direction === 'down' && shards.length === 1) return wrongInput('there is one shard only, and points need one');
  if (placement.length !== (direction === 'up' ? 1 : 0)) return wrongInput('one shard comes or goes at a time');
  const moving = record.transfers.find(({ shardId }) => shards.includes(shardId));
  if (moving !== undefined) return { code: 'conflict', detail: `shard ${moving.shardId} is being transferred: wait until it is there` };
  return refusedReplicas(record, shards);
}

function refusedReplicas(record: CollectionRecord, shards: readonly ShardId[]): ErrorFacts | null {
  for (const shardId of shards) {
    // Sorted, so that all nodes name the same replica.
    const replicas = [...(record.shards.get(shardId) as ShardRecord).replicas].sort(([one], [other]) => one - other);
    for (const [peer, state] of replicas) {
      if (state === 'Active' || state === 'Listener') continue;
      const detail = `the replica of shard ${shardId} on peer ${peer} is ${state}: resharding begins when all are Active`;
      return { code: 'conflict', detail };
    }
  }
  return null;
}

/** Notes that a shard has finished the stage. The next stage begins when all shards have. */
export function finishStage(state: ClusterState, command: CommandOf<'finishStage'>): Change {
  const { term, collection, shardId, stage, startedAt } = command;
  return onCollection(state, collection, (record) => {
    const migration = migrationOf(record);
    if (migration === null || migration.startedAt !== startedAt || migration.stage !== stage)
      return refused(state, { code: 'conflict', detail: `shard ${shardId} cannot finish the stage: it is over already` });
    const shard = record.shards.get(shardId);
    if (shard?.term !== term) return refused(state, { code: 'conflict', detail: `shard ${shardId} has a new leader: retry` });
    if (migration.done.includes(shardId)) return unchanged(state);
    const finished = [...migration.done, shardId];
    const isOver = migration.busy.every((id) => finished.includes(id));
    return done(withCollection(state, collection, withDone(record, finished, isOver, state.appliedIndex)));
  });
}

function withDone(record: CollectionRecord, finished: readonly ShardId[], isOver: boolean, index: number): CollectionRecord {
  const { keyCopy, resharding } = record;
  if (resharding !== null) {
    const next = { ...resharding, done: finished };
    return isOver ? afterStage(record, next, index) : { ...record, resharding: next };
  }
  if (keyCopy === null) return record;
  return isOver ? afterCopyStage(record, keyCopy, index) : { ...record, keyCopy: { ...keyCopy, done: finished } };
}

function afterStage(record: CollectionRecord, resharding: Resharding, index: number): CollectionRecord {
  switch (resharding.stage) {
    case 'copying':
      return { ...record, resharding: { ...resharding, stage: 'switching', done: [] } };
    case 'switching': {
      const counted = withCount(record, resharding, index);
      if (resharding.direction === 'down') return withoutShard(counted, resharding.shardId, index);
      return { ...counted, shardMapVersion: index, resharding: { ...resharding, stage: 'cleaning', done: [] } };
    }
    case 'cleaning':
      return { ...record, shardMapVersion: index, resharding: null };
    default:
      return resharding.stage satisfies never;
  }
}

/** The record with its new `shard_number`. With shard keys that figure is for new keys, and stays. */
function withCount(record: CollectionRecord, { direction, key }: Resharding, index: number): CollectionRecord {
  if (key !== null) return record;
  const { config } = record;
  const shard_number = config.params.shard_number + (direction === 'up' ? 1 : -1);
  return { ...record, revision: index, config: { ...config, params: { ...config.params, shard_number } } };
}

function withoutShard(record: CollectionRecord, gone: ShardId, index: number): CollectionRecord {
  const shards = new Map([...record.shards].filter(([shardId]) => shardId !== gone));
  const transfers = record.transfers.filter(({ shardId }) => shardId !== gone);
  return { ...record, shards, transfers, shardMapVersion: index, resharding: null };
}

/** Ends resharding without success. up: the new shard is dropped. down: copies are removed. */
export function abortResharding(state: ClusterState, { collection }: CommandOf<'abortResharding'>): Change {
  return onCollection(state, collection, (record) => {
    const { resharding } = record;
    if (resharding === null) return refused(state, badRequest(`resharding is not in progress for collection ${collection}`));
    if (resharding.stage === 'cleaning')
      return refused(state, {
        code: 'conflict',
        detail: 'the resharding can no longer be aborted: all points have moved, and their old copies are being removed',
      });
    const index = state.appliedIndex;
    if (resharding.direction === 'up') return done(withCollection(state, collection, withoutShard(record, resharding.shardId, index)));
    const cleaning: Resharding = { ...resharding, stage: 'cleaning', done: [] };
    return done(withCollection(state, collection, { ...record, shardMapVersion: index, resharding: cleaning }));
  });
}
