/** Which rows of a segment a search may find. */

import type { Filter } from '../../../protocols/model/filter.js';
import { clearBehind, fullBits, intersect, wordCount } from '../../../query/filter/bits.js';
import type { Admission } from '../../../vectors/kernel-api.js';
import { filterBits } from './filter-source.js';
import type { SegmentView, VectorReader } from './snapshot-view.js';

/** Rows that pass the filter and have the vector, deleted ones included; null: all rows. Not to be changed. Errors: `timeout`. */
export function admittedBits(view: SegmentView, vector: VectorReader, filter: Filter | null): Uint32Array | null {
  const bits = ownBits(view, filter === null ? null : filterBits(view, filter));
  if (view.reader.allPresent(vector, view.rows)) return bits;
  const present = vector.presence.slice(0, wordCount(view.rows));
  clearBehind(present, view.rows);
  if (bits !== null) intersect(present, bits);
  return present;
}

/** Admission of the rows in `bits` (null: all), and how many these are, deleted ones included; null: all. Valid as `SegmentView.admission` is. */
export function countedAdmission(view: SegmentView, bits: Uint32Array | null): { admission: Admission; admitted: number | null } {
  const admission = view.admission(bits);
  return { admission, admitted: bits === null ? null : view.reader.kernels.countPassing(view.rows, admission) };
}

/** Without rows that are another shard's: plans are made by how many rows count. */
function ownBits(view: SegmentView, bits: Uint32Array | null): Uint32Array | null {
  if (view.owned === null) return bits;
  const own = bits === null ? fullBits(view.rows) : bits.slice();
  intersect(own, view.owned);
  return own;
}
