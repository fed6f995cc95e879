/**
 * Decodes the bodies of write requests to update operations. Everything is checked before an operation is returned,
 * so a body with one bad point changes nothing. Only of a batch of operations those before one that does not fit the
 * collection stand, as in the reference (scenario points-batch).
 * Source: schemas PointInsertOperations, PointsSelector, SetPayload, DeletePayload, UpdateOperations, PointVectors,
 * DeleteVectors of the API; where they leave room, the contract's scenarios points-*.
 *
 * Vectors come out as they were sent: whoever applies them normalizes those compared by cosine.
 */

import { TroupeError } from '../errors.js';
import { writtenAsFloat } from '../json.js';
import type { ShardKeySelector } from '../model/cluster.js';
import type { Filter } from '../model/filter.js';
import { type JsonValue, PAYLOAD_DEPTH_MAX, type Payload } from '../model/payload.js';
import { type PointId, pointIdFrom } from '../model/point-id.js';
import type { PointBatch, PointsSelector, UpdateOperation, UpsertMode, WriteOperation } from '../model/update.js';
import { distinctIds } from './distinct-points.js';
import { decodeFieldSchema } from './field-schema.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeFilter, decodeKey } from './filter.js';
import {
  ColumnBuilder,
  type Embed,
  embedNothing,
  noVectorStruct,
  unknownVector,
  type VectorNames,
  type VectorTarget,
  vectorTarget,
} from './point-vectors.js';
import type { TakenVectors } from './query-input.js';
import { shardKeyIn } from './request-fields.js';

/** What a request comes to. */
export interface DecodedUpdate {
  readonly operations: readonly UpdateOperation[];
  /** Which shards each of them is for; null: it does not say. */
  readonly shardKeys: readonly (ShardKeySelector | null)[];
  /** How many operations answer together, one number for each answer: 1 for all but batches. */
  readonly parts: readonly number[];
  /** The answer is a list, one element for each part. */
  readonly listed: boolean;
  /** Why the request fails once these operations are applied: one behind them does not fit the collection. */
  readonly failure: TroupeError | null;
}

/**
 * The operations of a write request. body: the parsed JSON, undefined for a request without one; path: parameters of the
 * route; taken: vectors that were taken out of the body (`scanPoints`), whose numbers stand for them there; embed: makes
 * vectors of texts, images and objects.
 * Errors: `malformedBody`, `invalidValue`, `wrongInput` for what does not fit these vectors, `unsupported`.
 */
export function decodeUpdateValue(
  kind: WriteOperation,
  body: JsonValue | undefined,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  taken: TakenVectors = null,
  embed: Embed = embedNothing,
): DecodedUpdate {
  if (kind === 'deleteFieldIndex') return one([{ kind: 'deleteFieldIndex', field: decodeKey(path.field_name, 'field_name') }], null);
  const target = vectorTarget(vectors, taken, embed);
  if (kind === 'batchUpdate') return decodeBatchUpdate(body, target);
  return one(decodeOperations(kind, body, target), shardKeyOf(kind, body));
}

function one(operations: UpdateOperation[], shardKey: ShardKeySelector | null): DecodedUpdate {
  return { operations, shardKeys: operations.map(() => shardKey), parts: [operations.length], listed: false, failure: null };
}

/** Operations of `points/batch` by their name in the body. */
const BATCH_OPERATIONS: Readonly<Record<string, WriteOperation>> = {
  upsert: 'upsertPoints',
  delete: 'deletePoints',
  update_vectors: 'updateVectors',
  delete_vectors: 'deleteVectors',
  set_payload: 'setPayload',
  overwrite_payload: 'overwritePayload',
  delete_payload: 'deletePayload',
  clear_payload: 'clearPayload',
};

