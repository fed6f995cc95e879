/**
 * A query as 8-bit codes are scored with it: 16-bit integers, so that a kernel multiplies eight components at once and
 * sums them exactly in 32 bits; and the factors that bring the sums back to the scale of the vectors.
 *
 * With component = scale * code + origin:
 * - dot:  Σ x q = scale * unit * Σ c * q16 + origin * Σ q, where unit = max |q| / bound;
 * - L2:   Σ (x - q)² = scale² * Σ (c - q16)², where q16 = round((q - origin) / scale);
 *         where a q16 lies so far out that squares could overflow: scale² * (Σ c² - 2 * unit * Σ c * q16 + Σ q'²);
 * - L1:   Σ |x - q| = scale * (Σ |c - q16| + what the query lies outside 0..255), which is exact as codes never leave 0..255.
 */

import type { Metric } from './kernel-api.js';
import type { Codes } from './quantize.js';

export interface CodeQuery {
  /** L2 by products: see above. */
  readonly far: boolean;
  readonly factor: number;
  readonly cross: number;
  readonly constant: number;
}

const INT32_MAX = 0x7fff_ffff;
const INT16_MAX = 0x7fff;
const FLOAT32_MAX = 3.4028234663852886e38;

/** Components of a padded row of one-byte elements. */
export function paddedDim(dim: number): number {
  return (dim + 15) & ~15;
}

/** Greatest |q16| for which no 32-bit lane of Σ c * q16 overflows. A lane sums a quarter of the products. */
function productBound(padded: number): number {
  return Math.min(INT16_MAX, Math.floor(INT32_MAX / (255 * (padded / 4))));
}

/** Greatest |c - q16| for which no 32-bit lane of Σ (c - q16)² overflows. */
function differenceBound(padded: number): number {
  return Math.min(INT16_MAX, Math.floor(Math.sqrt(INT32_MAX / (padded / 4))));
}

/**
 * Whether the 16-bit query is exact: then, if the codes are exact too (see `encodeCodes`), so are their scores, and
 * rescoring with the originals changes nothing.
 */
export function fitsCodes(metric: Metric, { scale, origin }: Codes, query: Float32Array): boolean {
  const padded = paddedDim(query.length);
  const products = metric === 'dot';
  const high = products ? productBound(padded) : differenceBound(padded);
  const low = products ? -high : 255 - high;
  for (let index = 0; index < query.length; index++) {
    const value = query[index] as number;
    const code = products ? value : (value - origin) / scale;
    if (Math.floor(code) !== code || code < low || code > high) return false;
  }
  return true;
}

/** Writes the query to `out` (Int16Array [paddedDim]) and tells how its sums become scores (higher is better). */
export function writeCodeQuery(metric: Metric, codes: Codes, query: Float32Array, out: Int16Array): CodeQuery {
  out.fill(0, query.length);
  if (metric === 'dot') return writeProducts(codes, query, out);
  if (metric === 'l1') return writeClamped(codes, query, out);
  return writeNear(codes, query, out) ?? writeFar(codes, query, out);
}

function writeProducts({ scale, origin }: Codes, query: Float32Array, out: Int16Array): CodeQuery {
  let largest = 0;
  let sum = 0;
  for (let index = 0; index < query.length; index++) {
    const value = finite(query[index] as number);
    const magnitude = Math.abs(value);
    if (magnitude > largest) largest = magnitude;
    sum += value;
  }
  const bound = productBound(out.length);
  // Whole numbers stay whole: their products are exact then.
  const unit = largest <= bound && query.every(Number.isInteger) ? 1 : largest / bound;
  const inverse = unit > 0 ? 1 / unit : 0;
  for (let index = 0; index < query.length; index++) out[index] = Math.floor(finite(query[index] as number) * inverse + 0.5);
  return { far: false, factor: scale * unit, cross: 0, constant: origin * sum };
}

/** Null: a component lies too far out. */
function writeNear({ scale, origin }: Codes, query: Float32Array, out: Int16Array): CodeQuery | null {
  const high = differenceBound(out.length);
  const low = 255 - high;
  const inverse = 1 / scale;
  for (let index = 0; index < query.length; index++) {
    const code = Math.floor(((query[index] as number) - origin) * inverse + 0.5);
    if (!(code >= low && code <= high)) return null;
    out[index] = code;
  }
  return { far: false, factor: -scale * scale, cross: 0, constant: 0 };
}

function writeFar({ scale, origin }: Codes, query: Float32Array, out: Int16Array): CodeQuery {
  let largest = 0;
  let squares = 0;
  for (let index = 0; index < query.length; index++) {
    const code = (finite(query[index] as number) - origin) / scale;
    largest = Math.max(largest, Math.abs(code));
    squares += code * code;
  }
  const unit = largest / productBound(out.length);
  for (let index = 0; index < query.length; index++) {
    out[index] = Math.floor((finite(query[index] as number) - origin) / scale / unit + 0.5);
  }
  return { far: true, factor: -scale * scale, cross: 2 * scale * scale * unit, constant: -scale * scale * squares };
}

function writeClamped({ scale, origin }: Codes, query: Float32Array, out: Int16Array): CodeQuery {
  let outside = 0;
  for (let index = 0; index < query.length; index++) {
    const code = (finite(query[index] as number) - origin) / scale;
    const clamped = Math.min(255, Math.max(0, code));
    outside += Math.abs(code - clamped);
    out[index] = Math.floor(clamped + 0.5);
  }
  return { far: false, factor: -scale, cross: 0, constant: -scale * outside };
}

function finite(value: number): number {
  if (Number.isNaN(value)) return 0;
  return Math.min(FLOAT32_MAX, Math.max(-FLOAT32_MAX, value));
}
