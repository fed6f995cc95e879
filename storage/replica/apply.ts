/**
 * Applies update operations to a replica. An operation that cannot be executed throws a `TroupeError` before it has changed anything, so
 * the other operations of the transaction are not affected. The result depends only on the operation and the earlier points, so replay has
 * the same result.
 */

import { stringifyJson } from '../../protocols/json.js';
import { sameSchema } from '../../protocols/model/collection.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { PointBatch, UpdateOperation } from '../../protocols/model/update.js';
import { deleteAtPath, mergePayload, setAtPath } from '../../query/payload-edit.js';
import type { RowItems } from './segment-rows.js';
import { PointSelection } from './selection.js';
import type { Location, Transaction } from './transaction.js';

/** What an operation is applied to: the points of its selector, or the places of the points in its batch. */
export interface Part {
  readonly locations: Iterable<Location>;
  readonly points: Iterable<number>;
}

const NO_PART: Part = { locations: [], points: [] };

/** The whole of an operation that touches few points. */
export interface NarrowPart extends Part {
  /** A bound on the number of its points. */
  readonly countMax: number;
}

/** Most points that an operation touches in one transaction with others; one that may touch more is applied by itself (`slices.ts`). */
const NARROW_POINTS_MAX = 4096;
/** The same of points that come with the operation: the request bounds their bytes. */
const NARROW_BATCH_MAX = 10_000;
/** Bytes of vectors that an operation copies with others. */
const NARROW_BYTES_MAX = 8 * 2 ** 20;

/** How many points an operation names. */
function namedPoints(operation: UpdateOperation): number {
  if ('batch' in operation) return operation.batch.ids.length;
  return 'selector' in operation && operation.selector.kind === 'ids' ? operation.selector.ids.length : 0;
}

/**
 * The whole of an operation that touches few points; null for one that may touch many. Errors: `notFound` if an id that must exist does
 * not; `storage`.
 */
export function narrowPart(transaction: Transaction, operation: UpdateOperation): NarrowPart | null {
  if (namedPoints(operation) > NARROW_BATCH_MAX) return null;
  if ('batch' in operation) {
    if (operation.kind === 'updateVectors') mustBeThere(transaction, operation.batch.ids);
    return { locations: [], points: operation.batch.ids.keys(), countMax: operation.batch.ids.length };
  }
  if (operation.kind === 'createFieldIndex' && rowsToIndex(transaction, operation) > NARROW_POINTS_MAX) return null;
  if (!('selector' in operation)) return { ...NO_PART, countMax: 0 };
  const { kind, selector } = operation;
  if (selector.kind === 'ids') {
    const ids = [...new Set(selector.ids)];
    const locations = kind === 'deletePoints' ? found(transaction, ids) : mustBeThere(transaction, ids);
    return { locations, points: [], countMax: ids.length };
  }
  const selection = new PointSelection(transaction, selector);
  if (selection.countMax > NARROW_POINTS_MAX) return null;
  selection.decide(NARROW_POINTS_MAX);
  return narrowSelection(selection);
}

/** All selected points, if they can be changed in one transaction with others; otherwise null. */
export function narrowSelection(selection: PointSelection): NarrowPart | null {
  const { count } = selection;
  if (count > NARROW_POINTS_MAX || selection.vectorBytes > NARROW_BYTES_MAX) return null;
  return { locations: selection.from(null, 0), points: [], countMax: count };
}

/** Applies an operation to a part of its points. version: its number. Errors: `storage`. */
export function applyOperation(transaction: Transaction, operation: UpdateOperation, version: number, part: Part = NO_PART): void {
  applyPortion(transaction, operation, version, part);
  transaction.flushIndex();
}

