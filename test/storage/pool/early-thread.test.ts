import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { beginThread, takeThread } from '../../../storage/pool/early-thread.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import { threadEntry } from '../../../storage/threads/entries.js';
import { configOf } from '../engine/collection-fixture.js';
import { temporaryFolder } from '../replica/support.js';

const entry = threadEntry('reader');

test('a reader that began before its pool becomes the pool’s first reader, and begins with what the pool gives it', async () => {
  beginThread(entry, 'reader-0', 64);
  const events: string[] = [];
  const { pool, started } = EnginePool.begin({ readers: 1, writers: 1 }, false);
  pool.onWorker(({ event, name }) => events.push(`${name} ${event}`));
  try {
    await started;
    assert.deepEqual(events, ['reader-0 started']);
    // It is the pool's, so nobody else gets it.
    assert.equal(takeThread(entry, 'reader-0', { index: 0 }, 64), null);
    // It answers: the collection is not here.
    const asked = pool.read('query', ['none/0'], { path: {}, query: {}, body: null, deadlineMs: Date.now() + 10_000 });
    await assert.rejects(asked, { code: 'unavailable' });
  } finally {
    await pool.close();
  }
});

test('a writer that began before its pool becomes the pool’s first writer, and opens replicas', async (t) => {
  beginThread(threadEntry('writer'), 'writer-0', 64, true);
  const { pool, started } = EnginePool.begin({ readers: 1, writers: 1 }, true);
  try {
    assert.equal(takeThread(threadEntry('writer'), 'writer-0', null, 64), null, 'it is the pool’s');
    await started;
    const spec = { key: 'c/0', folder: path.join(temporaryFolder(t), 'c'), config: configOf({ size: 4, distance: 'Dot' }) };
    assert.equal((await pool.openReplica(spec, null)).key, 'c/0');
    const writer = pool.depths().workers.find(({ name }) => name === 'writer-0');
    assert.deepEqual([writer?.up, writer?.restarts], [true, 0]);
  } finally {
    await pool.close();
  }
});

test('a thread that began early is given away once, and only by its own program and name', async () => {
  beginThread(entry, 'reader-3', 64);
  assert.equal(takeThread(entry, 'reader-4', null, 64), null);
  assert.equal(takeThread(threadEntry('writer'), 'reader-3', null, 64), null);
  const taken = takeThread(entry, 'reader-3', { index: 3 }, 64);
  assert.ok(taken !== null);
  assert.equal(takeThread(entry, 'reader-3', null, 64), null);
  await taken.worker.terminate();
});

test('a thread that began with a larger heap than the settings leave it is not taken', () => {
  beginThread(entry, 'reader-5', 128);
  assert.equal(takeThread(entry, 'reader-5', { index: 5 }, 64), null);
  assert.equal(takeThread(entry, 'reader-5', { index: 5 }, 128), null, 'it has been ended');
});

test('a thread that begins early gets the start of the process’s clock', () => {
  const program = `await import(${JSON.stringify(new URL('../../../storage/pool/early-thread.js', import.meta.url).href)});
    process.stdout.write(typeof (await import('node:worker_threads')).getEnvironmentData('troupe.clockStart'));`;
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }), 'number');
});
