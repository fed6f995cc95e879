/** Inverted indexes of a new segment's sparse vectors. */

import { buildSparseIndex } from '../../vectors/sparse/index.js';
import type { SparseIndexHandle } from '../segment/handle.js';
import { residentOffset, type VectorLayout } from '../segment/layout.js';
import { itemOffsets, raggedOf } from '../segment/ragged.js';
import { writeSparseIndex } from '../segment/sparse-file.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';

/** Builds the indexes of all sparse vectors, whose items are in their places, and writes them into the segment's folder. */
export async function buildSparseIndexes(
  draft: SegmentDraft,
  vectors: readonly VectorLayout[],
  target: { readonly folder: string; readonly segment: number },
  control: BuildControl,
): Promise<SparseIndexHandle[]> {
  const { memory, rows } = draft;
  const indexes: SparseIndexHandle[] = [];
  for (const [n, vector] of vectors.entries()) {
    if (vector.kind !== 'sparse') continue;
    await control.checkpoint();
    control.progress(`indexing ${vector.name}`, 0, rows);
    const { itemCapacity, values } = raggedOf(vector);
    const source = {
      offsets: itemOffsets(memory, vector, rows),
      indices: new Uint32Array(memory.buffer, residentOffset(vector), itemCapacity),
      values: new Float32Array(memory.buffer, values, itemCapacity),
    };
    const index = { name: vector.name, buffer: buildSparseIndex(source, rows) };
    writeSparseIndex(target.folder, target.segment, n, index);
    indexes.push(index);
  }
  return indexes;
}
