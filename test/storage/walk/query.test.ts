import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../protocols/errors.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import { decodeQuery, decodeScroll } from '../../../protocols/rest/queries.js';
import { scannedBody } from '../../../protocols/rest/request-value.js';
import type { PointView } from '../../../storage/answers/result.js';
import type { ReadContext } from '../../../storage/reader/read-context.js';
import { queryBody } from '../../protocols/rest/query-arbitrary.js';
import { seeded } from '../../query/property.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, SEQ, scroll, type TestPoint } from '../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const FIELDS = new Map<string, FieldSchema>([
  ['n', { type: 'integer' }],
  ['f', { type: 'float' }],
  ['m', { type: 'integer' }],
]);

function fixtureOf(fields: ReadonlyMap<string, FieldSchema> = new Map()): CollectionFixture {
  const vectors = { a: { size: 2, distance: 'Dot' }, e: { size: 2, distance: 'Euclid' } } as const;
  const fixture = new CollectionFixture(configOf(vectors), fields);
  fixtures.push(fixture);
  return fixture;
}

const ask = (context: ReadContext, body: unknown) => runQuery(context, decodeQuery({ value: body as never, vectors: null }));
const found = (context: ReadContext, body: unknown) => ask(context, body).map(({ id, score }) => [id, score]);
const ids = (context: ReadContext, body: unknown) => ask(context, body).map(({ id }) => id);

/** Points 1..6 over two segments: `a` is [id, 1], `e` is [0, id] where the id is even. 7 is deleted. */
async function small(fields?: ReadonlyMap<string, FieldSchema>): Promise<CollectionFixture> {
  const fixture = fixtureOf(fields);
  const point = (id: number, more: Partial<TestPoint> = {}): TestPoint => ({
    id,
    vectors: id % 2 === 0 ? { a: [id, 1], e: [0, id] } : { a: [id, 1] },
    payload: { n: [id, 10 - id], f: id / 2 },
    version: 3,
    ...more,
  });
  await fixture.addSealed([point(5), point(2), point(7, { deletedAt: SEQ - 1 }), point(3)], false);
  fixture.addAppendable([point(6), point(1), point(4)]);
  return fixture;
}

const TOP3 = { query: [1, 0], using: 'a', limit: 3 };

test('a query scores only what its prefetch found', async () => {
  const context = contextOf(await small());
  assert.deepEqual(found(context, { prefetch: TOP3, query: [-1, 0], using: 'a' }), [
    [4, -4],
    [5, -5],
    [6, -6],
  ]);
  assert.deepEqual(
    found(context, { prefetch: TOP3, query: [0, 0], using: 'e' }),
    [
      [4, 4],
      [6, 6],
    ],
    'points without the vector are left out',
  );
});

test('prefetches are united, each point once', async () => {
  const context = contextOf(await small());
  const prefetch = [TOP3, { query: [-1, 0], using: 'a', limit: 4 }];
  assert.deepEqual(ids(context, { prefetch, query: [1, 0], using: 'a' }), [6, 5, 4, 3, 2, 1]);
  assert.deepEqual(ids(context, { prefetch, query: { sample: 'random' } }).sort(), [1, 2, 3, 4, 5, 6]);
});

test('a filter holds for the prefetches too, so that limits are spent on points that pass', async () => {
  const context = contextOf(await small());
  const filter = { must_not: [{ has_id: [5] }] };
  assert.deepEqual(ids(context, { prefetch: TOP3, query: [1, 0], using: 'a', filter }), [6, 4, 3]);
  assert.deepEqual(
    ids(context, { prefetch: { prefetch: TOP3, query: { formula: '$score' } }, query: [1, 0], using: 'a', filter }),
    [6, 4, 3],
  );
});

test('threshold, limit and offset are those of the level', async () => {
  const context = contextOf(await small());
  const query = { prefetch: { ...TOP3, limit: 6, score_threshold: 2 }, query: [1, 0], using: 'a' };
  assert.deepEqual(ids(context, { ...query, limit: 2, offset: 1 }), [5, 4]);
  assert.deepEqual(ids(context, { ...query, score_threshold: 4 }), [6, 5]);
  assert.deepEqual(ids(context, query), [6, 5, 4, 3]);
});

