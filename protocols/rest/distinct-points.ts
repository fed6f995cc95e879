/** Batches in which each point stands once. */

import type { PointId } from '../model/point-id.js';
import type { BatchColumn, PointBatch } from '../model/update.js';

/** The batch without the points whose id is given again further on. */
export function distinctIds(batch: PointBatch): PointBatch {
  const last = new Map<PointId, number>();
  batch.ids.forEach((id, index) => {
    last.set(id, index);
  });
  if (last.size === batch.ids.length) return batch;
  const kept = batch.ids.flatMap((id, index) => (last.get(id) === index ? [index] : []));
  const newIndex = new Map(kept.map((index, at) => [index, at]));
  return {
    ids: kept.map((index) => batch.ids[index] as PointId),
    payloads: kept.map((index) => batch.payloads[index]),
    vectors: batch.vectors.flatMap((column) => keepPoints(column, newIndex, batch.ids.length)),
  };
}

/** newIndex: index within the smaller batch by index within the old one. Empty when none of the points that stay has the vector. */
function keepPoints(column: BatchColumn, newIndex: ReadonlyMap<number, number>, count: number): BatchColumn[] {
  const old = column.points ?? Uint32Array.from({ length: count }, (_, index) => index);
  const entries = Uint32Array.from([...old.keys()].filter((entry) => newIndex.has(old[entry] as number)));
  if (entries.length === 0) return [];
  const numbers = Uint32Array.from(entries, (entry) => newIndex.get(old[entry] as number) as number);
  const points = numbers.length === newIndex.size ? null : numbers;
  if (column.kind === 'dense') {
    const ones = new Uint32Array(old.length).fill(1);
    return [{ ...column, points, values: keepItems(column.values, column.dim, ones, entries) }];
  }
  const counts = Uint32Array.from(entries, (entry) => column.counts[entry] as number);
  if (column.kind === 'multi') return [{ ...column, points, counts, values: keepItems(column.values, column.dim, column.counts, entries) }];
  const indices = keepItems(column.indices, 1, column.counts, entries);
  return [{ ...column, points, counts, indices, values: keepItems(column.values, 1, column.counts, entries) }];
}

/** The items of some entries: each item has `size` values, each entry `counts` items. */
function keepItems<T extends Uint32Array | Float32Array>(values: T, size: number, counts: Uint32Array, entries: Uint32Array): T {
  const starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, entry) => {
    starts[entry + 1] = (starts[entry] as number) + count * size;
  });
  const parts = Array.from(entries, (entry) => values.subarray(starts[entry] as number, starts[entry + 1] as number));
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const kept = new (values.constructor as new (length: number) => T)(total);
  let at = 0;
  for (const part of parts) {
    kept.set(part, at);
    at += part.length;
  }
  return kept;
}
