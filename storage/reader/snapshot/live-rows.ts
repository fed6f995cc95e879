/** The rows of a segment that an exhaustive read looks at. */

import type { Filter } from '../../../protocols/model/filter.js';
import { clearBit, forEachBit, fullBits, intersect } from '../../../query/filter/bits.js';
import { filterBits } from './filter-source.js';
import { hasVector, type SegmentReader, type SegmentView } from './snapshot-view.js';

/** Bits of the live rows that pass; the caller may keep them. Errors: `timeout`. */
export function liveBits(view: SegmentView, filter: Filter | null): Uint32Array {
  const bits = filter === null ? fullBits(view.rows) : filterBits(view, filter).slice();
  if (view.owned !== null) intersect(bits, view.owned);
  if (!hasDeletedRows(view)) return bits;
  const { deletedAt } = view.reader;
  for (let word = 0; word < bits.length; word++) {
    for (let left = bits[word] as number; left !== 0; left &= left - 1) {
      const row = word * 32 + 31 - Math.clz32(left & -left);
      if ((deletedAt[row] as number) <= view.seq) clearBit(bits, row);
    }
  }
  return bits;
}

/** Whether every row of the segment is live. */
export function areAllLive(view: SegmentView): boolean {
  return view.owned === null && !hasDeletedRows(view);
}

/** Whether a row was deleted before the snapshot. Looked up once for reads of one state of the segment. */
function hasDeletedRows({ reader, rows, seq }: SegmentView): boolean {
  if (!reader.hasDeletions) return false;
  const before = known.get(reader);
  if (before !== undefined && before.rows === rows && before.seq === seq) return before.hasDeleted;
  const { deletedAt } = reader;
  let row = 0;
  while (row < rows && (deletedAt[row] as number) > seq) row++;
  known.set(reader, { rows, seq, hasDeleted: row < rows });
  return row < rows;
}

/** By segment, as long as a thread has it: of the state that was asked about last. */
const known = new WeakMap<SegmentReader, { readonly rows: number; readonly seq: number; readonly hasDeleted: boolean }>();

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
