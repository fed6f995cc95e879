/** Inputs and effects of one replica's part in the log of its shard. Source of the rules: `cluster/README.md`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LeaderTag, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import type { WriteOperation, Written } from '../../protocols/model/update.js';
import type { DataAnswer, DataCall, ReplicaCall } from '../data-messages.js';

/** The shard as the cluster has agreed on it. */
export interface ShardAssignment {
  readonly leader: PeerId | null;
  readonly term: number;
  readonly replicas: ReadonlyMap<PeerId, ReplicaState>;
  /** For each replica, the index of the entry of Raft's log that made it. */
  readonly since: ReadonlyMap<PeerId, number>;
  /** How many Active replicas must have a write, the leader's included: see `copiesNeeded`. */
  readonly writeFactor: number;
}

/** Names a caller that waits for an answer of this type: a number that the shell knows. Each caller is answered or refused exactly once. */
export type LogCaller<Answer = never> = number & { readonly __answer?: (answer: Answer) => void };

type WithoutHead<Call> = Call extends DataCall ? Omit<Call, 'shard' | 'since' | 'term' | 'leader'> : never;
/** A call to another replica of the shard. The shell adds the replica and the term. */
export type PeerCall = WithoutHead<ReplicaCall>;

/** A peer's call to this replica, as it came. */
export type HeardCall = WithoutLife<ReplicaCall>;
type WithoutLife<Call> = Call extends DataCall ? Omit<Call, 'since'> : never;

/** Data that the leader reads from its own replica to send it to another one. */
export type Fetch =
  | { readonly kind: 'settings' }
  | { readonly kind: 'digest' }
  | { readonly kind: 'buckets'; readonly buckets: readonly number[] };

export type Fetched =
  | { readonly kind: 'settings'; readonly operations: readonly Uint8Array[] }
  | { readonly kind: 'digest'; readonly at: LogTag; readonly buckets: BigUint64Array; readonly points: Uint32Array }
  | { readonly kind: 'buckets'; readonly at: LogTag; readonly points: number; readonly bytes: Uint8Array };

/** A part of the leader's own log after a given operation. */
export type ReadPart =
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[] }
  /** The log does not go back so far. */
  | { readonly kind: 'compacted' }
  /** The log does not have the given operation. before: the newest operation that it has before that place. */
  | { readonly kind: 'diverged'; readonly before: LogTag | null };

/** Inputs. run: number of the role that asked; answers to an earlier role are dropped (Log-L13). */
export type ReplicationInput =
  /** The replica's files are open, or they are closed now. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'closed'; readonly error: ErrorFacts }
  /**
   * The agreed state of the shard as this node knows it. assignment: null if the cluster has no such shard. isSettled: this node knows
   * everything that was agreed before its start (Log-L5).
   */
  | { readonly kind: 'assigned'; readonly self: PeerId; readonly assignment: ShardAssignment | null; readonly isSettled: boolean }
  /** 100 ms have passed, or more. Comes only while the state needs ticks. */
  | { readonly kind: 'tick' }
  | WriteInput
  | MissingInput
  /** A peer calls this replica. */
  | { readonly kind: 'called'; readonly caller: LogCaller<DataAnswer>; readonly from: PeerId; readonly call: HeardCall }
  | TransferInput
  | { readonly kind: 'located'; readonly run: number; readonly last: LogTag }
  | { readonly kind: 'locateFailed'; readonly run: number; readonly error: ErrorFacts }
  | { readonly kind: 'barrierPassed'; readonly run: number; readonly assignment: ShardAssignment | null }
  | { readonly kind: 'barrierFailed'; readonly run: number; readonly error: ErrorFacts }
  | {
      readonly kind: 'logged';
      readonly run: number;
      readonly write: number;
      readonly entries: readonly ShardEntry[];
      readonly failure: ErrorFacts | null;
    }
  | { readonly kind: 'logFailed'; readonly run: number; readonly write: number; readonly error: ErrorFacts }
  /** The own log has the entries that were taken over from another replica. */
  | { readonly kind: 'tookOver'; readonly run: number; readonly last: LogTag }
  | { readonly kind: 'takeOverFailed'; readonly run: number; readonly error: ErrorFacts }
  | { readonly kind: 'answered'; readonly run: number; readonly peer: PeerId; readonly call: number; readonly answer: DataAnswer }
  /** isLost: the peer may have executed the call. */
  | {
      readonly kind: 'callFailed';
      readonly run: number;
      readonly peer: PeerId;
      readonly call: number;
      readonly error: ErrorFacts;
      readonly isLost: boolean;
    }
  | { readonly kind: 'readDone'; readonly run: number; readonly peer: PeerId; readonly call: number; readonly part: ReadPart }
  | { readonly kind: 'readFailed'; readonly run: number; readonly peer: PeerId; readonly call: number; readonly error: ErrorFacts }
  | { readonly kind: 'fetched'; readonly run: number; readonly peer: PeerId; readonly job: number; readonly value: Fetched }
  | { readonly kind: 'fetchFailed'; readonly run: number; readonly peer: PeerId; readonly job: number; readonly error: ErrorFacts }
  /** isAlone: this peer is away and nothing can be agreed on without it, so no other leader can come (Log-L9). */
  | { readonly kind: 'aloneJudged'; readonly run: number; readonly peer: PeerId; readonly isAlone: boolean }
  /** The value of the note on disk from now on; also sent at the start (Log-L9). */
  | { readonly kind: 'aheadNoted'; readonly isAhead: boolean }
  | { readonly kind: 'noteFailed'; readonly isAhead: boolean; readonly error: ErrorFacts }
  /** error: null if the death is agreed. */
  | { readonly kind: 'deathProposed'; readonly peer: PeerId; readonly error: ErrorFacts | null };

