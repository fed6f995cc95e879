/** What rows score at most, by codes with a scale of each row's own: the numbers of a query for `kernels/row-codes.ts`. */

import type { Metric } from './kernel-api.js';
import { sumRounding } from './unclipped.js';

/** Rows of fewer components are as soon read as their codes. */
export const ROW_CODES_DIM_MIN = 64;
/** A scan of fewer rows is over before their codes pay. */
export const ROW_CODES_ROWS_MIN = 512;
/** Of the four f32 of each row. */
export const ROW_FACTS_BYTES = 16;

/** A row scores at most `gain * (product of the codes + lost * reach + length * slack) + length² * weight + constant`. */
export interface MostByRowCodes {
  readonly gain: number;
  readonly reach: number;
  readonly slack: number;
  readonly weight: number;
  readonly constant: number;
}

/** Lengths of queries for which no step and no product leaves the range of single floats. Rows beyond have no codes: `encodeRow`. */
const LENGTH_MIN = 1e-10;
const LENGTH_MAX = 1e15;

/**
 * steps: the query as the codes are multiplied with it, each a `unit`. By |x - q|² = |x|² - 2 x · q + |q|² the least distance follows from the greatest product. Rounding is
 * that of both kernels, and of the numbers that these bounds are made of. Null: the query is too long or too short, or no number.
 */
export function mostByRowCodes(metric: Exclude<Metric, 'l1'>, query: Float32Array, steps: Int16Array, unit: number): MostByRowCodes | null {
  let square = 0;
  let restSquare = 0;
  for (let index = 0; index < query.length; index++) {
    const component = query[index] as number;
    square += component ** 2;
    restSquare += (component - (steps[index] as number) * unit) ** 2;
  }
  const length = Math.sqrt(square);
  if (!(length > LENGTH_MIN && length < LENGTH_MAX)) return null;
  const rounding = sumRounding(query.length);
  const slack = Math.sqrt(restSquare) + rounding * length;
  if (metric === 'dot') return { gain: 1, reach: length, slack, weight: 0, constant: 0 };
  // The distance of two rows is at most the sum of their lengths, and its square at most twice the sum of their squares.
  const share = 1 - 4 * rounding;
  return { gain: 2, reach: length, slack, weight: -share, constant: -square * share };
}
