/**
 * Decodes the requests of old that recommend and discover: they come to the same queries as `points/query`.
 * Errors: `malformedBody`, `invalidValue`, and `wrongInput` without any example to go by.
 */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import type { QueryNode, QueryRequest, Scoring } from '../model/query.js';
import { type JsonObject, wrongType } from './fields.js';
import { lookupOf, usingOf } from './queries.js';
import { type TakenVectors, vectorInput } from './query-input.js';
import {
  filterOf,
  isGiven,
  objectOf,
  searchesOf,
  searchLimit,
  shardKeyIn,
  thresholdOf,
  unsignedField,
  vectorSelector,
} from './request-fields.js';
import type { RequestValue } from './request-value.js';
import { decodeInputs, pairsOf, strategyOf } from './scoring.js';
import { paramsOf } from './search-params.js';
import { decodePayloadSelector, NONE } from './selectors.js';

/** Body of `POST /points/recommend`. */
export function decodeRecommend({ value, vectors }: RequestValue): QueryRequest {
  return recommendFrom(value, vectors, 'recommend_request');
}

/** Body of `POST /points/recommend/batch`. */
export function decodeRecommendBatch({ value, vectors }: RequestValue): QueryRequest[] {
  return searchesOf(value, 'RecommendRequestBatch').map((search, i) => recommendFrom(search, vectors, `searches[${i}]`));
}

/** Body of `POST /points/discover`. */
export function decodeDiscover({ value, vectors }: RequestValue): QueryRequest {
  return discoverFrom(value, vectors, 'discover_request');
}

/** Body of `POST /points/discover/batch`. */
export function decodeDiscoverBatch({ value, vectors }: RequestValue): QueryRequest[] {
  return searchesOf(value, 'DiscoverRequestBatch').map((search, i) => discoverFrom(search, vectors, `searches[${i}]`));
}

/** What a recommendation asks for, in groups or not. path: how messages name the object. */
export function recommendNode(object: JsonObject, vectors: TakenVectors, path: string): QueryNode {
  const positive = decodeInputs(object.positive, vectors, `${path}.positive`);
  const negative = decodeInputs(object.negative, vectors, `${path}.negative`);
  const strategy = strategyOf(object.strategy, `${path}.strategy`);
  if (strategy === 'average_vector' && positive.length === 0)
    throw new TroupeError('badRequest', 'At least one positive vector ID required with this strategy');
  if (positive.length + negative.length === 0)
    throw new TroupeError('wrongInput', 'At least one positive or negative vector ID required with this strategy');
  return nodeOf(object, { kind: 'recommend', positive, negative, strategy }, path);
}

function recommendFrom(value: JsonValue, vectors: TakenVectors, path: string): QueryRequest {
  const object = objectOf(value, 'RecommendRequest');
  return requestOf(object, { ...recommendNode(object, vectors, path), scoreThreshold: thresholdOf(object) }, path);
}

function discoverFrom(value: JsonValue, vectors: TakenVectors, path: string): QueryRequest {
  const object = objectOf(value, 'DiscoverRequest');
  return requestOf(object, nodeOf(object, discovery(object, vectors, path), path), path);
}

/** Without a target it is a search by context. */
function discovery(object: JsonObject, vectors: TakenVectors, path: string): Scoring {
  if (isGiven(object.context) && !Array.isArray(object.context)) throw wrongType('context', object.context, 'a sequence');
  const pairs = pairsOf(object.context, vectors, `${path}.context`);
  if (isGiven(object.target)) return { kind: 'discover', target: vectorInput(object.target, vectors, `${path}.target`), context: pairs };
  if (pairs.length === 0) throw new TroupeError('badRequest', 'target and/or context_pairs must be specified');
  return { kind: 'context', pairs };
}

function nodeOf(object: JsonObject, query: Scoring, path: string): QueryNode {
  const limit = searchLimit(object, path);
  return {
    prefetch: [],
    query,
    using: usingOf(object.using),
    filter: filterOf(object),
    params: paramsOf(object.params, path),
    scoreThreshold: null,
    limit,
    lookupFrom: lookupOf(object.lookup_from),
  };
}

function requestOf(object: JsonObject, node: QueryNode, path: string): QueryRequest {
  return {
    ...node,
    offset: unsignedField(object, 'offset', path) ?? 0,
    withPayload: decodePayloadSelector(object.with_payload, NONE),
    withVector: vectorSelector(object, true),
    ...shardKeyIn(object),
  };
}
