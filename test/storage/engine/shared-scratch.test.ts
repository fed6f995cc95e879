import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { EnginePool } from '../../../storage/pool/pool.js';
import { fittingLayout, segmentLayout } from '../../../storage/segment/layout.js';
import { vectorPlans } from '../../../storage/segment/plans.js';
import { writeTo } from '../write.js';
import { configOf, randomOf } from './collection-fixture.js';

/**
 * The whole engine with so many readers (few of which start) that a memory of 4 GiB has no room for scratch of each. What they read was built
 * by an engine with few.
 */

const KEY = 'c/0';
const DIM = 8;
const ROWS = 6000;
const READERS = 4;
/** Started when there are heavy reads, of which there are none. */
const OTHERS = 100_000;
const config = configOf({ size: DIM, distance: 'Euclid' });
const random = randomOf(9);
const vectors = Array.from({ length: ROWS }, () => Array.from({ length: DIM }, () => Math.fround(random())));

const requestOf = (body: unknown) => ({
  path: {},
  query: {},
  body: Buffer.from(JSON.stringify(body)),
  deadlineMs: Number.MAX_SAFE_INTEGER,
});
const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));

async function engine(test: TestContext, folder: string, readersForHeavy: number): Promise<EnginePool> {
  const pool = await EnginePool.start({ readers: READERS, readersForHeavy, writers: 1 });
  test.after(() => pool.close());
  await pool.openReplica({ key: KEY, folder, config }, null);
  return pool;
}

async function build(pool: EnginePool, results = 1): Promise<void> {
  const segments = (pool.stats(KEY)?.segments ?? []).filter(({ rows }) => rows > 0).map(({ id }) => id);
  const plan = { plan: 'segment' as const, segments, missingFields: [], withGraph: true, results, threads: 1, niceness: 0 };
  await pool.build(KEY, plan, () => {}, new AbortController().signal);
}

const upsert = (pool: EnginePool, from: number, to: number) => {
  const points = vectors.slice(from, to).map((vector, i) => ({ id: from + i, vector, payload: { third: (from + i) % 3 } }));
  return writeTo(pool, 'upsertPoints', KEY, true, requestOf({ points }));
};

const third = (value: number) => ({ must: [{ key: 'third', match: { value } }] });

interface Search {
  readonly query: readonly number[];
  readonly filter: object | undefined;
  readonly params: object;
  readonly nearest: readonly number[];
}

/** With a filter and without, on the graph and exact. */
const SEARCHES = Array.from({ length: 12 }, (_, n): Search => {
  const query = Array.from({ length: DIM }, () => random());
  const value = n % 4;
  const nearest = vectors
    .map((vector, id) => ({ id, distance: Math.hypot(...vector.map((x, i) => x - (query[i] as number))) }))
    .filter(({ id }) => value === 3 || id % 3 === value)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 10)
    .map(({ id }) => id);
  return { query, filter: value === 3 ? undefined : third(value), params: n % 2 === 0 ? { exact: true } : { hnsw_ef: 256 }, nearest };
});

/** Batches that take so long that threads meet. */
async function readsAreRight(pool: EnginePool, seed: number): Promise<void> {
  const next = randomOf(seed);
  for (let n = 0; n < 4; n++) {
    const asked = Array.from({ length: 150 }, () => SEARCHES[Math.floor(next() * SEARCHES.length)] as Search);
    const searches = asked.map(({ filter, params, query }) => ({ query, filter, params, limit: 10 }));
    const answers = decode(await pool.read('queryBatch', [KEY], requestOf({ searches })));
    asked.forEach(({ nearest, params }, at) => {
      const found = answers[at].points.map(({ id }: { id: number }) => id);
      if ('exact' in params) assert.deepEqual(found, nearest);
      else assert.ok(found.filter((id: number) => nearest.includes(id)).length >= 9, `${found} instead of ${nearest}`);
    });
  }
}

test('a segment of a machine with few readers is opened, read by several threads at once, built again and split where there are many', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-scratch-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const options = { ordered: true, readers: READERS + OTHERS };
  assert.throws(
    () => new WebAssembly.Memory({ initial: Math.ceil(segmentLayout(ROWS, vectorPlans(config.params), options).bytes / 65536) }),
  );
  assert.equal(fittingLayout(ROWS, vectorPlans(config.params), options).scratchLevel, 2);

  const few = await engine(t, folder, 1);
  await upsert(few, 0, 4500);
  await build(few);
  await upsert(few, 4500, ROWS);
  await few.closeReplica(KEY);

  const many = await engine(t, folder, OTHERS);
  const readAll = () => Promise.all(Array.from({ length: 2 * READERS }, (_, seed) => readsAreRight(many, seed)));
  const rowsOf = () => many.stats(KEY)?.segments.flatMap(({ kind, rows }) => (rows === 0 ? [] : [`${kind} ${rows}`]));
  await readAll();
  await build(many);
  assert.deepEqual(rowsOf(), ['sealed 6000']);
  await readAll();
  const reading = readAll();
  await build(many, 3);
  await reading;
  assert.deepEqual(rowsOf(), ['sealed 2000', 'sealed 2000', 'sealed 2000']);
  await readAll();
});
