import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionParams, FieldSchema, StrictModeConfig } from '../../../protocols/model/collection.js';
import type { RequestLimits, StoredFigures } from '../../../protocols/model/limits.js';
import { upsertBytes } from '../../../storage/limits/upsert-bytes.js';
import { decodeWriteRequest } from '../../../storage/requests/decode-update.js';
import { decodeRead } from '../../../storage/requests/read-request.js';
import type { ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';

const PARAMS: CollectionParams = {
  vectors: {
    d: { size: 2, distance: 'Dot' },
    m: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  },
  sparse_vectors: { sp: {} },
  shard_number: 1,
  replication_factor: 1,
  write_consistency_factor: 1,
  on_disk_payload: true,
};

const INDEXES = new Map<string, FieldSchema>([
  ['int', { type: 'integer' }],
  ['word', { type: 'keyword' }],
  ['text', { type: 'text' }],
  ['phrases', { type: 'text', params: { phrase_matching: true } }],
  ['n[].x', { type: 'integer' }],
  ['flag', { type: 'bool' }],
  ['place', { type: 'geo' }],
  ['time', { type: 'datetime' }],
  ['float', { type: 'float' }],
  ['uuid', { type: 'uuid' }],
]);

const EMPTY: StoredFigures = { points: 0, vectorBytes: 0, payloadBytes: 0, memoryPercent: 0, diskPercent: 0 };

interface Request {
  readonly operation: ReadOperation | WriteOperation;
  readonly body?: unknown;
  readonly timeoutSeconds?: number;
  readonly stored?: Partial<StoredFigures>;
  /** Of the collection. */
  readonly indexes?: ReadonlyMap<string, FieldSchema>;
}

const WRITES: ReadonlySet<string> = new Set<WriteOperation>([
  'upsertPoints',
  'deletePoints',
  'updateVectors',
  'deleteVectors',
  'setPayload',
  'overwritePayload',
  'deletePayload',
  'clearPayload',
  'batchUpdate',
  'createFieldIndex',
  'deleteFieldIndex',
]);

/** What is wrong with a request, as its client is told; null: nothing. */
function refusal(request: Request, limit: StrictModeConfig): Pick<TroupeError, 'code' | 'detail' | 'limit'> | null {
  const { body, indexes = INDEXES, operation, stored, timeoutSeconds } = request;
  const limits: RequestLimits = { strict: { enabled: true, ...limit }, indexes, stored: { ...EMPTY, ...stored } };
  const path = { id: '1', field_name: 'int' };
  const bytes = body === undefined ? null : Buffer.from(JSON.stringify(body));
  const raw = { path, query: {}, body: bytes, deadlineMs: 1, limits, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) };
  try {
    if (WRITES.has(operation)) decodeWriteRequest(operation as WriteOperation, raw, PARAMS);
    else decodeRead(operation as ReadOperation, raw);
    return null;
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    return { code: error.code, detail: error.detail, limit: error.limit };
  }
}

interface Case {
  readonly limit: StrictModeConfig;
  readonly valid: readonly Request[];
  readonly invalid: readonly Request[];
  readonly says: RegExp;
}

const query = (body: object): Request => ({ operation: 'query', body: { query: [1, 0], using: 'd', limit: 1, ...body } });
const scroll = (body: object): Request => ({ operation: 'scroll', body });
const where = (...must: object[]) => ({ filter: { must } });
const value = (key: string, asked: unknown) => ({ key, match: { value: asked } });
const points = (...vectors: unknown[]) => ({ points: vectors.map((vector, at) => ({ id: at + 1, vector })) });
const upsert = (...vectors: unknown[]): Request => ({ operation: 'upsertPoints', body: points(...vectors) });
const POINTS = JSON.stringify(points({ d: [1, 2] }).points).length;
const UPSERT = upsert({ d: [1, 2] });
const SET: Request = { operation: 'setPayload', body: { payload: { a: 1 }, points: [1] } };
const VECTORS: Request = { operation: 'updateVectors', body: points({ d: [1, 2] }) };
const DELETE: Request = { operation: 'deletePoints', body: { points: [1] } };
const FULL: Partial<StoredFigures> = { points: 5, vectorBytes: 5, payloadBytes: 5, memoryPercent: 50, diskPercent: 50 };
const full = (...requests: Request[]): Request[] => requests.map((request) => ({ ...request, stored: FULL }));

