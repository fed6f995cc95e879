import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { TroupeError } from '../../protocols/errors.js';
import type { Distance, VectorParams } from '../../protocols/model/collection.js';
import { decodeQuery } from '../../protocols/rest/queries.js';
import { plainBody } from '../../protocols/rest/request-value.js';
import { finiteScore, shownScore } from '../../query/shown-score.js';
import { CollectionFixture, configOf, contextOf, distanceMatrix, runQuery } from '../storage/engine/collection-fixture.js';

const MAX = 3.4028234663852886e38;
const BIG = 3e38;
const VECTORS = [
  [BIG, BIG],
  [-BIG, BIG],
  [0, 1],
  [1, 0],
  [0, 0],
  [Number.POSITIVE_INFINITY, 0],
];

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

function fixtureOf(vector: VectorParams | Record<string, never>, sparse = false): CollectionFixture {
  const fixture = new CollectionFixture(configOf(vector as VectorParams, sparse ? { sparse: { '': {} } } : {}));
  fixtures.push(fixture);
  return fixture;
}

function query(fixture: CollectionFixture, body: unknown): { id: unknown; score: number }[] {
  const request = decodeQuery(plainBody(new TextEncoder().encode(JSON.stringify(body))));
  return runQuery(contextOf(fixture), request).map(({ id, score }) => ({ id, score: score as number }));
}

test('a score is a number of JSON: the largest float32 for what is beyond, the worst for what is none', () => {
  assert.equal(shownScore('Dot', Number.POSITIVE_INFINITY), MAX);
  assert.equal(shownScore('Dot', Number.NaN), -MAX);
  assert.equal(shownScore('Euclid', Number.NEGATIVE_INFINITY), MAX);
  assert.equal(shownScore('Euclid', Number.NaN), MAX);
  assert.equal(shownScore('Manhattan', Number.NaN), MAX);
  assert.equal(shownScore('Manhattan', -2), 2);
  assert.equal(finiteScore(Number.NEGATIVE_INFINITY), -MAX);
});

test('queries of every kind answer with numbers where vectors are too large to be compared', async () => {
  for (const distance of ['Cosine', 'Dot', 'Euclid', 'Manhattan'] as Distance[])
    for (const datatype of ['float32', 'float16', 'uint8'] as const)
      for (const multi of [false, true]) {
        const wrap = (vector: readonly number[]) => (multi ? [vector, vector] : vector);
        const fixture = fixtureOf({ size: 2, distance, datatype, ...(multi ? { multivector_config: { comparator: 'max_sim' } } : {}) });
        const points = VECTORS.map((vector, i) => ({ id: i + 1, vectors: { '': wrap(vector) } }));
        fixture.addAppendable(points.slice(0, 3));
        await fixture.addSealed(points.slice(3), !multi && datatype !== 'uint8');
        for (const target of [VECTORS[0], VECTORS[1], VECTORS[2]].map((vector) => wrap(vector as number[]))) {
          const scorings = [
            { query: target },
            { query: { nearest: target, mmr: {} } },
            ...['average_vector', 'best_score', 'sum_scores'].map((strategy) => ({
              query: { recommend: { positive: [target, wrap([1, 1])], negative: [target], strategy } },
            })),
            { query: { discover: { target, context: [{ positive: target, negative: wrap([1, 1]) }] } } },
            { query: { context: [{ positive: wrap([1, 1]), negative: target }] } },
            { prefetch: [{ query: target }, { query: wrap([1, 1]) }], query: { fusion: 'dbsf' } },
            {
              query: {
                relevance_feedback: {
                  target,
                  feedback: [
                    { example: target, score: BIG },
                    { example: wrap([1, 1]), score: -BIG },
                  ],
                  strategy: { naive: { a: BIG, b: BIG, c: BIG } },
                },
              },
            },
          ];
          for (const body of scorings)
            for (const { score } of query(fixture, body))
              assert.ok(Number.isFinite(score), `${distance} ${datatype} ${JSON.stringify(body)}: ${score}`);
        }
        const { neighbours } = distanceMatrix([fixture.snapshot()], { filter: null, sample: 10, limit: 10, using: '' }, () => 0.5);
        for (const score of neighbours.flatMap(({ scores }) => [...scores]))
          assert.ok(Number.isFinite(score), `${distance} ${datatype}: matrix`);
      }
});

test('a point whose score is none comes behind all that have one, with a limit too', async () => {
  for (const multi of [false, true]) {
    const wrap = (vector: readonly number[]) => (multi ? [vector] : vector);
    const fixture = fixtureOf({ size: 2, distance: 'Dot', ...(multi ? { multivector_config: { comparator: 'max_sim' } } : {}) });
    const infinite = { id: 1, vectors: { '': wrap([Number.POSITIVE_INFINITY, 0]) } };
    fixture.addAppendable([infinite, { id: 2, vectors: { '': wrap([0, 0.5]) } }]);
    await fixture.addSealed(
      [
        { ...infinite, id: 3 },
        { id: 4, vectors: { '': wrap([0, 1]) } },
      ],
      !multi,
    );
    assert.deepEqual(
      query(fixture, { query: wrap([0, 1]), limit: 2 }).map(({ id }) => id),
      [4, 2],
    );
  }
});

test('a score of sparse vectors beyond a float32 is the largest one', () => {
  const fixture = fixtureOf({}, true);
  fixture.addAppendable([{ id: 1, vectors: { '': { indices: [1], values: [BIG] } } }]);
  const target = { indices: [1], values: [BIG] };
  assert.deepEqual(query(fixture, { query: target }), [{ id: 1, score: MAX }]);
  assert.deepEqual(query(fixture, { prefetch: { query: target }, query: target }), [{ id: 1, score: MAX }]);
});

test('every level of a query checks the deadline, however little it does', () => {
  const fixture = fixtureOf({ size: 2, distance: 'Dot' });
  fixture.addAppendable([{ id: 1, vectors: { '': [1, 1] } }]);
  fixture.deadline.deadlineMs = 0;
  for (const body of [{}, { query: { sample: 'random' } }, { prefetch: [{}], query: { fusion: 'rrf' } }])
    assert.throws(
      () => query(fixture, body),
      (error) => error instanceof TroupeError && error.code === 'timeout',
    );
});
