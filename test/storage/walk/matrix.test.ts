import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { MatrixQuery } from '../../../protocols/model/query.js';
import { CollectionFixture, configOf, distanceMatrix, randomOf, type TestPoint } from '../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const QUERY: MatrixQuery = { filter: null, sample: 10, limit: 3, using: '' };

async function fixtureOf(distance: 'Dot' | 'Euclid'): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(configOf({ size: 2, distance }));
  fixtures.push(fixture);
  const point = (id: number, ...vector: number[]): TestPoint => ({ id, vectors: { '': vector } });
  await fixture.addSealed([point(3, 3, 1), point(1, 1, 0), { id: 9, vectors: {} }], false);
  fixture.addAppendable([point(4, -1, 4), point(2, 0.5, 2), { ...point(7, 9, 9), deletedAt: 1 }]);
  return fixture;
}

test('each point of the sample gets its nearest of the others, over segments and in id order', async () => {
  const { ids, neighbours } = distanceMatrix([(await fixtureOf('Dot')).snapshot()], QUERY, randomOf(1));
  assert.deepEqual(ids, [1, 2, 3, 4]);
  const shown = neighbours.map((list) => list.map(({ at, score }) => `${ids[at]}:${score}`).join(' '));
  assert.deepEqual(shown, ['3:3 2:0.5 4:-1', '4:7.5 3:3.5 1:0.5', '2:3.5 1:3 4:1', '2:7.5 3:1 1:-1']);
});

test('less is nearer for distances', async () => {
  const { ids, neighbours } = distanceMatrix([(await fixtureOf('Euclid')).snapshot()], { ...QUERY, limit: 1 }, randomOf(1));
  assert.deepEqual(
    neighbours.map(([nearest]) => ids[nearest?.at as number]),
    [2, 1, 1, 2],
  );
});

test('the sample is bounded, and a sample of one has no matrix', async () => {
  const snapshot = (await fixtureOf('Dot')).snapshot();
  for (let seed = 0; seed < 20; seed++) {
    const { ids, neighbours } = distanceMatrix([snapshot], { ...QUERY, sample: 2 }, randomOf(seed));
    assert.equal(ids.length, 2);
    assert.deepEqual(
      neighbours.map((list) => list.length),
      [1, 1],
    );
  }
  const filter = { must: [{ kind: 'hasId', ids: [1] } as const], should: [], mustNot: [], minShould: null };
  assert.deepEqual(distanceMatrix([snapshot], { ...QUERY, filter }, randomOf(1)), { ids: [], neighbours: [] });
  assert.throws(() => distanceMatrix([snapshot], { ...QUERY, using: 'zzz' }, randomOf(1)), { code: 'wrongInput' });
});
