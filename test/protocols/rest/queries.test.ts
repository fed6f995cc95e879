import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { DEFAULT_SEARCH_PARAMS } from '../../../protocols/model/query.js';
import {
  decodeCount,
  decodeGetPoint,
  decodeQuery,
  decodeQueryBatch,
  decodeRetrieve,
  decodeScroll,
  decodeSearch,
  decodeSearchBatch,
} from '../../../protocols/rest/queries.js';
import { scannedBody } from '../../../protocols/rest/request-value.js';

const body = (value: unknown) => scannedBody(new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)));

function refuses(decode: () => unknown, code: string, detail?: RegExp): void {
  assert.throws(decode, (error: unknown) => {
    assert.ok(error instanceof TroupeError, String(error));
    assert.equal(error.code, code, error.message);
    if (detail !== undefined) assert.match(error.detail, detail);
    return true;
  });
}

test('a query has the defaults of the API', () => {
  assert.deepEqual(decodeQuery(body({ query: [1, 0.5] })), {
    prefetch: [],
    query: { kind: 'nearest', target: { kind: 'dense', values: new Float32Array([1, 0.5]) }, mmr: null },
    using: '',
    filter: null,
    params: DEFAULT_SEARCH_PARAMS,
    limit: 10,
    offset: 0,
    scoreThreshold: null,
    lookupFrom: null,
    withPayload: { kind: 'none' },
    withVector: { kind: 'none' },
  });
});

test('every field of a query is taken', () => {
  const query = decodeQuery(
    body({
      query: { nearest: '550E8400E29B41D4A716446655440000' },
      using: 'a',
      filter: { must: [{ key: 'n', match: { value: 1 } }] },
      params: {
        hnsw_ef: 32,
        exact: true,
        indexed_only: true,
        quantization: { ignore: false, rescore: true, oversampling: 2 },
        acorn: { enable: true, max_selectivity: 0.4 },
      },
      limit: 3,
      offset: 2,
      score_threshold: -0.5,
      with_payload: ['x'],
      with_vector: ['a'],
    }),
  );
  assert.deepEqual(query.query, { kind: 'nearest', target: { kind: 'point', id: '550e8400-e29b-41d4-a716-446655440000' }, mmr: null });
  assert.equal(query.using, 'a');
  assert.equal(query.filter?.must.length, 1);
  assert.deepEqual(query.params, {
    hnswEf: 32,
    exact: true,
    indexedOnly: true,
    quantization: { ignore: false, rescore: true, oversampling: 2 },
  });
  assert.deepEqual([query.limit, query.offset, query.scoreThreshold], [3, 2, -0.5]);
  assert.deepEqual(query.withPayload, { kind: 'include', keys: ['x'] });
  assert.deepEqual(query.withVector, { kind: 'names', names: ['a'] });
});

test('a query without a vector lists points', () => {
  for (const value of [{}, { query: null }]) assert.equal(decodeQuery(body(value)).query, null);
  const query = decodeQuery(body({ limit: 3, offset: 2 }));
  assert.deepEqual([query.limit, query.offset], [3, 2]);
});

test('a point id may be an integer of 64 bits', () => {
  const { query } = decodeQuery(body('{"query":18446744073709551615}'));
  assert.deepEqual(query, { kind: 'nearest', target: { kind: 'point', id: 18446744073709551615n }, mmr: null });
});

test('what is no query at all is malformed', () => {
  for (const query of ['abc', true, {}, { closest: [1] }, ['x'], [null], -1, 1.5])
    refuses(() => decodeQuery(body({ query })), 'malformedBody');
  for (const text of ['', 'null', '[]', '"x"', '{', '{"query":[1}', '{"limit":1,"limit":2}'])
    refuses(() => decodeQuery(body(text)), 'malformedBody');
  refuses(() => decodeQuery(scannedBody(null)), 'malformedBody', /the body is empty/);
});

