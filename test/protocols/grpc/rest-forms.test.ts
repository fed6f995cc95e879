import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeMessage } from '../../../protocols/grpc/decode.js';
import { schema } from '../../../protocols/grpc/schema.js';
import type { RequestValue } from '../../../protocols/rest/request-value.js';
import { bytesOf } from './protos.js';

/** The REST body for a message: lists of floats put back, what is undefined left out. */
function bodyOf(name: string, message: object): unknown {
  const { value, vectors } = decodeMessage(schema().message(`qdrant.${name}`), bytesOf(name, message));
  return JSON.parse(JSON.stringify(withFloats(value, vectors)));
}

/** A vector stands as `[index]` where nothing else is a list of one small integer (in these tests). */
function withFloats(value: RequestValue['value'], vectors: RequestValue['vectors'], key = ''): unknown {
  const places = ['vector', 'dense', 'nearest', 'target', 'positive', 'negative', 'example', 'a'];
  if (Array.isArray(value)) {
    const vector = value.length === 1 && typeof value[0] === 'number' && places.includes(key) ? vectors?.[value[0]] : undefined;
    return vector === undefined ? value.map((item) => withFloats(item, vectors, key)) : Array.from(vector);
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withFloats(member as never, vectors, name)]));
}

const num = (id: number) => ({ num: id });
const dense = (...data: number[]) => ({ dense: { data } });
const key = 'k';

test('filters', () => {
  const field = (condition: object) => ({ field: { key, ...condition } });
  const filter = {
    must: [
      field({ match: { keyword: 'x' } }),
      field({ match: { integer: 0 } }),
      field({ match: { boolean: false } }),
      field({ match: { text: 't' } }),
      field({ match: { phrase: 'p' } }),
      field({ match: { text_any: 'ta' } }),
      field({ match: { keywords: { strings: ['a', 'b'] } } }),
      field({ match: { integers: { integers: [1, -2] } } }),
      field({ match: { except_integers: { integers: [3] } } }),
      field({ match: { except_keywords: {} } }),
      field({ range: { gte: 0, lt: 1.5 } }),
      field({ datetime_range: { gt: { seconds: 1_700_000_000, nanos: 123_456_789 }, lte: { seconds: -1 } } }),
      field({ geo_bounding_box: { top_left: { lon: 1 }, bottom_right: { lon: 2, lat: -3 } } }),
      field({ geo_radius: { center: { lon: 1, lat: 2 }, radius: 0.1 } }),
      field({ geo_polygon: { exterior: { points: [{ lon: 1, lat: 1 }] }, interiors: [{ points: [{}] }] } }),
      field({ values_count: { gte: 0 } }),
      field({ is_empty: true }),
      field({ is_null: false }),
    ],
    should: [
      { is_empty: { key } },
      { is_null: { key } },
      { has_id: { has_id: [num(0), { uuid: 'u' }] } },
      { has_vector: { has_vector: 'v' } },
    ],
    must_not: [{ nested: { key, filter: { must: [{ filter: {} }] } } }],
    min_should: { conditions: [{ is_null: { key } }], min_count: 1 },
  };
  const conditions = [
    { match: { value: 'x' } },
    { match: { value: 0 } },
    { match: { value: false } },
    { match: { text: 't' } },
    { match: { phrase: 'p' } },
    { match: { text_any: 'ta' } },
    { match: { any: ['a', 'b'] } },
    { match: { any: [1, -2] } },
    { match: { except: [3] } },
    { match: { except: [] } },
    { range: { gte: 0, lt: 1.5 } },
    { range: { gt: '2023-11-14T22:13:20.123456Z', lte: '1969-12-31T23:59:59.000000Z' } },
    { geo_bounding_box: { top_left: { lon: 1, lat: 0 }, bottom_right: { lon: 2, lat: -3 } } },
    { geo_radius: { center: { lon: 1, lat: 2 }, radius: 0.1 } },
    { geo_polygon: { exterior: { points: [{ lon: 1, lat: 1 }] }, interiors: [{ points: [{ lon: 0, lat: 0 }] }] } },
    { values_count: { gte: 0 } },
    { is_empty: true },
    { is_null: false },
  ];
  assert.deepEqual(bodyOf('CountPoints', { filter, exact: false }), {
    exact: false,
    filter: {
      must: conditions.map((condition) => ({ key, ...condition })),
      should: [{ is_empty: { key } }, { is_null: { key } }, { has_id: [0, 'u'] }, { has_vector: 'v' }],
      must_not: [{ nested: { key, filter: { must: [{}] } } }],
      min_should: { conditions: [{ is_null: { key } }], min_count: 1 },
    },
  });
});

