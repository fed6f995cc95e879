/**
 * Decodes the bodies of read requests. This is the hot path of the service: vectors never become JavaScript numbers
 * one by one (see `vector-scan.ts`), what is left is a short text.
 *
 * Errors: `malformedBody` for broken JSON and wrong types, `invalidValue` for a limit of 0 and the like, `wrongInput`
 * for vectors that cannot be what the collection holds, `unsupported` for kinds of queries this release does not have.
 */

import { TroupeError } from '../errors.js';
import { writtenAsFloat } from '../json.js';
import type { Filter, VectorSelector } from '../model/filter.js';
import type { JsonValue } from '../model/payload.js';
import { type PointId, pointIdFrom, pointIdFromText } from '../model/point-id.js';
import {
  type CountQuery,
  DEFAULT_SEARCH_PARAMS,
  type QuantizationParams,
  type QueryRequest,
  type RetrieveQuery,
  type ScrollQuery,
  type SearchParams,
} from '../model/query.js';
import type { VectorInput } from '../model/vector.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeFilter } from './filter.js';
import type { RequestValue } from './request-value.js';
import { ALL, decodePayloadSelector, decodeVectorSelector, NONE } from './selectors.js';

const LIMIT_DEFAULT = 10;
const UINT64_MAX = 0xffff_ffff_ffff_ffffn;

/** Body of `POST /points`. */
export function decodeRetrieve(body: RequestValue): RetrieveQuery {
  const object = bodyObject(body, 'PointRequest');
  refuseShardKey(object);
  const ids = object.ids;
  if (ids === undefined) throw missingField('ids');
  if (!Array.isArray(ids)) throw wrongType('ids', ids, 'a sequence');
  return {
    ids: ids.map(pointIdOf),
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, false),
  };
}

/** `GET /points/{id}`: the point with payload and vectors. Errors: `wrongInput` when the text is no id. */
export function decodeGetPoint(id: string): RetrieveQuery {
  const point = pointIdFromText(id);
  if (point === undefined) throw new TroupeError('wrongInput', `Can not recognize ${JSON.stringify(id)} as point id`);
  return { ids: [point], withPayload: ALL, withVector: ALL };
}

/** Body of `POST /points/scroll`. */
export function decodeScroll(body: RequestValue): ScrollQuery {
  const object = bodyObject(body, 'ScrollRequest');
  refuseShardKey(object);
  if (isGiven(object.order_by)) throw unsupported('`order_by` in scroll');
  return {
    offset: isGiven(object.offset) ? offsetPoint(object) : null,
    orderBy: null,
    limit: limitOf(object, 'scroll_request') ?? LIMIT_DEFAULT,
    filter: filterOf(object),
    withPayload: decodePayloadSelector(object.with_payload, ALL),
    withVector: vectorSelector(object, false),
  };
}

/** Body of `POST /points/count`. */
export function decodeCount(body: RequestValue): CountQuery {
  const object = bodyObject(body, 'CountRequest');
  refuseShardKey(object);
  return { filter: filterOf(object), exact: flag(object, 'exact', true) };
}

/** Body of `POST /points/query`. */
export function decodeQuery({ value, vectors }: RequestValue): QueryRequest {
  return queryFrom(objectOf(value, 'QueryRequest'), vectors, 'internal');
}

/** Body of `POST /points/query/batch`. */
export function decodeQueryBatch({ value, vectors }: RequestValue): QueryRequest[] {
  return searchesOf(value, 'QueryRequestBatch').map((search, i) => queryFrom(objectOf(search, 'QueryRequest'), vectors, `searches[${i}]`));
}

/** Body of `POST /points/search`. */
export function decodeSearch({ value, vectors }: RequestValue): QueryRequest {
  return searchFrom(objectOf(value, 'SearchRequest'), vectors, 'search_request');
}

/** Body of `POST /points/search/batch`. */
export function decodeSearchBatch({ value, vectors }: RequestValue): QueryRequest[] {
  return searchesOf(value, 'SearchRequestBatch').map((search, i) =>
    searchFrom(objectOf(search, 'SearchRequest'), vectors, `searches[${i}]`),
  );
}

// ------------------------------------------------------------------ requests

/** Vectors that were taken out of the body; null: none were, so arrays are what they are. */
type Vectors = RequestValue['vectors'];

function searchFrom(object: JsonObject, vectors: Vectors, path: string): QueryRequest {
  refuseShardKey(object);
  const limit = limitOf(object, path);
  if (limit === undefined) throw missingField('limit');
  const { using, values } = namedVector(object.vector, vectors);
  return {
    prefetch: [],
    query: { kind: 'nearest', target: { kind: 'dense', values }, mmr: null },
    using,
    filter: filterOf(object),
    params: paramsOf(object.params, path),
    limit,
    offset: usize(object, 'offset', path) ?? 0,
    scoreThreshold: thresholdOf(object),
    lookupFrom: null,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
  };
}

