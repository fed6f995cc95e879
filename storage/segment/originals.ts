/** Originals of a sealed segment's dense vectors that are not in memory: read from their file, or made of the codes that stand for them. */

import { standForFloats } from '../../vectors/quantize.js';
import type { SegmentHandle } from './handle.js';
import type { VectorLayout } from './layout.js';
import { readRows } from './vector-file.js';

/** Whether the codes of a finished vector are all that need be kept of it: 8-bit ones that lose nothing of float32. */
export function canDecode({ kind, element, codes }: VectorLayout): boolean {
  return kind === 'dense' && element === 'f32' && codes !== null && codes.spec === null && codes.exact && standForFloats(codes);
}

/**
 * Fills `target` (which may lie in shared memory) with whole rows from `row` on, as they would lie in memory.
 * vector: one of the segment's, with its originals not in memory. Errors: `storage`, with the file's path.
 */
export function readOriginals(handle: SegmentHandle, vector: VectorLayout, row: number, target: Uint8Array): void {
  if (vector.decoded) decodeRows(handle.memory, vector, row, target);
  else readRows(handle, vector, row, target);
}

/** Fills `target` with whole rows from `row` on of a vector whose codes stand for it. */
export function decodeRows(memory: WebAssembly.Memory, vector: VectorLayout, row: number, target: Uint8Array): void {
  const { codes, dim, stride } = vector;
  if (codes === null) throw new Error(`'${vector.name}' has no codes`);
  const { scale, origin } = codes;
  const floats = new Float32Array(target.buffer, target.byteOffset, target.length / 4);
  const bytes = new Uint8Array(memory.buffer);
  for (let at = 0, from = codes.offset + row * codes.stride; at < floats.length; at += stride / 4, from += codes.stride) {
    for (let index = 0; index < dim; index++) floats[at + index] = scale * (bytes[from + index] as number) + origin;
    floats.fill(0, at + dim, at + stride / 4);
  }
}
