/**
 * Scores of short float16 vectors as the API shows them: each difference and product is rounded to float16, sums are
 * float32. Clients see these values; from 32 components on the reference calculates in float32, as the kernels do.
 * Source: scenario query-distances, steps float16-*.
 */

import type { Distance } from '../../../protocols/model/collection.js';
import { shownScore } from '../../../query/shown-score.js';
import { fromHalf, toHalf } from '../../../vectors/half.js';

/** Longer vectors are scored by the kernels alone. */
export const HALF_SCORE_DIM_MAX = 31;

/** The score as shown. a, b: values of float16. */
export function halfScore(distance: Distance, a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum = Math.fround(sum + term(distance, a[i] as number, b[i] as number));
  const isDistance = distance === 'Euclid' || distance === 'Manhattan';
  return shownScore(distance, isDistance ? -sum : sum);
}

function term(distance: Distance, a: number, b: number): number {
  switch (distance) {
    case 'Cosine':
    case 'Dot':
      return half(a * b);
    case 'Euclid':
      return half(half(a - b) ** 2);
    case 'Manhattan':
      return half(Math.abs(a - b));
  }
}

function half(value: number): number {
  return fromHalf(toHalf(value));
}
