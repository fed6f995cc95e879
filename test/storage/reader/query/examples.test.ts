import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { ErrorCode } from '../../../../protocols/errors.js';
import { TroupeError } from '../../../../protocols/errors.js';
import type { Distance } from '../../../../protocols/model/collection.js';
import type { PointId } from '../../../../protocols/model/point-id.js';
import { decodeQuery } from '../../../../protocols/rest/queries.js';
import { scannedBody } from '../../../../protocols/rest/request-value.js';
import { seeded } from '../../../query/property.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const DIM = 4;

function query(fixture: CollectionFixture, body: unknown): { id: PointId; score: number }[] {
  const request = decodeQuery(scannedBody(new TextEncoder().encode(JSON.stringify(body))));
  return runQuery(contextOf(fixture), request).map(({ id, score }) => ({ id, score: score as number }));
}

function fixtureOf(distance: Distance): CollectionFixture {
  const fixture = new CollectionFixture(configOf({ size: DIM, distance }));
  fixtures.push(fixture);
  return fixture;
}

/** The eight points of the contract's scenarios, over two segments. */
async function contract(): Promise<CollectionFixture> {
  const fixture = fixtureOf('Dot');
  const point = (id: number, ...vector: number[]): TestPoint => ({ id, vectors: { '': vector }, payload: { n: id } });
  await fixture.addSealed([point(1, 1, 0, 0, 0), point(2, 0.5, 0.25, 0, 0), point(3, 0, 1, 0, 0.5), point(4, 0, 0, 2, 0)], false);
  fixture.addAppendable([
    point(5, -1, 0, 0, 1),
    point(6, 0.75, 0.75, 0.75, 0.75),
    point(7, 0.125, -2, 1, 0.25),
    point(8, 2, 1, 0.5, -0.25),
    { ...point(9, 9, 9, 9, 9), deletedAt: 1 },
    { id: 10, vectors: {} },
  ]);
  return fixture;
}

const shown = (hits: readonly { id: PointId; score: number }[]): string[] =>
  hits.map(({ id, score }) => `${id} ${Number(score.toFixed(5))}`);

test('strategies of a recommendation score as the contract shows, and leave the examples out', async () => {
  const fixture = await contract();
  const recommend = (recommended: unknown, more: object = {}): string[] =>
    shown(query(fixture, { query: { recommend: recommended }, limit: 4, ...more }));
  assert.deepEqual(recommend({ positive: [1, 3], negative: [4] }), ['8 1.875', '2 0.75', '6 0.375', '5 -0.5']);
  assert.deepEqual(recommend({ positive: [1, 3], negative: [4], strategy: 'best_score' }), [
    '8 0.83333',
    '2 0.66667',
    '5 0.66667',
    '6 -0.8',
  ]);
  assert.deepEqual(recommend({ positive: [1, 3], negative: [4], strategy: 'sum_scores' }), ['8 1.875', '2 0.75', '6 0.375', '5 -0.5']);
  assert.deepEqual(recommend({ negative: [4, 7], strategy: 'sum_scores' }, { limit: 2 }), ['3 1.875', '2 0.4375']);
  assert.deepEqual(recommend({ positive: [1], strategy: 'sum_scores' }, { score_threshold: 0.5 }), ['8 2', '6 0.75']);
  assert.deepEqual(recommend({ positive: [1] }, { filter: { must_not: [{ has_id: [2] }] }, offset: 1 }), [
    '6 0.75',
    '7 0.125',
    '3 0',
    '4 0',
  ]);
});

test('only prefetched points are scored where there are prefetches', async () => {
  const fixture = await contract();
  const body = {
    prefetch: { query: [1, 0.5, 0.25, 0.125], limit: 4 },
    query: { recommend: { positive: [1], negative: [4], strategy: 'best_score' } },
  };
  assert.deepEqual(shown(query(fixture, body)), ['8 0.83333', '2 0.66667', '3 -0.5', '6 -0.8']);
  const discovery = { prefetch: { query: [1, 0, 0, 0], limit: 2 }, query: { discover: { target: [1, 0.5, 0.25, 0.125], context: [] } } };
  assert.deepEqual(shown(query(fixture, discovery)), ['8 0.86087', '1 0.75']);
});