/** For each limit, requests that are just within it and just beyond. Limits of rates are in `tokens.test.ts`. */
const CASES: Readonly<Record<Exclude<keyof StrictModeConfig, 'enabled' | 'read_rate_limit' | 'write_rate_limit'>, Case>> = {
  max_query_limit: {
    limit: { max_query_limit: 6 },
    valid: [
      query({ limit: 6, offset: 100 }),
      scroll({}),
      scroll({ limit: 6 }),
      { operation: 'queryGroups', body: { query: [1, 0], using: 'd', limit: 3, group_size: 2, group_by: 'word' } },
      { operation: 'matrixPairs', body: { sample: 3, limit: 2 } },
      { operation: 'facet', body: { key: 'word', limit: 6 } },
      { operation: 'retrieve', body: { ids: [1, 2, 3, 4, 5, 6, 7] } },
      { operation: 'getPoint' },
      { operation: 'count', body: {} },
    ],
    invalid: [
      query({ limit: 7 }),
      query({ limit: undefined }),
      query({ prefetch: { query: [1, 0], using: 'd', limit: 7 } }),
      query({ prefetch: { query: [1, 0], using: 'd', limit: 1, prefetch: { query: [1, 0], using: 'd' } } }),
      scroll({ limit: 7 }),
      { operation: 'search', body: { vector: { name: 'd', vector: [1, 0] }, limit: 7 } },
      { operation: 'recommend', body: { positive: [1], using: 'd', limit: 7 } },
      { operation: 'discover', body: { target: 1, using: 'd', limit: 7 } },
      { operation: 'queryBatch', body: { searches: [{ limit: 1 }, { limit: 7 }] } },
      { operation: 'searchBatch', body: { searches: [{ vector: { name: 'd', vector: [1, 0] }, limit: 7 }] } },
      { operation: 'queryGroups', body: { query: [1, 0], using: 'd', limit: 3, group_size: 3, group_by: 'word' } },
      { operation: 'searchGroups', body: { vector: { name: 'd', vector: [1, 0] }, limit: 7, group_size: 1, group_by: 'word' } },
      { operation: 'recommendGroups', body: { positive: [1], using: 'd', limit: 1, group_size: 7, group_by: 'word' } },
      { operation: 'matrixPairs', body: { sample: 4, limit: 2 } },
      { operation: 'matrixOffsets', body: { sample: 2, limit: 4 } },
      { operation: 'facet', body: { key: 'word', limit: 7 } },
    ],
    says: /^Limit exceeded (7|8|9|10) > 6 for "limit"\. Help: Reduce the "limit" parameter to or below 6\.$/,
  },
  max_timeout: {
    limit: { max_timeout: 10 },
    valid: [query({}), { ...query({}), timeoutSeconds: 10 }, { ...UPSERT, timeoutSeconds: 10 }],
    invalid: (
      [query({}), scroll({}), { operation: 'getPoint' }, UPSERT, DELETE, { operation: 'deleteFieldIndex' }] as readonly Request[]
    ).map((request) => ({ ...request, timeoutSeconds: 11 })),
    says: /^Limit exceeded 11 > 10 for "timeout"/,
  },
  unindexed_filtering_retrieve: {
    limit: { unindexed_filtering_retrieve: false },
    valid: [
      scroll({}),
      scroll(where({ has_id: [1] }, { has_vector: 'd' })),
      scroll(where(value('int', 1), value('word', 'x'), value('flag', true), { key: 'int', range: { gt: 1 } })),
      scroll(where({ key: 'text', match: { text: 'x' } }, { key: 'phrases', match: { phrase: 'x y' } })),
      scroll(where({ key: 'phrases', match: { text: 'x' } }, { key: 'float', range: { lt: 1 } })),
      scroll(where({ is_empty: { key: 'flag' } }, { is_null: { key: 'place' } }, { key: 'word', values_count: { gt: 0 } })),
      scroll(where({ key: 'place', geo_radius: { center: { lon: 0, lat: 0 }, radius: 1 } })),
      scroll(where({ key: 'time', range: { gt: '2020-01-01T00:00:00Z' } })),
      scroll(where(value('uuid', '550e8400-e29b-41d4-a716-446655440000'), value('word', '550e8400-e29b-41d4-a716-446655440000'))),
      scroll(where({ nested: { key: 'n', filter: where(value('x', 1)).filter } })),
      scroll(where({ nested: { key: 'n[]', filter: where(value('x', 1)).filter } })),
      query({ prefetch: { limit: 1 }, query: { formula: { sum: ['$score', 'int', { datetime_key: 'time' }] } } }),
      { operation: 'deletePoints', body: where(value('zzz', 1)) },
    ],
    invalid: [
      scroll(where(value('zzz', 1))),
      scroll({ filter: { should: [value('zzz', 1)] } }),
      scroll({ filter: { must_not: [value('zzz', 1)] } }),
      scroll({ filter: { min_should: { conditions: [value('zzz', 1)], min_count: 1 } } }),
      scroll(where({ must: [{ should: [value('zzz', 1)] }] })),
      scroll(where(value('int', 'x'))),
      scroll(where(value('word', 1))),
      scroll(where(value('uuid', 'x'))),
      scroll(where({ key: 'int', match: { text: 'x' } })),
      scroll(where({ key: 'text', match: { value: 'x' } })),
      scroll(where({ key: 'text', match: { phrase: 'x' } })),
      scroll(where({ key: 'int', match: { any: ['x'] } })),
      scroll(where({ key: 'word', match: { except: [1] } })),
      scroll(where({ key: 'word', range: { gt: 1 } })),
      scroll(where({ key: 'int', range: { gt: '2020-01-01T00:00:00Z' } })),
      scroll(where({ is_empty: { key: 'zzz' } })),
      scroll(where({ nested: { key: 'n', filter: where(value('y', 1)).filter } })),
      query(where(value('zzz', 1))),
      query({ prefetch: { limit: 1, ...where(value('zzz', 1)) } }),
      query({ prefetch: { limit: 1 }, query: { formula: value('zzz', 1) } }),
      query({ prefetch: { limit: 1 }, query: { formula: { mult: [{ neg: 'zzz' }, 2] }, defaults: { zzz: 1 } } }),
      query({ prefetch: { limit: 1 }, query: { formula: { lin_decay: { x: { datetime_key: 'int' } } } } }),
      { operation: 'count', body: where(value('zzz', 1)) },
      { operation: 'facet', body: { key: 'word', ...where(value('zzz', 1)) } },
      { operation: 'matrixPairs', body: where(value('zzz', 1)) },
      { operation: 'recommend', body: { positive: [1], using: 'd', limit: 1, ...where(value('zzz', 1)) } },
      { operation: 'queryBatch', body: { searches: [{}, where(value('zzz', 1))] } },
      { operation: 'queryGroups', body: { query: [1, 0], using: 'd', group_by: 'word', ...where(value('zzz', 1)) } },
    ],
    says: /^Index required but not found for "[^"]+" of one of the following types: \[.+\]\. Help: Create an index for this key or use a different (filter|formula expression)\.$/,
  },
  unindexed_filtering_update: {
    limit: { unindexed_filtering_update: false },
    valid: [
      DELETE,
      { operation: 'deletePoints', body: where(value('int', 1)) },
      { operation: 'upsertPoints', body: { ...points({ d: [1, 2] }), update_filter: where(value('zzz', 1)).filter } },
      scroll(where(value('zzz', 1))),
    ],
    invalid: [
      { operation: 'deletePoints', body: where(value('zzz', 1)) },
      { operation: 'setPayload', body: { payload: { a: 1 }, ...where(value('zzz', 1)) } },
      { operation: 'overwritePayload', body: { payload: { a: 1 }, ...where(value('zzz', 1)) } },
      { operation: 'deletePayload', body: { keys: ['a'], ...where(value('zzz', 1)) } },
      { operation: 'clearPayload', body: where(value('zzz', 1)) },
      { operation: 'deleteVectors', body: { vector: ['d'], ...where(value('zzz', 1)) } },
      { operation: 'batchUpdate', body: { operations: [{ delete: { points: [1] } }, { delete: where(value('zzz', 1)) }] } },
    ],
    says: /^Index required but not found for "zzz" of one of the following types: \[integer\]/,
  },
  search_max_hnsw_ef: {
    limit: { search_max_hnsw_ef: 50 },
    valid: [query({ params: { hnsw_ef: 50 } }), query({})],
    invalid: [
      query({ params: { hnsw_ef: 51 } }),
      query({ prefetch: { query: [1, 0], using: 'd', params: { hnsw_ef: 51 } } }),
      { operation: 'search', body: { vector: { name: 'd', vector: [1, 0] }, limit: 1, params: { hnsw_ef: 51 } } },
    ],
    says: /^Limit exceeded 51 > 50 for "hnsw_ef"/,
  },
  search_allow_exact: {
    limit: { search_allow_exact: false },
    valid: [
      query({ params: { exact: false } }),
      { operation: 'count', body: { exact: false } },
      { operation: 'facet', body: { key: 'word' } },
    ],
    invalid: [
      query({ params: { exact: true } }),
      query({ prefetch: { query: [1, 0], using: 'd', params: { exact: true } } }),
      { operation: 'count', body: {} },
      { operation: 'facet', body: { key: 'word', exact: true } },
    ],
    says: /^Exact search disabled!\. Help: Set exact=false\.$/,
  },
  search_max_oversampling: {
    limit: { search_max_oversampling: 2 },
    valid: [query({ params: { quantization: { oversampling: 2 } } }), query({})],
    invalid: [query({ params: { quantization: { oversampling: 2.5 } } })],
    says: /^Limit exceeded 2\.5 > 2 for "oversampling"/,
  },
  search_max_batchsize: {
    limit: { search_max_batchsize: 2 },
    valid: [{ operation: 'queryBatch', body: { searches: [{}, {}] } }, query({})],
    invalid: [
      { operation: 'queryBatch', body: { searches: [{}, {}, {}] } },
      { operation: 'searchBatch', body: { searches: Array(3).fill({ vector: { name: 'd', vector: [1, 0] }, limit: 1 }) } },
      { operation: 'recommendBatch', body: { searches: Array(3).fill({ positive: [1], using: 'd', limit: 1 }) } },
      { operation: 'discoverBatch', body: { searches: Array(3).fill({ target: 1, using: 'd', limit: 1 }) } },
    ],
    says: /^Limit exceeded 3 > 2 for "search batch size"/,
  },
  upsert_max_batchsize: {
    limit: { upsert_max_batchsize: POINTS },
    valid: [
      UPSERT,
      VECTORS,
      { operation: 'batchUpdate', body: { operations: [{ upsert: points({ d: [1, 2] }) }, { upsert: points({ d: [1, 2] }) }] } },
      { operation: 'deletePoints', body: { points: Array.from({ length: 100 }, (_, at) => at) } },
    ],
    invalid: [
      upsert({ d: [1, 22] }),
      { operation: 'upsertPoints', body: { batch: { ids: [1], vectors: { d: [[1, 2]] }, payloads: [{ a: 'more' }] } } },
      { operation: 'batchUpdate', body: { operations: [{ delete: { points: [1] } }, { upsert: points({ d: [1, 22] }) }] } },
    ],
    says: /^Limit exceeded \d+ > \d+ bytes for "upsert batch size"\. Help: Split the points over several requests of at most \d+ bytes each\.$/,
  },
  max_collection_vector_size_bytes: {
    limit: { max_collection_vector_size_bytes: 5 },
    valid: [...full(SET, DELETE), ...[UPSERT, VECTORS].map((request) => ({ ...request, stored: { ...FULL, vectorBytes: 4 } }))],
    invalid: full(UPSERT, VECTORS),
    says: /^Max vector storage size limit of 0\.0000047683716MB reached!$/,
  },
  max_collection_payload_size_bytes: {
    limit: { max_collection_payload_size_bytes: 5 },
    valid: [
      ...full(VECTORS, DELETE, { operation: 'deletePayload', body: { keys: ['a'], points: [1] } }),
      ...[UPSERT, SET].map((request) => ({ ...request, stored: { ...FULL, payloadBytes: 4 } })),
    ],
    invalid: full(UPSERT, SET, { ...SET, operation: 'overwritePayload' }),
    says: /^Max payload storage size limit of 0\.0000047683716MB reached!$/,
  },
  max_points_count: {
    limit: { max_points_count: 5 },
    valid: [
      ...full(SET, VECTORS, DELETE, { operation: 'upsertPoints', body: { ...points({ d: [1, 2] }), update_mode: 'update_only' } }),
      { ...UPSERT, stored: { points: 4 } },
    ],
    invalid: full(UPSERT, { operation: 'batchUpdate', body: { operations: [{ delete: { points: [1] } }, { upsert: UPSERT.body }] } }),
    says: /^Max points count limit of 5 reached!$/,
  },
  max_resident_memory_percent: {
    limit: { max_resident_memory_percent: 50 },
    valid: [...full(DELETE), { ...UPSERT, stored: { ...FULL, memoryPercent: 49.9 } }, { ...UPSERT, stored: { memoryPercent: null } }],
    invalid: full(UPSERT, SET, VECTORS, { operation: 'createFieldIndex', body: { field_name: 'q', field_schema: 'integer' } }),
    says: /^Max memory usage limit of 50% reached: this node uses 50\.0%\. Help: Delete points or collections, or give the node more memory\.$/,
  },
  max_disk_usage_percent: {
    limit: { max_disk_usage_percent: 50 },
    valid: [...full(DELETE), { ...UPSERT, stored: { ...FULL, diskPercent: 49.9 } }, { ...UPSERT, stored: { diskPercent: null } }],
    invalid: full(UPSERT, SET, VECTORS),
    says: /^Max disk usage limit of 50% reached: this node uses 50\.0%/,
  },
  filter_max_conditions: {
    limit: { filter_max_conditions: 2 },
    valid: [scroll(where(value('a', 1), { nested: { key: 'n', filter: where(value('b', 1)).filter } })), scroll({})],
    invalid: [
      scroll(where(value('a', 1), value('b', 1), value('c', 1))),
      scroll(where({ should: [value('a', 1), value('b', 1)] }, { must_not: [value('c', 1)] })),
      query({ prefetch: { limit: 1, ...where(value('a', 1), value('b', 1), value('c', 1)) } }),
      { operation: 'deletePoints', body: where(value('a', 1), value('b', 1), value('c', 1)) },
      {
        operation: 'upsertPoints',
        body: { ...points({ d: [1, 2] }), update_filter: where(value('a', 1), value('b', 1), value('c', 1)).filter },
      },
    ],
    says: /^Filter condition limit reached \(3 > 2\)\. Help: Reduce the amount of conditions of your filter\.$/,
  },
  condition_max_size: {
    limit: { condition_max_size: 4 },
    valid: [scroll(where({ key: 'a', match: { any: [1, 2, 3, 4] } }, { has_id: [1, 2, 3, 4] }))],
    invalid: [
      scroll(where({ key: 'a', match: { any: [1, 2, 3, 4, 5] } })),
      scroll(where({ key: 'a', match: { except: ['1', '2', '3', '4', '5'] } })),
      scroll(where({ has_id: [1, 2, 3, 4, 5] })),
      scroll(where({ nested: { key: 'n', filter: where({ key: 'a', match: { any: [1, 2, 3, 4, 5] } }).filter } })),
      scroll(
        where({
          key: 'a',
          geo_polygon: {
            exterior: {
              points: [
                { lon: 0, lat: 0 },
                { lon: 1, lat: 0 },
                { lon: 1, lat: 1 },
                { lon: 0, lat: 1 },
                { lon: 0, lat: 0 },
              ],
            },
          },
        }),
      ),
      query({ prefetch: { limit: 1 }, query: { formula: { key: 'a', match: { any: [1, 2, 3, 4, 5] } } } }),
      { operation: 'deletePoints', body: where({ has_id: [1, 2, 3, 4, 5] }) },
    ],
    says: /^Condition size limit reached \(5 > 4\)\. Help: Reduce the size of your condition\.$/,
  },
  max_payload_index_count: {
    limit: { max_payload_index_count: INDEXES.size },
    valid: [
      { operation: 'createFieldIndex', body: { field_name: 'q', field_schema: 'integer' }, indexes: new Map([...INDEXES].slice(1)) },
      { operation: 'deleteFieldIndex' },
      UPSERT,
    ],
    invalid: [
      { operation: 'createFieldIndex', body: { field_name: 'q', field_schema: 'integer' } },
      { operation: 'createFieldIndex', body: { field_name: 'int', field_schema: 'keyword' } },
    ],
    says: /^Collection already has the maximum number of payload indices \(10\)\. Help: Please delete an existing index/,
  },
  multivector_config: {
    limit: { multivector_config: { m: { max_vectors: 2 }, d: { max_vectors: 1 } } },
    valid: [
      upsert({
        m: [
          [1, 0],
          [0, 1],
        ],
      }),
      UPSERT,
    ],
    invalid: (['upsertPoints', 'updateVectors'] as const).map((operation) => ({
      operation,
      body: points({
        m: [
          [1, 0],
          [0, 1],
          [1, 1],
        ],
      }),
    })),
    says: /^Multivector 'm' has a limit of 2 vectors, but 3 were provided!$/,
  },
  sparse_config: {
    limit: { sparse_config: { sp: { max_length: 2 } } },
    valid: [upsert({ sp: { indices: [1, 2], values: [1, 2] } })],
    invalid: [
      upsert({ sp: { indices: [1], values: [1] } }, { sp: { indices: [1, 2, 3], values: [1, 2, 3] } }),
      { operation: 'upsertPoints', body: { batch: { ids: [1], vectors: { sp: [{ indices: [1, 2, 3], values: [1, 2, 3] }] } } } },
    ],
    says: /^Sparse vector 'sp' has a limit of 2 indices, but 3 were provided!$/,
  },
};