/** As `applyOperation`; the caller writes the collected index records before anything that asks the indexes. */
export function applyPortion(transaction: Transaction, operation: UpdateOperation, version: number, part: Part): void {
  switch (operation.kind) {
    case 'upsert':
      upsert(transaction, operation, version, part);
      break;
    case 'updateVectors':
      updateVectors(transaction, operation, version, part);
      break;
    case 'deleteVectors':
      for (const location of part.locations) deleteVectors(transaction, location, operation.names, version);
      break;
    case 'deletePoints':
      for (const location of part.locations) transaction.remove(location);
      break;
    case 'setPayload': {
      const { key, payload } = operation;
      changePayloads(transaction, part, version, (old) => (key === null ? mergePayload(old, payload) : setAtPath(old, key, payload)));
      break;
    }
    case 'overwritePayload':
      changePayloads(transaction, part, version, () => operation.payload);
      break;
    case 'deletePayload':
      changePayloads(transaction, part, version, (old) => operation.keys.reduce(deleteAtPath, old));
      break;
    case 'clearPayload':
      changePayloads(transaction, part, version, () => ({}));
      break;
    case 'createFieldIndex':
      if (!hasField(transaction, operation)) transaction.createField(operation.field, operation.schema);
      break;
    case 'deleteFieldIndex':
      transaction.deleteField(operation.field);
      break;
    default:
      unreachable(operation);
  }
}

type CreateField = UpdateOperation & { kind: 'createFieldIndex' };

function hasField({ manifest }: Transaction, { field, schema }: CreateField): boolean {
  const known = manifest.fields.find(({ name }) => name === field);
  return known !== undefined && sameSchema(known.schema, schema);
}

/** Rows whose payloads are read for the index of a field; those of sealed segments are read by a build. */
function rowsToIndex(transaction: Transaction, operation: CreateField): number {
  if (hasField(transaction, operation)) return 0;
  return transaction.segments.reduce((sum, { isAppendable, rows }) => sum + (isAppendable ? rows : 0), 0);
}

type Upsert = UpdateOperation & { kind: 'upsert' };

function upsert(transaction: Transaction, operation: Upsert, version: number, { points }: Part): void {
  const { batch, mode = 'upsert', filter = null } = operation;
  const vectors = columnPlaces(batch);
  for (const point of points) {
    const id = batch.ids[point] as PointId;
    const old = transaction.find(id);
    if (old === undefined ? mode === 'updateOnly' : mode === 'insertOnly') continue;
    if (old !== undefined && filter !== null && !transaction.matches(filter, old)) continue;
    const added = transaction.append(id, version, itemsOf(batch, vectors, point));
    setVectors(added, batch, vectors, point);
    const payload = batch.payloads[point];
    if (payload !== undefined) transaction.setPayload(added, textOf(payload), payload);
    if (old !== undefined) transaction.remove(old, added);
  }
}

type UpdateVectors = UpdateOperation & { kind: 'updateVectors' };

function updateVectors(transaction: Transaction, operation: UpdateVectors, version: number, { points }: Part): void {
  const { batch, filter = null } = operation;
  const vectors = columnPlaces(batch);
  for (const point of points) {
    const old = transaction.find(batch.ids[point] as PointId);
    if (old === undefined || (filter !== null && !transaction.matches(filter, old)) || removeStale(transaction, old)) continue;
    const added = copyPoint(transaction, old, version, itemsOf(batch, vectors, point));
    setVectors(added, batch, vectors, point);
    transaction.setPayload(added, transaction.payloadText(old));
    transaction.remove(old, added);
  }
}

function deleteVectors(transaction: Transaction, old: Location, names: readonly string[], version: number): void {
  const { segment } = old;
  const present = names.filter((name) => {
    const vector = segment.vectorIndex(name);
    return vector >= 0 && segment.hasVector(vector, old.row);
  });
  if (present.length === 0 || removeStale(transaction, old)) return;
  const added = copyPoint(transaction, old, version);
  for (const name of present) added.segment.clearVector(name, added.row);
  transaction.setPayload(added, transaction.payloadText(old));
  transaction.remove(old, added);
}