/**
 * A write: the part of a request for this shard, which the replica takes if it leads. Errors: `conflict` (`notLeader`); those of the
 * operations; `busy`, `timeout`, and `unavailable` for too few replicas. Each says by its outcome whether the operations may be in the log.
 */
export interface WriteInput extends TimedWrite {
  readonly kind: 'write';
  readonly caller: LogCaller<Written>;
  /** The operation as the request has it. */
  readonly operation: WriteOperation;
  /** Set for copies by a migration: they are taken however few replicas there are, as the points were acknowledged in another shard. */
  readonly isCopy?: true;
  /** Set for what a migration writes: it is not acknowledged without a replica that is away (Log-L9), because stages end with it. */
  readonly waitsForAll?: true;
}

/** Asks for the first of these points that does not exist after all earlier writes. Errors: as for a write. */
export interface MissingInput {
  readonly kind: 'missing';
  readonly caller: LogCaller<PointId | null>;
  readonly ids: readonly PointId[];
  readonly deadlineMs: number;
}

/**
 * Requests of transfers to the shard's leader. Errors: `conflict` if this replica does not lead; after any other error the caller may try
 * again.
 */
export type TransferInput =
  /**
   * Sends the peer every later write and the entries that it lacks. mayReset: its log may begin at the leader's position where the leader's
   * log does not continue it. A peer that is attached already is asked for its position again.
   */
  | { readonly kind: 'attach'; readonly caller: LogCaller<AttachResult>; readonly peer: PeerId; readonly mayReset: boolean }
  /** Compares the digests of leader and peer as of one operation. */
  | { readonly kind: 'compare'; readonly caller: LogCaller<CompareResult>; readonly peer: PeerId }
  /** Replaces the peer's points in these buckets by those of the leader. */
  | { readonly kind: 'fill'; readonly caller: LogCaller<FillResult>; readonly peer: PeerId; readonly buckets: readonly number[] }
  /**
   * Makes the peer required. Answered with true once it has everything; every later acknowledgement waits for it, until the agreed state
   * says that it is Active, Dead or gone. An agreement on the transfer's end may be under way until then.
   */
  | { readonly kind: 'require'; readonly caller: LogCaller<true>; readonly peer: PeerId }
  /** Ends sending to the peer, unless it is required. */
  | { readonly kind: 'release'; readonly peer: PeerId }
  /**
   * Refuses writes from now on (`conflict`). Answered with true once all writes under way are answered. The pause ends by itself if no
   * other leader comes.
   */
  | { readonly kind: 'pause'; readonly caller: LogCaller<true> }
  | { readonly kind: 'resume' };

