/** Which backups of one place may go. */

import type { BackupRetention } from './plan.js';

/** A snapshot that a plan has made. */
export interface BackupSnapshot {
  readonly name: string;
  /** When it was made, in milliseconds since the epoch. */
  readonly timeMs: number;
}

const DAY_MS = 86_400_000;
/** 1 January 1970 was a Thursday: three days after a Monday. */
const DAYS_SINCE_MONDAY = 3;

/**
 * Names of those that go, the oldest first. backups: all that the plan has made of one place, in any order. made: the one that was just made; it
 * stays, also if the date was set back and others are of a later date.
 */
export function backupsToRemove(backups: readonly BackupSnapshot[], keep: BackupRetention | null, made: string): string[] {
  if (keep === null) return [];
  const newestFirst = backups.toSorted((one, other) => other.timeMs - one.timeMs || (one.name < other.name ? 1 : -1));
  const kept = new Set([
    made,
    ...newestOfEach(newestFirst, keep.last, (_, at) => at),
    ...newestOfEach(newestFirst, keep.daily, ({ timeMs }) => Math.floor(timeMs / DAY_MS)),
    ...newestOfEach(newestFirst, keep.weekly, ({ timeMs }) => Math.floor((Math.floor(timeMs / DAY_MS) + DAYS_SINCE_MONDAY) / 7)),
  ]);
  return newestFirst
    .map(({ name }) => name)
    .filter((name) => !kept.has(name))
    .reverse();
}

/** The newest backup of each of the first `count` periods. */
function newestOfEach(
  newestFirst: readonly BackupSnapshot[],
  count: number,
  periodOf: (backup: BackupSnapshot, at: number) => number,
): string[] {
  const newest = new Map<number, string>();
  newestFirst.forEach((backup, at) => {
    const period = periodOf(backup, at);
    if (!newest.has(period) && newest.size < count) newest.set(period, backup.name);
  });
  return [...newest.values()];
}
