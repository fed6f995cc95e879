import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../../protocols/errors.js';
import type { Filter } from '../../../../protocols/model/filter.js';
import { DEFAULT_SEARCH_PARAMS } from '../../../../protocols/model/query.js';
import { type SparseVector, sparseVector, type VectorValue } from '../../../../protocols/model/vector.js';
import { nearestHits, scoreRows } from '../../../../storage/reader/nearest/search.js';
import { vectorSpace } from '../../../../storage/reader/snapshot/vector-space.js';
import { SEED } from '../../../vectors/segment.js';
import { CollectionFixture, configOf, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

type Pairs = readonly (readonly [index: number, value: number])[];

const weight = fc.constantFrom(1, 2, 0.5, -1, -2, 0.25, 3, 1.7);
const pairs: fc.Arbitrary<Pairs> = fc
  .uniqueArray(fc.tuple(fc.oneof(fc.nat(8), fc.constant(4_000_000_000)), weight), { selector: ([index]) => index, maxLength: 6 })
  .map((list) => [...list].sort(([a], [b]) => a - b));
/** Null: the point lacks the vector. */
const world = fc.record({
  rows: fc.array(fc.record({ pairs: fc.option(pairs, { freq: 6 }), group: fc.nat(3), deleted: fc.boolean() }), { maxLength: 40 }),
  query: pairs,
  group: fc.option(fc.nat(3)),
  limit: fc.integer({ min: 1, max: 8 }),
  offset: fc.nat(3),
  idf: fc.boolean(),
});

type World = typeof world extends fc.Arbitrary<infer T> ? T : never;
type Form = 'appendable' | 'sealed' | 'both' | 'damaged';

const NO_VECTORS: TestPoint['vectors'] = {};

function pointsOf({ rows }: World): TestPoint[] {
  return rows.map(({ pairs: given, group, deleted }, id) => ({
    id,
    vectors: given === null ? NO_VECTORS : { s: { indices: given.map(([index]) => index), values: given.map(([, value]) => value) } },
    payload: { group },
    ...(deleted ? { deletedAt: SEQ - 1 } : {}),
  }));
}

async function collectionOf(form: Form, points: readonly TestPoint[], idf: boolean): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(configOf({}, { sparse: { s: idf ? { modifier: 'idf' } : {} } }));
  fixtures.push(fixture);
  const half = points.length >> 1;
  if (form === 'appendable') fixture.addAppendable(points);
  else if (form !== 'both') await fixture.addSealed(points, false);
  else {
    await fixture.addSealed(points.slice(0, half), true);
    fixture.addAppendable(points.slice(half));
  }
  if (form === 'damaged') for (const { reader } of fixture.snapshot().segments) Object.assign(reader.handle, { sparseIndexes: [] });
  return fixture;
}

const groupFilter = (group: number): Filter => ({
  must: [{ kind: 'match', key: 'group', match: { kind: 'value', value: group } }],
  should: [],
  mustNot: [],
  minShould: null,
});

function found(fixture: CollectionFixture, value: VectorValue, { group, limit, offset }: Pick<World, 'group' | 'limit' | 'offset'>) {
  const filter = group === null ? null : groupFilter(group);
  const search = { using: 's', value, filter, params: DEFAULT_SEARCH_PARAMS, own: null };
  const hits = nearestHits([fixture.snapshot()], search, { limit, offset, scoreThreshold: null });
  return hits.map(({ id, score }) => [id, score]);
}

function asSparse(list: Pairs): SparseVector {
  return sparseVector(
    list.map(([index]) => index),
    list.map(([, value]) => value),
  ) as SparseVector;
}

/** Rows of the segments count for idf: those deleted before a build are gone. */
function expected({ rows, query, group, limit, offset, idf }: World, counted: World['rows']) {
  const filled = counted.filter(({ pairs: list }) => list !== null && list.length > 0);
  const weightOf = (index: number): number => {
    const has = filled.filter(({ pairs: list }) => list?.some(([other]) => other === index)).length;
    return idf ? Math.log(1 + (filled.length - has + 0.5) / (has + 0.5)) : 1;
  };
  const weights = new Map(query.map(([index, value]) => [index, Math.fround(value) * weightOf(index)]));
  const scored = rows.map((row, id) => ({
    id,
    row,
    score: (row.pairs ?? []).reduce((sum, [index, value]) => sum + (weights.get(index) ?? 0) * Math.fround(value), 0),
  }));
  return scored
    .filter(({ row, score }) => score !== 0 && !row.deleted && (group === null || row.group === group))
    .map(({ id, score }) => [id, Math.fround(score)] as const)
    .sort(([a, x], [b, y]) => y - x || a - b)
    .slice(offset, offset + limit);
}

