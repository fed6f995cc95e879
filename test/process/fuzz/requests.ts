/** Requests that a node takes, one or more for each operation: what mutations start from. */

import type { RandomNumbers } from '../../../ops/random.js';
import { clusterRequest } from './cluster-requests.js';

export interface SampleRequest {
  readonly method: string;
  /** Behind `/collections/<name>`, unless it begins with `//`. */
  readonly path: string;
  readonly body?: object;
}

const DENSE = [0.1, 0.2, 0.3, 0.4];
const SPARSE = { indices: [1, 7, 30], values: [0.5, 1.5, 2] };
const MULTI = [
  [1, 0],
  [0.5, 0.5],
];
const FILTER = {
  must: [
    { key: 'n', range: { gte: 1, lt: 50 } },
    { key: 'tag', match: { any: ['a', 'b'] } },
  ],
  should: [{ has_id: [1, 2, 3] }, { is_empty: { key: 'x' } }],
  must_not: [{ key: 'at', geo_radius: { center: { lon: 13.4, lat: 52.5 }, radius: 1000 } }, { has_vector: 'terms' }],
};
const FILTERS: readonly object[] = [
  FILTER,
  {
    min_should: {
      conditions: [
        { key: 'text', match: { text: 'two words' } },
        { key: 'n', values_count: { gt: 0 } },
      ],
      min_count: 1,
    },
  },
  { must: { nested: { key: 'items', filter: { must: [{ key: 'name', match: { value: 'x' } }] } } } },
  { must: { key: 'when', range: { gt: '2024-01-01T00:00:00Z' } } },
  {
    must: {
      key: 'at',
      geo_polygon: {
        exterior: {
          points: [
            { lon: 0, lat: 0 },
            { lon: 50, lat: 0 },
            { lon: 50, lat: 60 },
            { lon: 0, lat: 0 },
          ],
        },
        interiors: [
          {
            points: [
              { lon: 1, lat: 1 },
              { lon: 2, lat: 1 },
              { lon: 2, lat: 2 },
              { lon: 1, lat: 1 },
            ],
          },
        ],
      },
    },
  },
];
const VECTOR = { dense: DENSE, terms: SPARSE, tokens: MULTI };
const PAYLOAD = {
  n: 7,
  tag: 'a',
  text: 'one two three words',
  at: { lon: 13.4, lat: 52.5 },
  when: '2024-05-05T10:00:00Z',
  items: [{ name: 'x', price: 1.5 }],
};

const QUERIES: readonly object[] = [
  { query: DENSE, using: 'dense', limit: 5, filter: FILTER, params: { hnsw_ef: 16, exact: false }, score_threshold: 0.1, offset: 1 },
  { query: SPARSE, using: 'terms', with_vector: true },
  { query: MULTI, using: 'tokens', with_payload: { include: ['n', 'items[].name'] } },
  { query: 3, using: 'dense', lookup_from: { collection: 'other', vector: 'dense' } },
  { query: { recommend: { positive: [1, DENSE], negative: [2], strategy: 'best_score' } }, using: 'dense' },
  { query: { discover: { target: DENSE, context: [{ positive: 1, negative: 2 }] } }, using: 'dense' },
  { query: { context: [{ positive: 1, negative: DENSE }] }, using: 'dense' },
  { query: { order_by: { key: 'n', direction: 'desc', start_from: 10 } } },
  { query: { sample: 'random' }, limit: 3 },
  { query: { nearest: DENSE, mmr: { diversity: 0.5, candidates_limit: 20 } }, using: 'dense' },
  {
    prefetch: [
      { query: DENSE, using: 'dense', limit: 20, filter: FILTER },
      { prefetch: { query: SPARSE, using: 'terms' }, query: DENSE, using: 'dense' },
    ],
    query: { fusion: 'rrf' },
  },
  {
    prefetch: [
      { query: DENSE, using: 'dense' },
      { query: SPARSE, using: 'terms' },
    ],
    query: { rrf: { k: 3, weights: [1, 2] } },
  },
  {
    prefetch: { query: DENSE, using: 'dense' },
    query: {
      formula: {
        sum: [
          '$score',
          { mult: [2, { key: 'tag', match: { value: 'a' } }] },
          { exp_decay: { x: { geo_distance: { origin: { lon: 1, lat: 2 }, to: 'at' } }, scale: 1000 } },
          { div: { left: 'n', right: { sqrt: { abs: 'n' } }, by_zero_default: 1 } },
          { gauss_decay: { x: { datetime_key: 'when' }, target: { datetime: '2024-01-01' }, scale: 86400 } },
        ],
      },
      defaults: { n: 1, at: { lon: 0, lat: 0 }, when: '2020-01-01' },
    },
  },
  { query: { text: 'some words', model: 'qdrant/bm25' }, using: 'terms' },
];

