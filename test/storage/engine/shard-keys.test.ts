import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { decodeMessage } from '../../../protocols/grpc/decode.js';
import { schema } from '../../../protocols/grpc/schema.js';
import type { KeyedShard } from '../../../protocols/model/cluster.js';
import { encodeGrpcResult } from '../../../storage/answers/encode-grpc.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import { writePart, writeTo } from '../write.js';
import { configOf } from './collection-fixture.js';

/** A collection with a shard under `a`, two under 7 and one under `__proto__`, of which none is Active; another one to look points up in. */

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-keys-'));
const plain = configOf({ size: 2, distance: 'Dot' });
const config = { ...plain, params: { ...plain.params, sharding_method: 'custom' as const } };
const SHARDS: readonly KeyedShard[] = [
  { id: 0, key: 'a', active: true },
  { id: 3, key: 7, active: true },
  { id: 4, key: 7, active: true },
  { id: 5, key: '__proto__', active: false },
];
const keys = SHARDS.map(({ id }) => `keyed/${id}`);
let pool: EnginePool;

before(async () => {
  pool = await EnginePool.start({ readers: 1, writers: 1 });
  for (const key of [...keys, 'other/0']) {
    await pool.openReplica({ key, folder: path.join(folder, key.replace('/', '-')), config: key === 'other/0' ? plain : config }, null);
  }
  pool.setShardKeys(new Map([['keyed', SHARDS]]));
  for (const shard_key of ['a', '__proto__']) await write('upsertPoints', { points: pointsOf(1, 2, shard_key), shard_key });
  await write('upsertPoints', { points: pointsOf(2, 30, '7'), shard_key: 7 });
});

after(async () => {
  await pool.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function request(body: unknown): RawRequest {
  return { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 10_000 };
}

const pointsOf = (from: number, to: number, of: string) =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ id: from + i, vector: [from + i, 1], payload: { of } }));

/** As a node does it. */
async function write(operation: WriteOperation, body: unknown): Promise<void> {
  const job = { operation, params: config.params, shards: SHARDS.map(({ id }) => id), keyed: SHARDS, wait: true, request: request(body) };
  const { failure, stages } = await pool.split(job);
  assert.equal(failure, null);
  for (const { needed, parts } of stages) {
    for (const { ids, shardId } of needed) assert.equal(await pool.missing(`keyed/${shardId}`, ids, Date.now() + 10_000), null);
    for (const { operations, shardId } of parts) {
      await writePart(pool, `keyed/${shardId}`, operations);
    }
  }
}

const read = async (operation: ReadOperation, body: unknown) =>
  JSON.parse(new TextDecoder().decode(await pool.read(operation, keys, request(body))));
const idsOf = (points: readonly { id: number }[]): number[] => points.map(({ id }) => id);

test('reads see the shards of the keys that they name, and points say which key is theirs', async () => {
  const { points } = await read('scroll', { shard_key: 'a' });
  assert.deepEqual(points, [
    { id: 1, payload: { of: 'a' }, shard_key: 'a' },
    { id: 2, payload: { of: 'a' }, shard_key: 'a' },
  ]);
  assert.deepEqual(await read('count', { shard_key: 7 }), { count: 29 });
  assert.deepEqual(await read('count', { shard_key: [7, 'a', 7] }), { count: 31 });
  assert.deepEqual(await read('count', { shard_key: '__proto__' }), { count: 2 });
  const [found] = (await read('query', { query: [1, 0], limit: 1, shard_key: 7 })).points;
  assert.deepEqual(found, { id: 30, version: 1, score: 30, shard_key: 7 });
  assert.deepEqual(await read('retrieve', { ids: [1, 3], shard_key: ['a'], with_payload: false }), [{ id: 1, shard_key: 'a' }]);
});

test('without a key reads see all shards: equal ids under several keys count each, and are listed once', async () => {
  assert.deepEqual(await read('count', {}), { count: 33 });
  assert.deepEqual(idsOf((await read('scroll', { limit: 4 })).points), [1, 2, 3, 4]);
  const { points, next_page_offset } = await read('scroll', { limit: 1, offset: 2 });
  assert.deepEqual([idsOf(points), next_page_offset], [[2], 3]);
  assert.deepEqual(idsOf((await read('query', { query: [-1, 0], limit: 3 })).points), [1, 2, 3]);
});

test('a fallback is read while a shard of the target does not serve, or there is none', async () => {
  const ofFallback = async (target: string | number) => (await read('count', { shard_key: { target, fallback: 'a' } })).count;
  assert.equal(await ofFallback(7), 29);
  assert.equal(await ofFallback('__proto__'), 2);
  assert.equal((await read('scroll', { shard_key: { target: '__proto__', fallback: 'a' } })).points[0].payload.of, 'a');
  assert.equal(await ofFallback('constructor'), 2);
});

