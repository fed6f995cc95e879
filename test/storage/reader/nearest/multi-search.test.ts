import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../../protocols/errors.js';
import type { Datatype, Distance } from '../../../../protocols/model/collection.js';
import { DEFAULT_SEARCH_PARAMS } from '../../../../protocols/model/query.js';
import type { VectorValue } from '../../../../protocols/model/vector.js';
import { nearestHits, scoreRows } from '../../../../storage/reader/nearest/search.js';
import { vectorSpace } from '../../../../storage/reader/snapshot/vector-space.js';
import { randomOf, SEED } from '../../../vectors/segment.js';
import { CollectionFixture, configOf, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const DIM = 3;
const token = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: DIM, maxLength: DIM });
const tokens = fc.array(token, { minLength: 1, maxLength: 5 });
const world = fc.record({
  distance: fc.constantFrom<Distance>('Dot', 'Cosine', 'Euclid', 'Manhattan'),
  datatype: fc.constantFrom<Datatype>('float32', 'float16', 'uint8', 'turbo4'),
  /** Null: the point lacks the vector. */
  rows: fc.array(fc.record({ tokens: fc.option(tokens, { freq: 6 }), deleted: fc.boolean() }), { maxLength: 30 }),
  query: tokens,
  limit: fc.integer({ min: 1, max: 40 }),
});

function collectionOf(distance: Distance, datatype: Datatype = 'float32'): CollectionFixture {
  const fixture = new CollectionFixture(
    configOf({ m: { size: DIM, distance, datatype, multivector_config: { comparator: 'max_sim' } }, d: { size: DIM, distance } }),
  );
  fixtures.push(fixture);
  return fixture;
}

const multi = (lists: readonly (readonly number[])[]): VectorValue => ({
  kind: 'multi',
  dim: lists[0]?.length ?? 0,
  values: Float32Array.from(lists.flat()),
});

function found(fixture: CollectionFixture, value: VectorValue, limit: number, using = 'm', exact = false) {
  const search = { using, value, filter: null, params: { ...DEFAULT_SEARCH_PARAMS, exact }, own: null };
  return nearestHits([fixture.snapshot()], search, { limit, offset: 0, scoreThreshold: null });
}

/** As the API shows it: the root of the summed squares for Euclid. */
function maxSim(distance: Distance, query: readonly (readonly number[])[], row: readonly (readonly number[])[]): number {
  const of = (a: readonly number[], b: readonly number[]): number => {
    const dot = a.reduce((sum, x, i) => sum + x * (b[i] as number), 0);
    if (distance === 'Dot') return dot;
    if (distance === 'Cosine') return dot === 0 ? 0 : dot / (Math.hypot(...a) * Math.hypot(...b));
    const differences = a.map((x, i) => Math.abs(x - (b[i] as number)));
    return -differences.reduce((sum, x) => sum + (distance === 'Euclid' ? x * x : x), 0);
  };
  const sum = query.reduce((total, a) => total + Math.max(...row.map((b) => of(a, b))), 0);
  return distance === 'Euclid' ? Math.sqrt(-sum) : distance === 'Manhattan' ? -sum : sum;
}

test('appendable and sealed segments find the points that MaxSim puts first, for every distance and datatype', async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ distance, datatype, rows, query, limit }) => {
      const points = rows.map(({ tokens: lists, deleted }, id): TestPoint => {
        return { id, vectors: lists === null ? { d: [1, 2, 3] } : { m: lists }, ...(deleted ? { deletedAt: SEQ } : {}) };
      });
      const wanted = rows
        .map(({ tokens: lists, deleted }, id) => ({ id, deleted, score: lists === null ? Number.NaN : maxSim(distance, query, lists) }))
        .filter(({ deleted, score }) => !deleted && !Number.isNaN(score));
      const sign = distance === 'Dot' || distance === 'Cosine' ? -1 : 1;
      const best = wanted.map(({ score }) => score).sort((a, b) => sign * (a - b));
      for (const sealed of [false, true]) {
        const fixture = collectionOf(distance, datatype);
        if (sealed) await fixture.addSealed(points, true);
        else fixture.addAppendable(points);
        const hits = found(fixture, multi(query), limit);
        assert.equal(hits.length, Math.min(limit, wanted.length));
        const tolerance = (datatype === 'float16' || datatype === 'turbo4') && distance === 'Cosine' ? 0.01 : 1e-4;
        hits.forEach(({ id, score }, at) => {
          assert.ok(Math.abs(score - (best[at] as number)) <= tolerance, `place ${at}: ${score} instead of ${best[at]}`);
          const own = wanted.find((point) => point.id === id)?.score as number;
          assert.ok(Math.abs(score - own) <= tolerance, `point ${id}: ${score} instead of ${own}`);
        });
        fixture.remove();
        fixtures.pop();
      }
    }),
    { seed: SEED, numRuns: 60 },
  );
});