function changePayloads(transaction: Transaction, { locations }: Part, version: number, change: (old: Payload) => Payload): void {
  for (const old of locations) {
    if (removeStale(transaction, old)) continue;
    const payload = change(transaction.payload(old));
    const added = copyPoint(transaction, old, version);
    transaction.setPayload(added, textOf(payload), payload);
    transaction.remove(old, added);
  }
}

/** Removes a stale point instead of changing it: it may be older than the operation assumes (Bucket-B1). Returns whether it was stale. */
function removeStale(transaction: Transaction, location: Location): boolean {
  if (!transaction.isStale(location)) return false;
  transaction.remove(location);
  return true;
}

/** The existing ones of these points, as they are when their turn comes. */
function* found(transaction: Transaction, ids: readonly PointId[]): Generator<Location> {
  for (const id of ids) {
    const location = transaction.find(id);
    if (location !== undefined) yield location;
  }
}

/** The existing ones of these points. Errors: `notFound` for a missing one, unless only the leader may have it (Bucket-B2). */
export function mustBeThere(transaction: Transaction, ids: readonly PointId[]): Location[] {
  return ids.flatMap((id) => transaction.findNeeded(id) ?? []);
}

/** A new row with the id and vectors of a point. items: item counts that replace those of the old row. */
function copyPoint(transaction: Transaction, old: Location, version: number, items: RowItems = NO_ITEMS): Location {
  const needed = new Map(old.segment.itemsOf(old.row));
  for (const [name, count] of items) needed.set(name, Math.max(count, needed.get(name) ?? 0));
  const added = transaction.append(old.segment.idAt(old.row), version, needed);
  added.segment.copyVectors(added.row, old.segment, old.row);
  return added;
}

const NO_ITEMS: RowItems = new Map();

/** The positions of a batch's points in one of its columns. */
interface ColumnPlaces {
  /** Int32 [points]: the entry of each point, -1 if it has none; null if points and entries are the same. */
  readonly entries: Int32Array | null;
  /** Uint32 [entries]: the first item of each entry; null if each has exactly one. */
  readonly starts: Uint32Array | null;
}

function columnPlaces(batch: PointBatch): ColumnPlaces[] {
  return batch.vectors.map((column) => {
    const { points } = column;
    const starts = column.kind === 'dense' ? null : startsOf(column.counts);
    if (points === null) return { entries: null, starts };
    const entries = new Int32Array(batch.ids.length).fill(-1);
    points.forEach((point, entry) => {
      entries[point] = entry;
    });
    return { entries, starts };
  });
}

function startsOf(counts: Uint32Array): Uint32Array {
  const starts = new Uint32Array(counts.length);
  for (let entry = 1; entry < counts.length; entry++) starts[entry] = (starts[entry - 1] as number) + (counts[entry - 1] as number);
  return starts;
}

function entryOf({ entries }: ColumnPlaces, point: number): number {
  return entries === null ? point : (entries[point] as number);
}

/** The item counts of one point of a batch, by vector name. */
function itemsOf(batch: PointBatch, places: readonly ColumnPlaces[], point: number): RowItems {
  let items: Map<string, number> | null = null;
  batch.vectors.forEach((column, at) => {
    const entry = entryOf(places[at] as ColumnPlaces, point);
    if (column.kind === 'dense' || entry < 0) return;
    items ??= new Map();
    items.set(column.name, column.counts[entry] as number);
  });
  return items ?? NO_ITEMS;
}

function setVectors({ segment, row }: Location, batch: PointBatch, places: readonly ColumnPlaces[], point: number): void {
  batch.vectors.forEach((column, at) => {
    const place = places[at] as ColumnPlaces;
    const entry = entryOf(place, point);
    if (entry >= 0) segment.setVector(row, column, entry, place.starts === null ? entry : (place.starts[entry] as number));
  });
}

function textOf(payload: Payload): Uint8Array {
  return Buffer.from(stringifyJson(payload), 'utf8');
}

function unreachable(operation: never): never {
  throw new Error(`unknown operation: ${JSON.stringify(operation)}`);
}
