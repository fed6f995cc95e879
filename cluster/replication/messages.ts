/** What happens to a replica's part in its shard's log, and what that causes. Source of the rules: `README.md`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { DataAnswer, DataCall, ReplicaCall } from '../data-messages.js';

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

/** Whoever waits for an answer: a number that the shell knows. */
export type Caller = number;

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

/** run: of the role that asked: what an earlier one began is of no interest any more. */
export type ReplicationInput =
  | { readonly kind: 'opened' }
  | { readonly kind: 'closed'; readonly error: ErrorFacts }
  /** isSettled: this node knows everything that was agreed before it was started (Log-L5). */
  | { readonly kind: 'assigned'; readonly self: PeerId; readonly assignment: ShardAssignment | null; readonly isSettled: boolean }
  /** 100 ms have passed, or more; only while `needsTicks`. */
  | { readonly kind: 'tick' }
  | WriteInput
  | { readonly kind: 'missing'; readonly caller: Caller; readonly ids: readonly PointId[]; readonly deadlineMs: number }
  | { readonly kind: 'called'; readonly caller: Caller; readonly from: PeerId; readonly call: HeardCall }
  | TransferInput
  | { readonly kind: 'located'; readonly run: number; readonly last: LogTag }
  /** Log-L9: no other leader can come while this peer is away. */
  | { readonly kind: 'excused'; readonly run: number; readonly peer: PeerId }
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
  | { readonly kind: 'fetchFailed'; readonly run: number; readonly peer: PeerId; readonly job: number; readonly error: ErrorFacts };

export interface WriteInput {
  readonly kind: 'write';
  readonly caller: Caller;
  /** Of the request. */
  readonly operation: WriteOperation;
  readonly operations: readonly Uint8Array[];
  readonly until: 'logged' | 'applied' | 'shown';
  readonly deadlineMs: number;
  readonly usage?: HardwareUsage;
  /** Of resharding: what was acknowledged in another shard is taken here, however few replicas there are. */
  readonly isCopy?: true;
}

export type TransferInput =
  | { readonly kind: 'attach'; readonly caller: Caller; readonly peer: PeerId; readonly mayReset: boolean }
  | { readonly kind: 'compare'; readonly caller: Caller; readonly peer: PeerId }
  | { readonly kind: 'fill'; readonly caller: Caller; readonly peer: PeerId; readonly buckets: readonly number[] }
  | { readonly kind: 'require'; readonly caller: Caller; readonly peer: PeerId }
  | { readonly kind: 'release'; readonly peer: PeerId }
  | { readonly kind: 'pause'; readonly caller: Caller }
  | { readonly kind: 'resume' };

/** Of transfers. */
export type TransferAnswer =
  | { readonly kind: 'attached'; readonly how: 'delta' | 'rewound' | 'reset' | 'refused'; readonly entries: number }
  | { readonly kind: 'compared'; readonly buckets: readonly number[]; readonly points: readonly number[]; readonly total: number }
  | { readonly kind: 'filled'; readonly changed: number; readonly points: number; readonly bytes: number }
  | { readonly kind: 'required' }
  | { readonly kind: 'paused' };

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
  | { readonly kind: 'carryOut'; readonly caller: Caller; readonly call: HeardCall }
  | { readonly kind: 'findMissing'; readonly caller: Caller; readonly ids: readonly PointId[]; readonly deadlineMs: number }
  /** failure: what the operation came to on every replica. */
  | {
      readonly kind: 'acknowledge';
      readonly input: WriteInput;
      readonly numbers: readonly number[];
      readonly failure: ErrorFacts | null;
    }
  | { readonly kind: 'answer'; readonly caller: Caller; readonly answer: TransferAnswer }
  | { readonly kind: 'refuse'; readonly caller: Caller; readonly error: ErrorFacts }
  /** That the replica on this peer is Dead, unless the shard has another term by now; or `excused` comes back, where nothing can be agreed (Log-L9). */
  | { readonly kind: 'proposeDead'; readonly run: number; readonly peer: PeerId; readonly term: number };
