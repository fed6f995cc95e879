/** Counts and durations of answered requests in memory that threads share: one thread counts, others read at any time. */

import { BUCKET_SECONDS, bucketOf, Durations } from '../../actors/context/durations.js';
import { ERROR_KINDS } from '../../protocols/errors.js';

/** Statuses of answers, ascending; 0 is that of gRPC for a good one. Of gRPC, other threads count no others. */
const STATUSES: readonly number[] = [...new Set([0, 200, ...Object.values(ERROR_KINDS).map(({ restStatus }) => restStatus)])].sort(
  (one, other) => one - other,
);
/** Numbers of one endpoint and status: count, sum, minimum, maximum, time of the last one, then the buckets. */
const FIXED = 5;
const NUMBERS = FIXED + BUCKET_SECONDS.length + 1;

export class SharedCounts {
  readonly #numbers: Float64Array;

  /** buffer: of `bytesFor` bytes, zero at first. */
  constructor(readonly buffer: SharedArrayBuffer) {
    this.#numbers = new Float64Array(buffer);
  }

  static bytesFor(endpoints: number): number {
    return endpoints * STATUSES.length * NUMBERS * Float64Array.BYTES_PER_ELEMENT;
  }

  /** endpoint: its place among the endpoints. */
  record(endpoint: number, status: number, milliseconds: number, dateMs: number): void {
    const numbers = this.#numbers;
    const at = (endpoint * STATUSES.length + STATUSES.indexOf(status)) * NUMBERS;
    const count = numbers[at] as number;
    numbers[at] = count + 1;
    numbers[at + 1] = (numbers[at + 1] as number) + milliseconds;
    numbers[at + 2] = count === 0 ? milliseconds : Math.min(numbers[at + 2] as number, milliseconds);
    numbers[at + 3] = Math.max(numbers[at + 3] as number, milliseconds);
    numbers[at + 4] = dateMs;
    const bucket = at + FIXED + bucketOf(milliseconds);
    numbers[bucket] = (numbers[bucket] as number) + 1;
  }

  /** What was counted for an endpoint, by status. */
  counts(endpoint: number): [status: number, durations: Durations][] {
    return STATUSES.flatMap((status, index): [number, Durations][] => {
      const at = (endpoint * STATUSES.length + index) * NUMBERS;
      const [count, totalMs, minMs, maxMs, lastMs] = this.#numbers.subarray(at, at + FIXED) as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      if (count === 0) return [];
      const durations = Object.assign(new Durations(), { count, totalMs, minMs, maxMs, lastMs });
      durations.buckets.set(this.#numbers.subarray(at + FIXED, at + NUMBERS));
      return [[status, durations]];
    });
  }
}
