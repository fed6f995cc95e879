/**
 * Decodes the bodies of read requests. This is the hot path of the service: vectors never become JavaScript numbers
 * one by one (see `vector-scan.ts`), what is left is a short text.
 *
 * Errors: `malformedBody` for broken JSON and wrong types, `invalidValue` for a limit of 0 and the like, `wrongInput`
 * for queries that cannot be carried out whatever the collection holds.
 */

import { TroupeError } from '../errors.js';
import { writtenAsFloat } from '../json.js';
import type { JsonValue } from '../model/payload.js';
import { type PointId, pointIdFromText } from '../model/point-id.js';
import type { CountQuery, LookupLocation, QueryNode, QueryRequest, RetrieveQuery, ScrollQuery } from '../model/query.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { orderByOf } from './order-by.js';
import { namedVector, type TakenVectors } from './query-input.js';
import {
  filterOf,
  isGiven,
  missingField,
  objectOf,
  pointIdOf,
  readFlag,
  readLimit,
  searchesOf,
  searchLimit,
  shardKeyIn,
  thresholdOf,
  unsignedField,
  vectorSelector,
} from './request-fields.js';
import type { RequestValue } from './request-value.js';
import { scoringOf } from './scoring.js';
import { paramsOf } from './search-params.js';
import { ALL, decodePayloadSelector, NONE } from './selectors.js';

const LIMIT_DEFAULT = 10;
/** Prefetches of prefetches: running them goes down as deep. */
const PREFETCH_DEPTH_MAX = 64;

/** Body of `POST /points`. */
export function decodeRetrieve({ value }: RequestValue): RetrieveQuery {
  const object = objectOf(value, 'PointRequest');
  const ids = object.ids;
  if (ids === undefined) throw missingField('ids');
  if (!Array.isArray(ids)) throw wrongType('ids', ids, 'a sequence');
  return {
    ids: ids.map(pointIdOf),
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, false),
    ...shardKeyIn(object),
  };
}

/** `GET /points/{id}`: the point with payload and vectors. Errors: `wrongInput` when the text is no id. */
export function decodeGetPoint(id: string): RetrieveQuery {
  const point = pointIdFromText(id);
  if (point === undefined)
    throw new TroupeError('wrongInput', `${JSON.stringify(id)} is not a point id: expected an unsigned integer or a UUID`);
  return { ids: [point], withPayload: ALL, withVector: ALL };
}

/** Body of `POST /points/scroll`. */
export function decodeScroll({ value }: RequestValue): ScrollQuery {
  const object = objectOf(value, 'ScrollRequest');
  const offset = isGiven(object.offset) ? offsetPoint(object) : null;
  const orderBy = isGiven(object.order_by) ? orderByOf(object.order_by) : null;
  if (offset !== null && orderBy !== null) {
    throw new TroupeError(
      'wrongInput',
      'Cannot use an `offset` when using `order_by`. To page, use `order_by.start_from` and a filter that excludes the ids already seen for that value',
    );
  }
  return {
    offset,
    orderBy,
    ...scrollLimit(readLimit(object, 'scroll_request')),
    filter: filterOf(object),
    withPayload: decodePayloadSelector(object.with_payload, ALL),
    withVector: vectorSelector(object, false),
    ...shardKeyIn(object),
  };
}

function scrollLimit(limit: number | undefined): Pick<ScrollQuery, 'limit' | 'isLimitDefault'> {
  return limit === undefined ? { limit: LIMIT_DEFAULT, isLimitDefault: true } : { limit };
}

