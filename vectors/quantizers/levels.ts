/**
 * Codes of few levels: binary quantization (bits) and turbo quantization (bits or half bytes, rows turned at random first).
 *
 * With mean m and residual r = R (x - m), R the rotation or nothing: component i is coded as r_i ≈ length * d_i * level,
 * d the deviations. The levels are the best ones for normal distributions (Max, 1960). A row keeps
 * factor = |r|² / <r, r̂>, where r̂ = d * levels, which makes <p, r> ≈ factor * <p, r̂> free of bias (RaBitQ: Gao and Long, 2024):
 *
 * - dot: <q, x> = <q, m> + <R q, r>
 * - L2: -|x - q|² = 2 <R (q - m), r> - |r|² - |q - m|², with -|r|² as the row's bias
 * - L1: not kept by a rotation and no product: rows are coded unturned, |x_i - q_i| with the level in the place of x_i;
 *   with two bits, which then are side of the mean and far or near, as the plane through the four levels that fits best.
 *
 * A level of bits is a sum, ±a for one bit and ±a ±b for two: so <p, r̂> = Σ w_j (2 bit_j - 1), and the kernel needs
 * nothing but Σ u_j bit_j with w cut to whole numbers u.
 */

import type { Metric } from '../kernel-api.js';
import { bitCount, type CodeSpec, codeShape, layersOf, levelTable, secondBits } from '../quantizer-spec.js';
import { Rotation } from './rotation.js';

export type LevelSpec = Extract<CodeSpec, { kind: 'levels' }>;

/** How the kernel is told to score, see `kernels/quantized.ts`. */
export interface CodedQuery {
  readonly kernel: 'bits2' | 'bits4' | 'bits8' | 'halfBytesDot' | 'halfBytesL1';
  readonly factor: number;
  readonly cross: number;
  readonly constant: number;
}

/** Mean size of a normal component: the level of one bit. */
const ONE_LEVEL = 0.7979;
/** The four levels of two bits are ±OUTER ± INNER; beyond OUTER the greater ones are nearer. */
const OUTER = 0.9816;
const INNER = 0.5288;
/** The greater eight of the sixteen levels of half bytes, and the bounds between them. */
const SIXTEEN = [0.1284, 0.3881, 0.6568, 0.9424, 1.2562, 1.6181, 2.069, 2.7326];
const BOUNDS = [0.2582, 0.5224, 0.7996, 1.0993, 1.4371, 1.8435, 2.4008];
const LEVEL_MAX = 127;
const LEVEL_UNIT = 2.7326 / LEVEL_MAX;
/** Levels as the kernel has them: i8 [16], ascending. */
const LEVELS = Int8Array.from({ length: 16 }, (_, i) => {
  const level = Math.round((SIXTEEN[i < 8 ? 7 - i : i - 8] as number) / LEVEL_UNIT);
  return i < 8 ? -level : level;
});

const INT32_MAX = 0x7fff_ffff;
const DIFFERENCE_MAX = 0x7000;

/**
 * Means and deviations of a sample, as the table of the codes holds them.
 * sample: Float32Array [n, dim]; NaN counts as 0. table: Float32Array [tableBytes / 4].
 */
export function trainLevels(spec: LevelSpec, metric: Metric, sample: Float32Array, dim: number, table: Float32Array): void {
  const at = levelTable(spec, dim);
  const rows = Math.max(1, sample.length / dim);
  const deviations = new Float64Array(dim);
  for (let i = 0; i < dim; i++) {
    let sum = 0;
    for (let row = i; row < sample.length; row += dim) sum += finite(sample[row] as number);
    const mean = Math.fround(sum / rows);
    let squares = 0;
    for (let row = i; row < sample.length; row += dim) squares += (finite(sample[row] as number) - mean) ** 2;
    table[at.mean + i] = mean;
    deviations[i] = Math.sqrt(squares / rows);
  }
  if (spec.bits === 1.5) table.set(widest(deviations, secondBits(spec.bits, dim)), at.second);
  // Turned components are all alike; half bytes of L1 share one scale, as their differences are summed as they are.
  const common = spec.rotated ? 1 : rootMeanSquare(deviations) || 1;
  for (let i = 0; i < dim; i++)
    table[at.deviation + i] = spec.rotated || (metric === 'l1' && spec.bits === 4) ? common : (deviations[i] as number);
}

