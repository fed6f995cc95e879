/**
 * The order of a shard's operations. Each shard has one leader among its replicas, which gives every operation the next tick of
 * its clock; all replicas apply the same operations in the same order, so points have the same versions everywhere. Source:
 * Lin et al., «PacificA: Replication in Log-Based Distributed Storage Systems» (2008), with the cluster's consensus in the place
 * of its configuration manager.
 */

import type { PeerId } from './cluster.js';

/** The clock tag of an operation. A leader's clock is its shard's term: a later leader has a higher one. */
export interface ClockTag {
  /** The leader that gave it; 0 outside of a cluster. */
  readonly peer: PeerId;
  /** Term of the shard; 0 outside of a cluster. */
  readonly clock: number;
  /** Number of the operation in the shard's log, ascending; the version of the points it writes. A new leader leaves a gap. */
  readonly tick: number;
}

/** An operation of the shard's log. */
export interface ShardEntry {
  readonly tag: ClockTag;
  /** As `encodeOperation` makes it. */
  readonly operation: Uint8Array;
}

/** Before the first operation. */
export const NO_TAG: ClockTag = { peer: 0, clock: 0, tick: 0 };

export function isSameTag(one: ClockTag, other: ClockTag): boolean {
  return one.tick === other.tick && one.clock === other.clock && one.peer === other.peer;
}

/**
 * A leader's first tick is two multiples of this further for each term since that of the last operation it knows of, and it is never more
 * than half of one ahead of what all replicas have: so an operation that an earlier leader wrote for itself alone never shares its
 * tick, nor its points their version, with another one.
 */
export const TERM_TICKS = 2 ** 20;