test('a sealed segment leaves out rows by their codes and answers as a scan of its originals, to the bit', async () => {
  const random = randomOf(SEED);
  const tokensNear = (center: number): number[][] =>
    Array.from({ length: 1 + Math.floor(random() * 4) }, () => Array.from({ length: DIM }, () => center + random() - random()));
  for (const distance of ['Dot', 'Cosine', 'Euclid', 'Manhattan'] as const) {
    const fixture = collectionOf(distance);
    const points = Array.from({ length: 400 }, (_, id): TestPoint => ({ id, vectors: { m: tokensNear(id % 3) } }));
    await fixture.addSealed(points, true);
    const [view] = fixture.snapshot().segments;
    assert.ok(view);
    assert.notEqual(view.reader.vector('m')?.codes, null);
    for (const limit of [1, 7, 40]) {
      const value = multi(tokensNear(1));
      view.reader.takeWork();
      const hits = found(fixture, value, limit).map(({ id, score }) => [id, score]);
      const { rows: scored } = view.reader.takeWork();
      const exact = found(fixture, value, limit, 'm', true).map(({ id, score }) => [id, score]);
      const { rows: all } = view.reader.takeWork();
      assert.deepEqual(hits, exact, `${distance}, limit ${limit}`);
      // By codes all rows, in pairs of the query's vectors, and then the few that may be among the best.
      assert.ok(scored > all && scored < 3 * all, `${distance}, limit ${limit}: ${scored} and ${all} scored`);
    }
  }
});

test('product codes of a sealed segment hold the best, which the originals put in order; exact searches leave them alone', async () => {
  const random = randomOf(SEED);
  const fixture = new CollectionFixture({
    ...configOf({ m: { size: 16, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } } }),
    quantization_config: { product: { compression: 'x32' } },
  });
  fixtures.push(fixture);
  const words = Array.from({ length: 200 }, () => Array.from({ length: 16 }, () => random() - random()));
  const near = (word: readonly number[]) => word.map((x) => x + 0.2 * (random() - random()));
  const text = (count: number) => Array.from({ length: count }, () => near(words[Math.floor(random() * words.length)] as number[]));
  const points = Array.from({ length: 3000 }, (_, id): TestPoint => ({ id, vectors: { m: text(6) } }));
  await fixture.addSealed(points, true);
  const [view] = fixture.snapshot().segments;
  assert.ok(view);
  let held = 0;
  for (let round = 0; round < 20; round++) {
    const { m } = (points[Math.floor(random() * points.length)] as TestPoint).vectors as { m: number[][] };
    const value = multi(m.slice(0, 4).map(near));
    view.reader.takeWork();
    const hits = found(fixture, value, 10);
    // All rows by codes, and 400 by the originals.
    assert.equal(view.reader.takeWork().rows, (3000 + 400) * 6 * 4);
    const exact = found(fixture, value, 10, 'm', true);
    assert.equal(view.reader.takeWork().rows, 3000 * 6 * 4);
    const scores = new Map(exact.map(({ id, score }) => [id, score]));
    for (const { id, score } of hits) {
      if (!scores.has(id)) continue;
      held++;
      assert.equal(score, scores.get(id));
    }
  }
  assert.ok(held >= 190, `${held} of 200`);
});

test('a vector counts as a list of one, rows are scored as they are found, and other values are refused', () => {
  const fixture = collectionOf('Dot');
  fixture.addAppendable([
    {
      id: 1,
      vectors: {
        m: [
          [1, 0, 0],
          [0, 1, 0],
        ],
      },
    },
    { id: 2, vectors: { m: [[0, 0, 3]] } },
    { id: 3, vectors: { d: [1, 1, 1] } },
  ]);
  const dense = { kind: 'dense' as const, values: Float32Array.of(1, 2, 1) };
  const hits = found(fixture, dense, 5).map(({ id, score }) => [id, score]);
  assert.deepEqual(hits, [
    [2, 3],
    [1, 2],
  ]);
  const snapshot = fixture.snapshot();
  const [view] = snapshot.segments;
  assert.ok(view);
  const scores = scoreRows(view, vectorSpace([snapshot], 'm'), dense, Uint32Array.of(2, 0, 1));
  assert.deepEqual([...scores], [Number.NaN, 2, 3]);
  const refused = (text: string) => (error: unknown) =>
    error instanceof TroupeError && error.code === 'wrongInput' && error.detail === text;
  assert.throws(() => found(fixture, multi([[1, 2]]), 1), refused('Vector dimension error: expected dim: 3, got 2'));
  assert.throws(
    () => found(fixture, { kind: 'dense', values: new Float32Array(0) }, 1),
    refused('Vector dimension error: expected dim: 3, got 0'),
  );
  assert.throws(
    () => found(fixture, multi([[1, 2, 3]]), 1, 'd'),
    refused(
      'Conversion between multi and regular vectors failed: the vector `d` of the collection is dense, the request has a multi vector: expected a list of numbers',
    ),
  );
  const sparse = { kind: 'sparse' as const, indices: Uint32Array.of(1), values: Float32Array.of(1) };
  assert.throws(
    () => found(fixture, sparse, 1),
    refused(
      'Conversion between sparse and regular vectors failed: the vector `m` of the collection is multi, the request has a sparse vector: expected a list of lists of numbers',
    ),
  );
});
