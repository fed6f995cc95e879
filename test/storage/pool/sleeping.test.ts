/** Replicas that fall asleep and wake, with real threads and files. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { lacking } from '../../../storage/disk/machine.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { SleepLimits } from '../../../storage/pool/sleep-policy.js';
import { LACK_RETRY_MS } from '../../../storage/reader/lack.js';
import { readSleepRecord } from '../../../storage/replica/sleep-record.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { configOf } from '../engine/collection-fixture.js';
import { Replica, specOf, temporaryFolder, upsert } from '../replica/support.js';
import { writeTo } from '../write.js';

const QUICK: SleepLimits = { awakeKept: 1, awakeMax: 2, idleTicks: 1 };
const COUNT = 6;
const CONFIG = configOf({ size: 4, distance: 'Dot' });
const specAt = (folder: string, at: number) => ({ key: `c${at}/0`, folder: path.join(folder, `c${at}`), config: CONFIG });

async function poolFor(t: TestContext, sleep = QUICK): Promise<EnginePool> {
  const pool = await EnginePool.start({ readers: 2, writers: 1, sleep });
  t.after(() => pool.close());
  return pool;
}

function request(body: unknown): RawRequest {
  return { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 20_000 };
}

const count = async (pool: EnginePool, at: number): Promise<number> => {
  const bytes = await pool.read('count', [`c${at}/0`], request({ exact: true }));
  return (JSON.parse(new TextDecoder().decode(bytes)) as { count: number }).count;
};
const write = (pool: EnginePool, at: number, id: number) =>
  writeTo(pool, 'upsertPoints', `c${at}/0`, true, request({ points: [{ id, vector: [id, 1, 2, 3] }] }));

async function asleep(pool: EnginePool): Promise<void> {
  for (let tries = 0; pool.depths().replicas.open > QUICK.awakeKept; tries++) {
    assert.ok(tries < 1000, `${pool.depths().replicas.open} replicas are awake`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A pool with replicas of `at` + 1 points each, of which one is awake. */
async function sleeping(t: TestContext): Promise<{ pool: EnginePool; folder: string }> {
  const folder = temporaryFolder(t);
  const pool = await poolFor(t);
  for (let at = 0; at < COUNT; at++) {
    await pool.openReplica(specAt(folder, at), null);
    for (let id = 0; id <= at; id++) await write(pool, at, id);
  }
  await asleep(pool);
  return { pool, folder };
}

test('a replica that nobody uses keeps no file open, and answers reads and writes as if it had never slept', async (t) => {
  const { folder, pool } = await sleeping(t);
  if (process.platform === 'linux') {
    const mapped = new Set((await readFile('/proc/self/maps', 'utf8')).split('\n').filter((line) => line.includes(`${folder}/`)));
    const files = new Set([...mapped].map((line) => line.slice(line.indexOf('/'))));
    assert.ok([...files].filter((file) => file.endsWith('data.mdb')).length <= QUICK.awakeKept, [...files].join('\n'));
  }
  for (let at = 0; at < COUNT; at++) assert.equal(pool.stats(`c${at}/0`)?.points, at + 1, 'known while it sleeps');
  const counts = await Promise.all(Array.from({ length: COUNT }, (_, at) => count(pool, at)));
  assert.deepEqual(counts, [1, 2, 3, 4, 5, 6]);
  await asleep(pool);
  // Calls that come together while it wakes are carried out in their order.
  await Promise.all([write(pool, 0, 10), write(pool, 0, 11), write(pool, 1, 10)]);
  assert.deepEqual([await count(pool, 0), await count(pool, 1)], [3, 3]);
});

test('reads meet no moment in which a replica that falls asleep or wakes is missing', async (t) => {
  const { pool } = await sleeping(t);
  const endMs = performance.now() + 4000;
  const client = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < endMs; turn++) {
      const at = turn % COUNT;
      assert.equal(await count(pool, at), at + 1);
      if (turn % 7 === 0) await new Promise((done) => setTimeout(done, 300));
    }
  };
  await Promise.all([client(0), client(3)]);
});

test('points are looked up in a collection that is asleep', async (t) => {
  const { pool } = await sleeping(t);
  await count(pool, 0);
  const query = { query: 3, lookup_from: { collection: 'c4' }, limit: 1 };
  const bytes = await pool.read('query', ['c0/0'], request(query));
  assert.equal((JSON.parse(new TextDecoder().decode(bytes)) as { points: unknown[] }).points.length, 1);
});