/** Codes rows and queries. It has room of its own to work in: one for each thread. */
export class LevelCoder {
  private readonly rotation: Rotation | null;
  private readonly mean: Float32Array;
  private readonly deviation: Float32Array;
  /** The components with a second bit. */
  private readonly second: Uint32Array;
  /** Weight of the first bit of each component. */
  private readonly firstLevel: Float64Array;
  private readonly residual: Float32Array;
  private readonly weights: Float64Array;
  private readonly codeBytes: number;

  /** table: as `trainLevels` wrote it; stays in use. */
  constructor(
    readonly spec: LevelSpec,
    private readonly metric: Metric,
    private readonly dim: number,
    table: Float32Array,
  ) {
    const at = levelTable(spec, dim);
    this.rotation = spec.rotated ? new Rotation(dim) : null;
    this.mean = table.subarray(at.mean, at.mean + dim);
    this.deviation = table.subarray(at.deviation, at.deviation + dim);
    const count = secondBits(spec.bits, dim);
    this.second = Uint32Array.from({ length: count }, (_, i) => (spec.bits === 2 ? i : (table[at.second + i] as number)));
    this.firstLevel = new Float64Array(dim).fill(ONE_LEVEL);
    for (const i of this.second) this.firstLevel[i] = OUTER;
    this.residual = new Float32Array(dim);
    this.weights = new Float64Array(bitCount(spec.bits, dim));
    this.codeBytes = codeShape(spec, dim).codeBytes;
  }

  /** Writes the codes of a row to `out` (Uint8Array [stride]). values: Float32Array [dim]. */
  encode(values: Float32Array, out: Uint8Array): void {
    const { residual, mean, dim } = this;
    for (let i = 0; i < dim; i++) residual[i] = finite(values[i] as number) - (mean[i] as number);
    this.rotation?.apply(residual);
    out.fill(0);
    const length = this.metric === 'l1' ? 1 : this.lengthOf(residual);
    const product = this.spec.bits === 4 ? this.writeHalfBytes(length, out) : this.writeBits(length, out);
    let squares = 0;
    for (const value of residual) squares += value * value;
    const tail = new DataView(out.buffer, out.byteOffset + this.codeBytes, 8);
    tail.setFloat32(0, this.metric === 'l1' ? 1 : product > 0 ? squares / product : 0, true);
    tail.setFloat32(4, this.metric === 'l2' ? -squares : 0, true);
  }

  /** Writes the query as the kernel takes it to `out` (Uint8Array [queryBytes]). query: Float32Array [dim]. */
  writeQuery(query: Float32Array, out: Uint8Array): CodedQuery {
    const { residual, mean, dim, metric } = this;
    let constant = 0;
    for (let i = 0; i < dim; i++) {
      const q = finite(query[i] as number);
      const m = mean[i] as number;
      const difference = q - m;
      residual[i] = metric === 'dot' ? q : difference;
      if (metric === 'dot') constant += q * m;
      // A power would be a call out of the loop.
      else if (metric === 'l2') constant -= difference * difference;
    }
    this.rotation?.apply(residual);
    const times = metric === 'l2' ? 2 : 1;
    if (this.spec.bits === 4) return this.writeHalfByteQuery(times, constant, out);
    return this.writeBitQuery(times, metric === 'l1' ? this.differenceWeights() : constant + this.productWeights(), out);
  }

  /** Root mean square of the residual in deviations. */
  private lengthOf(residual: Float32Array): number {
    let squares = 0;
    let count = 0;
    for (let i = 0; i < this.dim; i++) {
      const deviation = this.deviation[i] as number;
      if (deviation === 0) continue;
      squares += ((residual[i] as number) / deviation) ** 2;
      count++;
    }
    return squares > 0 ? Math.sqrt(squares / count) : 1;
  }

