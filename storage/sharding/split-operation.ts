/** What each shard gets of an update operation. Parts together are the whole: each point goes to its shard, in the order given. */

import type { PointId } from '../../protocols/model/point-id.js';
import type { BatchColumn, PointBatch, UpdateOperation } from '../../protocols/model/update.js';
import { type Ring, shardIndexOf } from './ring.js';

/**
 * Parts by index into `ring.shards`: of ids and batches those with a point each, of everything else (filters, field indexes) all; a
 * filter's part says whose points it means.
 * Without any point it goes to the first shard as it is. Parts may share memory with the operation.
 */
export function splitOperation(operation: UpdateOperation, ring: Ring): Map<number, UpdateOperation> {
  if ('batch' in operation) {
    const { ids } = operation.batch;
    return partsOf(operation, ids, ring, (points) => ({ ...operation, batch: batchOf(operation.batch, points) }));
  }
  if ('selector' in operation && operation.selector.kind === 'filter') {
    const { selector } = operation;
    const { shards } = ring;
    if (shards.length === 1) return new Map([[0, operation]]);
    return new Map(shards.map((shardId, shard) => [shard, { ...operation, selector: { ...selector, of: { ring: shards, shardId } } }]));
  }
  if ('selector' in operation) {
    const { ids } = operation.selector as Extract<typeof operation.selector, { kind: 'ids' }>;
    return partsOf(operation, ids, ring, (points) => ({ ...operation, selector: { kind: 'ids', ids: pick(ids, points) } }));
  }
  return new Map(ring.shards.map((_, shard) => [shard, operation]));
}

/** Ids of points that must be there, or the operation fails as a whole. */
export function neededPoints(operation: UpdateOperation): readonly PointId[] {
  switch (operation.kind) {
    case 'updateVectors':
      return operation.batch.ids;
    case 'deleteVectors':
    case 'setPayload':
    case 'overwritePayload':
    case 'deletePayload':
    case 'clearPayload':
      return operation.selector.kind === 'ids' ? operation.selector.ids : [];
    case 'upsert':
    case 'deletePoints':
    case 'createFieldIndex':
    case 'deleteFieldIndex':
      return [];
    default:
      return operation satisfies never;
  }
}

/** partOf: the part with the points at these places, ascending. */
function partsOf(
  operation: UpdateOperation,
  ids: readonly PointId[],
  ring: Ring,
  partOf: (points: readonly number[]) => UpdateOperation,
): Map<number, UpdateOperation> {
  const places = new Map<number, number[]>();
  ids.forEach((id, at) => {
    const shard = shardIndexOf(ring, id);
    const known = places.get(shard);
    if (known === undefined) places.set(shard, [at]);
    else known.push(at);
  });
  if (places.size === 0) return new Map([[0, operation]]);
  if (places.size === 1) return new Map([...places.keys()].map((shard) => [shard, operation]));
  return new Map([...places].map(([shard, points]) => [shard, partOf(points)]));
}

function batchOf(batch: PointBatch, points: readonly number[]): PointBatch {
  return {
    ids: pick(batch.ids, points),
    payloads: pick(batch.payloads, points),
    vectors: batch.vectors.flatMap((column) => columnOf(column, points) ?? []),
  };
}

/** Entries of a column that points have, null when none of them has one. */
function columnOf(column: BatchColumn, points: readonly number[]): BatchColumn | null {
  const entries: number[] = [];
  const listed: number[] = [];
  const entryAt = column.points === null ? null : new Map(Array.from(column.points, (point, entry) => [point, entry]));
  points.forEach((point, at) => {
    const entry = entryAt === null ? point : entryAt.get(point);
    if (entry === undefined) return;
    entries.push(entry);
    listed.push(at);
  });
  if (entries.length === 0) return null;
  const shared = { name: column.name, points: entries.length === points.length ? null : Uint32Array.from(listed) };
  if (column.kind === 'dense') {
    const { dim, kind } = column;
    return {
      kind,
      dim,
      values: ranges(
        column.values,
        entries,
        (entry) => entry * dim,
        () => dim,
      ),
      ...shared,
    };
  }
  const counts = Uint32Array.from(entries, (entry) => column.counts[entry] as number);
  const starts = startsOf(column.counts);
  const width = column.kind === 'multi' ? column.dim : 1;
  const from = (entry: number) => (starts[entry] as number) * width;
  const length = (entry: number) => (column.counts[entry] as number) * width;
  const values = ranges(column.values, entries, from, length);
  if (column.kind === 'multi') return { kind: 'multi', dim: column.dim, counts, values, ...shared };
  return { kind: 'sparse', counts, indices: ranges(column.indices, entries, from, length), values, ...shared };
}

/** The values of some entries, one after the other. */
function ranges<Values extends Float32Array | Uint32Array>(
  source: Values,
  entries: readonly number[],
  from: (entry: number) => number,
  length: (entry: number) => number,
): Values {
  const total = entries.reduce((sum, entry) => sum + length(entry), 0);
  const taken = new (source.constructor as new (length: number) => Values)(total);
  let at = 0;
  for (const entry of entries) {
    const start = from(entry);
    taken.set(source.subarray(start, start + length(entry)), at);
    at += length(entry);
  }
  return taken;
}

function startsOf(counts: Uint32Array): Uint32Array {
  const starts = new Uint32Array(counts.length);
  for (let entry = 1; entry < counts.length; entry++) starts[entry] = (starts[entry - 1] as number) + (counts[entry - 1] as number);
  return starts;
}

function pick<Item>(items: readonly Item[], places: readonly number[]): Item[] {
  return places.map((at) => items[at] as Item);
}
