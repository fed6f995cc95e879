import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ownIdentity, startTicksOf } from '../../../ops/lock/identity.js';
import type { LockHolder } from '../../../ops/lock/judge-owner.js';
import { lockStorage, StorageInUse, type StorageLock } from '../../../ops/lock/storage-lock.js';
import { checkOwned } from '../../../storage/disk/owned-folder.js';
import { ON_ANOTHER_MACHINE, WITHOUT_KERNEL_LOCK } from './other-machine.js';

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-lock-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const lockFileOf = (folder: string): string => join(folder, '.lock');
const notLost = (error: unknown): void => assert.fail(String(error));
const take = (folder: string, patienceMs = 0): Promise<StorageLock> => lockStorage(folder, patienceMs, notLost);

/** Leaves a lock file as another owner would. */
function forge(folder: string, holder: Partial<LockHolder>): void {
  const content = { session: 'another', ...ownIdentity(), kernelLock: null, ...holder };
  writeFileSync(lockFileOf(folder), JSON.stringify(content));
}

/** A number that no process has: that of one which just ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

const ofAnotherMachine: Partial<LockHolder> = { bootId: 'another', host: 'elsewhere', pid: 1 };
const linuxOnly = process.platform === 'linux' ? {} : { skip: 'processes are told apart by /proc, which only Linux has' };

test('a folder has one owner; after its release it can be taken again at once', async (t) => {
  const folder = join(temporaryFolder(t), 'new');
  const lock = await take(folder);
  await assert.rejects(take(folder), StorageInUse);
  lock.release();
  assert.throws(() => readFileSync(lockFileOf(folder)), { code: 'ENOENT' });
  (await take(folder)).release();
});

test('the lock of a running process is respected, and the message names it', linuxOnly, async (t) => {
  const folder = temporaryFolder(t);
  forge(folder, { pid: process.ppid, startTicks: startTicksOf(process.ppid), host: 'this-host' });
  await assert.rejects(take(folder), new RegExp(`in use by another process \\(pid ${process.ppid} on this-host\\)`));
});

test('the lock of a process that has ended is taken at once, also when its number was given to another one', linuxOnly, async (t) => {
  const folder = temporaryFolder(t);
  for (const gone of [{ pid: deadPid() }, { pid: process.ppid, startTicks: '1' }]) {
    forge(folder, gone);
    let lock: StorageLock | null = null;
    void take(folder).then((taken) => {
      lock = taken;
    });
    await new Promise(setImmediate);
    assert.ok(lock !== null, 'no timer was waited for');
    assert.equal(JSON.parse(readFileSync(lockFileOf(folder), 'utf8')).pid, process.pid);
    (lock as StorageLock).release();
  }
});

test('a node that restarts at once waits for the killed one to be gone', linuxOnly, async (t) => {
  const folder = temporaryFolder(t);
  const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(holder, 'spawn');
  forge(folder, { pid: holder.pid as number, startTicks: startTicksOf(holder.pid as number) });
  const locked = take(folder, 20_000);
  holder.kill('SIGKILL');
  (await locked).release();
});

test('an owner of another machine keeps its folder while it touches its lock file', async (t) => {
  const folder = temporaryFolder(t);
  forge(folder, ofAnotherMachine);
  let seconds = 1_000_000;
  const touching = setInterval(() => utimesSync(lockFileOf(folder), ++seconds, seconds), 500);
  t.after(() => clearInterval(touching));
  await assert.rejects(take(folder), /in use by another process \(pid 1 on elsewhere\)/);
});

test('the folder of an owner of another machine that touches nothing is taken; so is one with a torn lock file', async (t) => {
  for (const content of [JSON.stringify({ session: 'another', ...ownIdentity(), kernelLock: null, ...ofAnotherMachine }), '', '{"pid":']) {
    const folder = temporaryFolder(t);
    writeFileSync(lockFileOf(folder), content);
    const lock = await take(folder);
    assert.equal(JSON.parse(readFileSync(lockFileOf(folder), 'utf8')).pid, process.pid);
    lock.release();
  }
});

test('the owner touches its lock file, so that others see that it is alive', async (t) => {
  const folder = temporaryFolder(t);
  const lock = await take(folder);
  t.after(() => lock.release());
  // As another machine sees it, which knows nothing of this process.
  const text = readFileSync(lockFileOf(folder), 'utf8');
  const program = `
    import { lockStorage } from ${JSON.stringify(new URL('../../../ops/lock/storage-lock.js', import.meta.url).href)};
    ${ON_ANOTHER_MACHINE}
    ${WITHOUT_KERNEL_LOCK}
    await lockStorage(process.argv[1], 0, () => {}).then(() => console.log('taken'), ({ name }) => console.log(name));`;
  const other = spawn(process.execPath, ['--input-type=module', '-e', program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  other.stdout.on('data', (chunk) => {
    printed += String(chunk);
  });
  await once(other, 'close');
  assert.equal(printed.trim(), 'StorageInUse');
  assert.equal(readFileSync(lockFileOf(folder), 'utf8'), text);
});

test('an owner whose lock file is another one’s is told so, and nothing more is written', async (t) => {
  const folder = temporaryFolder(t);
  let told: (error: unknown) => void = () => {};
  const lost = new Promise<unknown>((resolve) => {
    told = resolve;
  });
  // The owner's own timer keeps no process alive.
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  const lock = await lockStorage(folder, 0, told);
  checkOwned(join(folder, 'collections', 'a'));
  forge(folder, ofAnotherMachine);
  assert.throws(() => checkOwned(join(folder, 'collections', 'a')), { code: 'unavailable' });
  // Also when the other one is gone again: what it wrote meanwhile is not known here.
  rmSync(lockFileOf(folder));
  assert.throws(() => checkOwned(folder), { code: 'unavailable' });
  assert.match(String(await lost), /another process has taken over/);
  forge(folder, ofAnotherMachine);
  lock.release();
  assert.equal(JSON.parse(readFileSync(lockFileOf(folder), 'utf8')).host, 'elsewhere', 'the lock of another owner stays');
});

test('an owner whose lock file somebody removed makes it anew', async (t) => {
  const folder = temporaryFolder(t);
  const lock = await take(folder);
  const aside = join(folder, 'aside');
  renameSync(lockFileOf(folder), aside);
  checkOwned(folder);
  assert.equal(readFileSync(lockFileOf(folder), 'utf8'), readFileSync(aside, 'utf8'));
  await assert.rejects(take(folder), StorageInUse);
  lock.release();
});
