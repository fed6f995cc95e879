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
import { type VectorParams, type VectorsConfig, vectorsByName } from '../model/collection.js';
import type { Filter } from '../model/filter.js';
import type { JsonValue, Payload } from '../model/payload.js';
import { type PointId, pointIdFrom } from '../model/point-id.js';
import type { PointBatch, PointsSelector, UpdateOperation, UpsertMode, VectorColumn, WriteOperation } from '../model/update.js';
import { decodeFieldSchema } from './field-schema.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeFilter, decodeKey } from './filter.js';

/** What a request comes to. */
export interface DecodedUpdate {
  readonly operations: readonly UpdateOperation[];
  /** How many operations answer together, one number for each answer: 1 for all but batches. */
  readonly parts: readonly number[];
  /** The answer is a list, one element for each part. */
  readonly listed: boolean;
  /** Why the request fails once these operations are applied: one behind them does not fit the collection. */
  readonly failure: TroupeError | null;
}

/**
 * The operations of a write request. body: the parsed JSON, undefined for a request without one; path: parameters of the
 * route; taken: vectors that were taken out of the body (`scanPoints`), whose numbers stand for them there.
 * Errors: `malformedBody`, `invalidValue`, `wrongInput` for what does not fit these vectors, `unsupported`.
 */
export function decodeUpdate(
  kind: WriteOperation,
  body: JsonValue | undefined,
  path: Readonly<Record<string, string>>,
  vectors: VectorsConfig,
  taken: readonly Float32Array[] | null = null,
): DecodedUpdate {
  if (kind === 'deleteFieldIndex') return one([{ kind: 'deleteFieldIndex', field: decodeKey(path.field_name, 'field_name') }]);
  const target: Target = { vectors: vectorsByName(vectors), taken };
  if (kind === 'batchUpdate') return decodeBatchUpdate(body, target);
  return one(decodeOperations(kind, body, target));
}

function one(operations: UpdateOperation[]): DecodedUpdate {
  return { operations, parts: [operations.length], listed: false, failure: null };
}

