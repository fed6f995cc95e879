/** Lists of a segment's rows on disk, as a thread reads them. */

import type { Matrix } from '../../../vectors/kernel-api.js';
import { align16 } from '../../../vectors/scratch.js';
import { codeMatrix } from '../../segment/code-matrix.js';
import type { CodesLayout, ListsLayout, OriginalsFile, VectorLayout } from '../../segment/layout.js';

export interface ListsReader {
  readonly layout: ListsLayout;
  /** Middles of the lists, by which they are ranked. */
  readonly centroids: Matrix;
  /** Codes of all rows, as if row 0 lay at the start of the memory: rows are scored where they are read to. */
  readonly codes: Matrix;
  readonly file: OriginalsFile;
  /** List l has the rows from starts[l] up to starts[l + 1]. */
  readonly starts: Uint32Array;
}

/** Errors: none; a finished segment has the codes of its lists in a file. */
export function openLists(memory: WebAssembly.Memory, vector: VectorLayout, lists: ListsLayout): ListsReader | null {
  if (lists.filed === null) return null;
  const { count, centroids, filed, origin, scale, starts } = lists;
  const { dim, metric } = vector;
  const codes: CodesLayout = filed.codes;
  return {
    layout: lists,
    centroids: { element: 'code', metric, offset: centroids, stride: align16(dim), dim, scale, origin },
    codes: codeMatrix(memory, vector, codes),
    file: filed.file,
    starts: new Uint32Array(memory.buffer, starts, count + 1),
  };
}