test('a oneof without its value is refused', () => {
  const refused = (name: string, message: object) => assert.throws(() => bodyOf(name, message), { code: 'malformedBody' }, name);
  refused('CountPoints', { filter: { must: [{}] } });
  refused('CountPoints', { filter: { must: [{ field: { key, match: {} } }] } });
  refused('GetPoints', { ids: [{}] });
  refused('QueryPoints', { query: {} });
  refused('QueryPoints', { query: { nearest: {} } });
  refused('UpsertPoints', { points: [{ id: num(1), vectors: {} }] });
  refused('UpdateBatchPoints', { operations: [{}] });
  refused('ChangeAliases', { actions: [{}] });
  refused('CountPoints', { read_consistency: { factor: 0 } });
  refused('CountPoints', { filter: { must: [{ field: { key, datetime_range: { gt: { seconds: '999999999999' } } } }] } });
});

test('reads of points', () => {
  const selectors = { with_payload: { include: { fields: ['a'] } }, with_vectors: { include: { names: ['v'] } } };
  assert.deepEqual(bodyOf('GetPoints', { ids: [num(7)], ...selectors }), {
    ids: [7],
    with_payload: { include: ['a'] },
    with_vector: ['v'],
  });
  const scroll = { offset: num(3), limit: 2, with_payload: { exclude: {} }, with_vectors: { enable: false } };
  const order = (start: object) => ({ order_by: { key, direction: 1, start_from: start } });
  assert.deepEqual(bodyOf('ScrollPoints', { ...scroll, ...order({ float: 0 }) }), {
    offset: 3,
    limit: 2,
    with_payload: { exclude: [] },
    with_vector: false,
    order_by: { key, direction: 'desc', start_from: 0 },
  });
  assert.deepEqual(bodyOf('ScrollPoints', order({ datetime: '2024' })), { order_by: { key, direction: 'desc', start_from: '2024' } });
  assert.deepEqual(bodyOf('FacetCounts', { key, limit: 3, exact: true }), { key, limit: 3, exact: true });
  assert.deepEqual(bodyOf('SearchMatrixPoints', { sample: 4, limit: 2, using: 'v' }), { sample: 4, limit: 2, using: 'v' });
  const shards = { shard_key_selector: { shard_keys: [{ keyword: 'a' }, { number: 0 }] } };
  assert.deepEqual(bodyOf('CountPoints', shards), { shard_key: ['a', 0] });
  const fallback = { shard_key_selector: { shard_keys: [{ keyword: 'a' }], fallback: { keyword: 'b' } } };
  assert.deepEqual(bodyOf('CountPoints', fallback), { shard_key: { target: 'a', fallback: 'b' } });
});

