import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { TroupeError } from '../../../../protocols/errors.js';
import type { Distance, VectorsConfig } from '../../../../protocols/model/collection.js';
import type { PointId } from '../../../../protocols/model/point-id.js';
import { decodeQuery } from '../../../../protocols/rest/queries.js';
import { scannedBody } from '../../../../protocols/rest/request-value.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const DIM = 12;
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const decoded = (text: string) => decodeQuery(scannedBody(new TextEncoder().encode(text)));
const search = (fixture: CollectionFixture, value: unknown) => runQuery(contextOf(fixture), decoded(JSON.stringify(value)));
const idsOf = (fixture: CollectionFixture, value: unknown): PointId[] => search(fixture, value).map(({ id }) => id);

function pointsOf(from: number, count: number, seed: number): TestPoint[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, i) => ({
    id: from + i,
    vectors: { '': Array.from({ length: DIM }, () => random() * 2 - 1) },
    payload: { n: from + i, group: (from + i) % 10, rare: (from + i) % 200 === 0 },
    ...((from + i) % 7 === 0 ? { deletedAt: 1 + ((from + i) % (SEQ + 5)) } : {}),
  }));
}

function collectionOf(vectors: VectorsConfig, options: Parameters<typeof configOf>[1] = {}): CollectionFixture {
  const fixture = new CollectionFixture(configOf(vectors, options));
  fixtures.push(fixture);
  return fixture;
}

/** A graph segment, a sealed one without, and an appendable one. */
async function mixed(distance: Distance): Promise<{ fixture: CollectionFixture; points: TestPoint[] }> {
  const fixture = collectionOf({ size: DIM, distance });
  const parts = [pointsOf(0, 1500, 1), pointsOf(1500, 300, 2), pointsOf(1800, 200, 3)] as const;
  await fixture.addSealed(parts[0], true);
  await fixture.addSealed(parts[1], false);
  fixture.addAppendable(parts[2]);
  return { fixture, points: parts.flat() };
}

function scoreOf(distance: Distance, a: readonly number[], b: readonly number[]): number {
  const pairs = a.map((x, i) => [x, b[i] as number] as const);
  const dot = pairs.reduce((sum, [x, y]) => sum + x * y, 0);
  if (distance === 'Dot') return dot;
  if (distance === 'Cosine') return dot / (Math.hypot(...a) * Math.hypot(...b));
  if (distance === 'Euclid') return Math.hypot(...pairs.map(([x, y]) => x - y));
  return pairs.reduce((sum, [x, y]) => sum + Math.abs(x - y), 0);
}

function bruteForce(
  distance: Distance,
  points: readonly TestPoint[],
  vector: readonly number[],
  passes: (point: TestPoint) => boolean,
): { id: PointId; score: number }[] {
  const sign = distance === 'Dot' || distance === 'Cosine' ? -1 : 1;
  return points
    .filter((point) => (point.deletedAt ?? SEQ + 1) > SEQ && passes(point))
    .map(({ id, vectors }) => ({ id, score: scoreOf(distance, vector, vectors[''] as number[]) }))
    .sort((a, b) => sign * (a.score - b.score));
}

function share(found: readonly PointId[], expected: readonly PointId[]): number {
  return expected.filter((id) => found.includes(id)).length / expected.length;
}

const filters: [string, unknown, (point: TestPoint) => boolean][] = [
  ['no filter', null, () => true],
  ['nine tenths', { must_not: [{ key: 'group', match: { value: 3 } }] }, ({ payload }) => payload?.group !== 3],
  ['a tenth', { must: [{ key: 'group', match: { value: 3 } }] }, ({ payload }) => payload?.group === 3],
  ['few', { must: [{ key: 'rare', match: { value: true } }] }, ({ payload }) => payload?.rare === true],
];

