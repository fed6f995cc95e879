/** Lists of a segment's rows on disk, as a thread reads them. */

import type { Matrix } from '../../../vectors/kernel-api.js';
import { centroidsMatrix, codeMatrix } from '../../segment/code-matrix.js';
import type { ListsLayout, OriginalsFile, VectorLayout } from '../../segment/layout.js';

export interface ListsReader {
  readonly layout: ListsLayout;
  /** Centroids of the lists, by which they are ranked. */
  readonly centroids: Matrix;
  /** Numbers of all lists. */
  readonly all: Uint32Array;
  /** Codes of all rows, as if row 0 lay at the start of the memory: rows are scored where they are read to. */
  readonly codes: Matrix;
  readonly file: OriginalsFile;
  /** List l has the rows from starts[l] up to starts[l + 1]. */
  readonly starts: Uint32Array;
}

/** Errors: none; a finished segment has the codes of its lists in a file. */
export function openLists(memory: WebAssembly.Memory, vector: VectorLayout, lists: ListsLayout): ListsReader | null {
  if (lists.filed === null) return null;
  const { count, filed, starts } = lists;
  return {
    layout: lists,
    centroids: centroidsMatrix(vector, lists),
    all: Uint32Array.from({ length: count }, (_, list) => list),
    codes: codeMatrix(memory, vector, filed.codes),
    file: filed.file,
    starts: new Uint32Array(memory.buffer, starts, count + 1),
  };
}
