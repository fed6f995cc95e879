/** Distance matrices: which points are in the sample, and which neighbours each of them gets. */

import { TopRows } from '../vectors/top-rows.js';

/**
 * `count` distinct numbers of 0..total-1 (all of them when there are fewer), ascending; every choice is equally likely.
 * random: 0 <= n < 1. Source: Floyd's algorithm (Bentley and Floyd, «A sample of brilliance», 1987).
 */
export function samplePositions(total: number, count: number, random: () => number): number[] {
  const chosen = new Set<number>();
  for (let last = Math.max(0, total - count); last < total; last++) {
    const position = Math.floor(random() * (last + 1));
    chosen.add(chosen.has(position) ? last : position);
  }
  return [...chosen].sort((a, b) => a - b);
}

/** In place, every order equally likely: `samplePositions` are in ascending order. random: 0 <= n < 1. */
export function shuffled<T>(found: T[], random: () => number): T[] {
  for (let last = found.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [found[last], found[other]] = [found[other] as T, found[last] as T];
  }
  return found;
}

/**
 * Positions of the `limit` best of `scores`, best first, smaller positions first among equals; `own` and NaN are left out.
 * better: which scores are better.
 */
export function nearestPositions(scores: Float32Array, own: number, limit: number, better: 'larger' | 'smaller'): Uint32Array {
  const sign = better === 'larger' ? 1 : -1;
  const top = new TopRows(Math.min(limit, scores.length));
  for (let at = 0; at < scores.length; at++) {
    const score = scores[at] as number;
    if (at !== own && !Number.isNaN(score)) top.add(at, sign * score);
  }
  return top.ranked().rows;
}
