/** Values of vectors: what a point has under a vector name, and what a query compares with. */

import type { JsonValue } from './payload.js';
import type { PointId } from './point-id.js';
import type { Bm25Options } from './text.js';

/** One vector's value. */
export type VectorValue = DenseVector | SparseVector | MultiVector;

export interface DenseVector {
  readonly kind: 'dense';
  /** Float32Array [dim]. */
  readonly values: Float32Array;
}

/** All other components are 0. */
export interface SparseVector {
  readonly kind: 'sparse';
  /** Uint32Array [count], ascending, distinct. */
  readonly indices: Uint32Array;
  /** Float32Array [count]. */
  readonly values: Float32Array;
}

/** A list of vectors of one length: the tokens of a text, the patches of a picture. */
export interface MultiVector {
  readonly kind: 'multi';
  readonly dim: number;
  /** Float32Array [count, dim], vector after vector; count >= 1. */
  readonly values: Float32Array;
}

/** What a model turns into a vector. */
export type InferenceInput =
  | { readonly kind: 'bm25'; readonly text: string; readonly model: string; readonly options: Bm25Options }
  | { readonly kind: 'document'; readonly text: string; readonly model: string; readonly options: { readonly [key: string]: JsonValue } }
  | { readonly kind: 'image'; readonly model: string }
  | { readonly kind: 'object'; readonly model: string };

/** What a query gives to compare with: a value, a stored point's vector, or something a model turns into a value. */
export type VectorInput = VectorValue | { readonly kind: 'point'; readonly id: PointId } | InferenceInput;

/**
 * Whether no value from `from` to `to` is an infinity or NaN. One sum instead of a test per value: those survive it, and finite float32 values cannot
 * overflow a double.
 */
export function areFinite(values: Float32Array, from = 0, to = values.length): boolean {
  // Four sums side by side: each addition waits for the one before it.
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = from;
  for (; i + 3 < to; i += 4) {
    a += values[i] as number;
    b += values[i + 1] as number;
    c += values[i + 2] as number;
    d += values[i + 3] as number;
  }
  for (; i < to; i++) a += values[i] as number;
  return Number.isFinite(a + b + c + d);
}

/**
 * A sparse vector from pairs in any order: sorted by index.
 * Returns undefined when an index repeats or the lists differ in length.
 */
export function sparseVector(indices: ArrayLike<number>, values: ArrayLike<number>): SparseVector | undefined {
  const count = indices.length;
  if (values.length !== count) return undefined;
  if (isAscending(indices)) return { kind: 'sparse', indices: Uint32Array.from(indices), values: Float32Array.from(values) };
  const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => (indices[a] as number) - (indices[b] as number));
  const sorted = Uint32Array.from(order, (at) => indices[at] as number);
  for (let i = 1; i < count; i++) if (sorted[i] === sorted[i - 1]) return undefined;
  return { kind: 'sparse', indices: sorted, values: Float32Array.from(order, (at) => values[at] as number) };
}

function isAscending(indices: ArrayLike<number>): boolean {
  for (let i = 1; i < indices.length; i++) if ((indices[i] as number) <= (indices[i - 1] as number)) return false;
  return true;
}
