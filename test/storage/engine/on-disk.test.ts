import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { VectorParams } from '../../../protocols/model/collection.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import { until } from '../../process/support.js';
import { writeTo } from '../write.js';
import { configOf, randomOf } from './collection-fixture.js';

/** The whole engine on a replica whose originals stay on disk: what is written, built, changed and opened again. */

const KEY = 'c/0';
const DIM = 24;
const ROWS = 900;
const random = randomOf(6);
const vectors = Array.from({ length: ROWS }, () => Array.from({ length: DIM }, () => Math.fround(random())));
const PROBE = Array.from({ length: DIM }, () => 0.5);

class Engine {
  private constructor(
    private readonly pool: EnginePool,
    private readonly folder: string,
  ) {}

  static async open(test: TestContext, folder: string, params: Partial<VectorParams>): Promise<Engine> {
    const pool = await EnginePool.start({ readers: 1, writers: 1 });
    test.after(() => pool.close());
    await pool.openReplica({ key: KEY, folder, config: configOf({ size: DIM, distance: 'Euclid', ...params }) }, null);
    return new Engine(pool, folder);
  }

  async read(operation: ReadOperation, body: unknown): Promise<unknown> {
    return decode(await this.pool.read(operation, [KEY], requestOf(body)));
  }

  async write(operation: WriteOperation, body: unknown): Promise<void> {
    assert.equal(
      (decode((await writeTo(this.pool, operation, KEY, true, requestOf(body))).body) as { status: string }).status,
      'completed',
    );
  }

  /** Builds one segment from all that hold rows. */
  async build(): Promise<void> {
    const segments = (this.pool.stats(KEY)?.segments ?? []).filter(({ rows }) => rows > 0).map(({ id }) => id);
    const plan = { plan: 'segment' as const, segments, missingFields: [], withGraph: true, threads: 1, niceness: 0 };
    await this.pool.build(KEY, plan, () => {}, new AbortController().signal);
  }

  close(): Promise<void> {
    return this.pool.closeReplica(KEY);
  }

  vectorFiles(): string[] {
    const segments = path.join(this.folder, 'segments');
    return fs.readdirSync(segments).map((segment) => path.join(segments, segment, 'vectors.0'));
  }
}

const requestOf = (body: unknown) => ({ path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 10_000 });
const decode = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));

function temporaryFolder(test: TestContext): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-on-disk-'));
  test.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'c');
}

/** All that clients see of the points. */
async function answersOf(engine: Engine): Promise<{ all: unknown; exact: unknown; found: unknown; filtered: unknown }> {
  return {
    all: await engine.read('scroll', { limit: ROWS + 1, with_vector: true, with_payload: true }),
    exact: await engine.read('query', { query: PROBE, limit: 20, params: { exact: true } }),
    found: await engine.read('query', { query: PROBE, limit: 20, params: { hnsw_ef: 100 } }),
    filtered: await engine.read('query', { query: PROBE, limit: 20, filter: { must: [{ key: 'n', range: { lt: 90 } }] } }),
  };
}

/** The same life for a collection on disk and one in memory. After each step: what clients see. */
async function* live(
  test: TestContext,
  folder: string,
  params: Partial<VectorParams>,
): AsyncGenerator<Awaited<ReturnType<typeof answersOf>>> {
  const engine = await Engine.open(test, folder, params);
  await engine.write('upsertPoints', { points: vectors.map((vector, id) => ({ id, vector, payload: { n: id } })) });
  await engine.build();
  yield await answersOf(engine);
  await engine.write('setPayload', { payload: { changed: true }, filter: { must: [{ key: 'n', range: { gte: 40, lt: 80 } }] } });
  await engine.write('updateVectors', { points: [{ id: 5, vector: PROBE }] });
  await engine.write('deletePoints', { points: [6, 7] });
  yield await answersOf(engine);
  await engine.build();
  yield await answersOf(engine);
  await engine.close();
  const again = await Engine.open(test, folder, params);
  yield await answersOf(again);
  await again.close();
}

test('writes, builds and restarts leave the same answers as in memory', async (t) => {
  const filed = live(t, temporaryFolder(t), { on_disk: true });
  const resident = live(t, temporaryFolder(t), {});
  for await (const expected of resident) assert.deepEqual((await filed.next()).value, expected);
  assert.equal((await filed.next()).done, true);
});

test('rows in lists on disk: writes, builds and restarts leave the same points and exact answers as in memory', async (t) => {
  const folder = temporaryFolder(t);
  const listed = live(t, folder, { on_disk: true, hnsw_config: { on_disk: true } });
  for await (const { all, exact } of live(t, temporaryFolder(t), {})) {
    const found = (await listed.next()).value;
    assert.deepEqual({ all: found.all, exact: found.exact }, { all, exact });
    const segments = path.join(folder, 'segments');
    // A replaced segment goes file by file, once nobody reads it.
    await until(
      async () => fs.readdirSync(segments).map((segment) => fs.existsSync(path.join(segments, segment, 'lists.0'))),
      (haveLists) => !haveLists.includes(false),
    );
  }
  assert.equal((await listed.next()).done, true);
});

test('what the configuration says of memory holds from the next opening on', async (t) => {
  const folder = temporaryFolder(t);
  const engine = await Engine.open(t, folder, {});
  await engine.write('upsertPoints', { points: vectors.map((vector, id) => ({ id, vector })) });
  await engine.build();
  const expected = await answersOf(engine);
  await engine.close();
  for (const onDisk of [true, false]) {
    const again = await Engine.open(t, folder, { on_disk: onDisk });
    assert.deepEqual(await answersOf(again), expected);
    // Without its bytes only what is in memory can be found.
    for (const file of again.vectorFiles()) fs.copyFileSync(file, `${file}.kept`);
    for (const file of again.vectorFiles()) fs.truncateSync(file, 0);
    const exact = again.read('query', { query: PROBE, limit: 20, params: { exact: true } });
    if (onDisk) await assert.rejects(exact, { code: 'storage' });
    else await exact;
    for (const file of again.vectorFiles()) fs.renameSync(`${file}.kept`, file);
    await again.close();
  }
});

test('damage in originals on disk is reported at the start, by the name of the file', async (t) => {
  const folder = temporaryFolder(t);
  const engine = await Engine.open(t, folder, { on_disk: true });
  await engine.write('upsertPoints', { points: vectors.map((vector, id) => ({ id, vector })) });
  await engine.build();
  await engine.close();
  const [file] = engine.vectorFiles() as [string];
  const bytes = fs.readFileSync(file);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
  fs.writeFileSync(file, bytes);
  await assert.rejects(Engine.open(t, folder, { on_disk: true }), (error: { code: string; detail: string }) => {
    assert.equal(error.code, 'storage');
    assert.ok(error.detail.startsWith(`${file}: `), error.detail);
    return true;
  });
});
