/** What happens to a replica's part in its shard's log, and what that causes. Source of the rules: `README.md`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { Written } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { DataAnswer, DataCall, ReplicaCall, ShardWrite } from '../data-messages.js';

/** The shard as the cluster has agreed on it. */
export interface ShardAssignment {
  readonly leader: PeerId | null;
  readonly term: number;
  readonly replicas: ReadonlyMap<PeerId, ReplicaState>;
  /** Index of the entry that made each replica. */
  readonly since: ReadonlyMap<PeerId, number>;
  /** `write_consistency_factor`: how many Active replicas must have a write, the leader's included. */
  readonly writeFactor: number;
}

/** Names a caller that waits for an answer of this type: a number that the shell knows. Every one is answered or refused, once. */
export type LogCaller<Answer = never> = number & { readonly __answer?: (answer: Answer) => void };

type WithoutHead<Call> = Call extends DataCall ? Omit<Call, 'shard' | 'since' | 'term' | 'leader'> : never;
/** To another replica of the shard; the shell adds which one and the term. */
export type PeerCall = WithoutHead<ReplicaCall>;

/** Calls of peers, as they came, for this replica. */
export type HeardCall = WithoutLife<ReplicaCall>;
type WithoutLife<Call> = Call extends DataCall ? Omit<Call, 'since'> : never;

/** What the leader gets of its own replica for another one. */
export type Fetch =
  | { readonly kind: 'settings' }
  | { readonly kind: 'digest' }
  | { readonly kind: 'buckets'; readonly buckets: readonly number[] };

export type Fetched =
  | { readonly kind: 'settings'; readonly operations: readonly Uint8Array[] }
  | { readonly kind: 'digest'; readonly at: LogTag; readonly buckets: BigUint64Array; readonly points: Uint32Array }
  | { readonly kind: 'buckets'; readonly at: LogTag; readonly points: number; readonly bytes: Uint8Array };

/** A part of a leader's own log after an operation. */
export type ReadPart =
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[] }
  /** It does not go back so far. */
  | { readonly kind: 'compacted' }
  /** It has no such operation; the newest that it has before. */
  | { readonly kind: 'diverged'; readonly before: LogTag | null };

/** run: of the role that asked; what an earlier role began is of no interest any more (Log-L13). */
export type ReplicationInput =
  /** The replica can be used, or cannot any more. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'closed'; readonly error: ErrorFacts }
  /** assignment: null where the cluster has no such shard. isSettled: this node knows everything that was agreed before it was started (Log-L5). */
  | { readonly kind: 'assigned'; readonly self: PeerId; readonly assignment: ShardAssignment | null; readonly isSettled: boolean }
  /** 100 ms have passed, or more; only while `needsTicks`. */
  | { readonly kind: 'tick' }
  | WriteInput
  | MissingInput
  /** A peer's call, for this replica. */
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
  /** Of entries that were taken over from another replica. */
  | { readonly kind: 'tookOver'; readonly run: number; readonly last: LogTag }
  | { readonly kind: 'takeOverFailed'; readonly run: number; readonly error: ErrorFacts }
  | { readonly kind: 'answered'; readonly run: number; readonly peer: PeerId; readonly call: number; readonly answer: DataAnswer }
  /** isLost: it may have been carried out. */
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
  /** isAlone: this peer is away, and nothing can be agreed on without it: no other leader can come (Log-L9). */
  | { readonly kind: 'aloneJudged'; readonly run: number; readonly peer: PeerId; readonly isAlone: boolean }
  /** What the disk says from now on, and at the start (Log-L9). */
  | { readonly kind: 'aheadNoted'; readonly isAhead: boolean }
  | { readonly kind: 'noteFailed'; readonly isAhead: boolean; readonly error: ErrorFacts }
  /** error: null where it is agreed. */
  | { readonly kind: 'deathProposed'; readonly peer: PeerId; readonly error: ErrorFacts | null };

/**
 * Part of a request for this shard, which the replica takes if it leads. Errors: `conflict` (`notLeader`); those of the operations; `busy`,
 * `timeout`, and `unavailable` for too few replicas. Each says by its outcome whether the operations may be in the log.
 */
export interface WriteInput extends ShardWrite {
  readonly kind: 'write';
  readonly caller: LogCaller<Written>;
  /** `Date.now()` at which it is not begun any more. */
  readonly deadlineMs: number;
  /** Present: what it cost here is added to it. */
  readonly usage?: HardwareUsage;
  /** Of resharding: what was acknowledged in another shard is taken here, however few replicas there are. */
  readonly isCopy?: true;
}

/** Which of these points is not there after all writes before. Errors: as of a write. */
export interface MissingInput {
  readonly kind: 'missing';
  readonly caller: LogCaller<PointId | null>;
  readonly ids: readonly PointId[];
  readonly deadlineMs: number;
}