test('searches of old', () => {
  const params = {
    hnsw_ef: 9,
    exact: true,
    indexed_only: false,
    quantization: { ignore: false, rescore: true, oversampling: 2.5 },
    acorn: { enable: true, max_selectivity: 0.5 },
  };
  const page = { limit: 5, offset: 1, score_threshold: 0.3, params };
  assert.deepEqual(bodyOf('SearchPoints', { vector: [1, 2], ...page, with_payload: { enable: true } }), {
    vector: [1, 2],
    ...page,
    with_payload: true,
  });
  assert.deepEqual(bodyOf('SearchPoints', { vector: [1, 2], vector_name: 'v', limit: 1 }), {
    vector: { name: 'v', vector: [1, 2] },
    limit: 1,
  });
  assert.deepEqual(bodyOf('SearchPoints', { vector: [0.5], sparse_indices: { data: [7] }, vector_name: 's', limit: 1 }), {
    vector: { name: 's', vector: { indices: [7], values: [0.5] } },
    limit: 1,
  });
  assert.deepEqual(bodyOf('SearchBatchPoints', { search_points: [{ vector: [1], limit: 1 }] }), { searches: [{ vector: [1], limit: 1 }] });
  const groups = { group_by: 'g', group_size: 2, limit: 3, with_lookup: { collection: 'l', with_payload: { enable: false } } };
  assert.deepEqual(bodyOf('SearchPointGroups', { vector: [1], ...groups }), {
    vector: [1],
    ...groups,
    with_lookup: { collection: 'l', with_payload: false },
  });
  const lookup_from = { collection_name: 'l', vector_name: 'v' };
  const examples = { positive: [num(1)], positive_vectors: [dense(3, 4)], negative_vectors: [{ data: [5, 6] }], strategy: 1, lookup_from };
  assert.deepEqual(bodyOf('RecommendPoints', { ...examples, limit: 2, using: 'v' }), {
    positive: [1, [3, 4]],
    negative: [[5, 6]],
    strategy: 'best_score',
    lookup_from: { collection: 'l', vector: 'v' },
    limit: 2,
    using: 'v',
  });
  const context = [{ positive: { id: num(1) }, negative: { vector: dense(1, 2) } }];
  assert.deepEqual(bodyOf('DiscoverPoints', { target: { single: { vector: dense(9, 8) } }, context, limit: 2 }), {
    target: [9, 8],
    context: [{ positive: 1, negative: [1, 2] }],
    limit: 2,
  });
});

test('every kind of query', () => {
  const query = (message: object) => (bodyOf('QueryPoints', { query: message }) as { query: unknown }).query;
  assert.deepEqual(query({ nearest: dense(1, 2) }), { nearest: [1, 2] });
  assert.deepEqual(query({ nearest: { id: { uuid: 'u' } } }), { nearest: 'u' });
  assert.deepEqual(query({ nearest: { sparse: { values: [1], indices: [4] } } }), { nearest: { indices: [4], values: [1] } });
  assert.deepEqual(query({ nearest: { multi_dense: { vectors: [{ data: [1, 2] }, { data: [3, 4] }] } } }), {
    nearest: [
      [1, 2],
      [3, 4],
    ],
  });
  const options = { language: { string_value: 'english' } };
  assert.deepEqual(query({ nearest: { document: { text: 't', model: 'qdrant/bm25', options } } }), {
    nearest: { text: 't', model: 'qdrant/bm25', options: { language: 'english' } },
  });
  assert.deepEqual(query({ nearest: { image: { image: { string_value: 'i' }, model: 'm' } } }), { nearest: { image: 'i', model: 'm' } });
  const pair = { positive: { id: num(1) }, negative: dense(1, 2) };
  assert.deepEqual(query({ recommend: { positive: [{ id: num(1) }], negative: [dense(1, 2)], strategy: 2 } }), {
    recommend: { positive: [1], negative: [[1, 2]], strategy: 'sum_scores' },
  });
  assert.deepEqual(query({ discover: { target: dense(1, 2), context: { pairs: [pair] } } }), {
    discover: { target: [1, 2], context: [{ positive: 1, negative: [1, 2] }] },
  });
  assert.deepEqual(query({ context: {} }), { context: [] });
  assert.deepEqual(query({ order_by: { key } }), { order_by: { key } });
  assert.deepEqual(
    [query({ fusion: 0 }), query({ fusion: 1 }), query({ sample: 0 })],
    [{ fusion: 'rrf' }, { fusion: 'dbsf' }, { sample: 'random' }],
  );
  assert.deepEqual(query({ rrf: { k: 3, weights: [0.3, 1] } }), { rrf: { k: 3, weights: [0.3, 1] } });
  assert.deepEqual(query({ nearest_with_mmr: { nearest: dense(1, 2), mmr: { diversity: 0.3, candidates_limit: 7 } } }), {
    nearest: [1, 2],
    mmr: { diversity: 0.3, candidates_limit: 7 },
  });
  const feedback = [{ example: { id: num(1) }, score: 0.7 }];
  assert.deepEqual(query({ relevance_feedback: { target: dense(1, 2), feedback, strategy: { naive: { a: 1, b: 0.1 } } } }), {
    relevance_feedback: { target: [1, 2], feedback: [{ example: 1, score: 0.7 }], strategy: { naive: { a: 1, b: 0.1, c: 0 } } },
  });
  const prefetch = [
    { prefetch: [{ query: { sample: 0 } }], query: { nearest: { id: num(1) } }, limit: 3, lookup_from: { collection_name: 'l' } },
  ];
  assert.deepEqual(bodyOf('QueryPoints', { prefetch, using: 'v', limit: 4, offset: 0 }), {
    prefetch: [{ prefetch: [{ query: { sample: 'random' } }], query: { nearest: 1 }, limit: 3, lookup_from: { collection: 'l' } }],
    using: 'v',
    limit: 4,
    offset: 0,
  });
  assert.deepEqual(bodyOf('QueryBatchPoints', { query_points: [{ limit: 1 }] }), { searches: [{ limit: 1 }] });
});