for (const distance of ['Dot', 'Cosine', 'Euclid', 'Manhattan'] as const) {
  test(`${distance}: results are those of brute force, over segments of all kinds and filters of all widths`, async () => {
    const { fixture, points } = await mixed(distance);
    const random = randomOf(99);
    for (const [name, filter, passes] of filters) {
      let recall = 0;
      for (let i = 0; i < 10; i++) {
        const vector = Array.from({ length: DIM }, () => random() * 2 - 1);
        const expected = bruteForce(distance, points, vector, passes).slice(0, 10);
        const exact = search(fixture, { query: vector, filter, params: { exact: true } });
        assert.deepEqual(
          exact.map(({ id }) => id),
          expected.map(({ id }) => id),
          name,
        );
        exact.forEach(({ score }, at) => {
          assert.ok(Math.abs((score as number) - (expected[at]?.score as number)) < 1e-4 * Math.max(1, Math.abs(score as number)), name);
        });
        const found = search(fixture, { query: vector, filter, params: { hnsw_ef: 64 } });
        assert.equal(found.length, expected.length, name);
        recall += share(
          found.map(({ id }) => id),
          expected.map(({ id }) => id),
        );
      }
      assert.ok(recall / 10 > 0.95, `${name}: recall ${recall / 10}`);
    }
  });
}

test('as many results as the limit asks for, whenever so many match', async () => {
  const { fixture, points } = await mixed('Euclid');
  for (const [name, filter, passes] of filters) {
    const matching = bruteForce('Euclid', points, new Array(DIM).fill(0), passes).length;
    for (const limit of [1, 9, 100, 1000, 100_000]) {
      const found = idsOf(fixture, { query: new Array(DIM).fill(0.1), filter, limit, params: { hnsw_ef: 1 } });
      assert.equal(found.length, Math.min(limit, matching), `${name}, limit ${limit}`);
      assert.equal(new Set(found).size, found.length);
    }
  }
});

test('a gigantic limit is every point', async () => {
  const { fixture, points } = await mixed('Dot');
  const all = bruteForce('Dot', points, new Array(DIM).fill(1), () => true).length;
  const query = decoded(`{"query":[${new Array(DIM).fill(1)}],"limit":18446744073709551615}`);
  assert.equal(runQuery(contextOf(fixture), query).length, all);
});

test('pages follow each other', async () => {
  const { fixture } = await mixed('Euclid');
  const vector = new Array(DIM).fill(0.2);
  const whole = idsOf(fixture, { query: vector, limit: 20, params: { exact: true } });
  assert.deepEqual(idsOf(fixture, { query: vector, limit: 8, offset: 12, params: { exact: true } }), whole.slice(12));
  assert.deepEqual(idsOf(fixture, { query: vector, limit: 8, offset: 1_000_000 }), []);
});

test('a score equal to the threshold is left out, for distances too', () => {
  for (const [distance, expected] of [
    ['Dot', [3]],
    ['Euclid', [1]],
  ] as const) {
    const fixture = collectionOf({ size: 1, distance });
    fixture.addAppendable([1, 2, 3].map((n) => ({ id: n, vectors: { '': [n] } })));
    assert.deepEqual(idsOf(fixture, { query: distance === 'Dot' ? [1] : [0], score_threshold: 2 }), expected, distance);
  }
});

test('thresholds are compared as float32, as scores are', () => {
  const fixture = collectionOf({ size: 1, distance: 'Dot' });
  fixture.addAppendable([{ id: 1, vectors: { '': [0.1] } }]);
  assert.deepEqual(idsOf(fixture, { query: [1], score_threshold: 0.1 }), []);
});

test('a query by point leaves the point out', async () => {
  const { fixture, points } = await mixed('Cosine');
  for (const id of [1, 1502, 1803]) {
    const vector = points[id]?.vectors[''] as number[];
    const expected = bruteForce('Cosine', points, vector, (point) => point.id !== id).slice(0, 10);
    assert.deepEqual(
      idsOf(fixture, { query: id, params: { exact: true } }),
      expected.map((point) => point.id),
    );
  }
});

test('a query by a point that is not there, deleted, or without the vector is not found', () => {
  const fixture = collectionOf({ a: { size: 1, distance: 'Dot' }, b: { size: 1, distance: 'Dot' } });
  fixture.addAppendable([
    { id: 1, vectors: { b: [1] } },
    { id: 2, vectors: { a: [1] }, deletedAt: SEQ },
  ]);
  for (const id of [1, 2, 99]) failsWith(() => search(fixture, { query: id, using: 'a' }), 'notFound');
});