function queryFrom(object: JsonObject, vectors: Vectors, path: string): QueryRequest {
  refuseShardKey(object);
  const { prefetch } = object;
  if (isGiven(prefetch) && !(Array.isArray(prefetch) && prefetch.length === 0)) throw unsupported('`prefetch`');
  if (isGiven(object.lookup_from)) throw unsupported('`lookup_from`');
  const target = isGiven(object.query) ? targetOf(object.query, vectors) : null;
  const using = object.using ?? '';
  if (typeof using !== 'string') throw wrongType('using', using, 'a string');
  return {
    prefetch: [],
    query: target === null ? null : { kind: 'nearest', target, mmr: null },
    using,
    filter: filterOf(object),
    params: paramsOf(object.params, path),
    limit: limitOf(object, path) ?? LIMIT_DEFAULT,
    offset: usize(object, 'offset', path) ?? 0,
    scoreThreshold: thresholdOf(object),
    lookupFrom: null,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
  };
}

/** Kinds of queries of the API that this release does not have. */
const OTHER_KINDS = ['recommend', 'discover', 'context', 'order_by', 'fusion', 'rrf', 'formula', 'sample', 'relevance_feedback'];
/** Inputs that a model would have to turn into a vector. */
const INFERENCE_KEYS = ['text', 'image', 'object', 'model'];

function targetOf(query: JsonValue | undefined, vectors: Vectors): VectorInput {
  if (isObject(query)) {
    if (isGiven(query.nearest)) {
      if (isGiven(query.mmr)) throw unsupported('`mmr`');
      return vectorInput(query.nearest, vectors);
    }
    const kind = OTHER_KINDS.find((key) => Object.hasOwn(query, key));
    if (kind !== undefined) throw unsupported(`queries of the kind \`${kind}\``);
  }
  return vectorInput(query, vectors);
}

/** A vector or a point id. */
function vectorInput(value: JsonValue | undefined, vectors: Vectors): VectorInput {
  if (Array.isArray(value)) {
    if (value.some(Array.isArray)) throw new TroupeError('wrongInput', 'Conversion between multi and regular vectors failed');
    const values = denseVector(value, vectors);
    if (values !== undefined) return { kind: 'dense', values };
  } else if (isObject(value)) {
    refuseSparse(value);
    if (INFERENCE_KEYS.some((key) => isGiven(value[key]))) throw unsupported('inference of vectors from documents, images or objects');
  } else {
    const id = pointIdFrom(value);
    if (id !== undefined) return { kind: 'point', id };
  }
  throw new TroupeError('malformedBody', 'Expected some form of vector, id, or a type of query');
}

function namedVector(value: JsonValue | undefined, vectors: Vectors): { using: string; values: Float32Array } {
  if (value === undefined) throw missingField('vector');
  if (Array.isArray(value)) {
    const values = denseVector(value, vectors);
    if (values !== undefined) return { using: '', values };
  } else if (isObject(value) && typeof value.name === 'string') {
    const { vector } = value;
    if (isObject(vector)) refuseSparse(vector);
    const values = Array.isArray(vector) ? denseVector(vector, vectors) : undefined;
    if (values !== undefined) return { using: value.name, values };
  }
  throw new TroupeError('malformedBody', '`vector`: expected a list of numbers, or an object with `name` and `vector`');
}

/** The vector an array stands for; undefined when it is no list of numbers. Errors: `wrongInput` for values beyond a float32. */
function denseVector(array: readonly JsonValue[], vectors: Vectors): Float32Array | undefined {
  let values: Float32Array;
  if (vectors !== null && array.length > 0) values = vectors[array[0] as number] as Float32Array;
  else {
    if (!array.every((item) => typeof item === 'number' || typeof item === 'bigint')) return undefined;
    values = Float32Array.from(array, Number);
  }
  if (!isFinite32(values)) throw new TroupeError('wrongInput', 'a query vector must hold finite 32-bit numbers');
  return values;
}

/** One sum instead of a test per value: infinities and NaN survive it, and finite float32 values cannot overflow a double. */
function isFinite32(values: Float32Array): boolean {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return Number.isFinite(sum);
}

function refuseSparse(value: JsonObject): void {
  if (Array.isArray(value.indices) && Array.isArray(value.values)) {
    throw new TroupeError('wrongInput', 'Conversion between sparse and regular vectors failed');
  }
}

function paramsOf(value: JsonValue | undefined, path: string): SearchParams {
  if (!isGiven(value)) return DEFAULT_SEARCH_PARAMS;
  if (!isObject(value)) throw wrongType('params', value, 'struct SearchParams');
  checkAcorn(value.acorn, `${path}.params.acorn`);
  return {
    hnswEf: usize(value, 'hnsw_ef', path) ?? null,
    exact: flag(value, 'exact', false),
    indexedOnly: flag(value, 'indexed_only', false),
    quantization: quantizationOf(value.quantization, `${path}.params.quantization`),
  };
}

