import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { QueryNode, Scoring } from '../../../protocols/model/query.js';
import { decodeQuery, decodeScroll } from '../../../protocols/rest/queries.js';
import { scannedBody } from '../../../protocols/rest/request-value.js';

const body = (value: unknown) => scannedBody(new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)));
const scoring = (query: unknown, more: object = {}): Scoring | null => decodeQuery(body({ query, ...more })).query;
const dense = (...values: number[]) => ({ kind: 'dense', values: new Float32Array(values) });
const point = (id: number) => ({ kind: 'point', id });

function refuses(decode: () => unknown, code: string, detail?: RegExp): void {
  assert.throws(decode, (error: unknown) => {
    assert.ok(error instanceof TroupeError, String(error));
    assert.equal(error.code, code, error.message);
    if (detail !== undefined) assert.match(error.detail, detail);
    return true;
  });
}

test('examples of recommend are ids and vectors, and the strategy is the average unless named', () => {
  assert.deepEqual(scoring({ recommend: { positive: [1, [2, 3]], negative: null } }), {
    kind: 'recommend',
    positive: [point(1), dense(2, 3)],
    negative: [],
    strategy: 'average_vector',
  });
  assert.equal((scoring({ recommend: { negative: [1], strategy: 'best_score' } }) as { strategy: string }).strategy, 'best_score');
  for (const recommend of [{}, { positive: [], negative: [] }]) refuses(() => scoring({ recommend }), 'invalidValue', /At least one/);
  for (const recommend of [null, 5, { positive: 1 }, { positive: ['a'] }, { positive: [1], strategy: 'magic' }]) {
    refuses(() => scoring({ recommend }), 'malformedBody');
  }
});

test('a context is a pair, a list of pairs, or null', () => {
  const pair = { positive: point(1), negative: dense(2) };
  for (const context of [{ positive: 1, negative: [2] }, [{ positive: 1, negative: [2] }]]) {
    assert.deepEqual(scoring({ context }), { kind: 'context', pairs: [pair] });
    assert.deepEqual(scoring({ discover: { target: 7, context } }), { kind: 'discover', target: point(7), context: [pair] });
  }
  assert.deepEqual(scoring({ context: null }), { kind: 'context', pairs: [] });
  assert.deepEqual(scoring({ discover: { target: 7, context: null } }), { kind: 'discover', target: point(7), context: [] });
  for (const query of [{ discover: { target: 7 } }, { discover: { context: [] } }, { context: [{ positive: 3 }] }, { context: 4 }]) {
    refuses(() => scoring(query), 'malformedBody');
  }
});

test('feedback needs examples and a strategy', () => {
  const strategy = { naive: { a: 1, b: 2, c: 3 } };
  assert.deepEqual(scoring({ relevance_feedback: { target: 1, feedback: [{ example: [4], score: 0.5 }], strategy } }), {
    kind: 'relevanceFeedback',
    target: point(1),
    feedback: [{ example: dense(4), score: 0.5 }],
    strategy: { a: 1, b: 2, c: 3 },
  });
  const feedback = [{ example: 3, score: 1 }];
  const asked = (relevance_feedback: object) => () => scoring({ relevance_feedback });
  refuses(asked({ target: 1, feedback: [], strategy }), 'invalidValue', /non-empty/);
  refuses(asked({ target: 1, feedback, strategy: { naive: { a: 1, b: -1, c: 1 } } }), 'invalidValue', /naive\.b/);
  refuses(asked({ target: 1, feedback }), 'malformedBody');
  refuses(asked({ target: 1, feedback, strategy: { smart: {} } }), 'malformedBody');
  // Each is compared with all others: a limit keeps that short.
  refuses(asked({ target: 1, feedback: Array(2049).fill(feedback[0]), strategy }), 'invalidValue', /must be 2048 or fewer/);
});

test('fusion has two spellings of rrf, weights for every prefetch and k from 1', () => {
  const prefetch = [{ query: [1] }, { query: 2 }];
  assert.deepEqual(scoring({ fusion: 'rrf' }, { prefetch }), { kind: 'rrf', k: null, weights: null });
  assert.deepEqual(scoring({ rrf: {} }, { prefetch }), { kind: 'rrf', k: null, weights: null });
  assert.deepEqual(scoring({ rrf: { k: 60, weights: [3, -1] } }, { prefetch }), { kind: 'rrf', k: 60, weights: [3, -1] });
  assert.deepEqual(scoring({ fusion: 'dbsf' }, { prefetch }), { kind: 'dbsf' });
  refuses(() => scoring({ rrf: { k: 0 } }, { prefetch }), 'invalidValue', /internal\.query\.rrf\.k: value 0/);
  refuses(() => scoring({ rrf: { weights: [1] } }, { prefetch }), 'wrongInput', /weights length \(1\)/);
  for (const query of [{ fusion: 'magic' }, { rrf: null }, { rrf: { weights: ['1'] } }, { rrf: { weights: [1e39, 1] } }]) {
    refuses(() => scoring(query, { prefetch }), 'malformedBody');
  }
});

