/** What each random walk draws for itself, and what it counts. */

import { RAFT_DEFAULTS, type RaftConfig } from '../../../cluster/raft/config.js';
import type { RandomNumbers } from '../../../ops/random.js';

/** Chances of each message. */
export interface MessageRates {
  readonly loss: number;
  readonly doubling: number;
  /** To be taken from anywhere on its way instead of from the front. */
  readonly disorder: number;
}

/** What a walk came by. */
export interface WalkFigures {
  steps: number;
  /** Highest index that was committed. */
  committed: number;
  leaders: number;
  crashes: number;
  lost: number;
  doubled: number;
  partitions: number;
  snapshots: number;
  reads: number;
  memberships: number;
  removed: number;
  /** Rounds of ticks from the healing to agreement. */
  healed: number;
}

export function noFigures(): WalkFigures {
  return {
    steps: 0,
    committed: 0,
    leaders: 0,
    crashes: 0,
    lost: 0,
    doubled: 0,
    partitions: 0,
    snapshots: 0,
    reads: 0,
    memberships: 0,
    removed: 0,
    healed: 0,
  };
}

/** Small figures, so that every bound is met soon. */
export function drawConfig(random: RandomNumbers): Omit<RaftConfig, 'peerId'> {
  return {
    ...RAFT_DEFAULTS,
    electionTicks: pick(random, [2, 4, 8]),
    electionTicksSpread: pick(random, [1, 3, 6]),
    entryBytesMax: 40,
    appendBytesMax: pick(random, [10, 30, 1000]),
    appendsInFlightMax: pick(random, [1, 2, 8]),
    uncommittedBytesMax: pick(random, [60, 1000]),
    snapshotChunkBytes: pick(random, [4, 1000]),
    entriesKept: pick(random, [0, 2, 10]),
  };
}

export function drawRates(random: RandomNumbers): MessageRates {
  return { loss: maybe(random, 0.2), doubling: maybe(random, 0.1), disorder: maybe(random, 0.5) };
}

/** Nothing for one half of the walks, up to `most` for the others. */
export function maybe(random: RandomNumbers, most: number): number {
  return random.unit() < 0.5 ? 0 : random.unit() * most;
}

export function pick<Item>(random: RandomNumbers, items: readonly Item[]): Item {
  return items[random.integer(items.length)]!;
}
