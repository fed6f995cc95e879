import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockStorage, lockStorageSoon, StorageInUse } from '../../ops/storage-lock.js';

function withFolder(run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-lock-'));
  try {
    run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A number that no process has: that of one which just ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

test('a folder is locked once; after its release again', () => {
  withFolder((folder) => {
    const storage = join(folder, 'new');
    const release = lockStorage(storage);
    if (process.platform === 'linux') assert.throws(() => lockStorage(storage), StorageInUse);
    release();
    lockStorage(storage)();
    assert.deepEqual(readdirSync(storage), []);
  });
});

test('the lock of a running process is respected', () => {
  withFolder((folder) => {
    writeFileSync(join(folder, '.lock'), JSON.stringify({ pid: process.ppid, started: null }));
    assert.throws(() => lockStorage(folder), new RegExp(`in use by another process \\(pid ${process.ppid}\\)`));
    assert.ok(existsSync(join(folder, '.lock')));
  });
});

test('the lock of a dead process is taken over, also a torn one and one whose number another process got', () => {
  const stale = [
    JSON.stringify({ pid: deadPid(), started: null }),
    '',
    '{"pid":',
    JSON.stringify({ pid: process.ppid, started: 'another boot/1' }),
  ];
  for (const content of process.platform === 'linux' ? stale : stale.slice(0, 3)) {
    withFolder((folder) => {
      writeFileSync(join(folder, '.lock'), content);
      const release = lockStorage(folder);
      assert.equal(JSON.parse(readFileSync(join(folder, '.lock'), 'utf8')).pid, process.pid);
      release();
    });
  }
});

test('a node that restarts at once waits for the killed one to be gone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-lock-'));
  try {
    const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await once(holder, 'spawn');
    writeFileSync(join(folder, '.lock'), JSON.stringify({ pid: holder.pid, started: null }));
    const locked = lockStorageSoon(folder, 20_000);
    holder.kill('SIGKILL');
    (await locked)();
    assert.deepEqual(readdirSync(folder), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