test('expressions of formulas', () => {
  const x = { variable: 'x' };
  const condition = { field: { key, match: { integer: 1 } } };
  const sum = [
    { constant: 0.1 },
    { condition },
    { geo_distance: { origin: { lon: 1, lat: 2 }, to: 'g' } },
    { datetime: '2024-01-01' },
    { datetime_key: 'd' },
    { mult: { mult: [x, x] } },
    { div: { left: x, right: x, by_zero_default: 0 } },
    { pow: { base: x, exponent: x } },
    ...['neg', 'abs', 'sqrt', 'exp', 'log10', 'ln'].map((name) => ({ [name]: x })),
    ...['exp_decay', 'gauss_decay', 'lin_decay'].map((name) => ({ [name]: { x, target: { constant: 1 }, scale: 5, midpoint: 0.5 } })),
  ];
  const formula = { expression: { sum: { sum } }, defaults: { x: { integer_value: 3 } } };
  assert.deepEqual((bodyOf('QueryPoints', { query: { formula } }) as { query: unknown }).query, {
    formula: {
      sum: [
        0.1,
        { key, match: { value: 1 } },
        { geo_distance: { origin: { lon: 1, lat: 2 }, to: 'g' } },
        { datetime: '2024-01-01' },
        { datetime_key: 'd' },
        { mult: ['x', 'x'] },
        { div: { left: 'x', right: 'x', by_zero_default: 0 } },
        { pow: { base: 'x', exponent: 'x' } },
        ...['neg', 'abs', 'sqrt', 'exp', 'log10', 'ln'].map((name) => ({ [name]: 'x' })),
        ...['exp_decay', 'gauss_decay', 'lin_decay'].map((name) => ({ [name]: { x: 'x', target: 1, scale: 5, midpoint: 0.5 } })),
      ],
    },
    defaults: { x: 3 },
  });
});

