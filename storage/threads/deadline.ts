/** The time limit of the request a worker is at. */

import { TroupeError } from '../../protocols/errors.js';

export class Clock {
  /** `Date.now()` at which work stops. */
  deadlineMs = Number.POSITIVE_INFINITY;

  /** For kernels, which ask every few microseconds of work. */
  readonly expired = (): boolean => Date.now() > this.deadlineMs;

  /** For loops in TypeScript. Errors: `timeout`. */
  check(): void {
    if (this.expired()) throw timeLimit();
  }
}

/** Looks at the clock of a read's snapshots. Errors: `timeout`. */
export function checkTime(snapshots: readonly { readonly segments: readonly { readonly reader: { readonly clock: Clock } }[] }[]): void {
  snapshots.find(({ segments }) => segments.length > 0)?.segments[0]?.reader.clock.check();
}

export function timeLimit(): TroupeError {
  return new TroupeError('timeout', 'the read reached its time limit');
}
