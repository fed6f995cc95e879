/**
 * The transition table of replica states.
 *
 * - `Active` has everything and serves reads; `Initializing` is being made with its shard; `Dead` missed a write or cannot serve;
 * - `Partial` is the target of a transfer and takes writes; `PartialSnapshot` and `Recovery` are targets that wait for a snapshot or a log,
 *   and take no writes yet;
 * - `Listener` takes writes and serves no reads.
 *
 * The contract has four more states: `Resharding`, `ReshardingScaleDown`, `ActiveRead`, `ManualRecovery`. Requests and records that name
 * one are read, and refused where a replica would enter it: no event leads there.
 *
 * Source: specification, States and transitions; contract, `ReplicaState`.
 */

import type { ReplicaState, TransferMethod } from '../../protocols/model/cluster.js';

export type ReplicaEvent =
  /** Its node says that the replica has everything. */
  | 'activate'
  /** The same, and no other replica of its shard is Active, so there are no writes that it could have missed. */
  | 'activateAlone'
  /** The replica cannot serve, or missed a write. */
  | 'markDead'
  /** Its node only listens. */
  | 'listen'
  /** A transfer to it begins, or begins again, by this method. */
  | 'streamTo'
  | 'snapshotTo'
  | 'deltaTo'
  /** The snapshot or log that it waited for has arrived: it takes writes. */
  | 'catchUp'
  /** The transfer to it has brought everything. */
  | 'finish'
  /** The transfer to it ended without success. */
  | 'abort';

/** The states that a replica can enter. */
export type ReachedState = Exclude<ReplicaState, 'Resharding' | 'ReshardingScaleDown' | 'ActiveRead' | 'ManualRecovery'>;

/** ignore: the state stays. refuse: the caller is wrong about the state. */
type ReplicaMove = ReachedState | 'ignore' | 'refuse';

/** The transition table, states × events. */
export const REPLICA_STATE_MOVES: Readonly<Record<ReachedState, Readonly<Record<ReplicaEvent, ReplicaMove>>>> = {
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
  },
  Dead: {
    // The replica may have missed writes that another one has: a transfer brings them.
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
  },
};

/** The event that brings a replica to a state on request; null for states that only the start of a shard or a transfer brings. */
const EVENT_TO: Readonly<Record<ReachedState, ReplicaEvent | null>> = {
  Active: 'activate',
  Dead: 'markDead',
  Partial: 'catchUp',
  Initializing: null,
  Listener: 'listen',
  PartialSnapshot: null,
  Recovery: null,
};

interface TransferStart {
  /** The event of an existing target when the transfer starts. */
  readonly event: ReplicaEvent;
  /** The state of a new target; null if the target must exist already. */
  readonly fresh: ReachedState | null;
}

/** The start of a transfer by method; null for the method that does not bring a replica up to date. */
const TRANSFER_STARTS: Readonly<Record<TransferMethod, TransferStart | null>> = {
  stream_records: { event: 'streamTo', fresh: 'Partial' },
  snapshot: { event: 'snapshotTo', fresh: 'PartialSnapshot' },
  // A new replica has no log from which a difference could be computed.
  wal_delta: { event: 'deltaTo', fresh: null },
  resharding_stream_records: null,
};

/** States that the replicas of a new shard key may start in. */
export const FIRST_STATES: ReadonlySet<ReplicaState> = new Set(['Initializing', 'Active', 'Partial', 'Dead', 'Listener']);

/** The event that brings a replica to a state on request; null if no request can bring it there. */
export function eventTo(state: ReplicaState): ReplicaEvent | null {
  return isReached(state) ? EVENT_TO[state] : null;
}

/** The state after an event: the same state if nothing changes, null if the event is refused. */
export function afterEvent(state: ReplicaState, event: ReplicaEvent): ReplicaState | null {
  const move = isReached(state) ? REPLICA_STATE_MOVES[state][event] : 'refuse';
  if (move === 'refuse') return null;
  return move === 'ignore' ? state : move;
}

/**
 * The state of a transfer's target after the transfer starts, or starts again, by this method; null if it is refused. target: null for a
 * target that is made for the transfer.
 */
export function afterStart(method: TransferMethod, target: ReplicaState | null): ReplicaState | null {
  const start = TRANSFER_STARTS[method];
  if (start === null) return null;
  return target === null ? start.fresh : afterEvent(target, start.event);
}

function isReached(state: ReplicaState): state is ReachedState {
  return state in REPLICA_STATE_MOVES;
}
