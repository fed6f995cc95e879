/** What a ring hides of a shard, against the ring itself; and what leaves a shard, against what comes of it in another one. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { Filter } from '../../../protocols/model/filter.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';
import type { AnswerOf, Ask } from '../../../storage/threads/portion.js';
import { decodePortionAnswer, encodePortion } from '../../../storage/threads/portion-codec.js';
import { writePart, writeTo } from '../write.js';
import { configOf } from './collection-fixture.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-resharding-'));
const config = configOf(
  { a: { size: 2, distance: 'Cosine' }, m: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } },
  { sparse: { words: { modifier: 'idf' } } },
);
const RING = [0, 1, 2];
const COUNT = 500;
const DELETED = 7;
let pool: EnginePool;

const ids = Array.from({ length: COUNT }, (_, id) => id).filter((id) => id % DELETED !== 0);
const ownIds = (shard: number) => ids.filter((id) => RING[shardIndexOf(ringOf(RING), id)] === shard);
const request = (body: object, deadlineMs = Date.now() + 10_000) => ({
  path: {},
  query: {},
  body: Buffer.from(JSON.stringify(body)),
  deadlineMs,
});

before(async () => {
  pool = await EnginePool.start({ readers: 1, writers: 1 });
  for (const shard of [0, 1]) await pool.openReplica({ key: `p/${shard}`, folder: path.join(folder, String(shard)), config }, null);
  const points = Array.from({ length: COUNT }, (_, id) => ({
    id,
    vector: {
      ...(id % 3 === 0 ? {} : { a: [id, 1] }),
      ...(id % 5 === 0 ? {} : { m: [[id, 1], ...(id % 2 === 0 ? [[2, id]] : [])] }),
      words: { indices: [id % 4, 9], values: [1, id] },
    },
    payload: id % 11 === 0 ? {} : { n: id },
  }));
  await writeTo(pool, 'upsertPoints', 'p/0', true, request({ points }));
  const gone = points.map(({ id }) => id).filter((id) => id % DELETED === 0);
  await writeTo(pool, 'deletePoints', 'p/0', true, request({ points: gone }));
});

after(async () => {
  await pool.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function read<T>(operation: Parameters<EnginePool['read']>[0], body: object, ring?: readonly number[]): Promise<T> {
  const answer = await pool.read(operation, ['p/0'], { ...request(body), ...(ring === undefined ? {} : { ring }) });
  return (JSON.parse(Buffer.from(answer).toString()) as { result: T }).result ?? JSON.parse(Buffer.from(answer).toString());
}

async function asked<One extends Ask>(key: string, ask: One): Promise<AnswerOf[One['kind']]> {
  const { body } = await pool.portion([key], encodePortion({ asks: [ask] }), Date.now() + 10_000);
  return decodePortionAnswer(body).answers[0] as AnswerOf[One['kind']];
}

test('a ring hides from counts, lists and searches what it gives to other shards, and nothing without one', async () => {
  const own = ownIds(0);
  assert.ok(own.length > 50 && own.length < ids.length / 2);
  type Points = { points: { id: number }[] };
  for (const [ring, expected] of [
    [RING, own],
    [undefined, ids],
    [[1, 2], ids],
  ] as const) {
    assert.deepEqual(await read('count', { exact: true }, ring), { count: expected.length });
    const filter = { must: [{ key: 'n', range: { gte: 100 } }] };
    const passing = expected.filter((id) => id >= 100 && id % 11 !== 0);
    assert.deepEqual(await read('count', { exact: true, filter }, ring), { count: passing.length });
    const { points } = await read<Points>('scroll', { limit: COUNT }, ring);
    assert.deepEqual(
      points.map(({ id }) => id),
      expected,
    );
    for (const params of [{}, { exact: true }]) {
      const found = await read<Points>('query', { query: [1, 1], using: 'a', limit: COUNT, params }, ring);
      assert.deepEqual(
        found.points.map(({ id }) => id).sort((one, other) => one - other),
        expected.filter((id) => id % 3 !== 0),
      );
    }
  }
});

test('what leaves a shard is whole in another one, and copies whose point is gone are found', async () => {
  const first = await asked('p/0', { kind: 'leaving', ring: [1], filter: null, after: -1, from: null });
  assert.deepEqual([first.parts.map(({ points, shard }) => [shard, points]), first.next], [[[1, ids.length]], null]);
  for (const { operation } of first.parts) await writePart(pool, 'p/1', [operation]);
  const parts = async (key: string) =>
    (await asked(key, { kind: 'leaving', ring: [99], filter: null, after: -1, from: null })).parts[0]?.operation;
  assert.deepEqual(await parts('p/1'), await parts('p/0'));

  await writeTo(pool, 'deletePoints', 'p/0', true, request({ points: [1, 2] }));
  const there = await asked('p/1', { kind: 'owned', ring: [0], owner: 0, filter: null, countOnly: false, from: null });
  assert.equal(there.count, ids.length);
  const gone = await asked('p/0', { kind: 'gone', filter: null, ids: there.ids });
  assert.equal(gone.count, 2);
  const filter: Filter = { must: [], should: [], mustNot: [{ kind: 'hasId', ids: [3, 4] }], minShould: null };
  const unwanted = await asked('p/0', { kind: 'gone', filter, ids: there.ids });
  assert.equal(unwanted.count, 4);
  const counted = await asked('p/1', { kind: 'owned', ring: [0], owner: 0, filter, countOnly: true, from: null });
  assert.deepEqual([counted.count, counted.next], [there.count - 2, null]);
  const wanted = await asked('p/0', { kind: 'leaving', ring: [1], filter, after: -1, from: null });
  assert.deepEqual(
    wanted.parts.map(({ points }) => points),
    [ids.length - 4],
  );
  const stray = await asked('p/0', { kind: 'stray', ring: RING, from: null });
  assert.equal(stray.count, ids.filter((id) => id > 2 && !ownIds(0).includes(id)).length);
});
