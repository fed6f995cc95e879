/** Queries of every kind of REST as messages of gRPC, in the JSON form of Protocol Buffers. */

import { conditionMessage, filterMessage } from './filter-message.js';
import {
  idMessage,
  inputMessage,
  type Json,
  type Members,
  mapOf,
  maybe,
  sent,
  shardKeysMessage,
  valueMap,
  vectorMessage,
  word,
} from './values.js';

/** Members that requests of every kind share; the rest stays as it is. */
export function readMessage({ with_payload, with_vector, with_lookup, lookup_from, filter, consistency, shard_key, ...members }: Members): {
  [key: string]: Json;
} {
  return sent({
    ...members,
    filter: maybe(filter, filterMessage),
    with_payload: maybe(with_payload, payloadSelector),
    with_vectors: maybe(with_vector, vectorSelector),
    with_lookup: maybe(with_lookup, lookupMessage),
    lookup_from: maybe(lookup_from, locationMessage),
    shard_key_selector: maybe(shard_key, shardKeysMessage),
    read_consistency: maybe(consistency, (of: Json): Json => (typeof of === 'number' ? { factor: of } : { type: word(of) })),
  });
}

export function queryPointsMessage({ prefetch, query, ...members }: Members): { [key: string]: Json } {
  return { ...readMessage(members), ...sent({ query: maybe(query, queryMessage), prefetch: maybe(prefetch, prefetchMessages) }) };
}

function prefetchMessages(prefetch: Json): Json {
  return (Array.isArray(prefetch) ? prefetch : [prefetch]).map((one) => queryPointsMessage(one as Members));
}

export function searchMessage({ vector, ...members }: Members): { [key: string]: Json } {
  const named = typeof vector === 'object' && vector !== null && !Array.isArray(vector) ? (vector as Members) : null;
  const value = named === null ? vector : (named.vector as Json);
  const sparse = Array.isArray(value) ? null : (value as Members);
  return sent({
    ...readMessage(members),
    vector_name: named?.name,
    vector: sparse === null ? value : sparse.values,
    sparse_indices: sparse === null ? undefined : { data: sparse.indices as Json },
  });
}

export function recommendMessage({ positive, negative, strategy, ...members }: Members): { [key: string]: Json } {
  const ids = (examples: Json | undefined) => ((examples ?? []) as Json[]).filter((example) => !isVector(example)).map(idMessage);
  const vectors = (examples: Json | undefined) => ((examples ?? []) as Json[]).filter(isVector).map(vectorMessage);
  return sent({
    ...readMessage(members),
    positive: ids(positive),
    negative: ids(negative),
    positive_vectors: vectors(positive),
    negative_vectors: vectors(negative),
    strategy: maybe(strategy, word),
  });
}

export function discoverMessage({ target, context, ...members }: Members): { [key: string]: Json } {
  const example = (of: Json): Json => (isVector(of) ? { vector: vectorMessage(of) } : { id: idMessage(of) });
  return sent({
    ...readMessage(members),
    target: maybe(target, (of: Json) => ({ single: example(of) })),
    context: maybe(context, (pairs: Members[]) => pairs.map((pair) => mapOf(pair, example))),
  });
}

function isVector(example: Json): boolean {
  return typeof example === 'object';
}

/** `order_by` of a scroll or a query. */
export function orderMessage(order: Json): Json {
  if (typeof order === 'string') return { key: order };
  const { direction, start_from, ...members } = order as Members;
  const start = (of: Json): Json => {
    if (typeof of === 'string') return { datetime: of };
    return Number.isInteger(of) ? { integer: of } : { float: of };
  };
  return sent({ ...members, direction: maybe(direction, word), start_from: maybe(start_from, start) });
}