  /** Returns <r, r̂>. */
  private writeBits(length: number, out: Uint8Array): number {
    const { residual, deviation, firstLevel, second, dim } = this;
    let product = 0;
    for (let i = 0; i < dim; i++) {
      const value = residual[i] as number;
      if (value > 0) setBit(out, i);
      product += Math.abs(value) * (deviation[i] as number) * (firstLevel[i] as number);
    }
    for (let j = 0; j < second.length; j++) {
      const i = second[j] as number;
      const value = residual[i] as number;
      const far = Math.abs(value) > OUTER * length * (deviation[i] as number);
      // Far out both bits pull one way, near the mean against each other. Differences ask for far or near itself: a query
      // near the mean is about as far from one end as from the other.
      if (this.metric === 'l1' ? far : value > 0 === far) setBit(out, dim + j);
      product += (far ? 1 : -1) * Math.abs(value) * (deviation[i] as number) * INNER;
    }
    return product;
  }

  private writeHalfBytes(length: number, out: Uint8Array): number {
    const { residual, deviation, dim } = this;
    let product = 0;
    for (let i = 0; i < dim; i++) {
      const value = residual[i] as number;
      const scale = deviation[i] as number;
      const code = halfByteOf(scale > 0 ? value / (scale * length) : 0);
      out[i >>> 1] = (out[i >>> 1] as number) | (code << ((i & 1) * 4));
      product += value * scale * (LEVELS[code] as number) * LEVEL_UNIT;
    }
    return product;
  }

  /** Weights of the bits for products with the query in `residual`; returns what is to be added to all scores: nothing. */
  private productWeights(): number {
    const { residual, deviation, firstLevel, second, weights, dim } = this;
    for (let i = 0; i < dim; i++) weights[i] = (residual[i] as number) * (deviation[i] as number) * (firstLevel[i] as number);
    for (let j = 0; j < second.length; j++) {
      const i = second[j] as number;
      weights[dim + j] = (residual[i] as number) * (deviation[i] as number) * INNER;
    }
    return 0;
  }

  /** Weights of the bits for minus |x_i - q_i|; returns the sum of what each component has on average. */
  private differenceWeights(): number {
    const { residual, deviation, firstLevel, second, weights, dim } = this;
    let average = 0;
    for (let i = 0; i < dim; i++) {
      const [q, level] = [residual[i] as number, (deviation[i] as number) * (firstLevel[i] as number)];
      if (firstLevel[i] !== ONE_LEVEL) continue;
      const [low, high] = [-Math.abs(level + q), -Math.abs(level - q)];
      weights[i] = (high - low) / 2;
      average += (high + low) / 2;
    }
    for (let j = 0; j < second.length; j++) {
      const i = second[j] as number;
      const [q, scale] = [residual[i] as number, deviation[i] as number];
      // By side and far or near; the plane of least squares through the four.
      const of = (side: number, size: number) => -Math.abs(scale * side * size - q);
      const [near, far] = [OUTER - INNER, OUTER + INNER];
      const [none, one, two, both] = [of(-1, near), of(1, near), of(-1, far), of(1, far)];
      weights[i] = (one + both - none - two) / 4;
      weights[dim + j] = (two + both - none - one) / 4;
      average += (none + one + two + both) / 4;
    }
    return average;
  }

  /** Cuts the weights to whole numbers, those of fewer than 8 bits in layers. Σ w (2 b - 1) = unit * (2 Σ u b - Σ u). */
  private writeBitQuery(times: number, constant: number, out: Uint8Array): CodedQuery {
    const { weights, spec } = this;
    const { queryBits } = spec;
    const layers = layersOf(queryBits);
    let largest = 0;
    let total = 0;
    for (const weight of weights) {
      largest = Math.max(largest, Math.abs(weight));
      total += Math.abs(weight);
    }
    const unit = queryBits === 1 ? total / weights.length : largest / (2 ** (queryBits - 1) - 1);
    const inverse = unit > 0 ? 1 / unit : 0;
    out.fill(0);
    if (queryBits === 8) {
      const sum = writeNumbers(weights, inverse, out);
      return { kernel: 'bits8', factor: 2 * unit * times, cross: -unit * sum * times, constant };
    }
    let sum = 0;
    for (let first = 0; first < weights.length; first += 8) {
      // The bits of eight numbers, a byte for each layer.
      let bits = 0;
      const end = Math.min(8, weights.length - first);
      for (let bit = 0; bit < end; bit++) {
        const weight = weights[first + bit] as number;
        const whole = queryBits === 1 ? Math.sign(weight) : Math.floor(weight * inverse + 0.5);
        sum += whole;
        bits |= spread(whole) << bit;
      }
      // Byte j / 8 of a row meets byte (j / 8) % 16 of each layer of its 16 bytes.
      const at = (first >>> 7) * 16 * layers + ((first >>> 3) & 15);
      for (let layer = 0; layer < layers; layer++) out[at + layer * 16] = bits >>> (layer * 8);
    }
    return { kernel: `bits${layers}`, factor: 2 * unit * times, cross: -unit * sum * times, constant };
  }

