/** What a replication actor hears: requests of this node's doors, of its transfers, and calls of its peers. */

import type { DataAnswer, ReplicaCall } from '../../cluster/data-messages.js';
import type { ReplicationEffect, ReplicationInput } from '../../cluster/replication/messages.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { EncodedWrite, Written } from '../../storage/threads/messages.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Assignment } from './assignments.js';

export type ReplicationMessage =
  /** Its replica can be used, or cannot any more. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'closed'; readonly error: ErrorFacts }
  /** self: this node's peer. Null: the cluster has no such shard. isSettled: see `Assignments`. */
  | { readonly kind: 'assigned'; readonly self: PeerId; readonly assignment: Assignment | null; readonly isSettled: boolean }
  | WriteMessage
  | MissingMessage
  | CallMessage
  | TransferMessage
  /** What came of an effect, and time. */
  | { readonly kind: 'happened'; readonly input: ReplicationInput };

/**
 * Part of a request for this shard, which the replica takes if it leads. Errors: `conflict` (`notLeader`); those of the operations; `busy`,
 * `timeout`, and `unavailable` for too few replicas. Each says by its outcome whether the operations may be in the log.
 */
export interface WriteMessage {
  readonly kind: 'write';
  /** Of the request. */
  readonly operation: WriteOperation;
  /** As `encodeOperation` makes them. */
  readonly operations: readonly Uint8Array[];
  readonly until: EncodedWrite['until'];
  /** `Date.now()` at which it is not begun any more. */
  readonly deadlineMs: number;
  /** Present: what it cost here is added to it. */
  readonly usage?: HardwareUsage;
  /** Of resharding: what was acknowledged in another shard is taken here, however few replicas there are. */
  readonly isCopy?: true;
  readonly replyTo: ReplyTo<Written>;
}

/** Which of these points is not there after all writes before. Errors: as above. */
export interface MissingMessage {
  readonly kind: 'missing';
  readonly ids: readonly PointId[];
  readonly deadlineMs: number;
  readonly replyTo: ReplyTo<PointId | null>;
}

export interface CallMessage {
  readonly kind: 'call';
  readonly from: PeerId;
  readonly call: ReplicaCall;
  readonly replyTo: ReplyTo<DataAnswer>;
}

/** Of transfers, to the shard's leader. Errors: `conflict` where it does not lead; any other: another try may do. */
export type TransferMessage =
  /**
   * The peer gets what is written from now on, and what it lacks. mayReset: its log may begin anew at the leader's position where the
   * leader's does not continue it. One that has been attached is asked for its position again.
   */
  | { readonly kind: 'attach'; readonly peer: PeerId; readonly mayReset: boolean; readonly replyTo: ReplyTo<Attached> }
  /** Compares the digests of both as of one operation. */
  | { readonly kind: 'compare'; readonly peer: PeerId; readonly replyTo: ReplyTo<Compared> }
  /** Makes the points of these buckets those of the leader. */
  | { readonly kind: 'fill'; readonly peer: PeerId; readonly buckets: readonly number[]; readonly replyTo: ReplyTo<Filled> }
  /**
   * True once it has everything, and every later acknowledgement waits for it: until the agreed state says that it is Active, Dead
   * or gone, as an agreement on the transfer's end may be under way.
   */
  | { readonly kind: 'require'; readonly peer: PeerId; readonly replyTo: ReplyTo<boolean> }
  /** Nothing more goes to it, unless it is required. */
  | { readonly kind: 'release'; readonly peer: PeerId }
  /**
   * No write is taken from now on (`conflict`): true once all that were begun are answered. It ends by itself where no other leader
   * comes.
   */
  | { readonly kind: 'pause'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'resume' };

/** delta: the leader's log continues its own. rewound: once what the leader does not have was taken out of it. reset: it begins anew at the leader's position, with points as they were. */
export interface Attached {
  readonly how: 'delta' | 'rewound' | 'reset' | 'refused';
  /** That it lacked. */
  readonly entries: number;
}

export interface Compared {
  /** That differ. */
  readonly buckets: readonly number[];
  /** Of the leader, in each of these. */
  readonly points: readonly number[];
  /** Of the leader in all. */
  readonly total: number;
}

export interface Filled {
  /** Points that were changed, added or removed there. */
  readonly changed: number;
  readonly points: number;
  readonly bytes: number;
}

/** The agreed state is watched, and a replica that is open already is one; then what the decisions cause. */
export type ReplicationActorEffect = { readonly kind: 'begin' } | ReplicationEffect;
