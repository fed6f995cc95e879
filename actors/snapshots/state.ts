/**
 * State of the actor of snapshots: the works that run, and those that wait for their turn.
 *
 * - **Turn-S1** Works on one collection run one after the other, in the order in which they came: a restore replaces the files that
 *   the others read. A work on all collections runs alone.
 * - **Turn-S2** At most `WORKS_MAX` run at a time: they share one disk and one thread.
 */

import type { ReplyTo } from '../runtime/behaviour.js';
import type { SnapshotWork } from './messages.js';

export const WORKS_MAX = 2;

export type SnapshotsState = IdleSnapshots | WorkingSnapshots;

export interface IdleSnapshots {
  readonly kind: 'Idle';
  readonly ended: EndedWorks;
}

export interface WorkingSnapshots {
  readonly kind: 'Working';
  readonly ended: EndedWorks;
  /** At least one. */
  readonly running: readonly RunningWork[];
  /** In the order in which they came. */
  readonly waiting: readonly WaitingWork[];
}

/** Works that have ended in this life of the actor. */
export interface EndedWorks {
  readonly created: number;
  readonly restored: number;
  readonly failed: number;
  /** Of the last work that failed; null if none has. */
  readonly lastError: string | null;
}

export interface RunningWork extends SnapshotWork {
  readonly id: number;
  readonly doneBytes: number;
  /** 0 until it is known. */
  readonly totalBytes: number;
}

export interface WaitingWork extends SnapshotWork {
  readonly id: number;
  readonly replyTo: ReplyTo<number>;
}

const NO_WORKS: EndedWorks = { created: 0, restored: 0, failed: 0, lastError: null };

export function idleSnapshots(ended: EndedWorks = NO_WORKS): IdleSnapshots {
  return { kind: 'Idle', ended };
}

export function workingSnapshots(
  ended: EndedWorks,
  running: WorkingSnapshots['running'],
  waiting: WorkingSnapshots['waiting'],
): WorkingSnapshots {
  return { kind: 'Working', ended, running, waiting };
}
