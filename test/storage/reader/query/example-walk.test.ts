/** Queries with examples in segments with a graph, against the same queries with `exact`. */

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { FieldSchema } from '../../../../protocols/model/collection.js';
import type { ExplainedSearch, ExplainRequest } from '../../../../protocols/model/explanation.js';
import type { PointId } from '../../../../protocols/model/point-id.js';
import { decodeQuery } from '../../../../protocols/rest/queries.js';
import { scannedBody } from '../../../../protocols/rest/request-value.js';
import { runRead } from '../../../../storage/reader/operations.js';
import type { SegmentView } from '../../../../storage/reader/snapshot/snapshot-view.js';
import { clusteredRows } from '../../builder/fixture.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, type TestPoint } from '../../engine/collection-fixture.js';

const ROWS = 6000;
const DIM = 32;
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([['n', { type: 'integer' }]]);
const rows = clusteredRows(ROWS, DIM, { clusters: 60, range: 1, spread: 0.5, seed: 9 });
const vectorOf = (row: number): number[] => [...(rows[row] as Float32Array)];

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

/** Points whose id is their row in `rows`: those below `sealed` in a segment with a graph. */
async function fixtureOf(distance: 'Cosine' | 'Euclid' | 'Manhattan', sealed = ROWS): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(configOf({ size: DIM, distance }), FIELDS);
  fixtures.push(fixture);
  const points = Array.from({ length: ROWS }, (_, id): TestPoint => ({ id, vectors: { '': vectorOf(id) }, payload: { n: id % 100 } }));
  await fixture.addSealed(points.slice(0, sealed), true);
  if (sealed < ROWS) fixture.addAppendable(points.slice(sealed));
  return fixture;
}

const cosine = await fixtureOf('Cosine');
const sealedView = (fixture: CollectionFixture): SegmentView => fixture.snapshot().segments[0] as SegmentView;

interface Answer {
  readonly hits: readonly { readonly id: PointId; readonly score: number }[];
  /** Rows of the sealed segment that kernels scored, once for each example. */
  readonly scored: number;
}

function ask(fixture: CollectionFixture, query: object, more: object = {}): Answer {
  const request = decodeQuery(scannedBody(new TextEncoder().encode(JSON.stringify({ query, limit: 10, ...more }))));
  const { reader } = sealedView(fixture);
  reader.takeWork();
  const hits = runQuery(contextOf(fixture), request).map(({ id, score }) => ({ id, score: score as number }));
  return { hits, scored: reader.takeWork().rows };
}

const exactly = (fixture: CollectionFixture, query: object, more: object = {}): Answer =>
  ask(fixture, query, { ...more, params: { exact: true } });

type Draw = () => number[];
const pairs = (draw: Draw, count: number): object[] => Array.from({ length: count }, () => ({ positive: draw(), negative: draw() }));
const several = (draw: Draw, count: number): number[][] => Array.from({ length: count }, draw);
const recommend = (draw: Draw, positives: number, negatives: number, strategy: string): object => ({
  recommend: { positive: several(draw, positives), negative: several(draw, negatives), strategy },
});

/** By the name of the form: how many examples it has, and a query of it. */
const FORMS: readonly [name: string, examples: number, query: (draw: Draw) => object][] = [
  ['best score of a positive', 1, (draw) => recommend(draw, 1, 0, 'best_score')],
  ['best score of two positives and a negative', 3, (draw) => recommend(draw, 2, 1, 'best_score')],
  ['best score of three positives and three negatives', 6, (draw) => recommend(draw, 3, 3, 'best_score')],
  ['discovery with a pair', 3, (draw) => ({ discover: { target: draw(), context: pairs(draw, 1) } })],
  ['discovery with three pairs', 7, (draw) => ({ discover: { target: draw(), context: pairs(draw, 3) } })],
  ['context of a pair', 2, (draw) => ({ context: pairs(draw, 1) })],
  ['context of three pairs', 6, (draw) => ({ context: pairs(draw, 3) })],
  ['sum of two positives less a negative', 3, (draw) => recommend(draw, 2, 1, 'sum_scores')],
  [
    'relevance feedback',
    3,
    (draw) => ({
      relevance_feedback: {
        target: draw(),
        feedback: [
          { example: draw(), score: 0.9 },
          { example: draw(), score: 0.2 },
        ],
        strategy: { naive: { a: 1, b: 1, c: 0.3 } },
      },
    }),
  ],
];

