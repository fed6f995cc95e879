/** The node with real engine workers: what only shows when all parts meet. */

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { OptimizersOverwrite } from '../../actors/context/own-config.js';
import type { NodeApi } from '../../actors/requests/node-api.js';
import { startNode } from '../../actors/start/start-node.js';
import { EnginePool } from '../../storage/pool/pool.js';
import type { RawRequest } from '../../storage/threads/messages.js';
import { FakeWorld } from './fake-world.js';
import { sampleConfig } from './samples.js';

const { log } = new FakeWorld();

let pool: EnginePool;
let storagePath: string;

before(async () => {
  storagePath = await mkdtemp(join(tmpdir(), 'troupe-engine-'));
  pool = await EnginePool.start({ readers: 1, writers: 1 });
});
after(async () => {
  await pool.close();
  await rm(storagePath, { recursive: true, force: true });
});

async function start(optimizersOverwrite: OptimizersOverwrite = {}): Promise<NodeApi> {
  const node = await startNode({ storagePath, pool, log, optimizersOverwrite });
  await node.whenReady();
  return node;
}

function request(body: unknown): RawRequest {
  return { path: {}, query: {}, body: new TextEncoder().encode(JSON.stringify(body)), deadlineMs: Date.now() + 20_000 };
}

async function ask(answer: Promise<Uint8Array>): Promise<Record<string, unknown>> {
  return JSON.parse(new TextDecoder().decode(await answer));
}

async function untilGreen(node: NodeApi, name: string): Promise<void> {
  while (node.info(name).status !== 'green') await new Promise((resolve) => setTimeout(resolve, 20));
}

const POINTS = Array.from({ length: 400 }, (_, at) => ({
  id: at,
  vector: [Math.sin(at), Math.cos(at), Math.sin(3 * at), 1],
  payload: { color: at % 4 === 0 ? 'red' : 'blue' },
}));
const RED = { filter: { must: [{ key: 'color', match: { value: 'red' } }] } };

test('points are written, indexed, found, kept over a restart, and gone with their collection', { timeout: 30_000 }, async () => {
  const first = await start();
  await first.createCollection('pictures', sampleConfig({ indexing_threshold: 1, default_segment_number: 1 }));
  assert.equal((await ask(first.write('pictures', 'upsertPoints', true, request({ points: POINTS })))).status, 'completed');
  assert.deepEqual([first.info('pictures').points_count, first.info('pictures').status], [400, 'yellow']);
  await untilGreen(first, 'pictures');
  assert.equal(first.info('pictures').indexed_vectors_count, 400);
  await ask(first.write('pictures', 'createFieldIndex', true, request({ field_name: 'color', field_schema: 'keyword' })));
  assert.deepEqual(first.info('pictures').payload_schema, { color: { data_type: 'keyword', points: 400 } });
  assert.ok(first.stats('pictures').every((stats) => stats.segments.every((segment) => segment.missingFields.length === 0)));
  assert.equal((await ask(first.read('pictures', 'count', request(RED)))).count, 100);
  await first.close();

  const second = await start();
  assert.equal((await ask(second.read('pictures', 'count', request(RED)))).count, 100);
  assert.equal(second.info('pictures').status, 'green');
  assert.equal(await second.deleteCollection('pictures'), true);
  await second.createCollection('pictures', sampleConfig());
  assert.equal((await ask(second.read('pictures', 'count', request({})))).count, 0);
  await second.close();
});

test('a replica whose database is damaged is Dead by name, beside collections that serve', { timeout: 30_000 }, async () => {
  const first = await start();
  for (const name of ['torn', 'whole']) {
    await first.createCollection(name, sampleConfig());
    await ask(first.write(name, 'upsertPoints', true, request({ points: POINTS })));
  }
  await first.close();
  const file = join(storagePath, 'collections', 'torn', '0', 'lmdb', 'data.mdb');
  await writeFile(file, Buffer.alloc(16_384, 0x5a));
  const second = await start();
  assert.equal((await ask(second.read('whole', 'count', request({})))).count, 400);
  assert.equal(second.info('torn').status, 'red');
  await assert.rejects(second.read('torn', 'count', request({})), { code: 'unavailable', detail: /torn.*0/ });
  assert.equal(await second.deleteCollection('torn'), true);
  await second.close();
});

test('a write that waits to be shown is answered as acknowledged when its collection closes', { timeout: 30_000 }, async () => {
  const node = await start();
  const config = sampleConfig({ indexing_threshold: 1, prevent_unoptimized: true });
  await node.createCollection('deferring', { ...config, hnsw_config: { ...config.hnsw_config, max_indexing_threads: 1 } });
  const lines = Array.from({ length: 2000 }, (_, id) => ({ id, vector: [id, 1, 2, 3] }));
  await ask(node.write('deferring', 'upsertPoints', false, request({ points: lines })));
  const waiting = ask(node.write('deferring', 'upsertPoints', true, request({ points: [{ id: 5000, vector: [1, 2, 3, 4] }] })));
  while ((node.stats('deferring')[0]?.appliedOperation ?? 0) < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(await node.deleteCollection('deferring'), true);
  assert.ok(['acknowledged', 'completed'].includes(String((await waiting).status)));
  await node.close();
});

test('settings of the node that go before those of collections hold for new and older ones, which show their own', {
  timeout: 60_000,
}, async () => {
  const first = await start({ indexing_threshold: 1 });
  await first.createCollection('never', sampleConfig({ indexing_threshold: 0 }));
  await ask(first.write('never', 'upsertPoints', true, request({ points: POINTS })));
  while (first.info('never').indexed_vectors_count < 400) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(first.info('never').config.optimizer_config.indexing_threshold, 0);
  await first.close();
  const second = await start({ indexing_threshold: 1, max_optimization_threads: 0 });
  await ask(
    second.write('never', 'upsertPoints', true, request({ points: POINTS.map(({ id, ...rest }) => ({ id: id + 1000, ...rest })) })),
  );
  assert.deepEqual([second.info('never').status, second.optimizations('never').queued[0]?.optimizer], ['grey', 'indexing']);
  await second.close();
});
