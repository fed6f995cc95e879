/**
 * Which element type a graph is built in. A build in 8 bits takes a third of the CPU of one in f32 (60k × 784: 9.2 s
 * against 28 s, same recall), so the smallest type that keeps the order of neighbours is taken, and a larger one only
 * when the finished graph misses neighbours, and its type confuses as many as to be the reason.
 */

export type GraphElement = 'i8' | 'f16' | 'f32';

/** Metrics usearch builds in. */
export type BuildMetric = 'l2sq' | 'ip';

/** A graph below this recall is built again in the next type, if its type is to blame. */
export const RECALL_MIN = 0.95;

/** A type is tried when it keeps this share of the nearest neighbours. */
const FIDELITY_MIN = 0.9;
/** A larger type must keep this much more. */
const FIDELITY_GAIN = 0.01;
/**
 * Of the neighbours that a graph misses, the share that the next type must keep and its own does not. A graph that misses more does so because the data
 * is hard for every type. Random directions, ef 100, of whose neighbours 8 bits keep 0.92 to 0.94: 10,000 × 256, recall 0.84 in 8 bits, 0.85 in 16;
 * 20,000 × 128, 0.81 and 0.82, each for 2.7 times the CPU. Among products it is set by vectors of unequal lengths whose graph in 8 bits finds too few:
 * usearch brings rows of 8 bits to one length, which the fidelity here does not know.
 */
const BLAME_MIN = { l2sq: 0.75, ip: 0.35 } as const;

const NEIGHBOURS = 10;
const SAMPLE_QUERIES = 12;
/** Beyond this norms differ, and a dot product orders otherwise than the distance does. */
const NORM_SPREAD = 0.01;

export interface TypeFidelity {
  readonly element: GraphElement;
  /** Share of the nearest neighbours in f32 that are so in this type too, 0..1. */
  readonly fidelity: number;
}

/** Types to try, in order: the first that keeps enough neighbours, and those after it that keep more. Never empty. */
export function buildLadder(types: readonly TypeFidelity[]): TypeFidelity[] {
  const first = types.findIndex((type) => type.fidelity >= FIDELITY_MIN);
  const from = first < 0 ? types.length - 1 : first;
  const ladder: TypeFidelity[] = [];
  let reached = Number.NEGATIVE_INFINITY;
  for (const type of types.slice(from)) {
    if (type.fidelity < reached + FIDELITY_GAIN) continue;
    ladder.push(type);
    reached = type.fidelity;
  }
  return ladder;
}

/** Whether a graph of some recall is to be built again in the next type of the ladder. */
export function isWorthNext(recall: number, metric: BuildMetric, type: TypeFidelity, next: TypeFidelity | undefined): boolean {
  return recall < RECALL_MIN && next !== undefined && next.fidelity - type.fidelity >= BLAME_MIN[metric] * (1 - recall);
}

/**
 * Share of the nearest neighbours of a row that stay so when it and those around it are rounded to another type.
 * originals, rounded: Float32Array [n, dim], the same rows; the row is `query`. Those around it are in an order that tells nothing of their
 * distance, as ties are taken in order.
 */
export function typeFidelity(originals: Float32Array, rounded: Float32Array, dim: number, metric: BuildMetric, query: number): number {
  const rows = originals.length / dim;
  const nearest = Math.min(NEIGHBOURS, rows - 1);
  if (nearest <= 0) return 1;
  const exact = distancesTo(originals, dim, query, metric);
  const seen = distancesTo(rounded, dim, query, metric);
  const bound = smallest(exact, nearest)[nearest - 1] as number;
  let kept = 0;
  for (const row of smallestRows(seen, nearest)) if ((exact[row] as number) <= bound) kept++;
  return kept / nearest;
}

/** The same over some rows of a sample, spread over it; those around them are the sample. */
export function sampleFidelity(originals: Float32Array, rounded: Float32Array, dim: number, metric: BuildMetric): number {
  const rows = originals.length / dim;
  const queries = Math.min(SAMPLE_QUERIES, rows);
  let total = 0;
  for (let i = 0; i < queries; i++) total += typeFidelity(originals, rounded, dim, metric, Math.floor((i * rows) / queries));
  return queries === 0 ? 1 : total / queries;
}

/** Whether all rows of a sample have about the same norm, so that the largest dot product is the smallest distance. */
export function haveEqualNorms(sample: Float32Array, dim: number): boolean {
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  for (let at = 0; at < sample.length; at += dim) {
    let squares = 0;
    for (let i = 0; i < dim; i++) squares += (sample[at + i] as number) ** 2;
    const norm = Math.sqrt(squares);
    low = Math.min(low, norm);
    high = Math.max(high, norm);
  }
  return high - low <= NORM_SPREAD * high;
}

/** Scale of signed 8-bit components for dot products: symmetric, so that it is one factor of all products. */
export function signedScale(sample: Float32Array): number {
  let largest = 0;
  for (const value of sample) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  return largest > 0 ? largest / 127 : 1;
}

/** Writes round(value / scale), clipped to -127..127, of each value. */
export function encodeSigned(values: Float32Array, scale: number, out: Int8Array): void {
  const inverse = 1 / scale;
  for (let i = 0; i < values.length; i++) {
    const code = Math.round((values[i] as number) * inverse);
    out[i] = Math.max(-127, Math.min(127, code));
  }
}

/** The distance of each row to the row `query`; infinite to itself. */
function distancesTo(rows: Float32Array, dim: number, query: number, metric: BuildMetric): Float64Array {
  const count = rows.length / dim;
  const distances = new Float64Array(count);
  const from = query * dim;
  for (let row = 0, at = 0; row < count; row++, at += dim) {
    let total = 0;
    if (metric === 'ip') {
      for (let i = 0; i < dim; i++) total -= (rows[at + i] as number) * (rows[from + i] as number);
    } else {
      for (let i = 0; i < dim; i++) {
        const difference = (rows[at + i] as number) - (rows[from + i] as number);
        total += difference * difference;
      }
    }
    distances[row] = total;
  }
  distances[query] = Number.POSITIVE_INFINITY;
  return distances;
}

function smallest(values: Float64Array, count: number): Float64Array {
  return values.slice().sort().subarray(0, count);
}

function smallestRows(values: Float64Array, count: number): number[] {
  const bound = smallest(values, count)[count - 1] as number;
  const below: number[] = [];
  const at: number[] = [];
  for (let row = 0; row < values.length; row++) {
    if ((values[row] as number) < bound) below.push(row);
    else if (values[row] === bound) at.push(row);
  }
  return below.concat(at).slice(0, count);
}