function queryMessage(query: Json): Json {
  if (typeof query !== 'object' || query === null || Array.isArray(query)) return { nearest: inputMessage(query) };
  const members = query as Members;
  const [kind] = Object.keys(members) as [string];
  const value = members[kind] as Json;
  switch (kind) {
    case 'nearest':
      if (members.mmr === undefined) return { nearest: inputMessage(value) };
      return { nearest_with_mmr: { nearest: inputMessage(value), mmr: members.mmr } };
    case 'recommend': {
      const { positive, negative, strategy } = value as Members;
      const inputs = (list: Json[]) => list.map(inputMessage);
      return {
        recommend: sent({ positive: maybe(positive, inputs), negative: maybe(negative, inputs), strategy: maybe(strategy, word) }),
      };
    }
    case 'discover': {
      const { target, context } = value as Members;
      return { discover: { target: inputMessage(target as Json), context: pairsMessage(context as Json) } };
    }
    case 'context':
      return { context: pairsMessage(value) };
    case 'order_by':
      return { order_by: orderMessage(value) };
    case 'fusion':
      return { fusion: String(value).toUpperCase() };
    case 'sample':
      return { sample: word(value) };
    case 'formula':
      return { formula: sent({ expression: expressionMessage(value), defaults: maybe(members.defaults, valueMap) }) };
    case 'relevance_feedback': {
      const { target, feedback, strategy } = value as Members;
      const items = (feedback as Members[]).map((item) => ({ example: inputMessage(item.example as Json), score: item.score as Json }));
      return { relevance_feedback: { target: inputMessage(target as Json), feedback: items, strategy: strategy as Json } };
    }
    case 'rrf':
      return { rrf: value };
    default:
      return { nearest: vectorMessage(query) };
  }
}

function pairsMessage(pairs: Json): Json {
  return { pairs: (Array.isArray(pairs) ? pairs : [pairs]).map((pair) => mapOf(pair as Members, inputMessage)) };
}

function expressionMessage(expression: Json): Json {
  if (typeof expression === 'number') return { constant: expression };
  if (typeof expression === 'string') return { variable: expression };
  const members = expression as Members;
  const [kind] = Object.keys(members) as [string];
  const value = members[kind] as Json;
  switch (kind) {
    case 'sum':
    case 'mult':
      return { [kind]: { [kind]: (value as Json[]).map(expressionMessage) } };
    case 'neg':
    case 'abs':
    case 'sqrt':
    case 'exp':
    case 'log10':
    case 'ln':
      return { [kind]: expressionMessage(value) };
    case 'div':
    case 'pow':
    case 'exp_decay':
    case 'gauss_decay':
    case 'lin_decay':
      return { [kind]: operandsMessage(value as Members) };
    case 'geo_distance':
    case 'datetime':
    case 'datetime_key':
      return { [kind]: value };
    default:
      return { condition: conditionMessage(expression) };
  }
}

const PLAIN_OPERANDS = ['by_zero_default', 'scale', 'midpoint'];

function operandsMessage(operands: Members): Json {
  return Object.fromEntries(
    Object.entries(sent(operands)).map(([name, value]) => [name, PLAIN_OPERANDS.includes(name) ? value : expressionMessage(value)]),
  );
}

function payloadSelector(selector: Json): Json {
  if (typeof selector === 'boolean') return { enable: selector };
  if (Array.isArray(selector)) return { include: { fields: selector } };
  return mapOf(selector as Members, (fields) => ({ fields }));
}

function vectorSelector(selector: Json): Json {
  return typeof selector === 'boolean' ? { enable: selector } : { include: { names: selector } };
}

function lookupMessage(lookup: Json): Json {
  if (typeof lookup === 'string') return { collection: lookup };
  const { collection, with_payload, with_vectors } = lookup as Members;
  return sent({ collection, with_payload: maybe(with_payload, payloadSelector), with_vectors: maybe(with_vectors, vectorSelector) });
}

function locationMessage({ collection, vector, shard_key }: Members): Json {
  return sent({ collection_name: collection, vector_name: vector, shard_key_selector: maybe(shard_key, shardKeysMessage) });
}
