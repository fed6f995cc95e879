/**
 * 8-bit codes that clip nothing, so that no vector is far from what its codes stand for, and how far MaxSim by such codes may be from
 * MaxSim by the vectors themselves. So a search can leave out rows by their codes and still find exactly the best.
 */

import { writeCodeQuery } from './code-query.js';
import type { Metric } from './kernel-api.js';
import { CODE_MAX, type Codes } from './quantize.js';

/** A range of more than this many standard deviations comes from outliers, and leaves too few codes to the others. Normal components take some 10. */
const RANGE_MAX = 40;
/** By how much of the sizes of its terms a sum of floats may be off for each addition, twice. */
const ADDITION_ROUNDING = 2 ** -23;

/** Collects the components of all vectors, part by part. */
export class ComponentRange {
  private low = Number.POSITIVE_INFINITY;
  private high = Number.NEGATIVE_INFINITY;
  private count = 0;
  private sum = 0;
  private squares = 0;
  private isWhole = true;

  add(values: Float32Array): void {
    let { low, high, sum, squares, isWhole } = this;
    for (let index = 0; index < values.length; index++) {
      const value = values[index] as number;
      if (value < low) low = value;
      if (value > high) high = value;
      sum += value;
      squares += value * value;
      isWhole &&= Math.floor(value) === value;
    }
    this.count += values.length;
    Object.assign(this, { low, high, sum, squares, isWhole });
  }

  /** Scale and origin of codes for all of them; null where such codes would tell little. Whole numbers within 255 are coded without loss. */
  codes(): Codes | null {
    const range = this.high - this.low;
    if (this.count === 0) return null;
    if (this.isWhole && range <= CODE_MAX) return { scale: 1, origin: this.low };
    const mean = this.sum / this.count;
    const deviation = Math.sqrt(Math.max(0, this.squares / this.count - mean * mean));
    return range <= RANGE_MAX * deviation && range > 0 ? { scale: range / CODE_MAX, origin: this.low } : null;
  }
}

/** The greatest length of the difference between a vector and what its codes stand for. values: [n, dim]; bytes: codes from `start` on. */
export function greatestLoss(
  values: Float32Array,
  dim: number,
  bytes: Uint8Array,
  start: number,
  stride: number,
  { scale, origin }: Codes,
): number {
  let most = 0;
  for (let from = 0, at = start; from < values.length; from += dim, at += stride) {
    let sum = 0;
    for (let index = 0; index < dim; index++) {
      const difference = (values[from + index] as number) - (scale * (bytes[at + index] as number) + origin);
      sum += difference * difference;
    }
    if (sum > most) most = sum;
  }
  return Math.sqrt(most);
}

/** By how much of the sizes of its terms a score of `dim` components may be off, as kernels add them up: in four sums, and with `more` additions to that. */
export function sumRounding(dim: number, more = 0): number {
  return ADDITION_ROUNDING * (dim / 4 + more + 16);
}

/** Between which scores that of a row is, by its score by codes. The least rises with that. */
export interface ScoreInterval {
  least(coded: number): number;
  most(coded: number): number;
}

/**
 * The interval of MaxSim scores, rounding of both kernels included; null: a component of the query is too far outside the codes to tell.
 * lost: `greatestLoss` of all rows. query: Float32Array [vectors, dim].
 */
export function maxSimInterval(
  metric: Metric,
  codes: Codes & { readonly lost: number },
  query: Float32Array,
  dim: number,
): ScoreInterval | null {
  const vectors = query.length / dim;
  const rounding = sumRounding(dim, vectors);
  const room = new Int16Array(Math.ceil(dim / 16) * 16);
  const farthest = Math.sqrt(dim) * Math.max(Math.abs(codes.origin), Math.abs(codes.origin + CODE_MAX * codes.scale)) + codes.lost;
  let error = 0;
  for (let from = 0; from < query.length; from += dim) {
    const vector = query.subarray(from, from + dim);
    const { far, factor } = writeCodeQuery(metric, codes, vector, room);
    if (far) return null;
    if (metric !== 'dot') continue;
    const length = lengthOf(vector);
    error += length * codes.lost + CODE_MAX * dim * (factor / 2) + rounding * length * farthest;
  }
  if (metric === 'dot') return shifted(error, 0);
  if (metric === 'l1') return shifted(vectors * (Math.sqrt(dim) * codes.lost + (dim * codes.scale) / 2), rounding);
  // Each distance may be off by so much, and scores are their squares: |d² - c²| <= off (2c + off), and Σc <= √(n Σc²).
  const off = codes.lost + (Math.sqrt(dim) * codes.scale) / 2;
  const spread = (coded: number) => off * (2 * Math.sqrt(vectors * Math.abs(coded)) + vectors * off) + rounding * Math.abs(coded);
  return { least: (coded) => coded - spread(coded), most: (coded) => coded + spread(coded) };
}

function shifted(error: number, share: number): ScoreInterval {
  return { least: (coded) => coded - error - share * Math.abs(coded), most: (coded) => coded + error + share * Math.abs(coded) };
}

function lengthOf(vector: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < vector.length; index++) sum += (vector[index] as number) ** 2;
  return Math.sqrt(sum);
}