const POINTS = [
  { id: 1, vector: VECTOR, payload: PAYLOAD },
  { id: 'c0ffee00-0000-4000-8000-000000000001', vector: { dense: DENSE }, payload: { n: 2.5, tag: ['a', 'b'] } },
];
const UPDATES: readonly object[] = [
  { upsert: { points: POINTS } },
  { set_payload: { payload: { n: 3 }, points: [1, 2] } },
  { overwrite_payload: { payload: { n: 4 }, filter: FILTER } },
  { delete_payload: { keys: ['n', 'items[].price'], points: [3] } },
  { clear_payload: { points: [4] } },
  { delete_vectors: { vector: ['terms'], points: [5] } },
  { update_vectors: { points: [{ id: 1, vector: { dense: DENSE } }] } },
  { delete: { points: [29] } },
];

/** A request that is taken. Writes wait. */
export function sampleRequest(random: RandomNumbers): SampleRequest {
  const one = <T>(list: readonly T[]): T => list[random.integer(list.length)] as T;
  const filter = one(FILTERS);
  const query = one(QUERIES);
  const samples: readonly (() => SampleRequest)[] = [
    () => write('PUT', 'points', { points: POINTS }),
    () =>
      write('PUT', 'points', {
        batch: { ids: [1, 2], vectors: { dense: [DENSE, DENSE], terms: [SPARSE, SPARSE] }, payloads: [PAYLOAD, null] },
      }),
    () => write('PUT', 'points', { points: POINTS, update_filter: filter, update_mode: 'insert_only' }),
    () => write('POST', 'points/delete', random.integer(2) === 0 ? { points: [1, 7] } : { filter }),
    () => write('POST', 'points/payload', { payload: PAYLOAD, points: [1, 2, 3], key: 'deep' }),
    () => write('PUT', 'points/payload', { payload: PAYLOAD, filter }),
    () => write('POST', 'points/payload/delete', { keys: ['n', 'items[].name'], filter }),
    () => write('POST', 'points/payload/clear', { points: [2] }),
    () => write('PUT', 'points/vectors', { points: [{ id: 1, vector: VECTOR }] }),
    () => write('POST', 'points/vectors/delete', { vector: ['terms', 'tokens'], filter }),
    () => write('POST', 'points/batch', { operations: [one(UPDATES), one(UPDATES)] }),
    () =>
      write('PUT', 'index', {
        field_name: one(['n', 'tag', 'text', 'at', 'when']),
        field_schema: one([
          'keyword',
          'integer',
          'geo',
          'datetime',
          { type: 'text', tokenizer: 'prefix', min_token_len: 2, lowercase: true, phrase_matching: true, stopwords: 'english' },
        ]),
      }),
    () => ({ method: 'DELETE', path: `index/${one(['n', 'tag', 'text'])}?wait=true` }),
    () => ({ method: 'GET', path: `points/${one(['1', '99', 'x', '-1', '%00', 'c0ffee00-0000-4000-8000-000000000001'])}` }),
    () => ({ method: 'POST', path: 'points', body: { ids: [1, 2, 77], with_payload: ['n'], with_vector: ['dense'] } }),
    () => ({ method: 'POST', path: 'points/scroll', body: { limit: 7, offset: 3, filter, with_vector: true } }),
    () => ({ method: 'POST', path: 'points/scroll', body: { limit: 7, order_by: { key: 'n', direction: 'asc', start_from: 2 } } }),
    () => ({ method: 'POST', path: 'points/count', body: { filter, exact: true } }),
    () => ({ method: 'POST', path: 'points/query', body: query }),
    () => ({ method: 'POST', path: 'points/query', body: query }),
    () => ({ method: 'POST', path: 'points/query/batch', body: { searches: [query, one(QUERIES)] } }),
    () => ({ method: 'POST', path: 'points/query/groups', body: { ...query, group_by: 'tag', group_size: 2, with_lookup: 'other' } }),
    () => ({ method: 'POST', path: 'points/search', body: { vector: { name: 'dense', vector: DENSE }, limit: 3, filter } }),
    () => ({ method: 'POST', path: 'points/search/batch', body: { searches: [{ vector: { name: 'terms', vector: SPARSE }, limit: 3 }] } }),
    () => ({
      method: 'POST',
      path: 'points/search/groups',
      body: { vector: { name: 'dense', vector: DENSE }, limit: 3, group_by: 'n', group_size: 2 },
    }),
    () => ({
      method: 'POST',
      path: 'points/recommend',
      body: { positive: [1], negative: [2], using: 'dense', limit: 3, strategy: 'sum_scores' },
    }),
    () => ({
      method: 'POST',
      path: 'points/discover',
      body: { target: 1, context: [{ positive: 2, negative: 3 }], using: 'dense', limit: 3 },
    }),
    () => ({ method: 'POST', path: 'facet', body: { key: 'tag', limit: 5, filter } }),
    () => ({ method: 'POST', path: 'points/search/matrix/pairs', body: { sample: 10, limit: 3, using: 'dense', filter } }),
    () => ({ method: 'POST', path: 'points/search/matrix/offsets', body: { sample: 10, limit: 3, using: 'dense' } }),
    () => ({
      method: 'PATCH',
      path: '',
      body: {
        optimizers_config: { indexing_threshold: 10_000, deleted_threshold: 0.3 },
        hnsw_config: { m: 16 },
        params: { write_consistency_factor: 1 },
        metadata: { a: 1 },
      },
    }),
    () => ({
      method: 'PUT',
      path: `//collections/made_${random.integer(3)}`,
      body: {
        vectors: {
          a: { size: 4, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } },
          b: { size: 2, distance: 'Dot', datatype: 'uint8' },
        },
        sparse_vectors: { s: { modifier: 'idf', index: { on_disk: false } } },
        hnsw_config: { m: 8 },
        quantization_config: { scalar: { type: 'int8', quantile: 0.9 } },
      },
    }),
    () => ({ method: 'DELETE', path: `//collections/made_${random.integer(3)}` }),
    () => ({
      method: 'POST',
      path: '//collections/aliases',
      body: {
        actions: [
          { create_alias: { collection_name: 'other', alias_name: `alias_${random.integer(3)}` } },
          { delete_alias: { alias_name: `alias_${random.integer(3)}` } },
        ],
      },
    }),
    () => ({ method: 'PUT', path: `vectors/extra_${random.integer(2)}?wait=true`, body: { dense: { size: 4, distance: 'Dot' } } }),
    () => ({ method: 'DELETE', path: `vectors/extra_${random.integer(2)}?wait=true` }),
    () => ({ method: 'GET', path: '' }),
    () => clusterRequest(random, 77),
  ];
  return one(samples)();
}

function write(method: string, path: string, body: object): SampleRequest {
  return { method, path: `${path}?wait=true`, body };
}

/** What the fuzzed collection is made with. */
export const FUZZED_COLLECTION = {
  vectors: {
    dense: { size: 4, distance: 'Cosine' },
    tokens: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  },
  sparse_vectors: { terms: { modifier: 'idf' } },
};

/** Its payload indexes. */
export const FUZZED_FIELDS = { n: 'integer', tag: 'keyword', at: 'geo', when: 'datetime' } as const;

/** Its points. */
export function fuzzedPoints(random: RandomNumbers): object[] {
  return Array.from({ length: 30 }, (_, i) => ({
    id: i + 1,
    vector: {
      dense: DENSE.map((value) => value + random.unit()),
      ...(i % 3 === 0 ? {} : { terms: { indices: [i, i + 5], values: [random.unit(), 1] } }),
      ...(i % 4 === 0 ? {} : { tokens: [[random.unit(), 1], ...MULTI] }),
    },
    payload: { ...PAYLOAD, n: i, tag: i % 2 === 0 ? 'a' : ['b', 'c'] },
  }));
}
