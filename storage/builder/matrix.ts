/** Rows of a segment's vectors as a build reads them. */

import { fromHalf } from '../../vectors/half.js';
import { residentOffset, type VectorLayout } from '../segment/layout.js';
import { decodeRows } from '../segment/originals.js';
import type { SegmentDraft } from './build-vectors.js';

/** Rows of `rows` rows that have the vector, ascending. */
export function presentRows(memory: WebAssembly.Memory, vector: VectorLayout, rows: number): Uint32Array {
  const presence = new Uint32Array(memory.buffer, vector.presence, Math.ceil(rows / 32));
  const present = new Uint32Array(rows);
  let count = 0;
  for (let row = 0; row < rows; row++) if ((((presence[row >>> 5] as number) >>> (row & 31)) & 1) === 1) present[count++] = row;
  return present.subarray(0, count);
}

/** The originals of some rows as Float32Array [rows, dim], without padding. */
export function readFloats(memory: WebAssembly.Memory, vector: VectorLayout, rows: Uint32Array): Float32Array {
  const { dim, stride } = vector;
  const values = new Float32Array(rows.length * dim);
  if (vector.decoded) {
    const row = new Float32Array(stride / 4);
    for (let i = 0; i < rows.length; i++) {
      decodeRows(memory, vector, rows[i] as number, new Uint8Array(row.buffer));
      values.set(row.subarray(0, dim), i * dim);
    }
    return values;
  }
  const start = residentOffset(vector);
  for (let i = 0; i < rows.length; i++) {
    const offset = start + (rows[i] as number) * stride;
    if (vector.element === 'f32') {
      values.set(new Float32Array(memory.buffer, offset, dim), i * dim);
    } else if (vector.element === 'u8') {
      values.set(new Uint8Array(memory.buffer, offset, dim), i * dim);
    } else {
      const halves = new Uint16Array(memory.buffer, offset, dim);
      for (let k = 0; k < dim; k++) values[i * dim + k] = fromHalf(halves[k] as number);
    }
  }
  return values;
}

/** As `readFloats`, of a vector of a draft, whose originals may have to be brought. */
export function broughtFloats(
  { memory, onCall }: Pick<SegmentDraft, 'memory' | 'onCall'>,
  vector: VectorLayout,
  rows: Uint32Array,
): Float32Array {
  onCall?.bringRows(rows);
  const values = readFloats(memory, vector, rows);
  onCall?.letGo();
  return values;
}

/** As `readFloatRange`, of a draft. They are there until others are read. */
export function broughtFloatRange({ memory, onCall }: SegmentDraft, vector: VectorLayout, from: number, count: number): Float32Array {
  onCall?.bringRange(from, count);
  return readFloatRange(memory, vector, from, count);
}

/** The originals of rows [from, from + count) as Float32Array [count, dim]: a view where they lie in memory like that. */
export function readFloatRange(memory: WebAssembly.Memory, vector: VectorLayout, from: number, count: number): Float32Array {
  if (vector.element === 'f32' && vector.stride === vector.dim * 4 && !vector.decoded) {
    return new Float32Array(memory.buffer, residentOffset(vector) + from * vector.stride, count * vector.dim);
  }
  return readFloats(
    memory,
    vector,
    Uint32Array.from({ length: count }, (_, i) => from + i),
  );
}

/** The 8-bit codes of some rows, less 128, as Int8Array [rows, dim]. offset, stride: of codes or of u8 originals. */
export function readSignedCodes(memory: WebAssembly.Memory, offset: number, stride: number, dim: number, rows: Uint32Array): Int8Array {
  const bytes = new Uint8Array(Math.ceil((rows.length * dim) / 4) * 4);
  for (let i = 0; i < rows.length; i++) bytes.set(new Uint8Array(memory.buffer, offset + (rows[i] as number) * stride, dim), i * dim);
  // Flipping the top bit of a byte takes 128 from it; done for four at a time.
  const words = new Uint32Array(bytes.buffer);
  for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) ^ 0x8080_8080;
  return new Int8Array(bytes.buffer, 0, rows.length * dim);
}

/** values: [rows, dim]. Each row, at the start of a buffer of its own. */
export function separateRows(values: Float32Array, dim: number): Float32Array[] {
  return Array.from({ length: values.length / dim }, (_, row) => values.slice(row * dim, (row + 1) * dim));
}

/** At most `count` of `rows`, evenly spread. */
export function spreadRows(rows: Uint32Array, count: number): Uint32Array {
  if (rows.length <= count) return rows;
  const picked = new Uint32Array(count);
  for (let i = 0; i < count; i++) picked[i] = rows[Math.floor((i * rows.length) / count)] as number;
  return picked;
}
