/** Which codes a quantization setting asks for, and the room they take. Pure. */

import type { QuantizationConfig } from '../protocols/model/collection.js';
import type { Metric } from './kernel-api.js';

/**
 * Codes other than the 8-bit ones of `quantize.ts`.
 *
 * - `product`: the number of the nearest of 256 centroids for each `partDim` components;
 * - `levels`: each component is one of a few levels. bits 1, 1.5 and 2: bits whose weighted sum is the level; 4: half bytes.
 *   rotated: rows were turned at random first. queryBits: what the query is cut to; half bytes have 16 whatever it says.
 */
export type CodeSpec =
  | { readonly kind: 'product'; readonly partDim: number }
  | { readonly kind: 'levels'; readonly bits: LevelBits; readonly rotated: boolean; readonly queryBits: QueryBits };

export type LevelBits = 1 | 1.5 | 2 | 4;
export type QueryBits = 1 | 4 | 8;

/** Bytes that codes take. */
export interface CodeShape {
  /** Codes of a row. */
  readonly codeBytes: number;
  /** From one row to the next: codes, and factor and bias of a row of levels. */
  readonly stride: number;
  /** f32 numbers that all rows share. */
  readonly tableBytes: number;
  /** The query as the codes are scored with it. */
  readonly queryBytes: number;
}

/** Centroids of a part: what one byte can name. */
export const CENTROIDS = 256;

/** Factor and bias behind the codes of a row of levels, f32 each. */
const TAIL_BYTES = 8;

/** Null: 8-bit codes, which `quantize.ts` makes. */
export function codeSpec(config: QuantizationConfig, metric: Metric): CodeSpec | null {
  if ('scalar' in config) return null;
  if ('product' in config) return { kind: 'product', partDim: Number(config.product.compression.slice(1)) / 4 };
  if ('binary' in config) {
    const { encoding, query_encoding } = config.binary;
    const bits = encoding === 'two_bits' ? 2 : encoding === 'one_and_half_bits' ? 1.5 : 1;
    return { kind: 'levels', bits, rotated: false, queryBits: QUERY_BITS[query_encoding ?? 'default'] };
  }
  // A rotation keeps products and Euclidean distances, but not Manhattan ones.
  return { kind: 'levels', bits: TURBO_BITS[config.turbo.bits ?? 'bits4'], rotated: metric !== 'l1', queryBits: 8 };
}

/** A query of eight bits finds far more than one of a single bit, and costs little: so it is the default. */
const QUERY_BITS = { default: 8, binary: 1, scalar4bits: 4, scalar8bits: 8 } as const;
const TURBO_BITS = { bits1: 1, bits1_5: 1.5, bits2: 2, bits4: 4 } as const;

export function codeShape(spec: CodeSpec, dim: number): CodeShape {
  if (spec.kind === 'product') {
    const parts = partCount(spec, dim);
    return {
      codeBytes: parts,
      stride: roundUp(parts, 4),
      tableBytes: parts * spec.partDim * CENTROIDS * 4,
      queryBytes: parts * CENTROIDS * 4,
    };
  }
  const tableBytes = levelTable(spec, dim).length * 4;
  if (spec.bits === 4) {
    const codeBytes = roundUp(Math.ceil(dim / 2), 16);
    return { codeBytes, stride: codeBytes + TAIL_BYTES, tableBytes, queryBytes: 16 + codeBytes * 4 };
  }
  const codeBytes = roundUp(Math.ceil(bitCount(spec.bits, dim) / 8), 4);
  return { codeBytes, stride: codeBytes + TAIL_BYTES, tableBytes, queryBytes: roundUp(codeBytes, 16) * layersOf(spec.queryBits) };
}

/** Vectors of a query whose tables lie beside each other, so that MaxSim looks up a code once for all of them. */
export const MAX_SIM_LANES = 8;
/** Parts whose tables stay in the second cache, and whose numbers of 16 bits say enough. */
const MAX_SIM_PARTS_MAX = 128;

/** Room for those tables and their scales, behind the query's; 0 where MaxSim takes one vector of the query after the other. */
export function maxSimTableBytes(spec: CodeSpec, dim: number): number {
  if (spec.kind !== 'product') return 0;
  const { codeBytes, stride } = codeShape(spec, dim);
  return codeBytes > MAX_SIM_PARTS_MAX ? 0 : MAX_SIM_LANES * (8 + stride * CENTROIDS * 2);
}

/** Parts of a vector under product quantization. */
export function partCount(spec: { readonly partDim: number }, dim: number): number {
  return Math.ceil(dim / spec.partDim);
}

/** Bits of a row of levels. With 1.5 bits half of the components have a second one. */
export function bitCount(bits: LevelBits, dim: number): number {
  return dim + secondBits(bits, dim);
}

export function secondBits(bits: LevelBits, dim: number): number {
  return bits === 1.5 ? Math.ceil(dim / 2) : bits === 2 ? dim : 0;
}

/** Layers of bits the kernel cuts a query into: signs need two, as +1 and -1 do in two's complement. */
export function layersOf(queryBits: QueryBits): 2 | 4 | 8 {
  return queryBits === 1 ? 2 : queryBits;
}

/** Where the numbers of a table of levels are: means, deviations, then the components with a second bit. */
export function levelTable({ bits }: { readonly bits: LevelBits }, dim: number) {
  const second = bits === 1.5 ? secondBits(bits, dim) : 0;
  return { mean: 0, deviation: dim, second: 2 * dim, length: 2 * dim + second };
}

function roundUp(bytes: number, unit: number): number {
  return Math.ceil(bytes / unit) * unit;
}
