/** The arrays of vectors of which a row has any number of items, as they lie in a segment's memory. */

import type { RaggedLayout, VectorLayout } from './layout.js';

/** One of the arrays that hold the items: a value of `stride` bytes for each. */
export interface ItemArray {
  /** Name of its section in files. */
  readonly name: string;
  readonly offset: number;
  readonly stride: number;
}

/** The layout of a multivector or sparse vector; for code that never meets dense ones. */
export function raggedOf({ ragged, name }: VectorLayout): RaggedLayout {
  if (ragged === null) throw new Error(`the vector '${name}' has one item a row`);
  return ragged;
}

/** The arrays of a multivector (its token vectors) or of a sparse vector (indices and values). */
export function itemArrays(vector: VectorLayout): ItemArray[] {
  const { values } = raggedOf(vector);
  const offset = vector.offset as number;
  if (vector.kind === 'multi') return [{ name: 'vectors', offset, stride: vector.stride }];
  return [
    { name: 'indices', offset, stride: 4 },
    { name: 'values', offset: values, stride: 4 },
  ];
}

/** Where the items of the first `rows` rows are: u32 [rows + 1]. */
export function itemOffsets(memory: WebAssembly.Memory, vector: VectorLayout, rows: number): Uint32Array {
  return new Uint32Array(memory.buffer, raggedOf(vector).offsets, rows + 1);
}
