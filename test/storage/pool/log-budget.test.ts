/** What the logs of all replicas of a node keep, with real threads and files. Each kept up to 64 MB, however many there were. */

import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { encodeUpdate } from '../../../protocols/update-codec.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { SleepLimits } from '../../../storage/pool/sleep-policy.js';
import { configOf } from '../engine/collection-fixture.js';
import { temporaryFolder, upsert } from '../replica/support.js';

const COUNT = 5;
const MEBIBYTE = 1 << 20;
const BUDGET_BYTES = 8 * MEBIBYTE;
const LEADER = { peer: 7, term: 1, indexAfter: 0 };
const AWAKE: SleepLimits = { awakeKept: COUNT, awakeMax: COUNT, idleTicks: 60 };
const ASLEEP: SleepLimits = { awakeKept: 0, awakeMax: COUNT, idleTicks: 1 };
const keyOf = (at: number): string => `c${at}/0`;
/** Of a replica of a cluster: its operations have a leader, so other replicas may ask for them. */
const operation = (id: number): Uint8Array =>
  encodeUpdate({ operation: upsert([{ id, seed: id, payload: { text: 'x'.repeat(100_000) } }]), chained: id > 0 });

/** A pool with replicas that each were sent 4 MB of operations, of which few points are left. */
async function written(t: TestContext, sleep: SleepLimits): Promise<{ pool: EnginePool; walFolders: readonly string[] }> {
  const folder = temporaryFolder(t);
  const pool = await EnginePool.start({ readers: 1, writers: 1, sleep, logBudgetBytes: BUDGET_BYTES });
  t.after(() => pool.close());
  const specs = Array.from({ length: COUNT }, (_, at) => ({
    key: keyOf(at),
    folder: path.join(folder, `c${at}`),
    config: { ...configOf({ size: 4, distance: 'Dot' }), wal_config: { wal_capacity_mb: 1, wal_segments_ahead: 0 } },
  }));
  for (const spec of specs) {
    await pool.openReplica(spec, null);
    for (let group = 0; group < 4; group++) {
      const operations = Array.from({ length: 10 }, (_, at) => operation(at));
      await pool.write(spec.key, LEADER, { operations, until: 'applied', deadlineMs: Date.now() + 30_000 });
    }
  }
  return { pool, walFolders: specs.map((spec) => path.join(spec.folder, 'wal')) };
}

const keptBytes = (pool: EnginePool): number =>
  Array.from({ length: COUNT }, (_, at) => pool.stats(keyOf(at))?.walBytes ?? 0).reduce((sum, bytes) => sum + bytes, 0);

const bytesIn = (folder: string): number =>
  readdirSync(folder).reduce((sum, name) => sum + (statSync(path.join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0);

/** Resolves when the pool has told figures for which this holds. */
async function told(pool: EnginePool, holds: () => boolean): Promise<void> {
  if (holds()) return;
  await new Promise<void>((resolve, reject) => {
    const timeout = setTimeout(() => reject(new Error(`${keptBytes(pool)} bytes are kept`)), 20_000);
    const stop = pool.onStats(() => {
      if (!holds()) return;
      clearTimeout(timeout);
      stop();
      resolve();
    });
  });
}

test('the logs of all replicas of a node together keep no more than its budget, also of replicas that nobody writes any more', async (t) => {
  const { pool, walFolders } = await written(t, AWAKE);
  await told(pool, () => keptBytes(pool) <= BUDGET_BYTES);
  // A file goes when its last operation does, and has a quarter of what its log may keep.
  const onDisk = walFolders.reduce((sum, folder) => sum + bytesIn(folder), 0);
  assert.ok(onDisk < BUDGET_BYTES * 2, `${onDisk} bytes of files`);
  assert.ok(keptBytes(pool) > 0, 'what there is room for is kept');
});

test('a replica that falls asleep keeps next to nothing of its log, and goes on where it was when it wakes', async (t) => {
  const { pool, walFolders } = await written(t, ASLEEP);
  await told(pool, () => keptBytes(pool) < 2000 * COUNT);
  while (pool.depths().replicas.open > 0) await new Promise((done) => setTimeout(done, 20));
  assert.equal(
    walFolders.reduce((sum, folder) => sum + bytesIn(folder), 0),
    0,
  );
  const { base, last } = await pool.position(keyOf(0));
  assert.deepEqual([base, last], [last, { peer: 7, term: 1, index: 40 }], 'others are told that the log does not go back');
  const { entries } = await pool.write(keyOf(0), LEADER, { operations: [operation(0)], until: 'applied', deadlineMs: Date.now() + 30_000 });
  assert.equal(entries[0]?.tag.index, 41);
});
