/** The time limit of the request that a worker executes. */

import { TroupeError } from '../../protocols/errors.js';

export class Deadline {
  /** `Date.now()` at which work stops. */
  deadlineMs = Number.POSITIVE_INFINITY;

  /** Whether the time is over. Cheap enough for kernels, which ask every few microseconds of work. */
  readonly expired = (): boolean => Date.now() > this.deadlineMs;

  /** Throws once the time is over, for loops in TypeScript. Errors: `timeout`. */
  check(): void {
    if (this.expired()) throw timeLimitReached();
  }
}

/** Checks the deadline of the read that these snapshots belong to. Errors: `timeout`. */
export function checkDeadline(
  snapshots: readonly { readonly segments: readonly { readonly reader: { readonly deadline: Deadline } }[] }[],
): void {
  snapshots.find(({ segments }) => segments.length > 0)?.segments[0]?.reader.deadline.check();
}

export function timeLimitReached(): TroupeError {
  return new TroupeError('timeout', 'the read did not finish within its timeout: retry, or raise `timeout`');
}

/** The error for a write whose time was over before its turn: nothing of it was logged. */
export function turnTooLate(): TroupeError {
  return new TroupeError('timeout', 'the request was queued until its timeout; nothing was done: retry, or raise `timeout`', {
    outcome: 'none',
  });
}
