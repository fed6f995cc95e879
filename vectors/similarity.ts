/** How near two vectors are to each other, for values that stand in no segment (diversity, feedback). */

import type { VectorParams } from '../protocols/model/collection.js';
import type { VectorValue } from '../protocols/model/vector.js';
import { sparseDot } from './sparse/dot.js';

/**
 * Similarity of two values of one vector name: higher is nearer, whatever the distance. Dot product (also of sparse
 * vectors), cosine, minus squared Euclidean and minus Manhattan distance; of multivectors the sum over `a`'s vectors of
 * the best with `b`'s. It is what `shownScore` makes a shown score of.
 * params: of the dense or multivector name; null for sparse vectors. Both values are as they are stored or queried; cosine
 * divides their lengths out.
 */
export function similarity(params: Pick<VectorParams, 'distance'> | null, a: VectorValue, b: VectorValue): number {
  if (a.kind === 'sparse' || b.kind === 'sparse') {
    if (a.kind !== 'sparse' || b.kind !== 'sparse') throw new Error('a sparse vector is compared with sparse ones only');
    return sparseDot(a, b);
  }
  if (params === null) throw new Error('dense vectors have a distance');
  const dim = a.kind === 'multi' ? a.dim : b.kind === 'multi' ? b.dim : a.values.length;
  return Math.fround(maxSimilarity(params, a.values, b.values, dim));
}

/** MaxSim of two lists of vectors of `dim` components, one after another. */
export function maxSimilarity({ distance }: Pick<VectorParams, 'distance'>, a: Float32Array, b: Float32Array, dim: number): number {
  let sum = 0;
  for (let from = 0; from < a.length; from += dim) {
    let best = Number.NEGATIVE_INFINITY;
    for (let other = 0; other < b.length; other += dim) best = Math.max(best, similarityAt(distance, a, from, b, other, dim));
    sum += best;
  }
  return sum;
}

function similarityAt(
  distance: VectorParams['distance'],
  a: Float32Array,
  from: number,
  b: Float32Array,
  other: number,
  dim: number,
): number {
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
