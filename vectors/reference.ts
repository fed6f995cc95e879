/** What the kernels compute, in plain TypeScript and double precision: for tests, and to read what a kernel means. */

import type { Metric } from './kernel-api.js';

export interface ScoredRow {
  readonly row: number;
  readonly score: number;
}

/** Score of one row, higher is better. row, query: [dim]. */
export function referenceScore(metric: Metric, row: ArrayLike<number>, query: ArrayLike<number>): number {
  let sum = 0;
  for (let index = 0; index < query.length; index++) {
    const [x, q] = [row[index] as number, query[index] as number];
    sum += metric === 'dot' ? x * q : metric === 'l2' ? (x - q) ** 2 : Math.abs(x - q);
  }
  return metric === 'dot' ? sum : 0 - sum;
}

/** The k best, best first, ties by smaller row. NaN counts as minus infinity. */
export function referenceTop(scored: readonly ScoredRow[], k: number): ScoredRow[] {
  return scored
    .map(({ row, score }) => ({ row, score: Number.isNaN(score) ? Number.NEGATIVE_INFINITY : score }))
    .sort((one, other) => (one.score === other.score ? one.row - other.row : other.score - one.score))
    .slice(0, k);
}