test('each query of a batch, and each lookup, has keys of its own', async () => {
  const searches = ['a', 7].map((shard_key) => ({ query: [1, 0], limit: 1, shard_key }));
  const lists = await read('queryBatch', { searches });
  assert.deepEqual(
    lists.map(({ points }: { points: { id: number }[] }) => idsOf(points)),
    [[2], [30]],
  );
  const lookup = (shard_key: string | number, id: number) => ({ query: id, lookup_from: { collection: 'keyed', shard_key }, limit: 1 });
  assert.equal((await read('query', { ...lookup(7, 29), shard_key: 7 })).points[0].id, 30, 'its own point is left out');
  assert.equal((await read('query', { ...lookup('a', 2), shard_key: 7 })).points[0].id, 30);
  await assert.rejects(read('query', lookup('a', 29)), { code: 'notFound', detail: 'No point with id 29 found' });
  const elsewhere = pool.read('count', ['other/0'], request({ shard_key: 'a' }));
  await assert.rejects(elsewhere, { code: 'badRequest', message: 'Bad request: Shard key "a" not found' });
});

test('a key that no shard has is refused, and so are points without a key', async () => {
  await assert.rejects(read('scroll', { shard_key: 'zzz' }), { message: 'Bad request: Shard key "zzz" not found' });
  await assert.rejects(read('scroll', { shard_key: '7' }), { message: 'Bad request: Shard key "7" not found' });
  await assert.rejects(read('query', { query: 1, lookup_from: { collection: 'keyed', shard_key: 9 } }), {
    message: 'Bad request: Shard key 9 not found',
  });
  const points = pointsOf(1, 1, 'x');
  await assert.rejects(write('upsertPoints', { points }), { message: 'Wrong input: Shard key not specified' });
  await assert.rejects(write('updateVectors', { points }), { message: 'Wrong input: Shard key not specified' });
  await assert.rejects(write('upsertPoints', { points, shard_key: 'x' }), { message: 'Wrong input: Shard key "x" not found' });
  await assert.rejects(write('deletePoints', { points: [1], shard_key: 'x' }), { message: 'Wrong input: Shard key "x" not found' });
});

test('a replica that is written without its shards’ keys takes points of no key', async () => {
  const body = { points: pointsOf(1, 1, 'x') };
  await assert.rejects(writeTo(pool, 'upsertPoints', 'keyed/0', true, request(body)), { message: 'Wrong input: Shard key not specified' });
  const keyed = writeTo(pool, 'upsertPoints', 'other/0', true, request({ ...body, shard_key: 'a' }));
  await assert.rejects(keyed, { message: 'Wrong input: Shard key "a" not found' });
});

test('writes that choose points go to the shards of their keys, or to all, and to those of the points that are there', async () => {
  const marked = async (shard_key: string | number) =>
    idsOf((await read('scroll', { shard_key, limit: 100, filter: { must: [{ key: 'mark', match: { value: true } }] } })).points);
  await write('setPayload', { payload: { mark: true }, points: [2, 3], shard_key: 7 });
  assert.deepEqual([await marked('a'), await marked(7)], [[], [2, 3]]);
  await write('setPayload', { payload: { mark: true }, points: [1, 2, 30] });
  assert.deepEqual(
    [await marked('a'), await marked(7), await marked('__proto__')],
    [
      [1, 2],
      [2, 3, 30],
      [1, 2],
    ],
  );
  await write('clearPayload', { filter: { must: [{ has_id: [2] }] }, shard_key: ['a', '__proto__'] });
  assert.deepEqual([await marked('a'), await marked(7), await marked('__proto__')], [[1], [2, 3, 30], [1]]);
  const operations = [
    { upsert: { points: pointsOf(40, 41, 'a'), shard_key: 'a' } },
    { upsert: { points: pointsOf(40, 41, '7'), shard_key: { target: 7, fallback: 'a' } } },
    { delete: { points: [40] } },
    { delete: { points: [41], shard_key: 'a' } },
  ];
  await write('batchUpdate', { operations });
  assert.deepEqual(idsOf((await read('scroll', { offset: 40, shard_key: 'a' })).points), []);
  assert.deepEqual(idsOf((await read('scroll', { offset: 40, shard_key: 7 })).points), [41]);
});

test('gRPC answers name the key, too', () => {
  const points = ['a', 7].map((shardKey, id) => ({ id, score: 1, version: 0, shardKey }));
  const scored = decodeMessage(schema().message('qdrant.QueryResponse'), encodeGrpcResult({ kind: 'queried', points }, false)).value;
  const records = decodeMessage(schema().message('qdrant.GetResponse'), encodeGrpcResult({ kind: 'points', points }, true)).value;
  const keysOf = (value: unknown) => (value as { result: { shard_key: unknown }[] }).result.map(({ shard_key }) => shard_key);
  assert.deepEqual([keysOf(scored), keysOf(records)], [['a', 7], ['a', 7]]); // biome-ignore format: a pair
});