/** Body of `POST /points/count`. */
export function decodeCount({ value }: RequestValue): CountQuery {
  const object = objectOf(value, 'CountRequest');
  return { filter: filterOf(object), exact: readFlag(object, 'exact', true), ...shardKeyIn(object) };
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

/**
 * What queries, prefetches and groups have in common. limit: when the object names none.
 * path: how messages name the object. depth: how many levels of prefetches may follow.
 */
export function queryNode(object: JsonObject, vectors: TakenVectors, path: string, limit: number, depth = PREFETCH_DEPTH_MAX): QueryNode {
  const node: QueryNode = {
    prefetch: prefetchOf(object.prefetch, vectors, path, depth),
    query: isGiven(object.query) ? scoringOf(object.query, vectors, `${path}.query`) : null,
    using: usingOf(object.using),
    filter: filterOf(object),
    params: paramsOf(object.params, path),
    limit: readLimit(object, path) ?? limit,
    scoreThreshold: thresholdOf(object),
    lookupFrom: lookupOf(object.lookup_from),
  };
  checkNode(node);
  return node;
}

/** Name of a vector; null and absence are the unnamed one. */
export function usingOf(value: JsonValue | undefined): string {
  if (!isGiven(value)) return '';
  if (typeof value !== 'string') throw wrongType('using', value, 'a string');
  return value;
}

export function lookupOf(value: JsonValue | undefined): LookupLocation | null {
  if (!isGiven(value)) return null;
  if (!isObject(value)) throw wrongType('lookup_from', value, 'struct LookupLocation');
  const { collection, vector } = value;
  if (collection === undefined) throw missingField('collection');
  if (typeof collection !== 'string') throw wrongType('lookup_from.collection', collection, 'a string');
  if (isGiven(vector) && typeof vector !== 'string') throw wrongType('lookup_from.vector', vector, 'a string');
  return { collection, vector: typeof vector === 'string' ? vector : null, ...shardKeyIn(value) };
}

// ------------------------------------------------------------------ requests

function queryFrom(object: JsonObject, vectors: TakenVectors, path: string): QueryRequest {
  return {
    ...queryNode(object, vectors, path, LIMIT_DEFAULT),
    offset: unsignedField(object, 'offset', path) ?? 0,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
    ...shardKeyIn(object),
  };
}

function searchFrom(object: JsonObject, vectors: TakenVectors, path: string): QueryRequest {
  return {
    ...searchNode(object, vectors, path),
    offset: unsignedField(object, 'offset', path) ?? 0,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
    ...shardKeyIn(object),
  };
}

/** What a search of old asks for, in groups or not. path: how messages name the object. */
export function searchNode(object: JsonObject, vectors: TakenVectors, path: string): QueryNode {
  const limit = searchLimit(object, path);
  const { using, value } = namedVector(object.vector, vectors, `${path}.vector`);
  return {
    prefetch: [],
    query: { kind: 'nearest', target: value, mmr: null },
    using,
    filter: filterOf(object),
    params: paramsOf(object.params, path),
    limit,
    scoreThreshold: thresholdOf(object),
    lookupFrom: null,
  };
}

/** One prefetch or a list of them. */
function prefetchOf(value: JsonValue | undefined, vectors: TakenVectors, path: string, depth: number): readonly QueryNode[] {
  if (!isGiven(value)) return NO_PREFETCH;
  if (depth === 0)
    throw new TroupeError('malformedBody', `\`prefetch\` is nested deeper than ${PREFETCH_DEPTH_MAX} levels: use fewer levels`);
  return (Array.isArray(value) ? value : [value]).map((one, i) => {
    if (!isObject(one as JsonValue)) throw wrongType('prefetch', one as JsonValue, 'struct Prefetch');
    return queryNode(one as JsonObject, vectors, `${path}.prefetch[${i}]`, LIMIT_DEFAULT, depth - 1);
  });
}

const NO_PREFETCH: readonly QueryNode[] = [];

/** Errors: `wrongInput` for a query that does not fit its prefetches or its threshold. */
function checkNode({ query, prefetch, scoreThreshold }: QueryNode): void {
  if (query === null) {
    if (prefetch.length === 0) return;
    throw new TroupeError('badRequest', "A query is needed to merge the prefetches. Can't have prefetches without defining a query.");
  }
  switch (query.kind) {
    case 'rrf':
    case 'dbsf':
    case 'formula': {
      const name = query.kind === 'formula' ? 'Formula' : 'Fusion';
      if (prefetch.length === 0) throw new TroupeError('wrongInput', `Validation failed: cannot apply ${name} without prefetches`);
      if (query.kind === 'rrf' && query.weights !== null && query.weights.length !== prefetch.length) {
        const detail = `Validation failed: RRF weights length (${query.weights.length}) does not match number of prefetches (${prefetch.length})`;
        throw new TroupeError('wrongInput', detail);
      }
      return;
    }
    case 'orderBy':
      if (scoreThreshold !== null) throw new TroupeError('badRequest', "Can't use score_threshold with an order_by query.");
      return;
    default:
  }
}

function offsetPoint(object: JsonObject): PointId {
  if (writtenAsFloat(object, 'offset')) throw wrongType('offset', object.offset, 'a point ID');
  return pointIdOf(object.offset as JsonValue);
}