for (const [name, { invalid, limit, says, valid }] of Object.entries(CASES)) {
  test(`${name}: requests just within it pass, and those just beyond are refused by its name`, () => {
    for (const request of valid) assert.equal(refusal(request, limit), null, JSON.stringify(request));
    for (const request of invalid) {
      const refused = refusal(request, limit);
      assert.deepEqual([refused?.code, refused?.limit], ['badRequest', name], JSON.stringify(request));
      assert.match(refused?.detail ?? '', says, JSON.stringify(request));
      assert.equal(refusal(request, {}), null, `without the limit: ${JSON.stringify(request)}`);
    }
  });
}

test('of an upsert in JSON the points count, the largest of a batch, and of a message all of its bytes', () => {
  const bytes = (operation: WriteOperation, text: string) => upsertBytes(operation, Buffer.from(text), false);
  assert.equal(bytes('upsertPoints', '{"shard_key":"k", "points": [1,2] }'), 5);
  assert.equal(bytes('upsertPoints', '{"batch":{"ids":[1]}}'), 11);
  assert.equal(
    bytes('batchUpdate', '{"operations":[{"upsert":{"points":[1]}},{"delete":{"points":[1,2,3,4]}},{"upsert":{"points":[12]}}]}'),
    4,
  );
  assert.equal(bytes('updateVectors', '{"points":[1]}'), 0);
  assert.equal(bytes('upsertPoints', '{"points":[1'), 0);
  assert.equal(upsertBytes('upsertPoints', new Uint8Array(7), true), 7);
  assert.equal(upsertBytes('deletePoints', new Uint8Array(7), true), 0);
});