/** Of transfers, to the shard's leader. Errors: `conflict` where it does not lead; any other: another try may do. */
export type TransferInput =
  /**
   * The peer gets what is written from now on, and what it lacks. mayReset: its log may begin anew at the leader's position where the
   * leader's does not continue it. One that has been attached is asked for its position again.
   */
  | { readonly kind: 'attach'; readonly caller: LogCaller<AttachResult>; readonly peer: PeerId; readonly mayReset: boolean }
  /** Compares the digests of both as of one operation. */
  | { readonly kind: 'compare'; readonly caller: LogCaller<CompareResult>; readonly peer: PeerId }
  /** Makes the points of these buckets those of the leader. */
  | { readonly kind: 'fill'; readonly caller: LogCaller<FillResult>; readonly peer: PeerId; readonly buckets: readonly number[] }
  /**
   * True once it has everything, and every later acknowledgement waits for it: until the agreed state says that it is Active, Dead
   * or gone, as an agreement on the transfer's end may be under way.
   */
  | { readonly kind: 'require'; readonly caller: LogCaller<true>; readonly peer: PeerId }
  /** Nothing more goes to it, unless it is required. */
  | { readonly kind: 'release'; readonly peer: PeerId }
  /** No write is taken from now on (`conflict`): true once all that were begun are answered. It ends by itself where no other leader comes. */
  | { readonly kind: 'pause'; readonly caller: LogCaller<true> }
  | { readonly kind: 'resume' };

export interface AttachResult {
  /**
   * delta: what the target has is the beginning of the leader's log, and the rest is on its way. rewound: so it is now, but points that it had
   * changed without the leader may differ. reset: its log begins anew at the leader's position; what it has there is anything.
   * refused: only a reset would do, and none was wanted: nothing has changed.
   */
  readonly how: 'delta' | 'rewound' | 'reset' | 'refused';
  /** That it lacked. */
  readonly entries: number;
}

export interface CompareResult {
  /** That differ. */
  readonly buckets: readonly number[];
  /** Of the leader, in each of these. */
  readonly points: readonly number[];
  /** Of the leader in all. */
  readonly total: number;
}

export interface FillResult {
  /** Points that were changed, added or removed on the target. */
  readonly changed: number;
  readonly points: number;
  readonly bytes: number;
}

export type TransferAnswer = AttachResult | CompareResult | FillResult | true;

/** Everything that asks the own replica is asked in the order of the effects. */
export type ReplicationEffect =
  | { readonly kind: 'tickLater' }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly text: string }
  /** The own position; an index that everything agreed on before has been applied at. */
  | { readonly kind: 'locate'; readonly run: number }
  | { readonly kind: 'barrier'; readonly run: number }
  | {
      readonly kind: 'logWrite';
      readonly run: number;
      readonly write: number;
      readonly leader: PeerId;
      readonly term: number;
      readonly indexAfter: number;
      readonly input: WriteInput;
    }
  | { readonly kind: 'takeOver'; readonly run: number; readonly previous: LogTag; readonly entries: readonly ShardEntry[] }
  | {
      readonly kind: 'call';
      readonly run: number;
      readonly peer: PeerId;
      readonly call: number;
      /** Of the replica that is meant. */
      readonly since: number;
      readonly leader: PeerId;
      readonly term: number;
      readonly request: PeerCall;
    }
  /** Of the own log. */
  | {
      readonly kind: 'read';
      readonly run: number;
      readonly peer: PeerId;
      readonly call: number;
      readonly after: LogTag;
      readonly bytesMax: number;
    }
  | { readonly kind: 'fetch'; readonly run: number; readonly peer: PeerId; readonly job: number; readonly fetch: Fetch }
  /** A call of a peer, on the own replica; the answer goes straight to the caller. */
  | { readonly kind: 'carryOut'; readonly caller: LogCaller<DataAnswer>; readonly call: HeardCall }
  | {
      readonly kind: 'findMissing';
      readonly caller: LogCaller<PointId | null>;
      readonly ids: readonly PointId[];
      readonly deadlineMs: number;
    }
  /** failure: what the operation came to on every replica. */
  | {
      readonly kind: 'acknowledge';
      readonly input: WriteInput;
      readonly numbers: readonly number[];
      readonly failure: ErrorFacts | null;
    }
  | { readonly kind: 'answer'; readonly caller: LogCaller; readonly answer: TransferAnswer }
  | { readonly kind: 'refuse'; readonly caller: LogCaller; readonly error: ErrorFacts }
  /** Answered with `aloneJudged` (Log-L9). */
  | { readonly kind: 'judgeAlone'; readonly run: number; readonly peer: PeerId }
  /** On disk, and answered with `aheadNoted` or `noteFailed`; one at a time. */
  | { readonly kind: 'noteAhead'; readonly isAhead: boolean }
  /**
   * To have it agreed, in this term only, that the replica on this peer is Dead; answered with `deathProposed`. from: what is known of it.
   * A proposal that comes late must not end a transfer that fills it again.
   */
  | { readonly kind: 'proposeDead'; readonly peer: PeerId; readonly from: ReplicaState | null; readonly term: number };