function decodeBatchUpdate(body: JsonValue | undefined, target: VectorTarget): DecodedUpdate {
  const list = objectOf(body, '').operations;
  if (list === undefined) throw malformed('missing field `operations`');
  if (!Array.isArray(list)) throw wrongType('operations', list, 'a sequence');
  const parts: Part[] = [];
  let failure: TroupeError | null = null;
  for (const item of list) {
    try {
      const part = decodeBatchItem(item, target);
      if (failure === null) parts.push(part);
    } catch (error) {
      // What is no operation at all refuses the batch. One that does not fit the collection fails when its turn comes.
      if (!(error instanceof TroupeError) || error.code !== 'wrongInput') throw error;
      failure ??= error;
    }
  }
  return {
    operations: parts.flatMap(({ operations }) => operations),
    shardKeys: parts.flatMap(({ operations, shardKey }) => operations.map(() => shardKey)),
    parts: parts.map(({ operations }) => operations.length),
    listed: true,
    failure,
  };
}

interface Part {
  readonly operations: readonly UpdateOperation[];
  readonly shardKey: ShardKeySelector | null;
}

function decodeBatchItem(item: JsonValue, target: VectorTarget): Part {
  const names = isObject(item) ? Object.keys(item).filter((name) => Object.hasOwn(BATCH_OPERATIONS, name)) : [];
  const name = names[0];
  if (name === undefined || names.length > 1) {
    throw malformed(`an item of \`operations\` must have exactly one of: ${Object.keys(BATCH_OPERATIONS).join(', ')}`);
  }
  const kind = BATCH_OPERATIONS[name] as WriteOperation;
  const body = (item as JsonObject)[name];
  return { operations: decodeOperations(kind, body, target), shardKey: shardKeyOf(kind, body) };
}

function decodeOperations(kind: WriteOperation, body: JsonValue | undefined, target: VectorTarget): UpdateOperation[] {
  if (kind === 'deletePoints' || kind === 'clearPayload') {
    const selector = selectorOf(isObject(body) ? body : {}, 'expected which points are meant: `points`, a list of ids, or `filter`');
    return [{ kind, selector }];
  }
  const fields = objectOf(body, '');
  switch (kind) {
    case 'upsertPoints':
      return [decodeUpsert(fields, target)];
    case 'updateVectors':
      return [decodeUpdateVectors(fields, target)];
    case 'deleteVectors':
      return decodeDeleteVectors(fields, target);
    case 'setPayload':
      return [{ kind, ...payloadChange(fields), key: keyOf(fields) }];
    case 'overwritePayload':
      // The reference reads `key` here and replaces the whole payload all the same.
      keyOf(fields);
      return [{ kind, ...payloadChange(fields), key: null }];
    case 'deletePayload':
      return [{ kind, keys: keysOf(fields.keys), selector: selectorOf(fields, NO_SELECTOR) }];
    case 'createFieldIndex':
      return [{ kind, field: decodeKey(required(fields, 'field_name'), 'field_name'), schema: decodeFieldSchema(fields.field_schema) }];
    default:
      throw new Error(`no body belongs to ${kind}`);
  }
}

/** Indexes are of the whole collection. */
function shardKeyOf(kind: WriteOperation, body: JsonValue | undefined): ShardKeySelector | null {
  return kind === 'createFieldIndex' || !isObject(body) ? null : (shardKeyIn(body).shardKey ?? null);
}

// ------------------------------------------------------------------ points

const UPSERT_MODES: Readonly<Record<string, UpsertMode>> = { upsert: 'upsert', insert_only: 'insertOnly', update_only: 'updateOnly' };

function decodeUpsert(fields: JsonObject, target: VectorTarget): UpdateOperation {
  const batch = distinctIds(batchOf(fields, target));
  if (batch.ids.length === 0) throw emptyRequest();
  const mode = modeOf(fields.update_mode);
  const filter = decodeFilter(fields.update_filter, 'update_filter');
  return mode === 'upsert' && filter === null ? { kind: 'upsert', batch } : { kind: 'upsert', batch, mode, filter };
}