test('a message about a query names the field that is wrong, its value and what is expected', () => {
  const messages: [query: unknown, message: RegExp][] = [
    ['abc', /^`query`: invalid type: string "abc", expected a vector .*, a point id .* or \{"text"/],
    [{ recomend: [1] }, /^`query`: an object with `recomend`, expected an object with one of `nearest`, `recommend`, /],
    [{ nearest: null }, /^`query`: an object without values, expected /],
    [[1, 'a'], /^`query\[1\]`: invalid type: string "a", expected a number$/],
    [[[1], ['x']], /^`query\[1\]\[0\]`: invalid type: string "x", expected a number$/],
    [{ indices: [-1], values: [1] }, /^`query\.indices\[0\]`: .*`-1`, expected an unsigned 32-bit integer$/],
    [{ indices: [1], values: ['x'] }, /^`query\.values\[0\]`: .*"x", expected a number$/],
    [{ fusion: 'best' }, /^`query\.fusion`: .*"best", expected one of `rrf`, `dbsf`$/],
    [{ rrf: { weights: [1, 'x'] } }, /^`query\.rrf\.weights\[1\]`: .*"x", expected a finite 32-bit number$/],
    [{ recommend: { positive: [1, 'x'] } }, /^`query\.recommend\.positive\[1\]`: .*"x", expected a vector/],
    [{ recommend: { positive: [1], strategy: 'x' } }, /^`query\.recommend\.strategy`: .*"x", expected one of `average_vector`/],
    [{ context: [{ positive: 3 }] }, /^`query\.context\[0\]\.negative`: .*nothing, expected a vector/],
    [{ formula: { sum: [1, { mult: [2, true] }] } }, /^`formula\.sum\[1\]\.mult\[1\]`: .*`true`, expected a number, a variable/],
  ];
  for (const [query, message] of messages) refuses(() => decodeQuery(body({ query })), 'malformedBody', message);
});

test('a query may be a multivector or a sparse vector', () => {
  const target = (query: unknown) => {
    const scoring = decodeQuery(body({ query })).query;
    assert.equal(scoring?.kind, 'nearest');
    return scoring.target;
  };
  const multi = { kind: 'multi', dim: 2, values: new Float32Array([1, 2, 3, 4]) };
  // The first is read from the bytes, the second by the parser.
  assert.deepEqual(target([[1, 2], [3, 4]]), multi); // biome-ignore format: a matrix
  assert.deepEqual(decodeQuery({ value: { query: [[1, 2], [3, 4]] }, vectors: null }).query, { kind: 'nearest', target: multi, mmr: null }); // biome-ignore format: a matrix
  const sparse = { kind: 'sparse', indices: new Uint32Array([1, 5]), values: new Float32Array([2, 4]) };
  assert.deepEqual(target({ indices: [5, 1], values: [4, 2] }), sparse);
  const search = decodeSearch(body({ vector: { name: 'a', vector: { indices: [1, 5], values: [2, 4] } }, limit: 5 }));
  assert.deepEqual(search.query, { kind: 'nearest', target: sparse, mmr: null });
});

test('parts of a sparse or multivector that do not fit together are refused', () => {
  const query = (value: unknown) => () => decodeQuery(body({ query: value }));
  refuses(query([[1.5, 2], [3]]), 'invalidValue', /all vectors must have the same dimension/);
  refuses(query([[], []]), 'invalidValue', /non-empty/);
  refuses(query([[1], 2]), 'malformedBody');
  refuses(query([[[1]]]), 'malformedBody');
  refuses(query({ indices: [3, 3], values: [1, 1] }), 'invalidValue', /internal\.query\.indices: .*unique/);
  refuses(query({ indices: [3], values: [1, 1] }), 'invalidValue', /internal\.query\.values: .*same length/);
  for (const indices of [[-3], [1.5], [4294967296], ['a'], 3]) refuses(query({ indices, values: [1] }), 'malformedBody');
});

test('what a model would turn into a vector is taken with its model', () => {
  const target = (query: unknown) => (decodeQuery(body({ query })).query as { target: unknown }).target;
  assert.deepEqual(target({ text: 'hello', model: 'm', options: { a: 1 } }), {
    kind: 'document',
    text: 'hello',
    model: 'm',
    options: { a: 1 },
  });
  assert.deepEqual(target({ image: 'x', model: 'm' }), { kind: 'image', model: 'm' });
  assert.deepEqual(target({ object: null, model: 'm' }), { kind: 'object', model: 'm' });
  refuses(() => target({ text: 'hello', model: '' }), 'invalidValue', /internal\.query\.model/);
  for (const query of [{ text: 'hello' }, { text: 1, model: 'm' }, { model: 'm' }]) refuses(() => target(query), 'malformedBody');
});

test('values beyond a float32 are refused', () => {
  refuses(() => decodeQuery(body('{"query":[1e39,0]}')), 'wrongInput', /finite/);
  refuses(() => decodeQuery(body('{"query":[1e400,0]}')), 'malformedBody');
  refuses(() => decodeQuery(body('{"query":[NaN]}')), 'malformedBody');
});

test('shards are named by a key, a list of keys, or a target with a fallback, in every request and where points are looked up', () => {
  const keys = (...given: (string | number | bigint)[]) => ({ kind: 'keys', keys: given });
  const asked = (shard_key: unknown) => decodeQuery(body({ query: [1], shard_key })).shardKey;
  assert.deepEqual(asked('x'), keys('x'));
  assert.deepEqual(asked(7), keys(7));
  assert.deepEqual(asked(['x', 7, '__proto__']), keys('x', 7, '__proto__'));
  assert.deepEqual(asked({ target: 'x', fallback: 0 }), { kind: 'fallback', target: 'x', fallback: 0 });
  assert.deepEqual(decodeQuery(body('{"query":1,"shard_key":18446744073709551615}')).shardKey, keys(18446744073709551615n));
  for (const nothing of [undefined, null, []]) assert.equal(asked(nothing), undefined);
  for (const wrong of [true, -1, 1.5, {}, { target: 'x' }, ['x', null], [['x']]]) refuses(() => asked(wrong), 'malformedBody');
  const lookup = decodeQuery(body({ query: 1, lookup_from: { collection: 'c', shard_key: 'x' } })).lookupFrom;
  assert.deepEqual(lookup, { collection: 'c', vector: null, shardKey: keys('x') });
  const shard_key = 'x';
  assert.deepEqual(decodeRetrieve(body({ ids: [1], shard_key })).shardKey, keys('x'));
  assert.deepEqual(decodeScroll(body({ shard_key })).shardKey, keys('x'));
  assert.deepEqual(decodeCount(body({ shard_key })).shardKey, keys('x'));
  assert.deepEqual(decodeSearch(body({ vector: [1], limit: 1, shard_key })).shardKey, keys('x'));
});

test('limits are unsigned integers of 64 bits, and not 0', () => {
  const search = (limit: string) => () => decodeSearch(body(`{"vector":[1],"limit":${limit}}`));
  refuses(search('0'), 'invalidValue', /search_request\.limit: value 0 invalid/);
  for (const limit of ['-3', '3.5', '3.0', '"3"', '18446744073709551616', 'null', 'true']) refuses(search(limit), 'malformedBody');
  assert.equal(search('1000000000')().limit, 1e9);
  assert.equal(search('18446744073709551615')().limit, 2 ** 64);
  refuses(() => decodeQuery(body({ query: [1], limit: 0 })), 'invalidValue', /internal\.limit/);
  refuses(() => decodeQuery(body({ query: [1], offset: -2 })), 'malformedBody');
  refuses(() => decodeScroll(body({ limit: 0 })), 'invalidValue', /scroll_request\.limit/);
});

test('search parameters are checked', () => {
  const search = (params: unknown) => () => decodeSearch(body({ vector: [1], limit: 1, params }));
  refuses(search({ hnsw_ef: -1 }), 'malformedBody');
  refuses(search({ exact: 'yes' }), 'malformedBody');
  refuses(search({ exact: null }), 'malformedBody');
  refuses(search({ quantization: { oversampling: 0.5 } }), 'invalidValue', /oversampling: value 0.5 invalid/);
  refuses(search({ acorn: { enable: true, max_selectivity: 1.5 } }), 'invalidValue', /max_selectivity/);
  assert.equal(search({ hnsw_ef: null, quantization: null })().params.hnswEf, null);
});

test('a search names its vector or not', () => {
  assert.equal(decodeSearch(body({ vector: [1, 2], limit: 1 })).using, '');
  const named = decodeSearch(body({ vector: { name: 'a', vector: [1, 2] }, limit: 1 }));
  assert.equal(named.using, 'a');
  assert.deepEqual(named.query, { kind: 'nearest', target: { kind: 'dense', values: new Float32Array([1, 2]) }, mmr: null });
  refuses(() => decodeSearch(body({ limit: 1 })), 'malformedBody', /missing field `vector`/);
  refuses(() => decodeSearch(body({ vector: [1] })), 'malformedBody', /missing field `limit`/);
  for (const vector of [null, 1, 'x', { name: 'a' }, { vector: [1] }, [[1]], ['x']])
    refuses(() => decodeSearch(body({ vector, limit: 1 })), 'malformedBody');
});

test('a batch decodes each search, and one bad search spoils it', () => {
  const batch = decodeSearchBatch(
    body({
      searches: [
        { vector: [1, 2], limit: 1 },
        { vector: { name: 'b', vector: [3] }, limit: 2 },
      ],
    }),
  );
  assert.deepEqual(
    batch.map(({ using, limit }) => [using, limit]),
    [
      ['', 1],
      ['b', 2],
    ],
  );
  assert.deepEqual(
    decodeQueryBatch(body({ searches: [{ query: [1] }, { query: 4 }, {}] })).map(({ query }) => query?.kind),
    ['nearest', 'nearest', undefined],
  );
  assert.deepEqual(decodeSearchBatch(body({ searches: [] })), []);
  refuses(() => decodeSearchBatch(body({})), 'malformedBody', /missing field `searches`/);
  refuses(() => decodeSearchBatch(body({ searches: [{ vector: [1], limit: 1 }, { vector: [1] }] })), 'malformedBody', /limit/);
});

test('with_vector is null in queries and searches only; with_vectors says the same', () => {
  assert.deepEqual(decodeSearch(body({ vector: [1], limit: 1, with_vector: null })).withVector, { kind: 'none' });
  refuses(() => decodeRetrieve(body({ ids: [1], with_vector: null })), 'malformedBody');
  assert.deepEqual(decodeRetrieve(body({ ids: [1], with_vectors: true })).withVector, { kind: 'all' });
});

test('retrieve asks for ids and shows nothing by default', () => {
  assert.deepEqual(decodeRetrieve(body({ ids: [1, '936da01f9abd4d9d80c702af85c822a8'] })), {
    ids: [1, '936da01f-9abd-4d9d-80c7-02af85c822a8'],
    withPayload: { kind: 'none' },
    withVector: { kind: 'none' },
  });
  refuses(() => decodeRetrieve(body({})), 'malformedBody', /missing field `ids`/);
  refuses(() => decodeRetrieve(body({ ids: ['abc'] })), 'malformedBody', /value abc is not a valid point ID/);
});

test('a point id of a path is read in every spelling', () => {
  assert.deepEqual(decodeGetPoint('007').ids, [7]);
  assert.deepEqual(decodeGetPoint('+1').ids, [1]);
  assert.deepEqual(decodeGetPoint('urn:uuid:550e8400-e29b-41d4-a716-446655440000').ids, ['550e8400-e29b-41d4-a716-446655440000']);
  for (const text of ['-1', 'abc', '1.5', '18446744073709551616', '', '++1']) refuses(() => decodeGetPoint(text), 'wrongInput');
});

test('scroll shows payloads by default', () => {
  assert.deepEqual(decodeScroll(body({})), {
    offset: null,
    orderBy: null,
    limit: 10,
    isLimitDefault: true,
    filter: null,
    withPayload: { kind: 'all' },
    withVector: { kind: 'none' },
  });
  assert.equal('isLimitDefault' in decodeScroll(body({ limit: 10 })), false);
  assert.equal(decodeScroll(body('{"offset":9007199254740993}')).offset, 9007199254740993n);
  refuses(() => decodeScroll(body({ offset: 'abc' })), 'malformedBody');
  refuses(() => decodeScroll(body('{"offset":5.0}')), 'malformedBody');
});

test('count is exact unless told otherwise', () => {
  assert.deepEqual(decodeCount(body({})), { filter: null, exact: true });
  assert.equal(decodeCount(body({ exact: false })).exact, false);
  for (const exact of [null, 'yes']) refuses(() => decodeCount(body({ exact })), 'malformedBody');
});
