/** Which rows of a build's sources go into the new segment, and where. */

import type { SegmentHandle } from '../segment/handle.js';
import { compareRows, type IdColumns, idColumns, sortOrder } from '../segment/ids.js';

/** A row of a source that was not taken. */
export const NOT_TAKEN = 0xffff_ffff;

export interface Selection {
  /** Rows of the new segment. */
  readonly rows: number;
  /** u16 [rows]: source of each new row; u32 [rows]: its row there. */
  readonly sourceOf: Uint16Array;
  readonly sourceRowOf: Uint32Array;
  /** u32 [rows]: new rows in id order. */
  readonly order: Uint32Array;
  /** For each source: u32 [rows]: new row of a source row or `NOT_TAKEN`. */
  readonly rowMaps: readonly SharedArrayBuffer[];
}

/**
 * Takes the rows of each source that are visible at `seq`, source after source, in row order.
 * Visible rows have distinct ids; should two share one all the same, the newer version wins, and the earlier source of equal ones.
 * sourceRows: rows of each source at `seq`.
 */
export function selectRows(sources: readonly SegmentHandle[], sourceRows: readonly number[], seq: number): Selection {
  const visible = visibleRows(sources, sourceRows, seq);
  const { order, duplicates } = orderById(sources, visible);
  return duplicates.size === 0 ? withRowMaps(visible, order, sourceRows) : withoutDuplicates(visible, order, duplicates, sourceRows);
}

/** The rows of a selection for several segments: as many for each, as they follow each other. sourceRows: as of `selectRows`. */
export function splitSelection(selection: Selection, count: number, sourceRows: readonly number[]): Selection[] {
  if (count === 1) return [selection];
  const { order, rows, sourceOf, sourceRowOf } = selection;
  return Array.from({ length: count }, (_, n) => {
    const from = Math.floor((rows * n) / count);
    const to = Math.floor((rows * (n + 1)) / count);
    const own = order.filter((row) => row >= from && row < to).map((row) => row - from);
    return withRowMaps({ sourceOf: sourceOf.slice(from, to), sourceRowOf: sourceRowOf.slice(from, to) }, own, sourceRows);
  });
}

interface Visible {
  readonly sourceOf: Uint16Array;
  readonly sourceRowOf: Uint32Array;
}

function visibleRows(sources: readonly SegmentHandle[], sourceRows: readonly number[], seq: number): Visible {
  const total = sourceRows.reduce((sum, rows) => sum + rows, 0);
  const sourceOf = new Uint16Array(total);
  const sourceRowOf = new Uint32Array(total);
  let count = 0;
  sources.forEach((source, index) => {
    const rows = sourceRows[index] as number;
    const deletedAt = new Uint32Array(source.memory.buffer, source.layout.deletedAt, rows);
    for (let row = 0; row < rows; row++) {
      if ((deletedAt[row] as number) <= seq) continue;
      sourceOf[count] = index;
      sourceRowOf[count++] = row;
    }
  });
  return { sourceOf: sourceOf.slice(0, count), sourceRowOf: sourceRowOf.slice(0, count) };
}

function orderById(sources: readonly SegmentHandle[], visible: Visible): { order: Uint32Array; duplicates: Set<number> } {
  const rows = visible.sourceOf.length;
  const columns: IdColumns = { kinds: new Uint8Array(rows), words: new Uint32Array(rows * 4), order: new Uint32Array(rows) };
  const versions = new Float64Array(rows);
  const views = sources.map((source) => ({
    ...idColumns(source.memory, source.layout),
    versions: new Float64Array(source.memory.buffer, source.layout.versions, source.layout.capacity),
  }));
  for (let row = 0; row < rows; row++) {
    const view = views[visible.sourceOf[row] as number] as (typeof views)[number];
    const from = visible.sourceRowOf[row] as number;
    columns.kinds[row] = view.kinds[from] as number;
    for (let i = 0; i < 4; i++) columns.words[row * 4 + i] = view.words[from * 4 + i] as number;
    versions[row] = view.versions[from] as number;
  }
  sortOrder(columns, rows);
  return { order: columns.order, duplicates: olderDuplicates(columns, versions) };
}

/** Rows whose id another row has with a newer version. Rows of one id stand together in the order. */
function olderDuplicates(columns: IdColumns, versions: Float64Array): Set<number> {
  const duplicates = new Set<number>();
  let best = columns.order[0] as number;
  for (let position = 1; position < columns.order.length; position++) {
    const row = columns.order[position] as number;
    if (compareRows(columns, best, row) !== 0) {
      best = row;
    } else {
      const newer = (versions[row] as number) > (versions[best] as number);
      duplicates.add(newer ? best : row);
      if (newer) best = row;
    }
  }
  return duplicates;
}

function withoutDuplicates(
  visible: Visible,
  order: Uint32Array,
  duplicates: ReadonlySet<number>,
  sourceRows: readonly number[],
): Selection {
  const kept = (_: number, row: number) => !duplicates.has(row);
  const newRow = new Uint32Array(order.length);
  let count = 0;
  for (let row = 0; row < order.length; row++) if (!duplicates.has(row)) newRow[row] = count++;
  const keptOrder = order.filter((row) => !duplicates.has(row)).map((row) => newRow[row] as number);
  return withRowMaps({ sourceOf: visible.sourceOf.filter(kept), sourceRowOf: visible.sourceRowOf.filter(kept) }, keptOrder, sourceRows);
}

function withRowMaps(visible: Visible, order: Uint32Array, sourceRows: readonly number[]): Selection {
  const rowMaps = sourceRows.map((rows) => new SharedArrayBuffer(rows * 4));
  const maps = rowMaps.map((buffer) => new Uint32Array(buffer).fill(NOT_TAKEN));
  const rows = visible.sourceOf.length;
  for (let row = 0; row < rows; row++) (maps[visible.sourceOf[row] as number] as Uint32Array)[visible.sourceRowOf[row] as number] = row;
  return { rows, ...visible, order, rowMaps };
}
