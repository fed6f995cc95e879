/**
 * Vectors of every kind against a plain map: whatever was written, built and opened anew, and whichever vectors the
 * collection got and lost meanwhile, a reader sees what the map says.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BatchColumn, UpdateOperation } from '../../../protocols/model/update.js';
import { addVector, type NewVector, removeVector } from '../../../protocols/rest/vector-names.js';
import { randomFrom } from '../builder/fixture.js';
import { type Model, Observed, type Random, randomNames, randomUpdate, SHAPES } from './observed.js';
import { byIds, configOf } from './support.js';

// ------------------------------------------------------------------ random histories

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`vectors of every kind are read as they were written, in history ${seed}`, async (t) => {
    const next = randomFrom(seed);
    const random: Random = (below) => Math.floor(next() * below);
    const model: Model = new Map();
    const config = SHAPES.slice(3).reduce(addVector, configOf({}));
    const replica = await Observed.open(t, removeVector(config, 'd'));
    const write = (): void => {
      const operation = randomUpdate(model, replica.config, random);
      if (random(4) === 0) replica.log(operation);
      else replica.apply(operation);
    };
    const meanwhile = (): void => {
      for (let count = random(4); count > 0; count--) write();
      // A name that goes during a build, and perhaps comes back.
      for (let count = random(3); count > 0; count--) replica.configure(randomNames(model, replica.config, random));
      for (let count = random(4); count > 0; count--) write();
    };
    for (let round = 0; round < 80; round++) {
      const kind = random(12);
      if (kind < 8) write();
      else if (kind === 8) replica.configure(randomNames(model, replica.config, random));
      else if (kind === 9) await replica.reopen();
      // The configuration was saved, and the node stopped before its replica heard of it.
      else if (kind === 10) await replica.reopen(randomNames(model, replica.config, random));
      else {
        const sources = replica.segments.filter(({ rows }) => rows > 0 && random(3) > 0);
        if (sources.length > 0) await replica.build(sources.map(({ id }) => id), meanwhile); // biome-ignore format: one thought
      }
      replica.apply({ kind: 'deletePoints', selector: byIds(999) });
      assert.deepEqual(replica.seen(), model, `round ${round}`);
    }
    assert.deepEqual(replica.warnings, []);
  });
}

// ------------------------------------------------------------------ one by one

const sparseOf = (id: number, count: number): UpdateOperation => {
  const column: BatchColumn = {
    kind: 'sparse',
    name: 's',
    points: null,
    counts: Uint32Array.of(count),
    indices: new Uint32Array(count).map((_, at) => at),
    values: new Float32Array(count).fill(id),
  };
  return { kind: 'upsert', batch: { ids: [id], vectors: [column], payloads: [undefined] } };
};

test('a vector that finds no room in a segment goes to a next one, however long it is', async (t) => {
  const replica = await Observed.open(t, addVector(configOf({}), { kind: 'sparse', name: 's', params: {} }));
  for (const [id, count] of [[1, 5_000_000], [2, 9_000_000], [3, 5]] as const) replica.apply(sparseOf(id, count)); // biome-ignore format: one thought
  const items = (): number[] => replica.segments.map(({ vectorBytes }) => vectorBytes / 8);
  assert.deepEqual(items(), [5_000_000, 9_000_000, 5]);
  await replica.reopen();
  assert.deepEqual(items(), [5_000_000, 9_000_000, 5]);
  const seen = replica.seen(({ values }) => [values.length, values[0], values.at(-1)]);
  assert.deepEqual([...seen.values()], [{ s: [5_000_000, 1, 1] }, { s: [9_000_000, 2, 2] }, { s: [5, 3, 3] }]);
});

test('a name of a vector that comes back has nothing of what was before', async (t) => {
  const shape: NewVector = { kind: 'sparse', name: 's', params: {} };
  const replica = await Observed.open(t, addVector(configOf({}), shape));
  replica.apply(sparseOf(1, 3));
  await replica.build(replica.segments.map(({ id }) => id), () => {}); // biome-ignore format: one thought
  replica.apply(sparseOf(2, 3));
  replica.configure(removeVector(replica.config, 's'));
  replica.configure(addVector(replica.config, shape));
  const without = new Map<number, unknown>([[1, {}], [2, {}]]); // biome-ignore format: one thought
  assert.deepEqual(replica.seen(), without);
  await replica.reopen();
  assert.deepEqual(replica.seen(), without);
  replica.apply(sparseOf(3, 1));
  await replica.build(replica.segments.filter(({ rows }) => rows > 0).map(({ id }) => id), () => {}); // biome-ignore format: one thought
  assert.deepEqual(replica.seen(), new Map<number, unknown>([...without, [3, { s: { indices: [0], values: [3] } }]]));
});