function batchOf(fields: JsonObject, target: VectorTarget): PointBatch {
  if (fields.points !== undefined) return pointsOf(listOf(fields.points, 'points'), target);
  if (fields.batch !== undefined) return columnsOf(objectOf(fields.batch, 'batch'), target);
  throw malformed('Invalid PointInsertOperations format, expected `points` or `batch`');
}

function modeOf(value: JsonValue | undefined): UpsertMode {
  if (value === undefined || value === null) return 'upsert';
  const mode = typeof value === 'string' && Object.hasOwn(UPSERT_MODES, value) ? UPSERT_MODES[value] : undefined;
  if (mode === undefined)
    throw malformed(`unknown variant \`${String(value)}\`, expected one of \`upsert\`, \`insert_only\`, \`update_only\``);
  return mode;
}

function decodeUpdateVectors(fields: JsonObject, target: VectorTarget): UpdateOperation {
  const points = listOf(required(fields, 'points'), 'points');
  if (points.length === 0) throw new TroupeError('invalidValue', '[points: must specify points to update]');
  points.forEach((point, index) => {
    const vector = isObject(point) ? point.vector : undefined;
    if (isObject(vector) && Object.keys(vector).length === 0) {
      throw new TroupeError('invalidValue', `[points[${index}].vector: must specify vectors to update for point]`);
    }
  });
  return { kind: 'updateVectors', batch: pointsOf(points, target), filter: decodeFilter(fields.update_filter, 'update_filter') };
}

/** Points given by id and by filter are both meant, unlike elsewhere. */
function decodeDeleteVectors(fields: JsonObject, target: VectorTarget): UpdateOperation[] {
  const names = listOf(required(fields, 'vector'), 'vector').map((name) => {
    if (typeof name !== 'string') throw wrongType('vector', name, 'a list of vector names');
    return name;
  });
  if (names.length === 0) throw new TroupeError('invalidValue', '[vector: must specify vector names to delete]');
  for (const name of names) if (!target.names.has(name)) throw unknownVector(name, target.names.keys());
  const selectors: PointsSelector[] = [];
  if (isGiven(fields.points)) selectors.push({ kind: 'ids', ids: idsOf(fields.points, 'points') });
  const filter = decodeFilter(fields.filter, 'filter');
  if (filter !== null) selectors.push({ kind: 'filter', filter });
  if (selectors.length === 0) throw new TroupeError('badRequest', 'No filter or points provided');
  return selectors.map((selector) => ({ kind: 'deleteVectors', selector, names }));
}

/** Points in the list form. */
function pointsOf(points: readonly JsonValue[], target: VectorTarget): PointBatch {
  const columns = new ColumnBuilder(target, points.length);
  const ids: PointId[] = [];
  const payloads: (Payload | undefined)[] = [];
  points.forEach((point, index) => {
    const fields = objectOf(point, `points[${index}]`);
    ids.push(idOf(required(fields, 'id'), writtenAsFloat(fields, 'id')));
    columns.addPoint(index, required(fields, 'vector'), `points[${index}].vector`);
    payloads.push(payloadOf(fields.payload, `points[${index}].payload`));
  });
  return { ids, vectors: columns.finish(), payloads };
}

/** Points in the batch form: ids, vectors and payloads each in a list. */
function columnsOf(fields: JsonObject, target: VectorTarget): PointBatch {
  const ids = idsOf(required(fields, 'ids'), 'batch.ids');
  const given = required(fields, 'vectors');
  const columns = new ColumnBuilder(target, ids.length);
  if (Array.isArray(given)) {
    sameLength('vectors', ids.length, given.length);
    given.forEach((vector, index) => {
      columns.addPoint(index, vector, `batch.vectors[${index}]`);
    });
  } else {
    for (const [name, list] of Object.entries(objectOf(given, 'batch.vectors'))) {
      if (!Array.isArray(list)) throw noVectorStruct(`batch.vectors.${name}`);
      sameLength('vectors', ids.length, list.length);
      list.forEach((vector, index) => {
        columns.add(index, name, vector, `batch.vectors.${name}[${index}]`);
      });
    }
  }
  const payloads = isGiven(fields.payloads) ? listOf(fields.payloads, 'batch.payloads') : [];
  if (isGiven(fields.payloads)) sameLength('payloads', ids.length, payloads.length);
  return { ids, vectors: columns.finish(), payloads: ids.map((_, index) => payloadOf(payloads[index], `batch.payloads[${index}]`)) };
}

