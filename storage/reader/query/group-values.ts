/** The values that rows are grouped by. */

import { type GroupValue, groupValues } from '../../../query/group.js';
import { payloadOf } from '../snapshot/filter-source.js';
import type { SegmentReader, SegmentView } from '../snapshot/snapshot-view.js';

/** Rows of a segment whose values are kept for a key (about 100 bytes each), and keys. */
const KEPT_ROWS_MAX = 65_536;
const KEPT_KEYS_MAX = 4;

/** Values by key and row, as long as a thread has the segment: rows never change (View-V2), and reading a payload takes longer than finding its row. */
const kept = new WeakMap<SegmentReader, Map<string, Map<number, readonly GroupValue[]>>>();

/** The values that a row is grouped by. */
export function valuesOfRow(view: SegmentView, row: number, groupBy: string): readonly GroupValue[] {
  const byRow = keptValues(view.reader, groupBy);
  const known = byRow.get(row);
  if (known !== undefined) return known;
  const values = groupValues(payloadOf(view, row), groupBy);
  if (byRow.size >= KEPT_ROWS_MAX) byRow.clear();
  byRow.set(row, values);
  return values;
}

function keptValues(reader: SegmentReader, groupBy: string): Map<number, readonly GroupValue[]> {
  let byKey = kept.get(reader);
  if (byKey === undefined) {
    byKey = new Map();
    kept.set(reader, byKey);
  }
  let byRow = byKey.get(groupBy);
  if (byRow === undefined) {
    if (byKey.size >= KEPT_KEYS_MAX) byKey.clear();
    byRow = new Map();
    byKey.set(groupBy, byRow);
  }
  return byRow;
}
