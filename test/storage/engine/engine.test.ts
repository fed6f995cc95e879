import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import { writePart, writeTo } from '../write.js';
import { configOf, randomOf } from './collection-fixture.js';

/** The whole engine: real readers, a real writer and a real builder on one replica. */

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-engine-'));
const key = 'c/0';
const DIM = 8;
const spec = { key, folder: path.join(folder, 'c'), config: configOf({ size: DIM, distance: 'Euclid' }) };
let pool: EnginePool;

before(async () => {
  pool = await EnginePool.start({ readers: 2, writers: 1 });
  await pool.openReplica(spec, null);
});

after(async () => {
  await pool.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function request(body: unknown, path: RawRequest['path'] = {}): RawRequest {
  return { path, query: {}, body: body === undefined ? null : Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 10_000 };
}

const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));
const read = async (operation: ReadOperation, body?: unknown, params: RawRequest['path'] = {}) =>
  decode(await pool.read(operation, [key], request(body, params)));
const write = async (operation: WriteOperation, body: unknown, wait = true) =>
  decode((await writeTo(pool, operation, key, wait, request(body))).body);

const random = randomOf(5);
const vectors = Array.from({ length: 1200 }, () => Array.from({ length: DIM }, () => random()));
const points = (from: number, to: number) =>
  vectors.slice(from, to).map((vector, i) => ({ id: from + i, vector, payload: { n: from + i, even: (from + i) % 2 === 0 } }));

function nearest(vector: readonly number[], passes: (id: number) => boolean): number[] {
  return vectors
    .map((other, id) => ({ id, distance: Math.hypot(...other.map((x, i) => x - (vector[i] as number))) }))
    .filter(({ id }) => passes(id))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 5)
    .map(({ id }) => id);
}

const found = async (body: unknown): Promise<number[]> => (await read('query', body)).points.map(({ id }: { id: number }) => id);
const probe = Array.from({ length: DIM }, () => 0.5);

test('what was written with wait is read at once, by every reader', async () => {
  assert.equal((await write('upsertPoints', { points: points(0, 1000) })).status, 'completed');
  const reads = await Promise.all(Array.from({ length: 20 }, () => found({ query: probe, limit: 5 })));
  for (const ids of reads)
    assert.deepEqual(
      ids,
      nearest(probe, (id) => id < 1000),
    );
  assert.deepEqual(await read('count', {}), { count: 1000 });
  assert.deepEqual(await read('getPoint', undefined, { id: '7' }).then(({ payload }) => payload), { n: 7, even: false });
});

test('searches and writes go on while a segment is built, and nothing is lost', async () => {
  const segments = pool.stats(key)?.segments ?? [];
  assert.deepEqual(
    segments.map(({ kind }) => kind),
    ['appendable'],
  );
  const progress: string[] = [];
  const plan = {
    plan: 'segment' as const,
    segments: [segments[0]?.id as number],
    missingFields: [],
    withGraph: true,
    threads: 1,
    niceness: 5,
  };
  const building = pool.build(key, plan, ({ stage }) => progress.push(stage), new AbortController().signal);
  const during: number[][] = [];
  await write('deletePoints', { points: [3, 5, 900] });
  await write('upsertPoints', { points: points(1000, 1200) });
  await write('setPayload', { payload: { even: 'changed' }, points: [8] });
  for (let i = 0; i < 10; i++) during.push(await found({ query: probe, limit: 5 }));
  const report = await building;
  assert.equal(report.rows, 1000);
  assert.ok(progress.length > 0);
  const live = (id: number): boolean => ![3, 5, 900].includes(id);
  for (const ids of during) assert.deepEqual(ids, nearest(probe, live));
  assert.deepEqual(await found({ query: probe, limit: 5 }), nearest(probe, live));
  assert.deepEqual(await read('count', {}), { count: 1197 });
  const shape = pool.stats(key)?.segments.map(({ kind, graphs }) => `${kind} ${graphs.length}`);
  assert.deepEqual(shape?.sort(), ['appendable 0', 'sealed 1']);
  const filter = { must: [{ key: 'even', match: { value: true } }] };
  assert.deepEqual(
    await found({ query: probe, limit: 5, filter }),
    nearest(probe, (id) => live(id) && id !== 8 && id % 2 === 0),
  );
});

test('an index changes no answer', async () => {
  const filter = { must: [{ key: 'n', range: { gte: 100, lt: 140 } }] };
  const before = await found({ query: probe, limit: 5, filter });
  const created = await writeTo(pool, 'createFieldIndex', key, true, request({ field_name: 'n', field_schema: 'integer' }));
  assert.equal(decode(created.body).status, 'completed');
  assert.deepEqual(await found({ query: probe, limit: 5, filter }), before);
  assert.deepEqual(await read('count', { filter }), { count: 40 });
});

test('a cancelled build changes nothing, and its sources can be built from again', async () => {
  const segments = pool.stats(key)?.segments.map(({ id }) => id) as number[];
  const plan = { plan: 'segment' as const, segments, missingFields: [], withGraph: true, threads: 1, niceness: 0 };
  const abort = new AbortController();
  const building = pool.build(key, plan, () => abort.abort(), abort.signal);
  await assert.rejects(building, (error: unknown) => error instanceof TroupeError && error.code === 'unavailable');
  assert.deepEqual(await read('count', {}), { count: 1197 });
  await pool.build(key, plan, () => {}, new AbortController().signal);
  assert.deepEqual(await read('count', {}), { count: 1197 });
});