test('appendable, sealed and damaged segments find the same points by sparse vectors as a plain model', async () => {
  await fc.assert(
    fc.asyncProperty(world, async (given) => {
      for (const form of ['appendable', 'sealed', 'both', 'damaged'] as const) {
        const fixture = await collectionOf(form, pointsOf(given), given.idf);
        const half = given.rows.length >> 1;
        const live = (from: World['rows']) => from.filter(({ deleted }) => !deleted);
        const counted =
          form === 'appendable'
            ? given.rows
            : form === 'both'
              ? [...live(given.rows.slice(0, half)), ...given.rows.slice(half)]
              : live(given.rows);
        assert.deepEqual(found(fixture, asSparse(given.query), given), expected(given, counted), form);
        fixture.remove();
        fixtures.pop();
      }
    }),
    { seed: SEED, numRuns: 40 },
  );
});

const texts: TestPoint[] = [
  { id: 1, vectors: { s: { indices: [1, 2, 3], values: [1, 0.5, 0.25] }, d: [1, 0] } },
  { id: 2, vectors: { s: { indices: [2, 3], values: [2, 1] } } },
  { id: 3, vectors: { s: { indices: [], values: [] } } },
  { id: 4, vectors: { d: [0, 1] } },
];

test('rows are scored without common index as 0, without the vector as NaN', async () => {
  for (const sealed of [true, false]) {
    const fixture = new CollectionFixture(configOf({ d: { size: 2, distance: 'Dot' } }, { sparse: { s: {} } }));
    fixtures.push(fixture);
    if (sealed) await fixture.addSealed(texts, false);
    else fixture.addAppendable(texts);
    const snapshot = fixture.snapshot();
    const [view] = snapshot.segments;
    assert.ok(view);
    const rows = Uint32Array.from(texts, ({ id }) => view.findAny(id) as number);
    const scores = scoreRows(
      view,
      vectorSpace([snapshot], 's'),
      asSparse([
        [1, 2],
        [3, 4],
      ]),
      rows,
    );
    assert.deepEqual([...scores], [3, 4, 0, Number.NaN]);
    assert.deepEqual(view.reader.sparseIndex('s')?.filled, sealed ? 2 : undefined);
  }
});

test('a value of another kind is refused, and so is an unknown name', () => {
  const fixture = new CollectionFixture(configOf({ d: { size: 2, distance: 'Dot' } }, { sparse: { s: {} } }));
  fixtures.push(fixture);
  fixture.addAppendable(texts);
  const dense = { kind: 'dense' as const, values: Float32Array.of(1, 2) };
  const multi = { kind: 'multi' as const, dim: 2, values: Float32Array.of(1, 2) };
  const search = (using: string, value: VectorValue) => () =>
    nearestHits(
      [fixture.snapshot()],
      { using, value, filter: null, params: DEFAULT_SEARCH_PARAMS, own: null },
      { limit: 1, offset: 0, scoreThreshold: null },
    );
  const refused = (text: string) => (error: unknown) =>
    error instanceof TroupeError && error.code === 'wrongInput' && error.detail === text;
  assert.throws(
    search('s', dense),
    refused(
      'Conversion between sparse and regular vectors failed: the vector `s` of the collection is sparse, the request has a dense vector: expected an object with `indices` and `values`',
    ),
  );
  assert.throws(
    search('s', multi),
    refused(
      'Conversion between sparse and regular vectors failed: the vector `s` of the collection is sparse, the request has a multi vector: expected an object with `indices` and `values`',
    ),
  );
  assert.throws(
    search('d', asSparse([[1, 1]])),
    refused(
      'Conversion between sparse and regular vectors failed: the vector `d` of the collection is dense, the request has a sparse vector: expected a list of numbers',
    ),
  );
  assert.throws(
    search('d', multi),
    refused(
      'Conversion between multi and regular vectors failed: the vector `d` of the collection is dense, the request has a multi vector: expected a list of numbers',
    ),
  );
  assert.throws(search('x', dense), refused('Not existing vector name error: x. The collection has: `d`, `s`'));
});
