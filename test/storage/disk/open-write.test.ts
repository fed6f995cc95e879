/** Transactions that stay open over turns of the event loop (`Environment.begin`). */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Environment } from '../../../storage/disk/lmdb.js';
import { SnapshotReader } from '../../../storage/disk/lmdb-reader.js';

const THREAD = new URL('./open-write-thread.js', import.meta.url);
const KEY = Buffer.from('key');
const other = Buffer.from('other');

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-open-write-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function environmentIn(t: TestContext, folder = folderOf(t)): Environment {
  const environment = Environment.open(folder, () => {});
  t.after(() => environment.close());
  return environment;
}

const textOf = (reading: Pick<Environment, 'get'>, key = KEY): string | null => {
  const value = reading.get('meta', key);
  return value === undefined ? null : Buffer.from(value).toString();
};

test('an open transaction is seen by its own environment alone until it is committed, and others are written meanwhile', async (t) => {
  const environment = environmentIn(t);
  const beside = environmentIn(t);
  const reader = SnapshotReader.openReadOnly(environment.folder);
  t.after(() => reader.close());
  const open = environment.begin();
  environment.put('meta', KEY, Buffer.from('new'));
  await new Promise((resolve) => setImmediate(resolve));
  beside.write(() => beside.put('meta', KEY, Buffer.from('beside')));
  environment.put('meta', other, Buffer.from('later'));
  reader.refresh();
  assert.deepEqual([textOf(environment), textOf(reader), textOf(beside)], ['new', null, 'beside']);
  open.commit();
  open.abort();
  reader.refresh();
  assert.deepEqual([textOf(environment), textOf(reader), textOf(reader, other)], ['new', 'new', 'later']);
  environment.write(() => environment.put('meta', KEY, Buffer.from('next')));
  assert.equal(textOf(environment), 'next');
});

test('an aborted transaction leaves nothing, and the next one can begin', (t) => {
  const environment = environmentIn(t);
  const open = environment.begin();
  environment.put('meta', KEY, Buffer.from('new'));
  open.abort();
  open.commit();
  assert.equal(textOf(environment), null);
  environment.begin().commit();
  environment.write(() => environment.put('meta', KEY, Buffer.from('next')));
  assert.equal(textOf(environment), 'next');
});

test('an environment takes no second transaction while one is open: it would become a part of that', (t) => {
  const environment = environmentIn(t);
  const open = environment.begin();
  assert.throws(() => environment.write(() => {}), /Slice-S4/);
  assert.throws(() => environment.begin(), /Slice-S4/);
  open.abort();
});

test('a thread that throws with an open transaction ends, and the next one can write', { timeout: 60_000 }, async (t) => {
  const folder = folderOf(t);
  const worker = new Worker(THREAD, { workerData: { folder, throws: true } });
  worker.on('error', () => {});
  await new Promise((resolve) => worker.once('exit', resolve));
  const environment = environmentIn(t, folder);
  environment.write(() => environment.put('meta', other, Buffer.from('next')));
  assert.deepEqual([textOf(environment), textOf(environment, other)], [null, 'next']);
});

test('a process can end at once while a thread has an open transaction', { timeout: 60_000 }, async (t) => {
  const folder = folderOf(t);
  const child = spawn(process.execPath, [fileURLToPath(THREAD), folder], { stdio: 'inherit' });
  t.after(() => child.kill('SIGKILL'));
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  // Node.js before 22.15 cannot say the code.
  assert.ok(code === 7 || signal === 'SIGKILL', `ended with ${code}, ${signal}`);
});