test('writes', () => {
  const vectors = (vector: object) => ({ id: num(1), vectors: { vector } });
  const points = [
    vectors(dense(1, 2)),
    vectors({ data: [1, 2, 3, 4], vectors_count: 2 }),
    vectors({ data: [0.5], indices: { data: [3] } }),
    {
      id: num(1),
      vectors: { vectors: { vectors: { a: dense(1, 2), s: { sparse: { values: [1], indices: [9] } } } } },
      payload: { p: { bool_value: true } },
    },
  ];
  assert.deepEqual(bodyOf('UpsertPoints', { points, update_filter: {}, update_mode: 1, ordering: { type: 2 } }), {
    points: [
      { id: 1, vector: [1, 2] },
      {
        id: 1,
        vector: [
          [1, 2],
          [3, 4],
        ],
      },
      { id: 1, vector: { indices: [3], values: [0.5] } },
      { id: 1, vector: { a: [1, 2], s: { indices: [9], values: [1] } }, payload: { p: true } },
    ],
    update_filter: {},
    update_mode: 'insert_only',
  });
  const ids = { points: { ids: [num(1)] } };
  assert.deepEqual(bodyOf('DeletePoints', { points: ids }), { points: [1] });
  assert.deepEqual(bodyOf('DeletePoints', { points: { filter: {} } }), { filter: {} });
  assert.deepEqual(bodyOf('SetPayloadPoints', { payload: { a: {} }, points_selector: ids, key: 'x.y' }), {
    payload: { a: null },
    points: [1],
    key: 'x.y',
  });
  assert.deepEqual(bodyOf('DeletePayloadPoints', { keys: ['a'], points_selector: ids }), { keys: ['a'], points: [1] });
  assert.deepEqual(bodyOf('ClearPayloadPoints', { points: ids }), { points: [1] });
  assert.deepEqual(bodyOf('UpdatePointVectors', { points: [vectors(dense(1, 2))] }), { points: [{ id: 1, vector: [1, 2] }] });
  assert.deepEqual(bodyOf('DeletePointVectors', { points_selector: ids, vectors: { names: ['v'] } }), { points: [1], vector: ['v'] });
  const operations = [
    { upsert: { points: [vectors(dense(1, 2))] } },
    { delete_deprecated: ids },
    { delete_points: { points: ids } },
    { clear_payload_deprecated: ids },
    { clear_payload: { points: ids } },
    { set_payload: { points_selector: ids } },
    { overwrite_payload: { points_selector: ids } },
    { delete_payload: { keys: ['a'], points_selector: ids } },
    { update_vectors: { points: [vectors(dense(1, 2))] } },
    { delete_vectors: { points_selector: ids, vectors: { names: ['v'] } } },
  ];
  assert.deepEqual(bodyOf('UpdateBatchPoints', { operations }), {
    operations: [
      { upsert: { points: [{ id: 1, vector: [1, 2] }] } },
      { delete: { points: [1] } },
      { delete: { points: [1] } },
      { clear_payload: { points: [1] } },
      { clear_payload: { points: [1] } },
      { set_payload: { payload: {}, points: [1] } },
      { overwrite_payload: { payload: {}, points: [1] } },
      { delete_payload: { keys: ['a'], points: [1] } },
      { update_vectors: { points: [{ id: 1, vector: [1, 2] }] } },
      { delete_vectors: { points: [1], vector: ['v'] } },
    ],
  });
});

