/** A small memory with rows, scratch and marks, laid out for the kernels, and the random numbers to fill it. */

import { encodeBfloat, encodeHalf, fromBfloat, fromHalf } from '../../vectors/half.js';
import type { Admission, Element, Kernels, Matrix, Metric } from '../../vectors/kernel-api.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import { align16, align64, type ScratchLayout, scratchLayout } from '../../vectors/scratch.js';
import { WINDOW_SUMS_BYTES, WindowSums } from '../../vectors/sparse/sums.js';
import { testSeed } from '../seed.js';

export const LIVE = 0xffff_ffff;

export type { PlainElement };

export interface Segment {
  readonly memory: WebAssembly.Memory;
  readonly kernels: Kernels;
  readonly scratch: ScratchLayout;
  readonly slot: number;
  readonly rows: number;
  readonly deletedAt: Uint32Array;
  readonly everything: Admission;
  /** Admission by a filter bitset. */
  admit(row: (row: number) => boolean): Admission;
  /** Takes aligned room. */
  take(bytes: number): number;
}

/** A segment with `bytes` of room beside marks and scratch. */
export function makeSegment(rows: number, dimMax: number, bytes: number, expired: () => boolean = () => false, queryBytes = 0): Segment {
  const scratch = scratchLayout(rows, dimMax, 0, queryBytes);
  let at = 1024;
  const take = (size: number): number => {
    const offset = at;
    at += align64(size);
    return offset;
  };
  const slot = take(scratch.bytes);
  const deletedAtOffset = take(rows * 4);
  const bits = take(Math.ceil(rows / 32) * 4 + 16);
  const pages = Math.ceil((at + bytes + 4096) / 65536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const deletedAt = new Uint32Array(memory.buffer, deletedAtOffset, rows).fill(LIVE);
  const words = new Uint32Array(memory.buffer, bits, Math.ceil(rows / 32));
  const admit = (passes: (row: number) => boolean): Admission => {
    words.fill(0);
    for (let row = 0; row < rows; row++) {
      if (passes(row)) words[row >>> 5] = (words[row >>> 5] as number) | (1 << (row & 31));
    }
    return { deletedAt: deletedAtOffset, seq: 1, bits };
  };
  const kernels = instantiateKernels(memory, expired, scratch);
  return { memory, kernels, scratch, slot, rows, deletedAt, everything: { deletedAt: deletedAtOffset, seq: 1, bits: 0 }, admit, take };
}

type PlainElement = Exclude<Element, 'levels' | 'product'>;
const ELEMENT_BYTES: Record<PlainElement, number> = { f32: 4, f16: 2, bf16: 2, u8: 1, i8: 1, code: 1, decoded: 1 };

export function matrixBytes(element: PlainElement, rows: number, dim: number): number {
  return align16(dim * ELEMENT_BYTES[element]) * rows + 64;
}

/**
 * Stores rows (of `code` and `decoded`: codes) and returns the matrix and what the stored components mean, as doubles.
 * values: Float32Array [rows, dim].
 */
export function storeRows(
  segment: Segment,
  element: PlainElement,
  metric: Metric,
  values: Float32Array,
  dim: number,
  codes: { scale: number; origin: number } = { scale: 1, origin: 0 },
): { matrix: Matrix; meaning: Float64Array } {
  const coded = element === 'code' || element === 'decoded';
  const stride = align16(dim * ELEMENT_BYTES[element]);
  const rows = values.length / dim;
  const offset = segment.take(stride * rows);
  const meaning = new Float64Array(values.length);
  for (let row = 0; row < rows; row++) {
    const source = values.subarray(row * dim, row * dim + dim);
    meaning.set(storeRow(segment.memory.buffer, element, offset + row * stride, source), row * dim);
  }
  if (coded)
    meaning.forEach((code, index) => {
      meaning[index] = codes.scale * code + codes.origin;
    });
  return { matrix: { element, metric, offset, stride, dim, ...(coded ? codes : {}) }, meaning };
}

function storeRow(buffer: ArrayBufferLike, element: Element, at: number, row: Float32Array): ArrayLike<number> {
  if (element === 'f16' || element === 'bf16') {
    const bits = new Uint16Array(buffer, at, row.length);
    (element === 'f16' ? encodeHalf : encodeBfloat)(row, bits);
    return Array.from(bits, element === 'f16' ? fromHalf : fromBfloat);
  }
  const target =
    element === 'f32'
      ? new Float32Array(buffer, at, row.length)
      : element === 'i8'
        ? new Int8Array(buffer, at, row.length)
        : new Uint8Array(buffer, at, row.length);
  target.set(row);
  return target;
}

/** What sparse queries add up in. */
export function makeWindowSums(): WindowSums {
  const pages = Math.ceil(WINDOW_SUMS_BYTES / 65_536);
  return new WindowSums(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }));
}

/** Numbers in [0, 1) from a seed (splitmix32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e37_79b9) >>> 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0_aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a_2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Seed of the property tests. */
export const SEED = testSeed();
