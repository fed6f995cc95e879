/** Commands that copy points from one shard key to another: see `KeyCopy`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { ShardKey } from '../../protocols/model/cluster.js';
import type { CommandOf } from '../state/commands.js';
import type { ClusterState, CollectionRecord, KeyCopy } from '../state/state.js';
import { refusedKey, shownKey } from './apply-collections.js';
import { type Change, done, onCollection, refused, transferMissing, withCollection, wrongInput } from './change.js';
import { copyTransfers, opensKey, shardsOfKey } from './migration.js';

export function startKeyCopy(state: ClusterState, command: CommandOf<'startKeyCopy'>): Change {
  const { collection, filter, source, target } = command;
  return onCollection(state, collection, (record) => {
    const error =
      refusedKey(collection, record) ?? refusedEnds(record, command) ?? refusedClosed(record, source) ?? refusedBusy(collection, record);
    if (error !== null) return refused(state, error);
    const keyCopy: KeyCopy = { source, target, filter, stage: 'copying', done: [], startedAt: state.appliedIndex };
    return done(withCollection(state, collection, { ...record, keyCopy }));
  });
}

/** The error if the copy's source or target does not allow it. Replicas may be away and shards may move, as their leaders copy. */
function refusedEnds(record: CollectionRecord, { source, target }: CommandOf<'startKeyCopy'>): ErrorFacts | null {
  if (source === target) return wrongInput(`points of shard key ${shownKey(source)} cannot be copied to itself`);
  for (const key of [source, target]) {
    const shards = shardsOfKey(record, key);
    if (shards.length === 0) return wrongInput(`Shard key ${shownKey(key)} not found`);
    const headless = shards.find((shardId) => record.shards.get(shardId)?.leader === null);
    if (headless === undefined) continue;
    return { code: 'conflict', detail: `shard ${headless} of shard key ${shownKey(key)} has no Active replica` };
  }
  return null;
}

/** The record after a stage of the copy. A copy to a key that was open all the time has no stage of switching. */
export function afterCopyStage(record: CollectionRecord, keyCopy: KeyCopy, index: number): CollectionRecord {
  if (!opensKey(record, keyCopy)) return { ...record, keyCopy: null };
  if (keyCopy.stage === 'copying') return { ...record, keyCopy: { ...keyCopy, stage: 'switching', done: [] } };
  const closedKeys = record.closedKeys.filter((key) => key !== keyCopy.target);
  return { ...record, closedKeys, shardMapVersion: index, keyCopy: null };
}

/**
 * Ends a copy without success. Points that were copied stay: those in a closed key are hidden, and the next copy to it removes what it does
 * not bring.
 */
export function abortKeyCopy(state: ClusterState, command: CommandOf<'abortTransfer'>): Change {
  return onKeyCopy(state, command, (record) => ({ ...record, keyCopy: null }));
}

export function restartKeyCopy(state: ClusterState, command: CommandOf<'restartTransfer'>): Change {
  const { method } = command;
  if (method !== 'stream_records')
    return refused(state, wrongInput(`a transfer to another shard uses the method \`stream_records\`, not \`${method}\``));
  return onKeyCopy(state, command, (record, keyCopy) => {
    return { ...record, keyCopy: { ...keyCopy, stage: 'copying', done: [], startedAt: state.appliedIndex } };
  });
}

/** Changes the copy that one of its transfers names, whichever peers lead the shards by now. */
function onKeyCopy(
  state: ClusterState,
  { collection, transfer }: Pick<CommandOf<'abortTransfer'>, 'collection' | 'transfer'>,
  change: (record: CollectionRecord, keyCopy: KeyCopy) => CollectionRecord,
): Change {
  const { shardId, toShardId } = transfer;
  return onCollection(state, collection, (record) => {
    const { keyCopy } = record;
    const isIt = copyTransfers(record).some((one) => one.shardId === shardId && one.toShardId === toShardId);
    if (keyCopy !== null && isIt) return done(withCollection(state, collection, change(record, keyCopy)));
    return refused(state, transferMissing(collection, transfer));
  });
}

/** The error if the collection is being resharded or copied already, else null. */
export function refusedBusy(collection: string, { keyCopy, resharding }: CollectionRecord): ErrorFacts | null {
  if (resharding !== null) return { code: 'conflict', detail: `Collection \`${collection}\` is being resharded already` };
  if (keyCopy === null) return null;
  const { source, target } = keyCopy;
  const detail = `points of shard key ${shownKey(source)} of collection \`${collection}\` are being copied to ${shownKey(target)}: wait until they are there`;
  return { code: 'conflict', detail };
}

export function refusedClosed({ closedKeys }: CollectionRecord, key: ShardKey): ErrorFacts | null {
  if (!closedKeys.includes(key)) return null;
  return wrongInput(`shard key ${shownKey(key)} has no points before \`replicate_points\` has filled it`);
}
