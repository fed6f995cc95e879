/** Point ids of a segment's rows: which row holds an id, and rows in id order. */

import { idKind, type PointId, readIdWords, writeIdWords } from '../../protocols/model/point-id.js';
import type { SegmentHandle } from './handle.js';
import type { SegmentLayout } from './layout.js';

/** Views on a segment's id arrays. kinds: u8 [capacity]; words: u32 [capacity, 4]; order: u32 [capacity], empty for an appendable segment. */
export interface IdColumns {
  readonly kinds: Uint8Array;
  readonly words: Uint32Array;
  readonly order: Uint32Array;
}

/** Views on the id arrays that `layout` places in `memory`. */
export function idColumns(memory: WebAssembly.Memory, layout: SegmentLayout): IdColumns {
  return {
    kinds: new Uint8Array(memory.buffer, layout.kinds, layout.capacity),
    words: new Uint32Array(memory.buffer, layout.ids, layout.capacity * 4),
    order: layout.order === 0 ? new Uint32Array(0) : new Uint32Array(memory.buffer, layout.order, layout.capacity),
  };
}

/** The row of a sealed segment that holds `id`, deleted or not; undefined when none does. Binary search. */
export function findRow(handle: SegmentHandle, id: PointId): number | undefined {
  const position = lowerBound(handle, id);
  if (position === handle.rows) return undefined;
  const columns = columnsOf(handle);
  const row = columns.order[position] as number;
  return compareRow(columns, row, idKind(id), wordsOf(id)) === 0 ? row : undefined;
}

/** The id of a row, in any kind of segment. */
export function idAt(handle: SegmentHandle, row: number): PointId {
  const columns = columnsOf(handle);
  return readIdWords(columns.kinds[row] as number, columns.words, row * 4);
}

/** Position in the id order of the first row whose id is not below `id`, 0..rows. Sealed segments only. */
export function lowerBound(handle: SegmentHandle, id: PointId): number {
  const columns = columnsOf(handle);
  const kind = idKind(id);
  const words = wordsOf(id);
  let low = 0;
  let high = handle.rows;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareRow(columns, columns.order[middle] as number, kind, words) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row at a position of the id order, 0..rows-1. Sealed segments only. */
export function rowAtPosition(handle: SegmentHandle, position: number): number {
  return columnsOf(handle).order[position] as number;
}

/** Negative, zero or positive as the id of row `a` is below, at or above that of row `b`. */
export function compareRows(columns: IdColumns, a: number, b: number): number {
  const { kinds, words } = columns;
  const byKind = (kinds[a] as number) - (kinds[b] as number);
  if (byKind !== 0) return byKind;
  for (let i = 0; i < 4; i++) {
    const difference = (words[a * 4 + i] as number) - (words[b * 4 + i] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Fills `columns.order` with the first `rows` rows in id order. */
export function sortOrder(columns: IdColumns, rows: number): void {
  const order = columns.order.subarray(0, rows);
  let sorted = true;
  for (let row = 0; row < rows; row++) {
    order[row] = row;
    if (sorted && row > 0 && compareRows(columns, row - 1, row) > 0) sorted = false;
  }
  // Uploads come mostly in id order, so the check above usually saves the sort.
  if (!sorted) order.sort((a, b) => compareRows(columns, a, b));
}

/** Views are made once per handle and thread: a handle stands for one memory all its life. */
const cache = new WeakMap<SegmentHandle, IdColumns>();

function columnsOf(handle: SegmentHandle): IdColumns {
  const known = cache.get(handle);
  if (known !== undefined) return known;
  const columns = idColumns(handle.memory, handle.layout);
  cache.set(handle, columns);
  return columns;
}

/** Reused by every search of this thread: a search is synchronous. */
const target = new Uint32Array(4);

function wordsOf(id: PointId): Uint32Array {
  writeIdWords(id, target, 0);
  return target;
}

function compareRow(columns: IdColumns, row: number, kind: number, words: Uint32Array): number {
  const byKind = (columns.kinds[row] as number) - kind;
  if (byKind !== 0) return byKind;
  for (let i = 0; i < 4; i++) {
    const difference = (columns.words[row * 4 + i] as number) - (words[i] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
