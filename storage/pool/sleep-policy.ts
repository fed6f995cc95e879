/** Which replicas fall asleep: no thread has anything of them open until somebody needs them. */

import type { ReplicaStats } from '../threads/messages.js';

export interface SleepLimits {
  /** So many replicas stay awake, however long nobody has used them. */
  readonly awakeKept: number;
  /** So many of those that could sleep may be awake; the ones that were used longest ago fall asleep. */
  readonly awakeMax: number;
  /** Beyond `awakeKept`, a replica falls asleep when nobody has used it for so many ticks, which are seconds. */
  readonly idleTicks: number;
}

/**
 * An awake replica costs three descriptors, up to 2 MB and a garbage collection of V8 now and then for its memory (measured with 500 collections
 * of 10 points × 32), a wake-up some milliseconds.
 */
export const SLEEP_LIMITS: SleepLimits = { awakeKept: 32, awakeMax: 256, idleTicks: 30 };

/** Replicas with more take too long to wake. */
const ROWS_MAX = 10_000;
const VECTOR_BYTES_MAX = 4 << 20;

/** Whether a replica could sleep: it is small, and nothing is under way that only its writer's memory knows. */
export function isSmallAndQuiet(stats: ReplicaStats): boolean {
  if (stats.queuedOperations > 0 || stats.deferredPoints > 0 || stats.unansweredUsage !== undefined) return false;
  let rows = 0;
  let bytes = 0;
  for (const segment of stats.segments) {
    if (segment.building) return false;
    rows += segment.rows;
    bytes += segment.vectorBytes;
  }
  return rows <= ROWS_MAX && bytes <= VECTOR_BYTES_MAX;
}

/**
 * Places of those that fall asleep now, longest unused first. lastUses: the tick of each one's last use; one that is used in this tick stays
 * awake.
 */
export function chooseSleepers(lastUses: readonly number[], tick: number, { awakeKept, awakeMax, idleTicks }: SleepLimits): number[] {
  const byUse = lastUses.map((_, at) => at).sort((one, other) => (lastUses[one] as number) - (lastUses[other] as number));
  const chosen: number[] = [];
  for (const at of byUse) {
    const left = lastUses.length - chosen.length;
    const unused = tick - (lastUses[at] as number);
    if (left <= awakeKept || unused <= 0 || (left <= awakeMax && unused < idleTicks)) break;
    chosen.push(at);
  }
  return chosen;
}
