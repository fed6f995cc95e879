/** Which rows of a segment a search may find, and how kernels get to know them. */

import type { Filter } from '../../protocols/model/filter.js';
import { clearBehind, intersect, wordsOf } from '../../query/filter/bits.js';
import { filterBits } from './filter-source.js';
import type { SegmentView, VectorReader } from './snapshot-view.js';

/** Rows that pass the filter and have the vector, deleted ones included; null: all rows. Errors: `timeout`. */
export function admittedBits(view: SegmentView, vector: VectorReader, filter: Filter | null): Uint32Array | null {
  const bits = filter === null ? null : filterBits(view, filter);
  if (view.reader.allPresent(vector, view.rows)) return bits;
  const present = vector.presence.slice(0, wordsOf(view.rows));
  clearBehind(present, view.rows);
  if (bits !== null) intersect(present, bits);
  return present;
}

/** Writes the bits to this thread's scratch, where kernels read them; returns their byte offset. */
export function putBits(view: SegmentView, bits: Uint32Array): number {
  view.reader.scratchBits(bits.length).set(bits);
  return view.reader.slot + view.handle.layout.scratch.bits;
}
