/** How long requests took. */

import { quantile } from './quantile.js';

/** Milliseconds. */
export interface Waits {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** times: milliseconds, in any order. */
export function waitsOf(times: readonly number[]): Waits {
  const sorted = Float64Array.from(times).sort();
  return { count: sorted.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: sorted.at(-1) ?? 0 };
}