test('the thread of a build that begins soon after another one stays, and does the next one', async () => {
  const builders = () => {
    const workers = pool.depths().workers.filter(({ kind }) => kind === 'builder');
    return workers.map(({ depth, name, processed }) => ({ depth, name, processed }));
  };
  const [before] = builders();
  assert.ok(before !== undefined);
  const segments = pool.stats(key)?.segments.map(({ id }) => id) as number[];
  const plan = { plan: 'segment' as const, segments, missingFields: [], withGraph: true, threads: 1, niceness: 0 };
  const during: object[] = [];
  await pool.build(key, plan, () => during.push(builders()), new AbortController().signal);
  assert.deepEqual(during[0], [{ ...before, depth: 1 }]);
  assert.deepEqual(builders(), [{ ...before, depth: 0, processed: before.processed + 1 }]);
  assert.deepEqual(await read('count', {}), { count: 1197 });
});

test('a read past its deadline is answered at once, and its reader stops soon', async () => {
  const searches = Array.from({ length: 20_000 }, () => ({ query: probe, limit: 1000, params: { exact: true } }));
  const body = Buffer.from(JSON.stringify({ searches }));
  const start = process.cpuUsage();
  const slow = pool.read('queryBatch', [key], { path: {}, query: {}, body, deadlineMs: Date.now() + 100 });
  await assert.rejects(slow, (error: unknown) => error instanceof TroupeError && error.code === 'timeout');
  const busy = () => pool.depths().workers.some(({ kind, depth }) => kind === 'reader' && depth > 0);
  while (busy()) await new Promise((resolve) => setTimeout(resolve, 2));
  const { user } = process.cpuUsage(start);
  // All of it takes some ten seconds of the CPU.
  assert.ok(user < 3_000_000, `the reader stopped after ${user} µs of the CPU`);
});

test('a replica that is closed and opened again has all it had', async () => {
  const before = await read('scroll', { limit: 2000, with_vector: true });
  await pool.closeReplica(key);
  await assert.rejects(read('count', {}), (error: unknown) => error instanceof TroupeError && error.code === 'unavailable');
  await pool.openReplica(spec, null);
  assert.deepEqual(await read('scroll', { limit: 2000, with_vector: true }), before);
});

test('writes and reads side by side: each read sees whole batches', async () => {
  const done = { writes: false };
  const writer = (async () => {
    for (let round = 0; round < 40; round++) {
      await write(
        'upsertPoints',
        { points: Array.from({ length: 25 }, (_, i) => ({ id: 5000 + i, vector: probe, payload: { round } })) },
        round % 2 === 0,
      );
    }
    done.writes = true;
  })();
  let reads = 0;
  while (!done.writes) {
    const page = await read('scroll', { offset: 5000, limit: 25 });
    const rounds = new Set(page.points.map(({ payload }: { payload: { round: number } }) => payload.round));
    assert.ok(
      rounds.size <= 1 && (page.points.length === 25 || page.points.length === 0),
      `a read saw rounds ${[...rounds]} of ${page.points.length} points`,
    );
    reads++;
  }
  await writer;
  assert.ok(reads > 5);
});

test('a collection of which some shards are not open is no place to look points up', async () => {
  const params = { ...spec.config.params, shard_number: 2 };
  const halves = [0, 1].map((shard) => ({
    key: `halved/${shard}`,
    folder: path.join(folder, `halved-${shard}`),
    config: { ...spec.config, params },
  }));
  const [one, other] = halves as [(typeof halves)[0], (typeof halves)[0]];
  await pool.openReplica(one, null);
  await writeTo(pool, 'upsertPoints', one.key, true, request({ points: points(0, 1) }));
  const query = { query: 0, lookup_from: { collection: 'halved' }, limit: 1 };
  await assert.rejects(found(query), { code: 'unavailable', detail: '1 of the 2 shards of collection halved are open here' });
  await pool.openReplica(other, null);
  assert.equal((await found(query)).length, 1);
  for (const half of halves) await pool.closeReplica(half.key);
});

test('a write that is split, and taken shard by shard, is what it is as a whole', async () => {
  const { config } = spec;
  const shards = [0, 1, 2];
  const keys = shards.map((shard) => `split/${shard}`);
  for (const own of keys) await pool.openReplica({ key: own, folder: path.join(folder, own.replace('/', '-')), config }, null);
  const job = { operation: 'upsertPoints', params: config.params, shards, wait: true } as const;
  const { listed, parts, stages } = await pool.split({ ...job, request: request({ points: points(0, 200) }) });
  assert.deepEqual([listed, parts, stages.length], [false, [1], 1]);
  for (const part of stages[0]?.parts ?? []) {
    const { operations, shardId } = part;
    const own = keys[shardId] as string;
    const before = operations.reduce((sum, bytes) => sum + bytes.length, 0);
    assert.deepEqual(await writePart(pool, own, operations), [1]);
    assert.ok(before > 0 && operations.reduce((sum, bytes) => sum + bytes.length, 0) === before, 'the caller keeps the memory');
    assert.equal(await pool.missing(own, [9999], Date.now() + 10_000), 9999);
  }
  const counted = decode(await pool.read('count', keys, request({})));
  assert.deepEqual(counted, { count: 200 });
  await assert.rejects(pool.split({ ...job, request: request({ points: [{ id: 'x', vector: probe }] }) }), { code: 'malformedBody' });
  await assert.rejects(pool.split({ ...job, request: { ...request({ points: [] }), deadlineMs: Date.now() - 1000 } }), { code: 'timeout' });
  for (const own of keys) await pool.closeReplica(own);
});
