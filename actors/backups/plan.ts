/** Plans of backups as the settings have them, and what their snapshots are called. */

import type { Cron } from './cron.js';

export interface BackupPlan {
  /** See `isPlanName`. */
  readonly name: string;
  readonly schedule: Cron;
  /** Names or aliases; `all`: those that this node has at that moment; `storage`: a snapshot of the whole storage. */
  readonly collections: readonly string[] | 'all' | 'storage';
  /** Null: nothing is ever removed. */
  readonly keep: BackupRetention | null;
  readonly verify: BackupCheck;
}

/** Which backups of a place stay: those that any of the three wants. At least one of them is above 0. */
export interface BackupRetention {
  /** The newest ones. */
  readonly last: number;
  /** The newest one of each of so many days (UTC) that have any. */
  readonly daily: number;
  /** As `daily`, of weeks that begin on Monday. */
  readonly weekly: number;
}

/**
 * How a backup is looked through before older ones may go.
 *
 * - `archive`: each member with its size and its checksum;
 * - `restore`: besides, each shard is unpacked in a temporary folder, and all of its points are read.
 */
export type BackupCheck = 'none' | 'archive' | 'restore';

const PLAN_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/;

/** Letters, digits, `_` and `-`, 32 at most: names of plans are parts of names of files, and labels of metrics. */
export function isPlanName(name: string): boolean {
  return PLAN_NAME.test(name);
}

/**
 * What stands before `.snapshot` in the names of a plan's snapshots from this peer. Snapshots that were made by a request have their time there,
 * so that none of them can be taken for a plan's.
 */
export function backupMark(plan: string, peer: number): string {
  return `.backup-${plan}-${peer}`;
}

/** When the backup of this name was made, in milliseconds since the epoch; null if it does not have this mark. */
export function backupTime(snapshotName: string, mark: string): number | null {
  const tail = `${mark}.snapshot`;
  if (!snapshotName.endsWith(tail)) return null;
  const found = /-(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)(?:-\d+)?$/.exec(snapshotName.slice(0, -tail.length));
  if (found === null) return null;
  const [, day, hour, minute, second] = found;
  const timeMs = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(timeMs) ? null : timeMs;
}