function quantizationOf(value: JsonValue | undefined, path: string): QuantizationParams {
  if (!isGiven(value)) return DEFAULT_SEARCH_PARAMS.quantization;
  if (!isObject(value)) throw wrongType('quantization', value, 'struct QuantizationSearchParams');
  const ignore = flag(value, 'ignore', false);
  const rescore = isGiven(value.rescore) ? flag(value, 'rescore', true) : null;
  const oversampling = isGiven(value.oversampling) ? numberOf(value.oversampling, 'oversampling') : null;
  if (oversampling !== null && oversampling < 1) throw outOfRange(`${path}.oversampling`, oversampling, '1.0 or larger');
  return { ignore, rescore, oversampling };
}

/** Filtered walks take two hops where the filter is narrow, asked or not; the parameters are only checked. */
function checkAcorn(value: JsonValue | undefined, path: string): void {
  if (!isGiven(value)) return;
  if (!isObject(value)) throw wrongType('acorn', value, 'struct AcornSearchParams');
  flag(value, 'enable', false);
  if (!isGiven(value.max_selectivity)) return;
  const selectivity = numberOf(value.max_selectivity, 'max_selectivity');
  if (selectivity < 0 || selectivity > 1) throw outOfRange(`${path}.max_selectivity`, selectivity, 'from 0.0 to 1.0');
}

// ------------------------------------------------------------------ fields

/** `with_vectors` is another spelling. nullable: null counts as absent. */
function vectorSelector(object: JsonObject, nullable: boolean): VectorSelector {
  const value = object.with_vector !== undefined ? object.with_vector : object.with_vectors;
  return nullable && value === null ? NONE : decodeVectorSelector(value, NONE);
}

function filterOf(object: JsonObject): Filter | null {
  return isGiven(object.filter) ? decodeFilter(object.filter, 'filter') : null;
}

function limitOf(object: JsonObject, path: string): number | undefined {
  const limit = usize(object, 'limit', path);
  if (limit === 0) throw outOfRange(`${path}.limit`, 0, '1 or larger');
  return limit;
}

/** An unsigned 64-bit integer; beyond 2^53 it comes as the next double, which is as good for a limit. */
function usize(object: JsonObject, key: string, path: string): number | undefined {
  const value = object[key];
  if (!isGiven(value)) return undefined;
  if (typeof value === 'bigint' && value >= 0n && value <= UINT64_MAX) return Number(value);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || writtenAsFloat(object, key))
    throw wrongType(`${path}.${key}`, value, 'usize');
  if (value < 0) throw new TroupeError('malformedBody', `\`${path}.${key}\`: invalid value: integer \`${value}\`, expected usize`);
  return value;
}

function flag(object: JsonObject, key: string, whenAbsent: boolean): boolean {
  const value = object[key];
  if (value === undefined) return whenAbsent;
  if (typeof value !== 'boolean') throw wrongType(key, value, 'a boolean');
  return value;
}

function thresholdOf(object: JsonObject): number | null {
  return isGiven(object.score_threshold) ? numberOf(object.score_threshold, 'score_threshold') : null;
}

function numberOf(value: JsonValue | undefined, name: string): number {
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongType(name, value, 'a number');
  return Number(value);
}

function pointIdOf(value: JsonValue): PointId {
  const id = pointIdFrom(value);
  if (id !== undefined) return id;
  const shown = typeof value === 'string' ? value : typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
  throw new TroupeError('malformedBody', `value ${shown} is not a valid point ID, valid values are either an unsigned integer or a UUID`);
}

function offsetPoint(object: JsonObject): PointId {
  if (writtenAsFloat(object, 'offset')) throw wrongType('offset', object.offset, 'a point ID');
  return pointIdOf(object.offset as JsonValue);
}

/** Custom sharding is no part of this release: a request that names shards must not get an answer from all of them. */
function refuseShardKey(object: JsonObject): void {
  if (isGiven(object.shard_key)) throw unsupported('`shard_key`');
}

// ------------------------------------------------------------------ bodies

function bodyObject({ value }: RequestValue, type: string): JsonObject {
  return objectOf(value, type);
}

function objectOf(value: JsonValue, type: string): JsonObject {
  if (!isObject(value)) throw wrongType('', value, `struct ${type}`);
  return value;
}

function searchesOf(value: JsonValue, type: string): JsonValue[] {
  const { searches } = objectOf(value, type);
  if (searches === undefined) throw missingField('searches');
  if (!Array.isArray(searches)) throw wrongType('searches', searches, 'a sequence');
  return searches;
}

function isGiven(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

function missingField(name: string): TroupeError {
  return new TroupeError('malformedBody', `missing field \`${name}\``);
}

function outOfRange(path: string, value: number, wanted: string): TroupeError {
  return new TroupeError('invalidValue', `[${path}: value ${value} invalid, must be ${wanted}]`);
}

function unsupported(what: string): TroupeError {
  return new TroupeError('unsupported', `${what} is not part of this release; it has nearest-neighbour queries, filters, scroll and count`);
}