/** What vectors of points are decoded for. */
interface Target {
  readonly vectors: ReadonlyMap<string, VectorParams>;
  /** Not null: the list at the place of a vector is the index of one of these. */
  readonly taken: readonly Float32Array[] | null;
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

function decodeBatchUpdate(body: JsonValue | undefined, target: Target): DecodedUpdate {
  const list = objectOf(body, '').operations;
  if (list === undefined) throw malformed('missing field `operations`');
  if (!Array.isArray(list)) throw wrongType('operations', list, 'a sequence');
  const parts: UpdateOperation[][] = [];
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
  return { operations: parts.flat(), parts: parts.map((part) => part.length), listed: true, failure };
}

function decodeBatchItem(item: JsonValue, target: Target): UpdateOperation[] {
  const names = isObject(item) ? Object.keys(item).filter((name) => Object.hasOwn(BATCH_OPERATIONS, name)) : [];
  const name = names[0];
  if (name === undefined || names.length > 1) {
    throw malformed(
      `data did not match any variant of untagged enum UpdateOperation, expected one of ${Object.keys(BATCH_OPERATIONS).join(', ')}`,
    );
  }
  return decodeOperations(BATCH_OPERATIONS[name] as WriteOperation, (item as JsonObject)[name], target);
}

function decodeOperations(kind: WriteOperation, body: JsonValue | undefined, target: Target): UpdateOperation[] {
  if (kind === 'deletePoints' || kind === 'clearPayload') {
    const selector = selectorOf(isObject(body) ? body : {}, 'data did not match any variant of untagged enum PointsSelector');
    return [{ kind, selector }];
  }
  const fields = objectOf(body, '');
  refuseShardKey(fields);
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

// ------------------------------------------------------------------ points

const UPSERT_MODES: Readonly<Record<string, UpsertMode>> = { upsert: 'upsert', insert_only: 'insertOnly', update_only: 'updateOnly' };

function decodeUpsert(fields: JsonObject, target: Target): UpdateOperation {
  const batch = distinctIds(batchOf(fields, target));
  if (batch.ids.length === 0) throw emptyRequest();
  const mode = modeOf(fields.update_mode);
  const filter = decodeFilter(fields.update_filter, 'update_filter');
  return mode === 'upsert' && filter === null ? { kind: 'upsert', batch } : { kind: 'upsert', batch, mode, filter };
}

function batchOf(fields: JsonObject, target: Target): PointBatch {
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

function decodeUpdateVectors(fields: JsonObject, target: Target): UpdateOperation {
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
function decodeDeleteVectors(fields: JsonObject, target: Target): UpdateOperation[] {
  const names = listOf(required(fields, 'vector'), 'vector').map((name) => {
    if (typeof name !== 'string') throw wrongType('vector', name, 'a list of vector names');
    return name;
  });
  if (names.length === 0) throw new TroupeError('invalidValue', '[vector: must specify vector names to delete]');
  for (const name of names) if (!target.vectors.has(name)) throw unknownVector(name);
  const selectors: PointsSelector[] = [];
  if (isGiven(fields.points)) selectors.push({ kind: 'ids', ids: idsOf(fields.points, 'points') });
  const filter = decodeFilter(fields.filter, 'filter');
  if (filter !== null) selectors.push({ kind: 'filter', filter });
  if (selectors.length === 0) throw new TroupeError('wrongInput', 'No filter or points provided');
  return selectors.map((selector) => ({ kind: 'deleteVectors', selector, names }));
}

/** Points in the list form. */
function pointsOf(points: readonly JsonValue[], target: Target): PointBatch {
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
function columnsOf(fields: JsonObject, target: Target): PointBatch {
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

/** The batch without the points whose id is given again further on. */
function distinctIds(batch: PointBatch): PointBatch {
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
    vectors: batch.vectors.map((column) => keepPoints(column, newIndex, batch.ids.length)).filter((column) => column.values.length > 0),
  };
}

/** newIndex: index within the smaller batch by index within the old one. */
function keepPoints(column: VectorColumn, newIndex: ReadonlyMap<number, number>, points: number): VectorColumn {
  if (column.kind !== 'dense') throw new Error(`columns of the kind ${column.kind} are not decoded yet`);
  const { name, dim, values } = column;
  const rows = column.points ?? Uint32Array.from({ length: points }, (_, index) => index);
  const keptRows = [...rows.keys()].filter((row) => newIndex.has(rows[row] as number));
  const kept = new Float32Array(keptRows.length * dim);
  keptRows.forEach((row, at) => {
    kept.set(values.subarray(row * dim, (row + 1) * dim), at * dim);
  });
  const keptPoints = Uint32Array.from(keptRows, (row) => newIndex.get(rows[row] as number) as number);
  return { kind: 'dense', name, dim, points: keptPoints.length === newIndex.size ? null : keptPoints, values: kept };
}

// ------------------------------------------------------------------ vectors

interface Column {
  readonly params: VectorParams;
  /** Grow with `count`: few points of a long list may have this vector. */
  values: Float32Array;
  points: Uint32Array;
  count: number;
}

/** Collects the vectors of `count` points, one column per vector name. Points come in ascending order within each name. */
class ColumnBuilder {
  private readonly columns = new Map<string, Column>();

  constructor(
    private readonly target: Target,
    private readonly count: number,
  ) {}

  /** The `vector` of a point: a list for the unnamed vector, or an object by name. */
  addPoint(index: number, vector: JsonValue, path: string): void {
    if (Array.isArray(vector)) this.add(index, '', vector, path);
    else if (isObject(vector)) {
      if (isInference(vector)) throw inferenceUnsupported();
      for (const [name, named] of Object.entries(vector)) this.add(index, name, named, `${path}.${name}`);
    } else throw noVectorStruct(path);
  }

  add(index: number, name: string, vector: JsonValue, path: string): void {
    checkDense(vector, path, this.target.vectors.has(name) ? null : name);
    const column = this.columnOf(name);
    const { size } = column.params;
    const { taken } = this.target;
    const components = taken === null ? vector : (taken[vector[0] as number] as Float32Array);
    if (components.length !== size) {
      throw new TroupeError(
        'wrongInput',
        `Vector dimension error: expected dim: ${size}, got ${components.length}${name === '' ? '' : ` for vector '${name}'`}`,
      );
    }
    if (column.count === column.points.length) grow(column, this.count);
    const start = column.count * size;
    if (components instanceof Float32Array) column.values.set(components, start);
    else writeNumbers(column.values, start, components, path);
    column.points[column.count++] = index;
  }

  finish(): VectorColumn[] {
    const finished: VectorColumn[] = [];
    for (const [name, { params, values, points, count }] of this.columns) {
      const all = count === this.count;
      finished.push({
        kind: 'dense',
        name,
        dim: params.size,
        points: all ? null : points.slice(0, count),
        values: values.subarray(0, count * params.size),
      });
    }
    return finished;
  }

  private columnOf(name: string): Column {
    const known = this.columns.get(name);
    if (known !== undefined) return known;
    const params = this.target.vectors.get(name);
    if (params === undefined) throw unknownVector(name);
    const rows = Math.min(this.count, FIRST_ROWS);
    const column: Column = { params, values: new Float32Array(rows * params.size), points: new Uint32Array(rows), count: 0 };
    this.columns.set(name, column);
    return column;
  }
}

function writeNumbers(values: Float32Array, start: number, numbers: readonly JsonValue[], path: string): void {
  for (let i = 0; i < numbers.length; i++) {
    const component = numbers[i];
    if (typeof component === 'number') values[start + i] = component;
    else if (typeof component === 'bigint') values[start + i] = Number(component);
    else throw noVectorStruct(path);
  }
}

/** Rows a column has room for at first. */
const FIRST_ROWS = 64;

function grow(column: Column, rowsMax: number): void {
  const rows = Math.min(rowsMax, column.count * 2);
  const values = new Float32Array(rows * column.params.size);
  const points = new Uint32Array(rows);
  values.set(column.values);
  points.set(column.points);
  column.values = values;
  column.points = points;
}

/** Throws unless the value is a list that may be a dense vector. unknown: the vector's name when the collection has none such. */
function checkDense(vector: JsonValue, path: string, unknown: string | null): asserts vector is JsonValue[] {
  if (Array.isArray(vector)) {
    if (vector.length === 0) throw new TroupeError('invalidValue', `[${path}.vector: dense vector must not be empty]`);
    if (!Array.isArray(vector[0])) return;
    checkMulti(vector, path);
    if (unknown !== null) throw unknownVector(unknown);
    throw new TroupeError('wrongInput', 'Conversion between multi and regular vectors failed');
  }
  if (!isObject(vector)) throw noVectorStruct(path);
  if (isInference(vector)) throw inferenceUnsupported();
  checkSparse(vector, path);
  if (unknown !== null) throw unknownVector(unknown);
  throw new TroupeError('wrongInput', 'Conversion between sparse and regular vectors failed');
}

function checkMulti(vectors: readonly JsonValue[], path: string): void {
  let dim = -1;
  for (const vector of vectors) {
    if (!Array.isArray(vector) || !vector.every(isNumber)) throw noVectorStruct(path);
    if (vector.length === 0) throw new TroupeError('invalidValue', `[${path}.data: all vectors must be non-empty]`);
    if (dim >= 0 && vector.length !== dim) {
      throw new TroupeError(
        'invalidValue',
        `[${path}.data: all vectors must have the same dimension, found vector with dimension ${vector.length}]`,
      );
    }
    dim = vector.length;
  }
}

function checkSparse(vector: JsonObject, path: string): void {
  const { indices, values } = vector;
  if (!Array.isArray(indices) || !Array.isArray(values) || !indices.every(isUint32) || !values.every(isNumber)) throw noVectorStruct(path);
  if (indices.length !== values.length) throw new TroupeError('invalidValue', `[${path}.values: must be the same length as indices]`);
  if (new Set(indices).size !== indices.length) throw new TroupeError('invalidValue', `[${path}.indices: must be unique]`);
}

function isNumber(value: JsonValue): boolean {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isUint32(value: JsonValue): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

/** Whether a model is asked to make the vector from a text, an image or an object. */
function isInference(vector: JsonObject): boolean {
  return ['text', 'image', 'object'].some((name) => Object.hasOwn(vector, name)) && Object.hasOwn(vector, 'model');
}

// ------------------------------------------------------------------ payloads and selectors

const NO_SELECTOR = 'Either list of point ids or filter must be provided';

function payloadChange(fields: JsonObject): { payload: Payload; selector: PointsSelector } {
  const payload = required(fields, 'payload');
  if (!isObject(payload)) throw wrongType('payload', payload, 'a map');
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
  return value;
}

function refuseShardKey(fields: JsonObject): void {
  if (isGiven(fields.shard_key)) throw new TroupeError('unsupported', '`shard_key`: custom sharding is not part of this release');
}

function malformed(detail: string): TroupeError {
  return new TroupeError('malformedBody', detail);
}

function noVectorStruct(path: string): TroupeError {
  return malformed(`\`${path}\`: data did not match any variant of untagged enum VectorStruct`);
}

function unknownVector(name: string): TroupeError {
  return new TroupeError('wrongInput', `Not existing vector name error: ${name}`);
}

function inferenceUnsupported(): TroupeError {
  return new TroupeError('unsupported', 'vectors made by a model are not part of this release; send the vector itself');
}

function emptyRequest(): TroupeError {
  return new TroupeError('wrongInput', 'Empty update request');
}
