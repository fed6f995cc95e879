/** Multivectors and sparse vectors of a new segment: how many items they have, and their copies. */

import type { SegmentHandle } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import { itemArrays, itemOffsets } from '../segment/ragged.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import type { Selection } from './select-rows.js';

/** Rows copied between two checks whether the build goes on. */
const CHECK_ROWS = 8192;

/** Items that the selected rows have of the vector. */
export function countItems(name: string, sources: readonly SegmentHandle[], selection: Selection): number {
  const origins = originsOf(name, sources);
  let items = 0;
  for (let row = 0; row < selection.rows; row++) {
    const offsets = origins[selection.sourceOf[row] as number]?.offsets;
    const sourceRow = selection.sourceRowOf[row] as number;
    if (offsets !== undefined) items += (offsets[sourceRow + 1] as number) - (offsets[sourceRow] as number);
  }
  return items;
}

/** Copies the vector's items and presence from the sources to the rows where they stay, as rows cannot change places any more. */
export async function copyRagged(
  draft: SegmentDraft,
  vector: VectorLayout,
  sources: readonly SegmentHandle[],
  selection: Selection,
  control: BuildControl,
): Promise<void> {
  const { memory, rows } = draft;
  const origins = originsOf(vector.name, sources);
  const arrays = itemArrays(vector);
  const offsets = itemOffsets(memory, vector, rows);
  const presence = new Uint32Array(memory.buffer, vector.presence, Math.ceil(rows / 32));
  const bytes = new Uint8Array(memory.buffer);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    if (row % CHECK_ROWS === 0) await control.checkpoint();
    const origin = origins[selection.sourceOf[row] as number];
    const sourceRow = selection.sourceRowOf[row] as number;
    if (origin !== undefined && (((origin.presence[sourceRow >>> 5] as number) >>> (sourceRow & 31)) & 1) === 1) {
      presence[row >>> 5] = (presence[row >>> 5] as number) | (1 << (row & 31));
      const from = origin.offsets[sourceRow] as number;
      const to = origin.offsets[sourceRow + 1] as number;
      arrays.forEach(({ offset, stride }, which) => {
        const start = (origin.arrays[which] as number) + from * stride;
        bytes.set(origin.bytes.subarray(start, start + (to - from) * stride), offset + at * stride);
      });
      at += to - from;
    }
    offsets[row + 1] = at;
  }
}

/** Where a source has its rows of the vector. */
interface Origin {
  readonly bytes: Uint8Array;
  /** Where each array of items begins. */
  readonly arrays: readonly number[];
  readonly offsets: Uint32Array;
  readonly presence: Uint32Array;
}

function originsOf(name: string, sources: readonly SegmentHandle[]): (Origin | undefined)[] {
  return sources.map(({ memory, layout }) => {
    const vector = layout.vectors.find((candidate) => candidate.name === name);
    if (vector === undefined) return undefined;
    return {
      bytes: new Uint8Array(memory.buffer),
      arrays: itemArrays(vector).map(({ offset }) => offset),
      offsets: itemOffsets(memory, vector, layout.capacity),
      presence: new Uint32Array(memory.buffer, vector.presence, Math.ceil(layout.capacity / 32)),
    };
  });
}