test('a point that a query names is no answer to it, in a level above prefetches either', async () => {
  const context = contextOf(await small());
  assert.deepEqual(ids(context, { query: 6, using: 'a', limit: 2 }), [5, 4]);
  assert.deepEqual(ids(context, { prefetch: TOP3, query: 6, using: 'a' }), [5, 4, 3]);
  assert.deepEqual(ids(context, { query: { nearest: 6, mmr: { diversity: 0 } }, using: 'a', limit: 2 }), [5, 4]);
});

test('points of another collection are looked up there, and leave the same id in the answer', async () => {
  const fixture = await small();
  const other = fixtureOf();
  other.addAppendable([{ id: 6, vectors: { e: [-1, 0] } }]);
  const context: ReadContext = {
    ...contextOf(fixture),
    lookup: (name) => [(name === 'other' ? other : fixture).snapshot()],
  };
  const lookup = (collection: string, vector?: string) => ({ query: 6, using: 'a', limit: 9, lookup_from: { collection, vector } });
  assert.deepEqual(ids(context, lookup('other', 'e')), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(ids(context, lookup('alias of itself')), [5, 4, 3, 2, 1]);
  assert.deepEqual(ids(context, { ...lookup('alias of itself'), prefetch: TOP3 }), [5, 4, 3]);
  assert.throws(() => ids(context, lookup('other')), /Vector with name "a" for point not found/);
});

test('models are refused by name', async () => {
  const context = contextOf(await small());
  assert.throws(
    () => ids(context, { query: { text: 'x', model: 'some/model' }, using: 'a' }),
    (error) => error instanceof TroupeError && error.code === 'unsupported' && /some\/model/.test(error.detail),
  );
});

test('fusion goes by rank whatever the scores mean', async () => {
  const context = contextOf(await small());
  const prefetch = [
    { query: [1, 0], using: 'a', limit: 2 },
    { query: [0, 0], using: 'e', limit: 2 },
  ];
  // 6, 5 by dot product; 2, 4 by distance.
  assert.deepEqual(found(context, { prefetch, query: { fusion: 'rrf' } }), [
    [2, 0.5],
    [6, 0.5],
    [4, Math.fround(1 / 3)],
    [5, Math.fround(1 / 3)],
  ]);
  const dbsf = ask(context, { prefetch, query: { fusion: 'dbsf' } });
  assert.deepEqual(
    dbsf.map(({ id }) => id),
    [2, 6, 4, 5],
    'smaller distances are better',
  );
  assert.deepEqual([dbsf[0]?.version, dbsf[0]?.payload], [3, undefined]);
});

test('a formula sees the scores of all prefetches and the payload', async () => {
  const context = contextOf(await small());
  const prefetch = [TOP3, { query: [0, 0], using: 'e', limit: 2 }];
  const formula = {
    sum: ['$score[0]', { mult: [10, '$score[1]'] }, { mult: [100, { key: 'f', range: { gte: 3 } }] }, { mult: [1000, { has_id: [5] }] }],
  };
  assert.deepEqual(found(context, { prefetch, query: { formula, defaults: { '$score[1]': 0.5 } } }), [
    [5, 1010],
    [6, 111],
    [4, 44],
    [2, 20],
  ]);
  assert.deepEqual(found(context, { prefetch, query: { formula: { has_vector: 'e' } }, score_threshold: 0.5 }), [
    [2, 1],
    [4, 1],
    [6, 1],
  ]);
});

test('an order needs an index of numbers', async () => {
  const context = contextOf(await small());
  assert.throws(() => ask(context, { query: { order_by: 'n' } }), /No range index for `order_by` key: `n`/);
});

test('an order shows a point once for each of its values', async () => {
  const context = contextOf(await small(FIELDS));
  const pairs = (body: object) => ask(context, body).map(({ id, orderValue }) => [id, orderValue]);
  assert.deepEqual(pairs({ query: { order_by: { key: 'n', direction: 'desc', start_from: 6 } }, limit: 4 }), [
    [6, 6],
    [4, 6],
    [5, 5],
    [6, 4],
  ]);
  assert.deepEqual(pairs({ query: { order_by: 'f' }, limit: 2, offset: 1 }), [
    [2, 1],
    [3, 1.5],
  ]);
  assert.deepEqual(pairs({ prefetch: TOP3, query: { order_by: 'f' } }), [
    [4, 2],
    [5, 2.5],
    [6, 3],
  ]);
  const [first] = ask(context, { query: { order_by: 'f' }, limit: 1 });
  assert.deepEqual([first?.score, first?.version], [1, 0]);
});

test('fusion of an order counts a point at its best rank', async () => {
  const context = contextOf(await small(FIELDS));
  const prefetch = { query: { order_by: 'n' }, limit: 12 };
  // By n: 1 2 3 4 4 5 6 6 7 8 9 are of 1 2 3 4 6 5 …
  assert.deepEqual(ids(context, { prefetch, query: { fusion: 'rrf' } }), [1, 2, 3, 4, 6, 5]);
});

test('a sample holds distinct points that pass', async () => {
  const context = contextOf(await small());
  for (let run = 0; run < 20; run++) {
    const sample = ids(context, { query: { sample: 'random' }, limit: 4, filter: { must_not: [{ has_id: [1] }] } });
    assert.equal(new Set(sample).size, 4);
    assert.ok(sample.every((id) => [2, 3, 4, 5, 6].includes(id as number)));
  }
  assert.equal(ids(context, { query: { sample: 'random' }, limit: 100 }).length, 6);
  assert.equal(ids(context, { query: { sample: 'random' }, limit: 5, offset: 3 }).length, 5, 'a sample has no pages');
});

test('MMR chooses among as many candidates as the limit unless told otherwise', async () => {
  const fixture = fixtureOf();
  fixture.addAppendable([
    { id: 1, vectors: { a: [2, 0] } },
    { id: 2, vectors: { a: [1.9, 0] } },
    { id: 3, vectors: { a: [0.5, 3] } },
  ]);
  const context = contextOf(fixture);
  const diverse = (mmr: object, more: object = {}) => ids(context, { query: { nearest: [1, 0], mmr }, using: 'a', limit: 2, ...more });
  assert.deepEqual(diverse({ diversity: 0.5 }), [1, 2]);
  assert.deepEqual(diverse({ diversity: 0.5, candidates_limit: 3 }), [1, 3]);
  assert.deepEqual(diverse({ diversity: 0.5, candidates_limit: 3 }, { offset: 1 }), [3, 2]);
  assert.deepEqual(diverse({ candidates_limit: 0 }), []);
  const prefetch = { query: [0, 1], using: 'a', limit: 2 };
  assert.deepEqual(diverse({ diversity: 0.5, candidates_limit: 3 }, { prefetch }), [1, 3]);
});

test('MMR weighs Euclidean distances by their squares, as recommendations do', async () => {
  const fixture = fixtureOf();
  fixture.addAppendable([
    { id: 1, vectors: { e: [1, 0] } },
    // With plain distances this one would be next: 1.72 from the first and 1.08 from the query, instead of 10.11 and 10.01.
    { id: 2, vectors: { e: [-0.4, 1] } },
    { id: 3, vectors: { e: [-0.5, 10] } },
  ]);
  const query = { nearest: [0, 0], mmr: { diversity: 0.5, candidates_limit: 3 } };
  assert.deepEqual(ids(contextOf(fixture), { query, using: 'e', limit: 2 }), [1, 3]);
});

test('MMR takes a candidate, not the chosen multivector, for the query when it tells how alike they are', async () => {
  const fixture = new CollectionFixture(configOf({ m: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } }));
  fixtures.push(fixture);
  // As queries the second scores 2 with the first, and the third 1; the first scores 1 with both.
  await fixture.addSealed([{ id: 1, vectors: { m: [[1, 0]] } }], false);
  fixture.addAppendable([
    {
      id: 2,
      vectors: {
        m: [
          [1, 0],
          [1, 0],
        ],
      },
    },
    {
      id: 3,
      vectors: {
        m: [
          [1, 0],
          [0, 1],
        ],
      },
    },
  ]);
  const query = { nearest: [[1, 0]], mmr: { diversity: 0.5 } };
  assert.deepEqual(ids(contextOf(fixture), { query, using: 'm', limit: 3 }), [1, 3, 2]);
});