  private writeHalfByteQuery(times: number, constant: number, out: Uint8Array): CodedQuery {
    const { residual, deviation, dim, metric } = this;
    const padded = this.codeBytes * 2;
    new Int8Array(out.buffer, out.byteOffset, 16).set(LEVELS);
    const query = new Int16Array(out.buffer, out.byteOffset + 16, padded);
    const differences = metric === 'l1';
    // Components that are not there have code 0, and the query has its level.
    query.fill(differences ? (LEVELS[0] as number) : 0);
    let largest = 0;
    for (let i = 0; i < dim; i++) largest = Math.max(largest, Math.abs((residual[i] as number) * (deviation[i] as number)));
    // Lanes sum a quarter of the products each, in 32 bits.
    const bound = Math.min(0x7fff, Math.floor(INT32_MAX / (LEVEL_MAX * (padded / 4))));
    const common = (deviation[0] as number) * LEVEL_UNIT;
    const unit = differences ? common : largest / bound;
    const inverse = unit > 0 ? 1 / unit : 0;
    for (let i = 0; i < dim; i++) {
      const value = differences ? (residual[i] as number) : (residual[i] as number) * (deviation[i] as number);
      const whole = Math.max(-DIFFERENCE_MAX, Math.min(bound, Math.round(value * inverse)));
      // Chunks of 32 components: the even ones (lower halves of the bytes), then the odd ones.
      query[(i & ~31) + (i & 1) * 16 + ((i & 31) >>> 1)] = whole;
    }
    if (differences) return { kernel: 'halfBytesL1', factor: -unit, cross: 0, constant: 0 };
    return { kernel: 'halfBytesDot', factor: unit * LEVEL_UNIT * times, cross: 0, constant };
  }
}

function halfByteOf(value: number): number {
  const size = Math.abs(value);
  let above = 0;
  while (above < 7 && size > (BOUNDS[above] as number)) above++;
  return value < 0 ? 7 - above : 8 + above;
}

/** Writes whole numbers of 8 bits in the order in which the kernel meets them; their sum. */
function writeNumbers(weights: Float64Array, inverse: number, out: Uint8Array): number {
  let sum = 0;
  for (let bit = 0; bit < weights.length; bit++) {
    const whole = Math.floor((weights[bit] as number) * inverse + 0.5);
    sum += whole;
    // Of 16 bytes of a row the highest bits come first.
    out[(bit >>> 7) * 128 + (7 - (bit & 7)) * 16 + ((bit >>> 3) & 15)] = whole;
  }
  return sum;
}

/** The four lowest bits of a number as the lowest bits of four bytes. */
function spread(whole: number): number {
  return (whole & 1) | ((whole & 2) << 7) | ((whole & 4) << 14) | ((whole & 8) << 21);
}

function setBit(bytes: Uint8Array, bit: number): void {
  bytes[bit >>> 3] = (bytes[bit >>> 3] as number) | (1 << (bit & 7));
}

/** The `count` components that vary most, ascending. */
function widest(deviations: Float64Array, count: number): Float32Array {
  const order = Array.from(deviations.keys()).sort((a, b) => (deviations[b] as number) - (deviations[a] as number) || a - b);
  return Float32Array.from(order.slice(0, count)).sort();
}

function rootMeanSquare(values: Float64Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares / values.length);
}

function finite(value: number): number {
  if (Number.isNaN(value)) return 0;
  return Math.min(1e18, Math.max(-1e18, value));
}