/** Vectors of points here and there, with a little noise. */
function drawOf(seed: number): Draw {
  const random = randomOf(seed);
  return () => vectorOf(Math.floor(random() * ROWS)).map((component) => component + 0.1 * (random() - 0.5));
}

/** The part of the answer that is as good as the exact one; of equal scores any is. */
function recallOf({ hits }: Answer, exact: Answer): number {
  const last = exact.hits.at(-1)?.score ?? 0;
  return hits.filter(({ score }) => score >= last).length / exact.hits.length;
}

for (const [name, examples, queryOf] of FORMS) {
  test(`${name}: a walk finds what scoring every row finds, with the same scores, and looks at few rows`, async () => {
    const draw = drawOf(3);
    let recall = 0;
    for (let at = 0; at < 30; at++) {
      const query = queryOf(draw);
      const walked = ask(cosine, query);
      const exact = exactly(cosine, query);
      assert.equal(exact.scored, ROWS * examples);
      assert.ok(walked.scored < exact.scored * 0.8, `${walked.scored} of ${exact.scored}`);
      recall += recallOf(walked, exact);
      const all = new Map(exactly(cosine, query, { limit: ROWS }).hits.map(({ id, score }) => [id, score]));
      assert.ok(walked.hits.every(({ id, score }) => all.get(id) === score));
      assert.deepEqual(
        walked.hits,
        [...walked.hits].sort((one, other) => other.score - one.score || (one.id as number) - (other.id as number)),
      );
    }
    assert.ok(recall >= 0.95 * 30, `recall ${recall / 30}`);
  });
}

for (const distance of ['Euclid', 'Manhattan'] as const) {
  test(`by ${distance}, too, a walk finds what scoring every row finds`, async () => {
    const fixture = await fixtureOf(distance);
    const draw = drawOf(5);
    for (const [name, , queryOf] of FORMS) {
      let recall = 0;
      for (let at = 0; at < 15; at++) {
        const query = queryOf(draw);
        recall += recallOf(ask(fixture, query), exactly(fixture, query));
      }
      assert.ok(recall >= 0.93 * 15, `${name}: ${recall / 15}`);
    }
  });
}

const BEST = FORMS[1]?.[2] as (draw: Draw) => object;
const DISCOVERY = FORMS[3]?.[2] as (draw: Draw) => object;

test('a filter holds during the walk, and a narrow one has its rows scored one by one', () => {
  const draw = drawOf(11);
  for (const queryOf of [BEST, DISCOVERY]) {
    let recall = 0;
    for (let at = 0; at < 10; at++) {
      const query = queryOf(draw);
      const most = { filter: { must: [{ key: 'n', range: { lt: 80 } }] } };
      const walked = ask(cosine, query, { ...most, params: { hnsw_ef: 60 } });
      const exact = exactly(cosine, query, most);
      assert.equal(exact.scored, ROWS * 0.8 * 3);
      assert.ok(walked.scored < exact.scored, `${walked.scored} of ${exact.scored}`);
      assert.ok(walked.hits.every(({ id }) => (id as number) % 100 < 80));
      recall += recallOf(walked, exact);
      const few = { filter: { must: [{ key: 'n', match: { value: 7 } }] } };
      const gathered = ask(cosine, query, few);
      assert.equal(gathered.scored, (ROWS / 100) * 3);
      assert.deepEqual(gathered.hits, exactly(cosine, query, few).hits);
    }
    assert.ok(recall >= 9.5, `recall ${recall / 10}`);
  }
});

test('examples that are points are left out, pages follow one another, and a small `hnsw_ef` looks at fewer rows', () => {
  const query = { recommend: { positive: [5, 77], negative: [4000], strategy: 'best_score' } };
  const { hits, scored } = ask(cosine, query);
  assert.ok(hits.every(({ id }) => ![5, 77, 4000].includes(id as number)));
  assert.deepEqual(ask(cosine, query, { limit: 4, offset: 3 }).hits, hits.slice(3, 7));
  assert.ok(ask(cosine, query, { params: { hnsw_ef: 20 } }).scored < scored / 2);
});