test('orders of sealed and appendable segments, with an index and without, agree with a plain sort', async () => {
  const random = randomOf(5);
  const value = (): unknown => {
    const kind = Math.floor(random() * 6);
    return [Math.floor(random() * 20) - 10, Math.round(random() * 80) / 4, 'x', null, [1, 1, 7.5, 3], 9007199254740993n][kind];
  };
  const points: TestPoint[] = Array.from({ length: 300 }, (_, id) => ({
    id,
    vectors: { a: [1, 1] },
    payload: { n: value() as never, f: value() as never, m: [id % 7, (id * 13) % 50], even: id % 2 === 0, rare: id % 100 === 0 },
    ...(random() < 0.1 ? { deletedAt: SEQ - 1 } : {}),
  }));
  const fixture = fixtureOf(FIELDS);
  await fixture.addSealed(points.slice(0, 200), false);
  fixture.addAppendable(points.slice(200));
  const context = contextOf(fixture);
  const valuesOf = (key: string, stored: unknown): (number | bigint)[] =>
    [...new Set(Array.isArray(stored) ? stored : [stored])]
      .filter((one) => typeof one === 'bigint' || (typeof one === 'number' && (key === 'f' || Number.isInteger(one))))
      .map((one) => (key === 'f' ? Number(one) : one));
  const start = fc.option(fc.integer({ min: -10, max: 20 }));
  fc.assert(
    fc.property(
      fc.constantFrom('n', 'f', 'm'),
      fc.constantFrom(null, 'even', 'rare'),
      fc.constantFrom('asc', 'desc'),
      start,
      fc.integer({ min: 1, max: 400 }),
      (key, only, direction, from, limit) => {
        const sign = direction === 'asc' ? 1 : -1;
        const expected = points
          .filter(({ deletedAt, payload }) => deletedAt === undefined && (only === null || payload?.[only] === true))
          .flatMap(({ id, payload }) => valuesOf(key, payload?.[key]).map((one) => ({ id, value: one })))
          .filter(({ value: one }) => from === null || (sign > 0 ? one >= from : one <= from))
          .sort((a, b) => sign * (a.value < b.value ? -1 : a.value > b.value ? 1 : (a.id as number) - (b.id as number)))
          .slice(0, limit)
          .map(({ id, value: one }): [PointId, number | bigint] => [id, one]);
        const filter = only === null ? null : { must: [{ key: only, match: { value: true } }] };
        const body = { order_by: { key, direction, start_from: from }, limit, filter } as never;
        const page = scroll(context.snapshots, decodeScroll({ value: body, vectors: null }));
        assert.equal(page.next, null);
        assert.deepEqual(
          page.points.map(({ id, orderValue }) => [id, orderValue]),
          expected,
        );
      },
    ),
    seeded(200),
  );
});

test('whatever is asked is answered or refused, and an answer is a page of distinct points in order', async () => {
  const context = contextOf(await small(FIELDS));
  let answered = 0;
  fc.assert(
    fc.property(queryBody, (body) => {
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      let points: PointView[];
      try {
        points = runQuery(context, decodeQuery(scannedBody(bytes)));
      } catch (error) {
        assert.ok(error instanceof TroupeError, error instanceof Error ? error.stack : String(error));
        return;
      }
      answered++;
      const { limit, query } = body as { limit?: number; query?: { order_by?: unknown } };
      assert.ok(points.length <= (limit ?? 10));
      const orders = typeof query === 'object' && query !== null && 'order_by' in query;
      if (!orders) assert.equal(new Set(points.map(({ id }) => id)).size, points.length);
      for (const { score } of points) assert.ok(Number.isFinite(score));
    }),
    seeded(3000),
  );
  assert.ok(answered > 300, `${answered} answered`);
});
