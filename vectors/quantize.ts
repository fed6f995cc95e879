/**
 * 8-bit codes: component = scale * code + origin, one scale and origin for all components of a vector, so that integer
 * kernels serve every metric.
 */

export interface Codes {
  readonly scale: number;
  readonly origin: number;
}

/** The largest code. */
export const CODE_MAX = 255;

/** Clipping has to make the error this much smaller, or nothing is clipped. */
const CLIP_GAIN = 0.95;

/** Components looked at, at most. */
const SAMPLE_MAX = 200_000;

/** Shares of the components that may be clipped at each end. A normal distribution is coded best with about 0.004 % clipped. */
const CLIP_SHARES = [0.00001, 0.00004, 0.0001, 0.0003, 0.001, 0.003];

/**
 * Scale and origin that code components like these with the least absolute error, clipped outliers included.
 * (Squared error would let a single wild outlier stretch the range for all.)
 * values: Float32Array, components of a sample of rows; infinite ones are left out.
 * Whole numbers within a range of 255 are coded without loss: scale 1, origin their minimum.
 */
export function chooseCodes(values: Float32Array): Codes {
  const lossless = losslessCodes(values);
  if (lossless) return lossless;
  const sorted = sortedSample(values);
  if (sorted.length === 0) return { scale: 1, origin: 0 };
  let best = codesOf(sorted[0] as number, sorted[sorted.length - 1] as number);
  let bestError = CLIP_GAIN * absoluteError(sorted, 0, best.scale);
  for (const share of CLIP_SHARES) {
    const skip = Math.round(sorted.length * share);
    const low = sorted[skip] as number;
    const high = sorted[sorted.length - 1 - skip] as number;
    if (!(high > low)) break;
    const codes = codesOf(low, high);
    const error = absoluteError(sorted, skip, codes.scale);
    if (error >= bestError) continue;
    best = codes;
    bestError = error;
  }
  return best;
}

/**
 * Scale and origin that code the middle `quantile` of components like these (0.5..1) and clip what lies beyond at either end.
 * Null: as `chooseCodes`. Whole numbers within a range of 255 are never clipped. values: as in `chooseCodes`.
 */
export function quantileCodes(values: Float32Array, quantile: number | null): Codes {
  const lossless = quantile === null ? null : losslessCodes(values);
  if (quantile === null) return chooseCodes(values);
  if (lossless) return lossless;
  const sorted = sortedSample(values);
  if (sorted.length === 0) return { scale: 1, origin: 0 };
  const skip = Math.min((sorted.length - 1) >>> 1, Math.round((sorted.length * (1 - quantile)) / 2));
  return codesOf(sorted[skip] as number, sorted[sorted.length - 1 - skip] as number);
}

/**
 * Writes the codes of rows to `out` from byte `outOffset`, each row padded with zeros to `strideBytes`.
 * values: Float32Array [n, dim]. Components outside the range get the nearest code; NaN gets code 0.
 * Returns whether every component is exactly what its code stands for, which is never minus zero.
 */
export function encodeCodes(
  values: Float32Array,
  dim: number,
  strideBytes: number,
  codes: Codes,
  out: Uint8Array,
  outOffset: number,
): boolean {
  const rows = values.length / dim;
  const inverse = 1 / codes.scale;
  const { scale, origin } = codes;
  let exact = true;
  for (let row = 0; row < rows; row++) {
    const source = row * dim;
    const target = outOffset + row * strideBytes;
    for (let index = 0; index < dim; index++) {
      const value = values[source + index] as number;
      const code = (value - origin) * inverse + 0.5;
      const whole = code >= CODE_MAX ? CODE_MAX : code > 0 ? Math.floor(code) : 0;
      out[target + index] = whole;
      exact &&= scale * whole + origin === value && (value !== 0 || 1 / value > 0);
    }
    out.fill(0, target + dim, target + strideBytes);
  }
  return exact;
}

/**
 * Whether kernels, which multiply and add in float32, make of each code just what it stands for. Then exact codes (see `encodeCodes`) are all that
 * need be kept of the vectors.
 */
export function standForFloats({ scale, origin }: Codes): boolean {
  const [floatScale, floatOrigin] = [Math.fround(scale), Math.fround(origin)];
  for (let code = 0; code <= CODE_MAX; code++) {
    const value = scale * code + origin;
    if (!Number.isFinite(value) || Math.fround(Math.fround(floatScale * code) + floatOrigin) !== value) return false;
  }
  return true;
}

/** The components that codes stand for. codes: Uint8Array [n]. */
export function decodeCodes(codes: Uint8Array, { scale, origin }: Codes): Float32Array {
  const values = new Float32Array(codes.length);
  for (let index = 0; index < values.length; index++) values[index] = scale * (codes[index] as number) + origin;
  return values;
}

function codesOf(low: number, high: number): Codes {
  const scale = (high - low) / CODE_MAX;
  return { scale: scale > 0 && Number.isFinite(scale) ? scale : 1, origin: low };
}

function losslessCodes(values: Float32Array): Codes | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] as number;
    if (Math.floor(value) !== value) return null;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return values.length > 0 && high - low <= CODE_MAX ? { scale: 1, origin: low } : null;
}

/** Finite components, ascending, evenly picked. */
function sortedSample(values: Float32Array): Float32Array {
  // An odd step meets every component of a vector also where their number is even.
  const step = values.length <= SAMPLE_MAX ? 1 : Math.ceil(values.length / SAMPLE_MAX) | 1;
  const sample = new Float32Array(Math.ceil(values.length / step));
  let count = 0;
  for (let index = 0; index < values.length; index += step) {
    const value = values[index] as number;
    if (Number.isFinite(value)) sample[count++] = value;
  }
  return sample.subarray(0, count).sort();
}

/** Absolute error of coding `sorted` with `skip` components clipped at each end: rounding, and what is cut off. */
function absoluteError(sorted: Float32Array, skip: number, scale: number): number {
  const last = sorted.length - 1;
  const low = sorted[skip] as number;
  const high = sorted[last - skip] as number;
  let error = ((sorted.length - 2 * skip) * scale) / 4;
  for (let index = 0; index < skip; index++) {
    error += low - (sorted[index] as number) + ((sorted[last - index] as number) - high);
  }
  return error;
}