export interface AttachResult {
  /**
   * The way in which the target was attached.
   *
   * - `delta`: its log is the beginning of the leader's, and the rest is on its way;
   * - `rewound`: the same, after it dropped operations that the leader lacks; points that these had changed may differ;
   * - `reset`: its log begins at the leader's position, and nothing is known of its points;
   * - `refused`: only a reset would do and the caller did not allow one; nothing has changed.
   */
  readonly how: 'delta' | 'rewound' | 'reset' | 'refused';
  /** The number of entries that the target lacked. */
  readonly entries: number;
}

export interface CompareResult {
  /** The buckets that differ. */
  readonly buckets: readonly number[];
  /** The leader's number of points in each of `buckets`. */
  readonly points: readonly number[];
  /** The leader's number of points in all buckets. */
  readonly total: number;
}

export interface FillResult {
  /** Points that were changed, added or removed on the target. */
  readonly changed: number;
  readonly points: number;
  readonly bytes: number;
}

export type TransferAnswer = AttachResult | CompareResult | FillResult | true;

/** Effects. Requests to the own replica are sent in the order of the effects. */
export type ReplicationEffect =
  | { readonly kind: 'tickLater' }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly text: string }
  /** locate: asks the own replica for its position. barrier: waits until this node has applied everything that was agreed on before. */
  | { readonly kind: 'locate'; readonly run: number }
  | { readonly kind: 'barrier'; readonly run: number }
  | { readonly kind: 'logWrite'; readonly run: number; readonly write: number; readonly as: LeaderTag; readonly input: WriteInput }
  | { readonly kind: 'takeOver'; readonly run: number; readonly previous: LogTag; readonly entries: readonly ShardEntry[] }
  | {
      readonly kind: 'call';
      readonly run: number;
      readonly peer: PeerId;
      readonly call: number;
      /** Index of the entry that made the replica that is called. */
      readonly since: number;
      readonly leader: PeerId;
      readonly term: number;
      readonly request: PeerCall;
    }
  /** Reads a part of the own log. */
  | {
      readonly kind: 'read';
      readonly run: number;
      readonly peer: PeerId;
      readonly call: number;
      readonly after: LogTag;
      readonly bytesMax: number;
    }
  | { readonly kind: 'fetch'; readonly run: number; readonly peer: PeerId; readonly job: number; readonly fetch: Fetch }
  /** Has the own replica execute a peer's call. The answer goes straight to the caller. */
  | { readonly kind: 'carryOut'; readonly caller: LogCaller<DataAnswer>; readonly call: HeardCall }
  | {
      readonly kind: 'findMissing';
      readonly caller: LogCaller<PointId | null>;
      readonly ids: readonly PointId[];
      readonly deadlineMs: number;
    }
  /** failure: the error that the operation has on every replica; null if it succeeds. */
  | {
      readonly kind: 'acknowledge';
      readonly input: WriteInput;
      readonly numbers: readonly number[];
      readonly failure: ErrorFacts | null;
    }
  | { readonly kind: 'answer'; readonly caller: LogCaller; readonly answer: TransferAnswer }
  | { readonly kind: 'refuse'; readonly caller: LogCaller; readonly error: ErrorFacts }
  /** Asks whether the leader may go on without this peer. Answered with `aloneJudged` (Log-L9). */
  | { readonly kind: 'judgeAlone'; readonly run: number; readonly peer: PeerId }
  /** Writes the note to disk. Answered with `aheadNoted` or `noteFailed`; one at a time. */
  | { readonly kind: 'noteAhead'; readonly isAhead: boolean }
  /**
   * Proposes, for this term only, that the replica on this peer is Dead. Answered with `deathProposed`. from: the state in which this node
   * knows it, so that a late proposal does not end a transfer that fills it again.
   */
  | { readonly kind: 'proposeDead'; readonly peer: PeerId; readonly from: ReplicaState | null; readonly term: number };
