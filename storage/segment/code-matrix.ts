/** The codes of a vector, as kernels see them. */

import type { Matrix } from '../../vectors/kernel-api.js';
import { LevelCoder } from '../../vectors/quantizers/levels.js';
import { align16 } from '../../vectors/scratch.js';
import type { CodesLayout, ListsLayout, VectorLayout } from './layout.js';

/** codes: of the layout, not null. What codes queries is made here: once for each thread. */
export function codeMatrix(memory: WebAssembly.Memory, { metric, dim }: VectorLayout, codes: CodesLayout): Matrix {
  const { spec, offset, stride } = codes;
  const rows = { metric, dim, offset, stride };
  if (spec === null) return { ...rows, element: 'code', scale: codes.scale, origin: codes.origin };
  if (spec.kind === 'product') return { ...rows, element: 'product', product: { codebook: codes.table, partDim: spec.partDim } };
  return { ...rows, element: 'levels', levels: new LevelCoder(spec, metric, dim, codeTable(memory, codes)) };
}

/** The floats that codes stand for. codes: of the layout, whose originals they are. */
export function decodedMatrix({ metric, dim }: VectorLayout, { offset, stride, scale, origin }: CodesLayout): Matrix {
  return { element: 'decoded', metric, dim, offset, stride, scale, origin };
}

/** The centroids of lists. */
export function centroidsMatrix({ metric, dim }: VectorLayout, { centroids, scale, origin }: ListsLayout): Matrix {
  return { element: 'code', metric, dim, offset: centroids, stride: align16(dim), scale, origin };
}

/** Numbers that all codes share: Float32Array [tableBytes / 4]. */
export function codeTable(memory: WebAssembly.Memory, { table, tableBytes }: CodesLayout): Float32Array {
  return new Float32Array(memory.buffer, table, tableBytes / 4);
}
