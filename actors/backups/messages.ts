/** What the actor of backups hears and what it causes. Dates are in milliseconds since the epoch. */

import type { BackupPlan } from './plan.js';
import type { PlanStatus } from './state.js';

/** What a turn of a plan has done. */
export interface BackupOutcome {
  /** Snapshots that were made and, where the plan says so, looked through. */
  readonly made: number;
  /** Of these snapshots together. */
  readonly bytes: number;
  readonly removed: number;
  /** A sentence for each collection whose backup failed, and for each removal that did. */
  readonly failures: readonly string[];
}

export type BackupsMessage =
  /** newest: when the newest snapshot of each plan was made; a plan that has none is not in it. */
  | { readonly kind: 'surveyed'; readonly newest: ReadonlyMap<string, number>; readonly dateMs: number }
  /** Time has passed. */
  | { readonly kind: 'woke' }
  | { readonly kind: 'look'; readonly dateMs: number }
  | { readonly kind: 'ended'; readonly outcome: BackupOutcome; readonly dateMs: number; readonly durationMs: number };

export type BackupsEffect =
  /** Finds out what the plans made before this start. */
  | { readonly kind: 'survey'; readonly plans: readonly BackupPlan[] }
  /** A `woke` after a while. */
  | { readonly kind: 'wakeLater' }
  /** A `look`. */
  | { readonly kind: 'askDate' }
  | { readonly kind: 'backUp'; readonly plan: BackupPlan }
  /** For reports. */
  | { readonly kind: 'show'; readonly plans: readonly PlanStatus[] };