test('a context without pairs finds every point that has the vector', async () => {
  const fixture = await contract();
  assert.deepEqual(
    query(fixture, { query: { context: [] }, limit: 20 }).map(({ id }) => id),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
});

test('examples that are not there, not given or do not fit are errors of the request', async () => {
  const fixture = await contract();
  const refused = (body: unknown, code: ErrorCode): void => {
    assert.throws(
      () => query(fixture, { query: body }),
      (error) => error instanceof TroupeError && error.code === code,
      JSON.stringify(body),
    );
  };
  for (const strategy of ['average_vector', 'best_score']) {
    refused({ recommend: { positive: [999], strategy } }, 'notFound');
    refused({ recommend: { positive: [9], strategy } }, 'notFound');
    refused({ recommend: { positive: [10], strategy } }, 'notFound');
    refused({ recommend: { positive: [[1, 2]], strategy } }, 'wrongInput');
    refused({ recommend: { positive: [1], negative: [[1, 2]], strategy } }, 'wrongInput');
    refused({ recommend: { positive: [{ indices: [1], values: [1] }], strategy } }, 'wrongInput');
  }
  refused({ recommend: { negative: [4] } }, 'wrongInput');
  refused({ context: [{ positive: 999, negative: 1 }] }, 'notFound');
  refused({ discover: { target: [1], context: [] } }, 'wrongInput');
});

// ------------------------------------------------------------------ against every point one by one

const share = (x: number): number => (x / (1 + Math.abs(x)) + 1) / 2;

function similarity(distance: Distance, a: readonly number[], b: readonly number[]): number {
  const sum = (of: (x: number, y: number) => number): number => a.reduce((total, x, i) => total + of(x, b[i] as number), 0);
  if (distance === 'Euclid') return -sum((x, y) => (x - y) ** 2);
  if (distance === 'Manhattan') return -sum((x, y) => Math.abs(x - y));
  const dot = sum((x, y) => x * y);
  return distance === 'Dot' ? dot : dot / (Math.hypot(...a) * Math.hypot(...b));
}

for (const distance of ['Dot', 'Cosine', 'Euclid', 'Manhattan'] as const) {
  test(`every live point that passes is scored exactly, by ${distance}`, async () => {
    const fixture = fixtureOf(distance);
    const random = randomOf(5);
    const vector = (): number[] => Array.from({ length: DIM }, () => Math.fround(random() * 2 - 1));
    const points = Array.from({ length: 500 }, (_, id): TestPoint => {
      const deleted = id % 7 === 0 ? { deletedAt: 1 + (id % (SEQ + 5)) } : {};
      return { id, vectors: id % 11 === 0 ? {} : { '': vector() }, payload: { n: id % 5 }, ...deleted };
    });
    await fixture.addSealed(points.slice(0, 300), true);
    fixture.addAppendable(points.slice(300));
    const live = points.filter(({ deletedAt, vectors }) => (deletedAt ?? SEQ + 1) > SEQ && vectors[''] !== undefined);
    const choices = live.map(({ id }) => id as number);
    const vectorsOf = (ids: readonly number[]): number[][] => ids.map((id) => points[id]?.vectors[''] as number[]);
    const few = fc.uniqueArray(fc.constantFrom(...choices), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(few, few, fc.constantFrom('best_score', 'sum_scores', 'discover'), fc.boolean(), (positive, negative, kind, filtered) => {
        const to = (examples: readonly number[], own: readonly number[]): number[] =>
          vectorsOf(examples).map((one) => similarity(distance, one, own));
        const score = (own: readonly number[]): number => {
          const near = to(positive, own);
          const far = to(negative, own);
          if (kind === 'sum_scores') return near.reduce((a, b) => a + b, 0) - far.reduce((a, b) => a + b, 0);
          if (kind === 'best_score') return Math.max(...near) > Math.max(...far) ? share(Math.max(...near)) : -share(Math.max(...far));
          return share(near[0] as number) + Math.sign((near.at(-1) as number) - (far[0] as number));
        };
        const examples = kind === 'discover' ? [positive[0], positive.at(-1), negative[0]] : [...positive, ...negative];
        const expected = live
          .filter(({ id, payload }) => !examples.includes(id as number) && (!filtered || payload?.n === 2))
          .map(({ id, vectors }) => ({ id, score: score(vectors[''] as number[]) }))
          .sort((a, b) => b.score - a.score);
        const body =
          kind === 'discover'
            ? { discover: { target: positive[0], context: { positive: positive.at(-1), negative: negative[0] } } }
            : { recommend: { positive, negative, strategy: kind } };
        const filter = filtered ? { must: [{ key: 'n', match: { value: 2 } }] } : undefined;
        const found = query(fixture, { query: body, limit: 20, filter });
        assert.equal(found.length, Math.min(20, expected.length));
        found.forEach((hit, at) => {
          const { score: wanted } = expected[at] as { score: number };
          assert.ok(
            Math.abs(hit.score - wanted) < 1e-4 * Math.max(1, Math.abs(wanted)),
            `${at}: ${hit.id} ${hit.score} instead of ${wanted}`,
          );
        });
      }),
      seeded(60),
    );
  });
}

test('rows without a graph are left out where only indexed ones are asked for, once there are as many as are to be indexed', async () => {
  const fixture = new CollectionFixture(configOf({ size: DIM, distance: 'Dot' }, { indexingThresholdKb: 1 }));
  fixtures.push(fixture);
  const pointsFrom = (from: number, count: number): TestPoint[] =>
    Array.from({ length: count }, (_, i) => ({ id: from + i, vectors: { '': [i + 1, 0, 0, 0] } }));
  await fixture.addSealed(pointsFrom(0, 200), true);
  fixture.addAppendable(pointsFrom(2000, 3));
  const ids = (indexedOnly: boolean): PointId[] =>
    query(fixture, { query: { context: [] }, limit: 1000, params: { indexed_only: indexedOnly } }).map(({ id }) => id);
  assert.equal(ids(true).length, 203);
  await fixture.addSealed(pointsFrom(1000, 200), false);
  assert.equal(ids(false).length, 403);
  assert.equal(ids(true).length, 200);
  assert.ok(ids(true).every((id) => (id as number) < 1000));
});

test('similarities beyond a float32 count as its largest and spoil no order', async () => {
  const fixture = await contract();
  const far = [3e38, 3e38, 0, 0];
  const hits = query(fixture, { query: { recommend: { positive: [far], negative: [far], strategy: 'sum_scores' } }, limit: 20 });
  assert.deepEqual(
    hits.map(({ id, score }) => [id, score]),
    [
      [1, 0],
      [2, 0],
      [3, 0],
      [4, 0],
      [5, 0],
      [6, 0],
      [7, 0],
      [8, 0],
    ],
  );
});

test('thousands of examples are scored as one is, in smaller blocks of rows', async () => {
  const fixture = fixtureOf('Dot');
  const random = randomOf(5);
  const vector = (): number[] => Array.from({ length: DIM }, random);
  fixture.addAppendable(Array.from({ length: 700 }, (_, i) => ({ id: i + 1, vectors: { '': vector() } })));
  const example = vector();
  const hits = (count: number) =>
    query(fixture, { query: { recommend: { positive: Array(count).fill(example), strategy: 'best_score' } }, limit: 700 });
  assert.deepEqual(hits(3000), hits(1));
});
