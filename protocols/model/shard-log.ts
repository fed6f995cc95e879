/**
 * The order of a shard's operations. Each shard has one leader among its replicas, which gives every operation the next index
 * of the log; all replicas apply the same operations in the same order, so points have the same versions everywhere. Source: Lin et
 * al., «PacificA: Replication in Log-Based Distributed Storage Systems» (2008), with the cluster's consensus in the place of its
 * configuration manager.
 */

import type { PeerId } from './cluster.js';
import type { UndecodedUpdate } from './update.js';
import type { HardwareUsage } from './usage.js';
import type { HopNotes } from './write-hop.js';

/** Which operation of a shard's log this is. Two logs that have the same tag are the same up to there. */
export interface LogTag {
  /** The leader that gave it; 0 outside of a cluster. */
  readonly peer: PeerId;
  /** How many leaders the shard had had when it was given; 0 outside of a cluster. */
  readonly term: number;
  /** Number of the operation in the shard's log, ascending; the version of the points it writes. A new leader leaves a gap. */
  readonly index: number;
}

/** An operation of the shard's log. */
export interface ShardEntry {
  readonly tag: LogTag;
  /** As `encodeOperation` makes it. */
  readonly operation: Uint8Array;
  /**
   * When the leader took it up, right before it was acknowledged: the date by the leader's clock, in milliseconds. Absent where a release wrote it that
   * kept no times. Nothing in the order of the log depends on it, and it may fall where clocks do.
   */
  readonly timeMs?: number;
}

/** How far a log goes on after an operation until a time. */
export type LogReach =
  | {
      readonly kind: 'reaches';
      /** When the operation was acknowledged that was asked for; null: not known. */
      readonly fromMs: number | null;
      /** The last operation of those that follow without a later one in between, or the one that was asked for, and its time. */
      readonly to: LogTag;
      readonly toMs: number | null;
      readonly operations: number;
      readonly bytes: number;
      /** The time of the operation behind `to`; null: there is none. */
      readonly nextMs: number | null;
    }
  /** The log does not go back so far: the operation that it begins after, and the time of its first one, where there is one and it is known. */
  | { readonly kind: 'compacted'; readonly base: LogTag; readonly firstMs: number | null }
  /** The log has another operation there, or none. */
  | { readonly kind: 'diverged'; readonly last: LogTag }
  /** An operation that would have to be judged has no time. */
  | { readonly kind: 'untimed'; readonly at: LogTag };

/** A write to one shard: operations of one request or of a part of one. After one that fails, the others are not executed. */
export interface ShardWrite {
  /** The operations as `encodeUpdate` makes them. The caller keeps the memory, unless they are `undecoded`. */
  readonly operations: readonly Uint8Array[];
  /** When the write is answered: once it is on disk, once it is applied, or once reads see it. */
  readonly until: 'logged' | 'applied' | 'shown';
}

/** A write that a node carries out in time. */
export interface TimedWrite extends ShardWrite {
  /** Time (`steadyNowMs()`) from which the write is not begun any more, in milliseconds. */
  readonly deadlineMs: number;
  /** Where present, the cost of the write on this node is added to it. */
  readonly usage?: HardwareUsage;
  /**
   * Set where `operations` is the body of a request. Only for a replica without others: nobody gets the entries. To decode a request twice,
   * in a reader and in the replica, costs a tenth of an upload. Whoever writes it may give the body's memory away.
   */
  readonly undecoded?: UndecodedUpdate;
  /** Where present, the write is part of a trace, and what it goes through on this node is noted here. */
  readonly hops?: HopNotes;
}

/** What a leader gives to its next operations. */
export interface LeaderTag {
  readonly peer: PeerId;
  /** A lower term than the last operation's is refused as `conflict`. */
  readonly term: number;
  /** The operations get indexes larger than this. */
  readonly indexAfter: number;
}

/** Before the first operation. */
export const NO_TAG: LogTag = { peer: 0, term: 0, index: 0 };

export function isSameTag(one: LogTag, other: LogTag): boolean {
  return one.index === other.index && one.term === other.term && one.peer === other.peer;
}

/**
 * A leader's first index is two multiples of this further for each term since that of the last operation it knows of, and it is never more
 * than half of one ahead of what all replicas have: so an operation that an earlier leader wrote for itself alone never shares its
 * index, nor its points their version, with another one.
 */
export const TERM_GAP = 2 ** 20;
