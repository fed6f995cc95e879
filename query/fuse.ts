/** Fusion: one score per point from the lists of several searches. */

import type { PointId } from '../protocols/model/point-id.js';
import type { Page } from './merge.js';

const K_DEFAULT = 2;

/** What one search found. */
export interface ScoredList {
  readonly points: readonly { readonly id: PointId; readonly score: number }[];
  /** Which of its scores are better. */
  readonly better: Page['better'];
}

/**
 * Reciprocal rank fusion: the sum of `1 / ((rank + 1) / weight + k - 1)` over the lists that hold the point, best first,
 * ranks from 0. A point that a list repeats counts at its best rank; a weight of 0 or less adds nothing.
 * k: null for 2. weights: one per list, null for 1 each.
 * Source: scenario query-fusion and the contract's notes on behaviour.
 */
export function fuseRanks(
  lists: readonly (readonly PointId[])[],
  k: number | null,
  weights: readonly number[] | null,
): Map<PointId, number> {
  const scores = new Map<PointId, number>();
  lists.forEach((list, at) => {
    const weight = weights === null ? 1 : Math.max(0, weights[at] as number);
    let rank = 0;
    for (const id of new Set(list)) {
      rank++;
      const term = weight === 0 ? 0 : 1 / (rank / weight + (k ?? K_DEFAULT) - 1);
      scores.set(id, (scores.get(id) ?? 0) + term);
    }
  });
  return scores;
}

/**
 * Distribution-based fusion: the sum of the point's scores, each measured on its list's scale from three standard
 * deviations below the mean (0) to three above (1). Scores where less is better count from the other end; a list whose
 * scores are all the same gives 0.5. Source: scenario query-fusion (the deviation is that of a sample, n - 1).
 */
export function fuseDistributions(lists: readonly ScoredList[]): Map<PointId, number> {
  const sums = new Map<PointId, number>();
  for (const { points, better } of lists) {
    const scores = new Map<PointId, number>();
    for (const { id, score } of points) if (!scores.has(id)) scores.set(id, score);
    const { mean, deviation } = distributionOf([...scores.values()]);
    const sign = better === 'larger' ? 1 : -1;
    for (const [id, score] of scores) {
      const share = deviation === 0 ? 0.5 : 0.5 + (sign * (score - mean)) / (6 * deviation);
      sums.set(id, (sums.get(id) ?? 0) + share);
    }
  }
  return sums;
}

function distributionOf(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length < 2) return { mean, deviation: 0 };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: Math.sqrt(squares / (values.length - 1)) };
}
