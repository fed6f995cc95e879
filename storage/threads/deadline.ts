/** The limits of the request that a worker executes: time, work for this thread, and memory. */

import { TroupeError } from '../../protocols/errors.js';
import { effortNs, type Work } from '../../query/effort.js';
import type { HeldMemory } from '../memory/held-memory.js';
import { steadyNowMs } from './clock.js';
import { beat } from './pulse.js';

export class Deadline {
  /** `steadyNowMs()` at which work stops. */
  deadlineMs = Number.POSITIVE_INFINITY;
  /** Estimated work, in nanoseconds, above which the request is left to another thread. */
  effortNsMax = Number.POSITIVE_INFINITY;
  /** Estimated work of what was begun. */
  effortNs = 0;

  /** `steadyNowMs()` from which on the request is left to another thread, however little work was expected. */
  leaveAtMs = Number.POSITIVE_INFINITY;

  /** Of what was begun. */
  payloads = 0;

  /** Called before work is begun that grows with the data. Throws `TooHeavy`, before it costs much, where another thread should do it. */
  claim(work: Work): void {
    if (work.kind === 'payloads') this.payloads += work.count;
    this.effortNs += effortNs(work);
    if (this.effortNs > this.effortNsMax) throw new TooHeavy();
  }

  /** Memory of the request; null: it is not counted. */
  memory: HeldMemory | null = null;

  /** Called before memory is taken that grows with the answer, in bytes. Errors: `busy`. */
  hold(bytes: number): void {
    this.memory?.take(bytes);
  }

  /** Shared memory that says whether somebody still waits for the answer (`HeavyRead`); null: somebody does. */
  gone: Int32Array | null = null;

  /** Lets other threads go first, in one that is for heavy reads (`low-priority.ts`). */
  giveWay: (() => void) | null = null;

  /** Whether the time is over, or nobody waits. Cheap enough for kernels, which ask every few microseconds of work. */
  readonly expired = (): boolean => {
    beat();
    this.giveWay?.();
    return steadyNowMs() > this.deadlineMs || (this.gone !== null && Atomics.load(this.gone, 0) !== 0);
  };

  /** Throws once that is so, for loops in TypeScript, and `TooHeavy` where another thread should go on. Errors: `timeout`. */
  check(): void {
    if (this.expired()) throw timeLimitReached();
    if (steadyNowMs() > this.leaveAtMs) throw new TooHeavy();
  }
}

/** What printing an answer asks of its read. */
export type AnswerLimits = Pick<Deadline, 'check' | 'hold'>;

/** Of answers that are printed elsewhere than in a reader. */
export const NO_LIMITS: AnswerLimits = { check: () => {}, hold: () => {} };

/** The limits of the read that these snapshots belong to. */
export function limitsOf(snapshots: readonly Limited[]): Deadline | undefined {
  return snapshots.find(({ segments }) => segments.length > 0)?.segments[0]?.reader.deadline;
}

interface Limited {
  readonly segments: readonly { readonly reader: { readonly deadline: Deadline } }[];
}

/** Checks the deadline of the read that these snapshots belong to. Errors: `timeout`. */
export function checkDeadline(snapshots: readonly Limited[]): void {
  limitsOf(snapshots)?.check();
}

/** The request is too much work for this thread. No answer for a client: whoever sets `effortNsMax` or `leaveAtMs` catches it. */
export class TooHeavy extends Error {}

export function timeLimitReached(): TroupeError {
  return new TroupeError('timeout', 'the read did not finish within its timeout: retry, or raise `timeout`');
}

/** The error for a write whose time was over before its turn: nothing of it was logged. */
export function turnTooLate(): TroupeError {
  return new TroupeError('timeout', 'the request was queued until its timeout; nothing was done: retry, or raise `timeout`', {
    outcome: 'none',
  });
}
