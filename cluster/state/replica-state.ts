/**
 * Which state a replica comes to by each event: the one table of it.
 *
 * - `Active` has everything and serves; `Initializing` is being made with its shard; `Dead` missed something or cannot serve;
 * - `Partial` is the target of a transfer and takes writes; `PartialSnapshot` and `Recovery` are targets that wait for what a
 *   snapshot or a log has, and take none yet;
 * - `ManualRecovery` is being restored by hand; `Listener` takes writes and serves no reads;
 * - `Resharding`, `ReshardingScaleDown` and `ActiveRead` belong to resharding.
 *
 * Source: specification, States and transitions; contract, `ReplicaState`.
 */

import type { ReplicaState, TransferMethod } from '../../protocols/model/cluster.js';

export type ReplicaEvent =
  /** It has everything, says its node. */
  | 'activate'
  /** The same, and no other replica of its shard is Active: nothing is there that it could have missed. */
  | 'activateAlone'
  /** It cannot serve, or missed a write. */
  | 'markDead'
  /** Its node only listens. */
  | 'listen'
  /** A transfer to it begins, or begins anew, by this method. */
  | 'streamTo'
  | 'snapshotTo'
  | 'deltaTo'
  /** What it waited for is there: it takes writes. */
  | 'catchUp'
  /** The transfer to it has brought everything. */
  | 'finish'
  /** The transfer to it ended without success. */
  | 'abort'
  /** Somebody restores it from a snapshot. */
  | 'restore'
  /** Points come to its shard, or leave it, because the number of shards changes. */
  | 'reshardUp'
  | 'reshardDown'
  /** Its shard serves reads before resharding ends. */
  | 'openReads';

/** ignore: it stays as it is. refuse: whoever asks is wrong about its state. */
export type ReplicaMove = ReplicaState | 'ignore' | 'refuse';

/** States × events. */
export const REPLICA_MOVES: Readonly<Record<ReplicaState, Readonly<Record<ReplicaEvent, ReplicaMove>>>> = {
  Active: {
    activate: 'ignore',
    activateAlone: 'ignore',
    markDead: 'Dead',
    listen: 'Listener',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    finish: 'ignore',
    abort: 'ignore',
    restore: 'ManualRecovery',
    reshardUp: 'refuse',
    reshardDown: 'ReshardingScaleDown',
    openReads: 'refuse',
  },
  Dead: {
    // It may have missed writes that another replica has: a transfer brings them.
    activate: 'refuse',
    activateAlone: 'Active',
    markDead: 'ignore',
    listen: 'refuse',
    streamTo: 'Partial',
    snapshotTo: 'PartialSnapshot',
    deltaTo: 'Recovery',
    catchUp: 'refuse',
    finish: 'refuse',
    abort: 'ignore',
    restore: 'ManualRecovery',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  Partial: {
    activate: 'refuse',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'ignore',
    snapshotTo: 'PartialSnapshot',
    deltaTo: 'Recovery',
    catchUp: 'ignore',
    finish: 'Active',
    abort: 'Dead',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  Initializing: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'Listener',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    finish: 'refuse',
    abort: 'ignore',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  Listener: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'ignore',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    finish: 'refuse',
    abort: 'ignore',
    restore: 'ManualRecovery',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  PartialSnapshot: {
    activate: 'refuse',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'Partial',
    snapshotTo: 'ignore',
    deltaTo: 'Recovery',
    catchUp: 'Partial',
    finish: 'Active',
    abort: 'Dead',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  Recovery: {
    activate: 'refuse',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'Partial',
    snapshotTo: 'PartialSnapshot',
    deltaTo: 'ignore',
    catchUp: 'Partial',
    finish: 'Active',
    abort: 'Dead',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
  Resharding: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    // The other shards have not given their points yet.
    finish: 'ignore',
    abort: 'ignore',
    restore: 'refuse',
    reshardUp: 'ignore',
    reshardDown: 'refuse',
    openReads: 'ActiveRead',
  },
  ReshardingScaleDown: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    finish: 'ignore',
    abort: 'ignore',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'ignore',
    openReads: 'refuse',
  },
  ActiveRead: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'refuse',
    snapshotTo: 'refuse',
    deltaTo: 'refuse',
    catchUp: 'refuse',
    finish: 'ignore',
    abort: 'ignore',
    restore: 'refuse',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'ignore',
  },
  ManualRecovery: {
    activate: 'Active',
    activateAlone: 'Active',
    markDead: 'Dead',
    listen: 'refuse',
    streamTo: 'Partial',
    snapshotTo: 'PartialSnapshot',
    deltaTo: 'Recovery',
    catchUp: 'refuse',
    finish: 'refuse',
    abort: 'ignore',
    restore: 'ignore',
    reshardUp: 'refuse',
    reshardDown: 'refuse',
    openReads: 'refuse',
  },
};

/** The event by which a replica comes to a state on request; null for states that only the start of a shard or a transfer brings. */
export const EVENT_TO: Readonly<Record<ReplicaState, ReplicaEvent | null>> = {
  Active: 'activate',
  Dead: 'markDead',
  Partial: 'catchUp',
  Initializing: null,
  Listener: 'listen',
  PartialSnapshot: null,
  Recovery: null,
  Resharding: 'reshardUp',
  ReshardingScaleDown: 'reshardDown',
  ActiveRead: 'openReads',
  ManualRecovery: 'restore',
};

/** The event that the start of a transfer is to its target, and the state of a target that is new. */
export const TRANSFER_STARTS: Readonly<Record<TransferMethod, { readonly event: ReplicaEvent; readonly fresh: ReplicaState | null }>> = {
  stream_records: { event: 'streamTo', fresh: 'Partial' },
  snapshot: { event: 'snapshotTo', fresh: 'PartialSnapshot' },
  // There is no difference to send to a replica that has nothing.
  wal_delta: { event: 'deltaTo', fresh: null },
  resharding_stream_records: { event: 'reshardUp', fresh: null },
};

/** States that the replicas of a new shard key may start in. */
export const FIRST_STATES: ReadonlySet<ReplicaState> = new Set(['Initializing', 'Active', 'Partial', 'Dead', 'Listener']);

/** The state after an event; the same one when it changes nothing, null when it is refused. */
export function afterEvent(state: ReplicaState, event: ReplicaEvent): ReplicaState | null {
  const move = REPLICA_MOVES[state][event];
  if (move === 'refuse') return null;
  return move === 'ignore' ? state : move;
}
