/** MaxSim in plain TypeScript, for values that no kernel scores. */

import type { Distance } from '../protocols/model/collection.js';

/**
 * Over the vectors of `a` the sum of the best similarity that one of `b`'s has: higher is nearer, whatever the distance, as
 * with kernels, but cosine divides the lengths out.
 * a, b: [count, dim], count >= 1.
 */
export function maxSimilarity(distance: Distance, a: Float32Array, b: Float32Array, dim: number): number {
  let sum = 0;
  for (let from = 0; from < a.length; from += dim) {
    let best = Number.NEGATIVE_INFINITY;
    for (let other = 0; other < b.length; other += dim) best = Math.max(best, similarityAt(distance, a, from, b, other, dim));
    sum += best;
  }
  return sum;
}

function similarityAt(distance: Distance, a: Float32Array, from: number, b: Float32Array, other: number, dim: number): number {
  let sum = 0;
  let squaresA = 0;
  let squaresB = 0;
  for (let i = 0; i < dim; i++) {
    const x = a[from + i] as number;
    const y = b[other + i] as number;
    if (distance === 'Euclid') sum -= (x - y) ** 2;
    else if (distance === 'Manhattan') sum -= Math.abs(x - y);
    else sum += x * y;
    squaresA += x * x;
    squaresB += y * y;
  }
  if (distance !== 'Cosine') return sum;
  const lengths = Math.sqrt(squaresA * squaresB);
  return lengths === 0 ? 0 : sum / lengths;
}
