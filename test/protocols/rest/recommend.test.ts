import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { decodeQueryGroups, decodeRecommendGroups, decodeSearchGroups } from '../../../protocols/rest/groups.js';
import { decodeDiscover, decodeDiscoverBatch, decodeRecommend, decodeRecommendBatch } from '../../../protocols/rest/recommend.js';
import { type RequestValue, scannedBody } from '../../../protocols/rest/request-value.js';

const body = (value: unknown): RequestValue => scannedBody(new TextEncoder().encode(JSON.stringify(value)));
const dense = (...values: number[]): unknown => ({ kind: 'dense', values: Float32Array.from(values) });

function refused(decode: (value: RequestValue) => unknown, value: unknown, code: ErrorCode): void {
  assert.throws(
    () => decode(body(value)),
    (error) => error instanceof TroupeError && error.code === code,
    JSON.stringify(value),
  );
}

test('a recommendation of old is a recommend query', () => {
  const request = decodeRecommend(
    body({
      positive: [1, [1, 0.5]],
      negative: [{ indices: [3], values: [1] }],
      strategy: 'best_score',
      limit: 4,
      offset: 2,
      using: 'a',
      score_threshold: 0.5,
      lookup_from: { collection: 'other', vector: 'x' },
      with_vector: null,
    }),
  );
  assert.deepEqual(request.query, {
    kind: 'recommend',
    positive: [{ kind: 'point', id: 1 }, dense(1, 0.5)],
    negative: [{ kind: 'sparse', indices: Uint32Array.of(3), values: Float32Array.of(1) }],
    strategy: 'best_score',
  });
  assert.deepEqual(
    [request.limit, request.offset, request.using, request.scoreThreshold, request.lookupFrom, request.withVector],
    [4, 2, 'a', 0.5, { collection: 'other', vector: 'x' }, { kind: 'none' }],
  );
  assert.deepEqual(
    decodeRecommendBatch(
      body({
        searches: [
          { positive: [[1, 2]], limit: 1 },
          { negative: [2], strategy: 'sum_scores', limit: 2 },
        ],
      }),
    ).map(({ query, limit }) => [query, limit]),
    [
      [{ kind: 'recommend', positive: [dense(1, 2)], negative: [], strategy: 'average_vector' }, 1],
      [{ kind: 'recommend', positive: [], negative: [{ kind: 'point', id: 2 }], strategy: 'sum_scores' }, 2],
    ],
  );
});

test('a recommendation of old needs a limit and something to go by', () => {
  for (const value of [{ limit: 4 }, { limit: 4, positive: [] }, { limit: 4, negative: [4] }, { limit: 4, strategy: 'best_score' }])
    refused(decodeRecommend, value, 'strategy' in value ? 'wrongInput' : 'badRequest');
  for (const value of [
    { positive: [1] },
    { limit: 4, positive: [1], strategy: 'magic' },
    { limit: 4, positive: 1 },
    { limit: 4, positive: ['x'] },
    5,
  ])
    refused(decodeRecommend, value, 'malformedBody');
  refused(decodeRecommend, { limit: 0, positive: [1] }, 'invalidValue');
  refused(decodeRecommendBatch, {}, 'malformedBody');
});

test('a discovery of old is a discover query, and a context query without a target', () => {
  const pairs = [{ positive: { kind: 'point', id: 3 }, negative: dense(1, 2) }];
  const context = [{ positive: 3, negative: [1, 2] }];
  assert.deepEqual(decodeDiscover(body({ target: [1, 0], context, limit: 4 })).query, {
    kind: 'discover',
    target: dense(1, 0),
    context: pairs,
  });
  assert.deepEqual(decodeDiscover(body({ target: 1, limit: 4, score_threshold: 3 })).scoreThreshold, null);
  assert.deepEqual(
    decodeDiscoverBatch(body({ searches: [{ context, limit: 4 }] })).map(({ query }) => query),
    [{ kind: 'context', pairs }],
  );
  refused(decodeDiscover, { limit: 4 }, 'badRequest');
  refused(decodeDiscover, { limit: 4, context: [] }, 'badRequest');
  refused(decodeDiscover, { limit: 4, target: 1, context: [{ positive: 3 }] }, 'malformedBody');
  refused(decodeDiscover, { limit: 4, context: { positive: 3, negative: 4 } }, 'malformedBody');
  refused(decodeDiscover, { target: 1 }, 'malformedBody');
});

test('groups have defaults for queries, and none for the requests of old', () => {
  const request = decodeQueryGroups(body({ query: [1, 0], group_by: 'a.b' }));
  assert.deepEqual([request.limit, request.groupSize, request.groupBy, request.withLookup], [10, 3, 'a.b', null]);
  const search = decodeSearchGroups(body({ vector: [1, 0], limit: 2, group_size: 4, group_by: 'k', with_lookup: 'docs' }));
  assert.deepEqual([search.limit, search.groupSize, search.query], [2, 4, { kind: 'nearest', target: dense(1, 0), mmr: null }]);
  assert.deepEqual(search.withLookup, { collection: 'docs', withPayload: { kind: 'all' }, withVector: { kind: 'none' } });
  const recommend = decodeRecommendGroups(body({ positive: [[1, 0]], limit: 2, group_size: 1, group_by: 'k', score_threshold: 1 }));
  assert.deepEqual([recommend.query?.kind, recommend.scoreThreshold], ['recommend', 1]);
  const lookup = { collection: 'docs', with_payload: false, with_vectors: true };
  assert.deepEqual(decodeQueryGroups(body({ group_by: 'k', with_lookup: lookup })).withLookup, {
    collection: 'docs',
    withPayload: { kind: 'none' },
    withVector: { kind: 'all' },
  });
});

test('groups without a key or of no size are refused', () => {
  for (const value of [{}, { group_by: '' }, { group_by: 5 }, { group_by: 'k', with_lookup: 5 }, { group_by: 'k', with_lookup: {} }])
    refused(decodeQueryGroups, value, 'malformedBody');
  refused(decodeQueryGroups, { group_by: 'k', limit: 0 }, 'invalidValue');
  refused(decodeQueryGroups, { group_by: 'k', group_size: 0 }, 'invalidValue');
  refused(decodeSearchGroups, { vector: [1], limit: 1, group_by: 'k' }, 'malformedBody');
  refused(decodeSearchGroups, { vector: [1], group_size: 1, group_by: 'k' }, 'malformedBody');
  refused(decodeRecommendGroups, { positive: [1], limit: 1, group_size: 1 }, 'malformedBody');
});