test('payload indexes and vector names', () => {
  const schemaOf = (message: object) => bodyOf('CreateFieldIndexCollection', { field_name: 'f', ...message });
  assert.deepEqual(schemaOf({ field_type: 4 }), { field_name: 'f', field_schema: 'text' });
  const text_index_params = {
    tokenizer: 3,
    lowercase: true,
    min_token_len: 1,
    stopwords: { languages: ['english'], custom: ['x'] },
    stemmer: { snowball: { language: 'german' } },
    ascii_folding: true,
  };
  assert.deepEqual(schemaOf({ field_type: 0, field_index_params: { text_index_params } }), {
    field_name: 'f',
    field_schema: {
      type: 'text',
      ...text_index_params,
      tokenizer: 'word',
      stemmer: { type: 'snowball', language: 'german' },
    },
  });
  assert.deepEqual(schemaOf({ field_index_params: { integer_index_params: { lookup: false, range: true } } }), {
    field_name: 'f',
    field_schema: { type: 'integer', lookup: false, range: true },
  });
  const dense_config = { size: 4, distance: 1, datatype: 3, multivector_config: {} };
  assert.deepEqual(bodyOf('CreateVectorNameRequest', { vector_name: 'v', dense_config }), {
    dense: { size: 4, distance: 'Cosine', datatype: 'float16', multivector_config: { comparator: 'max_sim' } },
  });
  assert.deepEqual(bodyOf('CreateVectorNameRequest', { sparse_config: { modifier: 1 } }), { sparse: { modifier: 'idf' } });
});

test('settings of collections', () => {
  const quantizations = [
    [{ scalar: { type: 1, quantile: 0.99, always_ram: true } }, { scalar: { type: 'int8', quantile: 0.99, always_ram: true } }],
    [{ product: { compression: 2 } }, { product: { compression: 'x16' } }],
    [
      { binary: { encoding: 2, query_encoding: { setting: 3 } } },
      { binary: { encoding: 'one_and_half_bits', query_encoding: 'scalar8bits' } },
    ],
    [{ turboquant: { bits: 1 } }, { turbo: { bits: 'bits1_5' } }],
  ] as const;
  for (const [quantization_config, expected] of quantizations) {
    assert.deepEqual(bodyOf('CreateCollection', { quantization_config }), { quantization_config: expected });
  }
  const map = { v: { size: 3, distance: 2, hnsw_config: { m: 8 }, on_disk: true } };
  const optimizers_config = { deleted_threshold: 0.5, max_optimization_threads: { setting: 0 } };
  const strict_mode_config = {
    enabled: true,
    search_max_oversampling: 0.3,
    multivector_config: { multivector_config: { v: { max_vectors: 3 } } },
  };
  const message = {
    collection_name: 'c',
    timeout: 3,
    vectors_config: { params_map: { map } },
    sparse_vectors_config: { map: { s: { modifier: 1, index: { datatype: 1 } } } },
    optimizers_config,
    strict_mode_config,
    wal_config: { wal_capacity_mb: 1 },
    sharding_method: 1,
    metadata: { m: { list_value: { values: [{ integer_value: 1 }] } } },
  };
  assert.deepEqual(bodyOf('CreateCollection', message), {
    vectors: { v: { size: 3, distance: 'Euclid', hnsw_config: { m: 8 }, on_disk: true } },
    sparse_vectors: { s: { modifier: 'idf', index: { datatype: 'float32' } } },
    optimizers_config: { deleted_threshold: 0.5, max_optimization_threads: 'auto' },
    strict_mode_config: { enabled: true, search_max_oversampling: 0.3, multivector_config: { v: { max_vectors: 3 } } },
    wal_config: { wal_capacity_mb: 1 },
    sharding_method: 'custom',
    metadata: { m: [1] },
  });
  const change = {
    vectors_config: { params: { quantization_config: { disabled: {} } } },
    sparse_vectors_config: undefined,
    params: { replication_factor: 2 },
    optimizers_config: { deprecated_max_optimization_threads: 3 },
  };
  assert.deepEqual(bodyOf('UpdateCollection', change), {
    vectors: { '': { quantization_config: 'Disabled' } },
    params: { replication_factor: 2 },
    optimizers_config: { max_optimization_threads: 3 },
  });
  const actions = [
    { create_alias: { collection_name: 'c', alias_name: 'a' } },
    { rename_alias: { old_alias_name: 'a', new_alias_name: 'b' } },
    { delete_alias: { alias_name: 'b' } },
  ];
  assert.deepEqual(bodyOf('ChangeAliases', { actions }), { actions });
});
