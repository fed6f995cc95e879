/** The time limit of the request that a worker carries out. */

import { TroupeError } from '../../protocols/errors.js';

export class Deadline {
  /** `Date.now()` at which work stops. */
  deadlineMs = Number.POSITIVE_INFINITY;

  /** For kernels, which ask every few microseconds of work. */
  readonly expired = (): boolean => Date.now() > this.deadlineMs;

  /** For loops in TypeScript. Errors: `timeout`. */
  check(): void {
    if (this.expired()) throw timeLimitReached();
  }
}

/** Checks the deadline of a read by its snapshots. Errors: `timeout`. */
export function checkDeadline(
  snapshots: readonly { readonly segments: readonly { readonly reader: { readonly deadline: Deadline } }[] }[],
): void {
  snapshots.find(({ segments }) => segments.length > 0)?.segments[0]?.reader.deadline.check();
}

export function timeLimitReached(): TroupeError {
  return new TroupeError('timeout', 'the read reached its time limit');
}

/** Of a write whose time was up before its turn came: nothing of it was logged. */
export function turnTooLate(): TroupeError {
  return new TroupeError('timeout', 'the request waited for its turn until its time was up', { outcome: 'none' });
}
