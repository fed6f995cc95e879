import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shuffled } from '../../../query/matrix.js';
import { gatherContext } from '../../../storage/gather/context.js';
import type { GatheredHit } from '../../../storage/gather/hits.js';
import { levelPage } from '../../../storage/gather/level.js';
import { drawnHits } from '../../../storage/gather/sample.js';
import { NO_EXTRAS } from '../../../storage/threads/portion.js';
import { decodePortion, encodePortionAnswer } from '../../../storage/threads/portion-codec.js';
import { listNode } from '../../../storage/walk/points.js';
import { configOf, randomOf } from '../engine/collection-fixture.js';

const random = randomOf(3);
/** Points of three nodes; the last one has most. */
const NODES = [[0, 1], [2, 3, 4], Array.from({ length: 15 }, (_, at) => 5 + at)];
const ALL = NODES.flat();
const DRAWS = 4000;

const context = gatherContext({
  place: { uid: 1, params: configOf({ size: 1, distance: 'Dot' }).params, shards: NODES.map((_, id) => ({ id, key: null })) },
  locate: () => assert.fail('nothing is looked up'),
  scatter: async ({ body }) => {
    const [ask] = decodePortion(body).asks;
    assert.ok(ask?.kind === 'level');
    return NODES.map((own, shard) => {
      const ids = shuffled([...own], random).slice(0, ask.count);
      const hits = {
        kind: 'hits' as const,
        ids,
        shards: ids.map(() => shard),
        scores: new Float64Array(ids.length),
        versions: new Float64Array(ids.length),
        orderValues: null,
        shown: null,
        groups: null,
        total: own.length,
      };
      return encodePortionAnswer({ answers: [hits] });
    });
  },
  expired: () => false,
  nowMs: () => 0,
  later: queueMicrotask,
  random,
});
const sampleHits = (count: number) =>
  levelPage(context, { node: listNode(null, count), query: { kind: 'sample', having: null }, lists: [], extras: NO_EXTRAS });

/** How often each point stood at each of the first places. */
function checkEven(places: readonly Map<unknown, number>[], points: number): void {
  const mean = DRAWS / points;
  for (const counts of places) {
    assert.equal(counts.size, points);
    for (const [id, count] of counts) assert.ok(Math.abs(count - mean) < 6 * Math.sqrt(mean), `point ${id} came ${count} times`);
  }
}

test('each point has the same chance of each place in a sample, however many its node has', async () => {
  const places = [0, 1, 2, 3].map(() => new Map<unknown, number>());
  for (let draw = 0; draw < DRAWS; draw++) {
    const hits = await sampleHits(4);
    assert.equal(new Set(hits.map(({ id }) => id)).size, 4);
    hits.forEach(({ id }, at) => {
      const counts = places[at] as Map<unknown, number>;
      counts.set(id, (counts.get(id) ?? 0) + 1);
    });
  }
  checkEven(places, ALL.length);
});

test('a sample of more points than there are is all of them', async () => {
  const hits = await sampleHits(50);
  assert.deepEqual(new Set(hits.map(({ id }) => id)), new Set(ALL));
  assert.equal(hits.length, ALL.length);
});

test('of what prefetches found each point is drawn once, with the same chance', () => {
  const hits: GatheredHit[] = [1, 2, 3, 1, 1, 2].map((id) => ({ id, shard: 0, score: id, version: 9 }));
  const places = [new Map<unknown, number>()];
  for (let draw = 0; draw < DRAWS; draw++) {
    const [first, second] = drawnHits(hits, 2, random);
    assert.notEqual(first?.id, second?.id);
    places[0]?.set(first?.id, (places[0].get(first?.id) ?? 0) + 1);
    assert.equal(first?.score, 1);
  }
  checkEven(places, 3);
});