test('a replica that is asleep is closed, forgotten, and can be made anew', async (t) => {
  const { folder, pool } = await sleeping(t);
  await Promise.all(Array.from({ length: COUNT }, (_, at) => pool.closeReplica(`c${at}/0`)));
  assert.equal(pool.depths().replicas.open, 0);
  await assert.rejects(count(pool, 2), { code: 'unavailable' });
  await pool.openReplica(specAt(folder, 2), null);
  assert.equal(await count(pool, 2), 3);
});

test('at a start small replicas beyond the first ones stay asleep, and are checked and opened by their first use', async (t) => {
  const { folder, pool } = await sleeping(t);
  await pool.close();
  const again = await poolFor(t, { ...QUICK, idleTicks: 1000 });
  const failed: string[] = [];
  again.onFailed((key, error) => failed.push(`${key}: ${error.detail}`));
  const checked: number[] = [];
  const open = async (at: number): Promise<string> => {
    const check = async () => {
      checked.push(at);
      if (at === 4) throw lacking('no more files can be opened');
      return at === 5 ? 'its file is damaged' : null;
    };
    const stats = await again.openAsleep(specAt(folder, at), check);
    if (stats === null) await again.openReplica(specAt(folder, at), null);
    return stats === null ? 'opened' : `asleep with ${stats.points} points`;
  };
  const opened = await Promise.all([0, 1, 2, 3, 4, 5].map(open));
  assert.deepEqual(opened.slice(0, 3), ['opened', 'asleep with 2 points', 'asleep with 3 points']);
  assert.equal(again.depths().replicas.open, 1);
  assert.deepEqual(checked, []);
  await write(again, 2, 77);
  assert.deepEqual([await count(again, 2), checked], [4, [2]]);
  // Nothing is wrong with it: the same read may be answered soon.
  const lacks = { code: 'unavailable', detail: 'no more files can be opened', retryAfterMs: LACK_RETRY_MS };
  await assert.rejects(count(again, 4), lacks);
  await assert.rejects(count(again, 5), { code: 'storage', detail: 'its file is damaged' });
  assert.deepEqual(failed, ['c4/0: no more files can be opened', 'c5/0: its file is damaged']);
});

test('replicas that are closed before an exit leave their state for the next start, with all that was written', async (t) => {
  const { folder, pool } = await sleeping(t);
  await write(pool, 0, COUNT);
  await write(pool, 3, COUNT);
  const awake = pool.depths().replicas.open;
  assert.ok(awake > QUICK.awakeKept, `${awake} are awake`);
  pool.prepareExit();
  await Promise.all(Array.from({ length: COUNT }, (_, at) => pool.closeReplica(`c${at}/0`)));
  await pool.close();
  const rows: number[] = [];
  for (let at = 0; at < COUNT; at++) {
    const stats = await readSleepRecord(specAt(folder, at).folder, `c${at}/0`);
    rows.push(stats?.segments.reduce((sum, segment) => sum + segment.rows, 0) ?? -1);
  }
  assert.deepEqual(rows, [2, 2, 3, 5, 5, 6]);
  const next = await poolFor(t);
  for (let at = 0; at < COUNT; at++) await next.openReplica(specAt(folder, at), null);
  assert.deepEqual([await count(next, 0), await count(next, 3)], [2, 5]);
});

test('a replica that changed after it was closed last, as before a crash, is opened at a start', async (t) => {
  const folder = temporaryFolder(t);
  const spec = specOf(folder);
  const first = await Replica.open(spec);
  first.apply(upsert([{ id: 1, seed: 1 }]));
  await first.close();
  assert.equal((await readSleepRecord(folder, spec.key))?.points, 1);
  assert.equal(await readSleepRecord(folder, 'another/0'), null);
  const second = await Replica.open(spec);
  second.apply(upsert([{ id: 2, seed: 2 }]));
  // What is on disk now is what a crash leaves.
  assert.equal(await readSleepRecord(folder, spec.key), null);
  await second.close();
  assert.equal((await readSleepRecord(folder, spec.key))?.points, 2);
  writeFileSync(path.join(folder, 'asleep.json'), 'torn');
  assert.equal(await readSleepRecord(folder, spec.key), null);
});