function sameLength(what: string, ids: number, others: number): void {
  if (ids !== others) throw new TroupeError('invalidValue', `[batch.batch: number of ids and ${what} must be equal (${ids} != ${others})]`);
}

// ------------------------------------------------------------------ payloads and selectors

const NO_SELECTOR = 'Either list of point ids or filter must be provided';

function payloadChange(fields: JsonObject): { payload: Payload; selector: PointsSelector } {
  const payload = required(fields, 'payload');
  if (!isObject(payload)) throw wrongType('payload', payload, 'a map');
  checkDepth(payload, 'payload');
  return { payload, selector: selectorOf(fields, NO_SELECTOR) };
}

function keyOf(fields: JsonObject): string | null {
  return isGiven(fields.key) ? decodeKey(fields.key, 'key') : null;
}

function keysOf(value: JsonValue | undefined): string[] {
  if (value === undefined) throw malformed('missing field `keys`');
  return listOf(value, 'keys').map((key, index) => decodeKey(key, `keys[${index}]`));
}

/** Ids win over a filter beside them. reason: why a body with neither is refused. */
function selectorOf(fields: JsonObject, reason: string): PointsSelector {
  if (isGiven(fields.points)) {
    const ids = idsOf(fields.points, 'points');
    if (ids.length === 0) throw emptyRequest();
    return { kind: 'ids', ids };
  }
  const filter: Filter | null = decodeFilter(fields.filter, 'filter');
  if (filter === null) throw malformed(reason);
  return { kind: 'filter', filter };
}

// ------------------------------------------------------------------ parts

function objectOf(value: JsonValue | undefined, path: string): JsonObject {
  if (!isObject(value)) throw wrongType(path, value, 'a map');
  return value;
}

function listOf(value: JsonValue | undefined, path: string): JsonValue[] {
  if (!Array.isArray(value)) throw wrongType(path, value, 'a sequence');
  return value;
}

/** A field that must be there, null or not. */
function required(fields: JsonObject, name: string): JsonValue {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value === undefined) throw malformed(`missing field \`${name}\``);
  return value;
}

function isGiven(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

function idsOf(value: JsonValue, path: string): PointId[] {
  return listOf(value, path).map((id) => idOf(id, false));
}

function idOf(value: JsonValue, asFloat: boolean): PointId {
  const id = asFloat ? undefined : pointIdFrom(value);
  if (id !== undefined) return id;
  const shown = typeof value === 'bigint' ? value.toString() : typeof value === 'string' ? value : JSON.stringify(value);
  throw malformed(`value ${shown} is not a valid point ID, valid values are either an unsigned integer or a UUID`);
}

function payloadOf(value: JsonValue | undefined, path: string): Payload | undefined {
  if (!isGiven(value)) return undefined;
  if (!isObject(value)) throw wrongType(path, value, 'a map');
  checkDepth(value, path);
  return value;
}

/** What is stored must be readable by every door, and each has its limit. */
function checkDepth(payload: Payload, path: string): void {
  if (isWithin(payload, PAYLOAD_DEPTH_MAX)) return;
  throw malformed(`\`${path}\`: nested deeper than ${PAYLOAD_DEPTH_MAX} levels: use fewer levels, or store the value as text`);
}

function isWithin(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) return value.every((item) => isWithin(item, levels - 1));
  for (const key of Object.keys(value)) if (!isWithin(value[key] as JsonValue, levels - 1)) return false;
  return true;
}

function malformed(detail: string): TroupeError {
  return new TroupeError('malformedBody', detail);
}

function emptyRequest(): TroupeError {
  return new TroupeError('badRequest', 'Empty update request');
}