test('most rows wanted, only negatives, and candidates of prefetches are scored exactly', () => {
  const draw = drawOf(13);
  const query = BEST(draw);
  assert.equal(ask(cosine, query, { limit: ROWS }).scored, ROWS * 3);
  const negatives = recommend(draw, 0, 2, 'best_score');
  assert.equal(ask(cosine, negatives).scored, ROWS * 2);
  assert.deepEqual(ask(cosine, negatives).hits, exactly(cosine, negatives).hits);
  const prefetch = { prefetch: { query: draw(), limit: 40, params: { exact: true } } };
  // The prefetch scores each row once.
  assert.equal(ask(cosine, query, prefetch).scored, ROWS + 40 * 3);
});

test('rows that were deleted are not found, and rows without a graph are scored beside the walk', async () => {
  const fixture = await fixtureOf('Cosine', ROWS - 200);
  const query = { recommend: { positive: [vectorOf(ROWS - 1), vectorOf(17)], strategy: 'best_score' } };
  const before = ask(fixture, query).hits.map(({ id }) => id);
  assert.deepEqual(new Set(before.slice(0, 2)), new Set([17, ROWS - 1]));
  fixture.delete(17);
  fixture.delete(before[2] as number);
  const answer = ask(fixture, query);
  assert.deepEqual(answer.hits, exactly(fixture, query).hits);
  assert.ok(answer.hits.every(({ id }) => id !== 17 && id !== before[2]));
});

test('a context that too few rows lie within is answered exactly: no walk leads along its border', () => {
  const draw = drawOf(23);
  for (let at = 0; at < 10; at++) {
    const [one, other] = [draw(), draw()];
    const contradiction = [
      { positive: one, negative: other },
      { positive: other, negative: one },
    ];
    const walked = ask(cosine, { context: contradiction });
    assert.ok(walked.scored > ROWS * 4);
    assert.deepEqual(walked.hits, exactly(cosine, { context: contradiction }).hits);
  }
});

/** What is explained of the sealed segment. */
function explainedSearch(fixture: CollectionFixture, query: object, more: object = {}): ExplainedSearch {
  const explain: ExplainRequest = { wanted: false, explanation: null };
  const body = Buffer.from(JSON.stringify({ query, limit: 10, explain: true, ...more }));
  runRead('query', { path: {}, query: {}, body, deadlineMs: 0, explain }, contextOf(fixture));
  return explain.explanation?.shards[0]?.segments[0]?.searches[0] as ExplainedSearch;
}

test('an explanation tells the walk with what it scored, and why all rows were scored where they were', () => {
  const query = BEST(drawOf(17));
  const walk = explainedSearch(cosine, query);
  assert.deepEqual([walk.plan, walk.ef, walk.scored_on, walk.fell_back, walk.found], ['walk', 100, 'codes', false, 10]);
  assert.match(walk.reason, /^A walk of the graph is estimated at \d+ µs, scoring the rows that pass one by one at \d+ µs\./);
  assert.equal(walk.rows_rescored, 100 * 3);
  assert.ok(walk.rows_scored > 300 && walk.rows_scored < ROWS && (walk.hops ?? 0) >= 100, `${walk.rows_scored} rows, ${walk.hops} hops`);
  const exact = explainedSearch(cosine, query, { params: { exact: true } });
  assert.deepEqual([exact.plan, exact.rows_scored, exact.rows_rescored], ['examples', ROWS * 3, 0]);
  assert.match(exact.reason, /^Every row that may be an answer is compared with each example\. The request asks for an exact search/);
  const negatives = explainedSearch(cosine, recommend(drawOf(1), 0, 1, 'best_score'));
  assert.match(negatives.reason, /Such examples lead to no place in the graph, so all 6000 rows are scored\.$/);
});

test('all rows that pass are scored after a walk that comes back with too few (Query-Q1)', () => {
  const { kernels } = sealedView(cosine).reader;
  const query = BEST(drawOf(19));
  const walkByExamples = kernels.walkByExamples.bind(kernels);
  try {
    kernels.walkByExamples = (...args) => {
      const { rows: found, scores } = walkByExamples(...args);
      return { count: 9, rows: found.subarray(0, 9), scores };
    };
    assert.deepEqual(ask(cosine, query).hits, exactly(cosine, query).hits);
    const search = explainedSearch(cosine, query);
    assert.equal(search.fell_back, true);
    assert.ok(search.rows_scored > ROWS * 3);
  } finally {
    kernels.walkByExamples = walkByExamples;
  }
});
