/** Random histories against a plain map: whatever was done, a reader sees what the map says, before and after opening anew. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Payload } from '../../../protocols/model/payload.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { byIds, filterOn, logTo, Replica, specOf, temporaryFolder, upsert, vectorOf } from './support.js';

interface ModelPoint {
  vector: number[];
  payload: Payload;
}

/** Numbers of a seed, the same on every machine. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function step(random: (below: number) => number, model: Map<number, ModelPoint>): UpdateOperation {
  const ids = [...new Set(Array.from({ length: 1 + random(4) }, () => random(30)))];
  const g = random(3);
  const known = ids.filter((id) => model.has(id));
  const kind = random(10);
  if (kind < 5 || known.length === 0) {
    const points = ids.map((id) => ({ id, seed: random(100), payload: { g, n: random(5) } }));
    for (const { id, seed, payload } of points) model.set(id, { vector: vectorOf(seed), payload });
    return upsert(points);
  }
  if (kind === 5) {
    for (const id of ids) model.delete(id);
    return { kind: 'deletePoints', selector: byIds(...ids) };
  }
  if (kind === 6 && random(4) === 0) {
    for (const [id, point] of model) if (point.payload.g === g) model.delete(id);
    return { kind: 'deletePoints', selector: filterOn('g', g) };
  }
  if (kind === 7) {
    for (const point of model.values()) if (point.payload.n === g) point.payload = { ...point.payload, touched: true };
    return { kind: 'setPayload', selector: filterOn('n', g), payload: { touched: true }, key: null };
  }
  for (const id of known) (model.get(id) as ModelPoint).payload = { g };
  return { kind: 'overwritePayload', selector: byIds(...known), payload: { g }, key: null };
}

for (const seed of [1, 2, 3]) {
  test(`a reader sees what was written, in history ${seed}`, async (t) => {
    const random = randomOf(seed);
    const folder = temporaryFolder(t);
    const model = new Map<number, ModelPoint>();
    let replica = await Replica.open(specOf(folder));
    if (seed === 2) replica.apply({ kind: 'createFieldIndex', field: 'g', schema: { type: 'integer' } });
    for (let round = 0; round < 60; round++) {
      const operations = Array.from({ length: 1 + random(5) }, () => step(random, model));
      if (random(3) === 0)
        logTo(
          replica.store,
          operations.map((operation) => ({ operation, chained: false })),
        );
      else for (const { error } of replica.apply(...operations)) assert.equal(error, null);
      if (seed === 3 && round === 30) replica.apply({ kind: 'createFieldIndex', field: 'n', schema: { type: 'integer' } });
      if (random(6) === 0) {
        await replica.close();
        replica = await Replica.open(specOf(folder));
      }
      replica.store.operations.apply();
      const seen = Object.fromEntries([...replica.points()].map(([id, { vectors, payload }]) => [id, { vector: vectors[''], payload }]));
      assert.deepEqual(seen, Object.fromEntries(model), `round ${round}`);
      assert.equal(replica.store.stats().points, model.size);
      const g = replica.store.stats().fieldPoints.get('g');
      if (g !== undefined) assert.equal(g, model.size);
    }
    await replica.close();
  });
}