test('points without the vector are not found by it', async () => {
  const fixture = collectionOf({ a: { size: 2, distance: 'Dot' }, b: { size: 2, distance: 'Euclid' } });
  const points = Array.from(
    { length: 100 },
    (_, n): TestPoint => ({ id: n, vectors: n % 3 === 0 ? { b: [n, 1] } : { a: [n, 1], b: [n, 1] } }),
  );
  await fixture.addSealed(points.slice(0, 60), true);
  fixture.addAppendable(points.slice(60));
  const having = points.filter(({ vectors }) => 'a' in vectors).map(({ id }) => id);
  const found = idsOf(fixture, { query: [1, 0], using: 'a', limit: 1000 });
  assert.deepEqual(
    found.sort((x, y) => Number(x) - Number(y)),
    having,
  );
  assert.equal(idsOf(fixture, { query: [0, 1], using: 'b', limit: 1000 }).length, 100);
});

test('float16 and uint8 vectors are compared as stored, and so is the query; turbo4 is stored as float16', async () => {
  for (const datatype of ['float16', 'turbo4'] as const) {
    const half = collectionOf({ size: 3, distance: 'Cosine', datatype });
    await half.addSealed([{ id: 3, vectors: { '': [3, 0, 0] } }], false);
    half.addAppendable([{ id: 1, vectors: { '': [1, 2, 3] } }]);
    assert.deepEqual(
      search(half, { query: [2, 1, 1] }).map(({ score }) => score),
      [0.81640625, Math.fround(0.763916015625)],
    );
  }
  const bytes = collectionOf({ size: 3, distance: 'Cosine', datatype: 'uint8' });
  bytes.addAppendable([
    { id: 1, vectors: { '': [1, 2, 3] } },
    { id: 2, vectors: { '': [10, 0, 255] } },
    { id: 3, vectors: { '': [3, 0, 0] } },
    { id: 4, vectors: { '': [0, 0, 0] } },
  ]);
  const shown = search(bytes, { query: [2.9, 1, 1] });
  assert.deepEqual(
    shown.map(({ id }) => id),
    [3, 1, 2, 4],
  );
  assert.ok(Math.abs((shown[0]?.score as number) - 0.81649655) < 1e-6);
  assert.deepEqual(idsOf(bytes, { query: [2, 1, 1], filter: { must: [{ has_id: [1, 2] }] } }), [1, 2]);
});

test('indexed_only leaves out rows without a graph once there are as many as are to be indexed', async () => {
  const fixture = collectionOf({ size: DIM, distance: 'Dot' }, { indexingThresholdKb: 1 });
  await fixture.addSealed(pointsOf(0, 300, 1), true);
  fixture.addAppendable(pointsOf(300, 100, 2));
  const found = idsOf(fixture, { query: new Array(DIM).fill(1), limit: 1000, params: { indexed_only: true } });
  assert.ok(found.length > 200 && found.every((id) => Number(id) < 300));
});

test('unknown names and wrong dimensions are refused', () => {
  const fixture = collectionOf({ a: { size: 2, distance: 'Dot' } });
  failsWith(() => search(fixture, { query: [1, 2] }), 'wrongInput', /has only named vectors/);
  failsWith(() => search(fixture, { query: [1, 2], using: 'z' }), 'wrongInput', /Not existing vector name error: z/);
  failsWith(() => search(fixture, { query: [1], using: 'a' }), 'wrongInput', /expected dim: 2, got 1/);
  failsWith(() => search(fixture, { query: [1, 1], using: 'a', with_vector: ['z'] }), 'wrongInput');
});

test('a search past its time limit stops, in kernels and while payloads are read', async () => {
  const { fixture } = await mixed('Dot');
  fixture.deadline.deadlineMs = Date.now() - 1000;
  failsWith(() => search(fixture, { query: new Array(DIM).fill(1), params: { exact: true } }), 'timeout');
  failsWith(() => search(fixture, { query: new Array(DIM).fill(1), filter: { must: [{ key: 'new', match: { value: 1 } }] } }), 'timeout');
});

function failsWith(run: () => unknown, code: string, detail?: RegExp): void {
  assert.throws(
    run,
    (error: unknown) => error instanceof TroupeError && error.code === code && (detail === undefined || detail.test(error.detail)),
  );
}
