/**
 * Deferred points (`optimizers_config.prevent_unoptimized`): when the segments that reads have to scan hold `indexing_threshold` kB of
 * vectors, new rows go to *deferred* segments. These are kept, logged and opened like all others but left out of the sets that readers get,
 * so counts, filters, scrolling and searches agree without any rule of their own.
 *
 * - **Defer-D1** a point has one live row: its newest. Operations use that row, deferred or not.
 * - **Defer-D2** readers see one row of a point: the live one or, while that is deferred, the older one that they saw before. The older row
 *   is *held*: it is not marked deleted, neither in memory nor on disk. A commit that shows the live row to readers or deletes the point
 *   marks the held row deleted.
 * - **Defer-D3** no mark of a held row is stored, so opening finds these rows: live on disk, with the id of a live deferred row.
 * - **Defer-D4** a deferred segment is shown when a build has taken it, or when it fits below the threshold together with the others. So
 *   while there is a deferred segment, the rows without a graph exceed the threshold, and the optimizer has a build to make.
 * - **Defer-D5** whoever wrote operation n waits until no deferred segment may have rows of n or an earlier operation (`deferredFrom`), not
 *   until nothing is deferred: under a stream of writes there is always something. A deferred row that replaces one inherits its wait, unless
 *   a build under way shows the older one.
 *
 * Source: service specification, «Deferred points».
 */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { indexingThresholdBytes, isIndexed } from '../segment/graph-settings.js';
import type { Manifest } from './manifest.js';
import type { SegmentRows } from './segment-rows.js';
import type { IsOver } from './slices.js';
import { fieldsOf, type Transaction } from './transaction.js';

const NOT_TAKEN = 0xffff_ffff;
/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 4096;

/**
 * Bytes of vectors without a graph that readers may see before rows are deferred. Infinite if rows are never deferred: without the option,
 * and without a threshold, as nothing is ever indexed then. While optimizers are off (`max_optimization_threads: 0`) deferred rows wait.
 */
export function deferralBytes(config: CollectionConfig): number {
  const threshold = indexingThresholdBytes(config);
  return config.optimizer_config.prevent_unoptimized === true && threshold > 0 ? threshold : Number.POSITIVE_INFINITY;
}

/** Whether new rows are deferred, given these segments. */
export function defersRows(segments: readonly SegmentRows[], manifest: Manifest, config: CollectionConfig): boolean {
  const limit = deferralBytes(config);
  return limit !== Number.POSITIVE_INFINITY && scannedBytes(segments, manifest, config) >= limit;
}

/** After opening: holds the rows that deferred rows are to replace (Defer-D3). */
export function holdReplaced(transaction: Transaction): void {
  for (const segment of transaction.segments) {
    if (!segment.deferred) continue;
    for (let row = 0; row < segment.rows; row++) {
      if (!segment.isLive(row)) continue;
      const shown = transaction.find(segment.idAt(row), (other) => !other.deferred);
      if (shown !== undefined) transaction.hold(shown);
    }
  }
}

/** Shows deferred segments that may be shown (Defer-D4), and marks the rows deleted that readers need no more then (Defer-D2). */
export function settleDeferred(transaction: Transaction, config: CollectionConfig): void {
  const limit = deferralBytes(config);
  let scanned = scannedBytes(transaction.segments, transaction.manifest, config);
  for (const segment of transaction.segments) {
    if (!segment.deferred) continue;
    if (scanned + segment.vectorBytes > limit) continue;
    scanned += segment.vectorBytes;
    segment.deferred = false;
    transaction.onUndo(() => {
      segment.deferred = true;
    });
    transaction.reshape(transaction.segments);
  }
  for (const segment of transaction.segments) {
    for (const [id, row] of [...segment.held]) {
      const newest = transaction.find(id);
      if (newest?.segment.deferred !== true) transaction.markDeleted({ segment, row }, newest);
    }
  }
}

/**
 * Marks deletions of a source's rows after `seq` in the segment built from it, with pauses. rowMap: new row by source row. staying: the segments
 * that are no sources. A taken row whose point has got a deferred row meanwhile is held, unless readers keep another row of the point.
 * beginPortion: begins what is done between two pauses, and returns a function that says when that is over.
 */
export function* carryingDeletions(
  source: SegmentRows,
  rowMap: Uint32Array,
  seq: number,
  built: SegmentRows,
  staying: readonly SegmentRows[],
  beginPortion: () => IsOver,
): Generator<null, void> {
  let isOver = beginPortion();
  for (let from = 0; from < rowMap.length; from += ROWS_PER_LOOK) {
    const end = Math.min(from + ROWS_PER_LOOK, rowMap.length);
    for (let row = from; row < end; row++) {
      const newRow = rowMap[row] as number;
      if (newRow !== NOT_TAKEN && !source.isLive(row)) carryDeletion(source, row, newRow, seq, built, staying);
    }
    if (!isOver()) continue;
    yield null;
    isOver = beginPortion();
  }
}

function carryDeletion(
  source: SegmentRows,
  row: number,
  newRow: number,
  seq: number,
  built: SegmentRows,
  staying: readonly SegmentRows[],
): void {
  const deletedSeq = source.deletedSeq(row);
  if (source.counts(row) || isOutrun(source, row, staying)) built.hold(newRow);
  else if (deletedSeq > seq) built.markDeleted(newRow, deletedSeq);
}

function isOutrun(source: SegmentRows, row: number, staying: readonly SegmentRows[]): boolean {
  if (source.outrun.size === 0) return false;
  const id = source.idAt(row);
  return source.outrun.get(id) === row && !staying.some((segment) => segment.held.has(id));
}

/** Bytes of vectors that readers have to scan. */
function scannedBytes(segments: readonly SegmentRows[], manifest: Manifest, config: CollectionConfig): number {
  const fields = fieldsOf(manifest);
  let bytes = 0;
  for (const segment of segments) {
    if (segment.deferred) continue;
    const { handle } = segment;
    const graphs = handle.layout.vectors.filter(({ graph, subgraphs }) => graph !== null || subgraphs !== null);
    if (!isIndexed({ kind: handle.kind, graphs }, config, fields)) bytes += segment.vectorBytes;
  }
  return bytes;
}
