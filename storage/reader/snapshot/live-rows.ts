/** The rows of a segment that an exhaustive read looks at. */

import type { Filter } from '../../../protocols/model/filter.js';
import { clearBit, forEachBit, fullBits } from '../../../query/filter/bits.js';
import { filterBits } from './filter-source.js';
import { hasVector, type SegmentView } from './snapshot-view.js';

/** Bits of the live rows that pass; the caller may keep them. Errors: `timeout`. */
export function liveBits(view: SegmentView, filter: Filter | null): Uint32Array {
  const bits = filter === null ? fullBits(view.rows) : filterBits(view, filter);
  forEachBit(bits, (row) => {
    if (!view.isLive(row)) clearBit(bits, row);
  });
  return bits;
}

/** Live rows among `bits` (null: all), ascending. A copy. */
export function liveRows(view: SegmentView, bits: Uint32Array | null): Uint32Array {
  const { kernels, slot, handle } = view.reader;
  const count = kernels.listAdmitted(slot, view.rows, view.admission(bits));
  return new Uint32Array(handle.memory.buffer, slot + handle.layout.scratch.rows, count).slice();
}

/** Takes the rows without the vector out of `bits`, and returns them. */
export function vectorBits(view: SegmentView, using: string, bits: Uint32Array): Uint32Array {
  const vector = view.reader.vector(using);
  forEachBit(bits, (row) => {
    if (vector === undefined || !hasVector(vector, row)) clearBit(bits, row);
  });
  return bits;
}