test('fusion and formulas need prefetches, and prefetches need a query', () => {
  for (const query of [{ fusion: 'rrf' }, { rrf: {} }, { fusion: 'dbsf' }, { formula: '$score' }]) {
    for (const more of [{}, { prefetch: [] }, { prefetch: null }]) refuses(() => scoring(query, more), 'wrongInput', /without prefetches/);
  }
  refuses(() => decodeQuery(body({ prefetch: { query: [1] } })), 'badRequest', /needed to merge/);
  refuses(() => decodeQuery(body({ query: [1], prefetch: { prefetch: { query: [1] } } })), 'badRequest', /needed to merge/);
});

test('mmr is bounded', () => {
  assert.deepEqual(scoring({ nearest: [1], mmr: {} }), {
    kind: 'nearest',
    target: dense(1),
    mmr: { diversity: null, candidatesLimit: null },
  });
  assert.deepEqual((scoring({ nearest: 1, mmr: { diversity: 0.25, candidates_limit: 0 } }) as { mmr: unknown }).mmr, {
    diversity: 0.25,
    candidatesLimit: 0,
  });
  for (const diversity of [1.5, -0.1]) refuses(() => scoring({ nearest: [1], mmr: { diversity } }), 'invalidValue', /from 0\.0 to 1\.0/);
  refuses(() => scoring({ nearest: [1], mmr: { candidates_limit: 16385 } }), 'invalidValue', /16384 or smaller/);
});

test('a prefetch is one or a list, nested as deep as 64 levels', () => {
  const { prefetch } = decodeQuery(
    body({
      query: [1],
      prefetch: [
        { query: 5, using: 'a', limit: 3, score_threshold: 0.5, params: { exact: true } },
        { prefetch: { query: [2] }, query: 3 },
      ],
    }),
  );
  assert.deepEqual(
    prefetch.map(({ using, limit, scoreThreshold, params }) => [using, limit, scoreThreshold, params.exact]),
    [
      ['a', 3, 0.5, true],
      ['', 10, null, false],
    ],
  );
  assert.deepEqual((prefetch[1] as QueryNode).prefetch[0]?.query, { kind: 'nearest', target: dense(2), mmr: null });
  const nested = (depth: number) => body(`${'{"query":1,"prefetch":'.repeat(depth)}{"query":1}${'}'.repeat(depth)}`);
  assert.equal(decodeQuery(nested(64)).prefetch.length, 1);
  for (const depth of [65, 400, 100_000]) refuses(() => decodeQuery(nested(depth)), 'malformedBody');
  refuses(() => decodeQuery(body({ query: 1, prefetch: [{ limit: 0 }] })), 'invalidValue', /internal\.prefetch\[0\]\.limit/);
});

test('ids may be looked up in another collection', () => {
  assert.deepEqual(decodeQuery(body({ query: 1, lookup_from: { collection: 'x', vector: 'a' } })).lookupFrom, {
    collection: 'x',
    vector: 'a',
  });
  assert.deepEqual(decodeQuery(body({ query: 1, lookup_from: { collection: 'x' } })).lookupFrom, { collection: 'x', vector: null });
  for (const lookup_from of [5, {}, { collection: 1 }, { collection: 'x', vector: 1 }]) {
    refuses(() => decodeQuery(body({ query: 1, lookup_from })), 'malformedBody');
  }
});

test('order_by is a key or an object, in queries and in scroll', () => {
  const plain = { key: 'n', direction: 'asc', startFrom: null };
  assert.deepEqual(scoring({ order_by: 'n' }), { kind: 'orderBy', orderBy: plain });
  assert.deepEqual(decodeScroll(body({ order_by: 'n' })).orderBy, plain);
  assert.deepEqual(decodeScroll(body({ order_by: { key: 'n', direction: 'desc', start_from: 3.5 } })).orderBy, {
    key: 'n',
    direction: 'desc',
    startFrom: { kind: 'number', value: 3.5 },
  });
  assert.deepEqual(decodeScroll(body({ order_by: { key: 'n', start_from: '1970-01-02' } })).orderBy?.startFrom, {
    kind: 'datetime',
    value: 86_400e6,
  });
  const wrong = [5, {}, { direction: 'asc' }, { key: 'n', direction: 'up' }, { key: 'n', start_from: 'abc' }, { key: 'a..b' }];
  for (const order_by of wrong) refuses(() => decodeScroll(body({ order_by })), 'malformedBody');
  refuses(() => decodeScroll(body({ order_by: 'n', offset: 3 })), 'wrongInput', /start_from/);
  refuses(() => decodeQuery(body({ query: { order_by: 'n' }, score_threshold: 1 })), 'badRequest', /score_threshold/);
});

test('sample is random', () => {
  assert.deepEqual(scoring({ sample: 'random' }), { kind: 'sample' });
  refuses(() => scoring({ sample: 'systematic' }), 'malformedBody');
});
