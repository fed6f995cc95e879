/**
 * The order of a shard's operations. Each shard has one leader among its replicas, which gives every operation the next index
 * of the log; all replicas apply the same operations in the same order, so points have the same versions everywhere. Source: Lin et
 * al., «PacificA: Replication in Log-Based Distributed Storage Systems» (2008), with the cluster's consensus in the place of its
 * configuration manager.
 */

import type { PeerId } from './cluster.js';

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
