/** A vector of a new segment as kernels see it, and the scratch slot that a build uses. */

import type { Matrix } from '../../vectors/kernel-api.js';
import { codeMatrix, decodedMatrix } from '../segment/code-matrix.js';
import { residentOffset, type SegmentLayout, scratchOf, type VectorLayout } from '../segment/layout.js';

/** The matrix of the originals, as kernels see it. */
export function originalsMatrix(vector: VectorLayout): Matrix {
  if (vector.decoded && vector.codes !== null) return decodedMatrix(vector, vector.codes);
  return { element: vector.element, metric: vector.metric, offset: residentOffset(vector), stride: vector.stride, dim: vector.dim };
}

/** The matrix a walk scores: codes where there are some. */
export function walkMatrix(memory: WebAssembly.Memory, vector: VectorLayout): Matrix {
  return vector.codes === null ? originalsMatrix(vector) : codeMatrix(memory, vector, vector.codes);
}

/** No reader has the segment yet. */
export function builderSlot(layout: SegmentLayout): number {
  return scratchOf(layout, 0);
}
