/**
 * State of the actor of backups.
 *
 * - **Backup-T1** Turns go by the date, which can be set at any time. A turn that was missed (the node was down, the date was set ahead, another
 *   plan was at work) is made up once, however many were missed.
 * - **Backup-T2** Where the date is set back by more than an hour, the next turn is counted from the new date. After a smaller step the next turn
 *   stays, so that none comes twice.
 * - **Backup-T3** One plan is at work at a time, and turns that come while a plan itself is at work are left out.
 * - **Backup-T4** Backups of a place are only removed after a newer one was made and, if the plan says so, looked through.
 */

import type { BackupOutcome } from './messages.js';
import type { BackupPlan } from './plan.js';

export type BackupsState = StartingBackups | WaitingBackups | WorkingBackups;

/** Looks at what was made before. */
export interface StartingBackups {
  readonly kind: 'Starting';
  readonly plans: readonly BackupPlan[];
}

export interface WaitingBackups {
  readonly kind: 'Waiting';
  readonly plans: readonly PlanStatus[];
  /** The latest date that this actor was told. */
  readonly dateMs: number;
}

export interface WorkingBackups {
  readonly kind: 'Working';
  readonly plans: readonly PlanStatus[];
  readonly dateMs: number;
  /** The name of the plan. */
  readonly running: string;
}

export interface PlanStatus {
  readonly plan: BackupPlan;
  readonly nextMs: number;
  /** When everything was last backed up without a failure, also before this start; null: never, as far as is known. */
  readonly lastSuccessMs: number | null;
  /** Turns of this process that had a failure. */
  readonly failures: number;
  readonly last: LastTurn | null;
}

/** The last turn in this process. */
export interface LastTurn extends BackupOutcome {
  /** When it ended. */
  readonly dateMs: number;
  readonly durationMs: number;
}

export function startingBackups(plans: readonly BackupPlan[]): StartingBackups {
  return { kind: 'Starting', plans };
}

export function waitingBackups(plans: readonly PlanStatus[], dateMs: number): WaitingBackups {
  return { kind: 'Waiting', plans, dateMs };
}

export function workingBackups(plans: readonly PlanStatus[], dateMs: number, running: string): WorkingBackups {
  return { kind: 'Working', plans, dateMs, running };
}
