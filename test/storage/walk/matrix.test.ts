import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { MatrixQuery } from '../../../protocols/model/query.js';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { HeldMemory } from '../../../storage/memory/held-memory.js';
import { SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { Deadline } from '../../../storage/threads/deadline.js';
import { CollectionFixture, configOf, distanceMatrix, randomOf, type TestPoint } from '../engine/collection-fixture.js';

const MB = 1 << 20;
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
  const shown = neighbours.map(({ at, scores }) => Array.from(at, (position, i) => `${ids[position]}:${scores[i]}`).join(' '));
  assert.deepEqual(shown, ['3:3 2:0.5 4:-1', '4:7.5 3:3.5 1:0.5', '2:3.5 1:3 4:1', '2:7.5 3:1 1:-1']);
});

test('less is nearer for distances', async () => {
  const { ids, neighbours } = distanceMatrix([(await fixtureOf('Euclid')).snapshot()], { ...QUERY, limit: 1 }, randomOf(1));
  assert.deepEqual(
    neighbours.map(({ at }) => ids[at[0] as number]),
    [2, 1, 1, 2],
  );
});

test('a matrix that is more than a read may hold is refused before anything is compared, and one that is less is counted', async () => {
  const fixture = new CollectionFixture(configOf({ size: 2, distance: 'Dot' }));
  fixtures.push(fixture);
  const points = Array.from({ length: 2000 }, (_, id): TestPoint => ({ id, vectors: { '': [id, 1] } }));
  await fixture.addSealed(points, false);
  const ledger = new SharedLedger(memoryBudget(800 * MB, null));
  const held = new HeldMemory(ledger);
  fixture.deadline.memory = held;
  let compared = 0;
  const run = (limit: number) => {
    compared = 0;
    Object.assign(fixture.deadline, { check: () => void compared++ });
    try {
      return distanceMatrix([fixture.snapshot()], { ...QUERY, sample: 2000, limit }, randomOf(1));
    } finally {
      Object.assign(fixture.deadline, { check: Deadline.prototype.check });
    }
  };
  assert.throws(() => run(2000), { code: 'busy' });
  assert.ok(compared < 10, `${compared} checks`);
  assert.ok((ledger.held().get('main')?.reads ?? 0) < 2 * MB);
  held.release();
  assert.equal(run(100).neighbours.length, 2000);
  const counted = ledger.held().get('main')?.reads ?? 0;
  assert.ok(counted > 2000 * 100 * 8 && counted < 10 * MB, `${counted}`);
  held.release();
  assert.equal(ledger.held().size, 0);
});

test('the sample is bounded, and a sample of one has no matrix', async () => {
  const snapshot = (await fixtureOf('Dot')).snapshot();
  for (let seed = 0; seed < 20; seed++) {
    const { ids, neighbours } = distanceMatrix([snapshot], { ...QUERY, sample: 2 }, randomOf(seed));
    assert.equal(ids.length, 2);
    assert.deepEqual(
      neighbours.map(({ at }) => at.length),
      [1, 1],
    );
  }
  const filter = { must: [{ kind: 'hasId', ids: [1] } as const], should: [], mustNot: [], minShould: null };
  assert.deepEqual(distanceMatrix([snapshot], { ...QUERY, filter }, randomOf(1)), { ids: [], neighbours: [] });
  assert.throws(() => distanceMatrix([snapshot], { ...QUERY, using: 'zzz' }, randomOf(1)), { code: 'wrongInput' });
});
