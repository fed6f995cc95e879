import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type KernelLock, takeKernelLock } from '../../../ops/lock/kernel-lock.js';

const hasLock = Number.parseInt(process.versions.node, 10) >= 26;
const options = hasLock ? {} : { skip: 'Node.js before 26 has no SQLite that is stable' };
const MODULE = new URL('../../../ops/lock/kernel-lock.js', import.meta.url).href;

test('a kernel lock excludes this process and others, and ends with its process by any signal', options, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-kernel-lock-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = `
    import { takeKernelLock } from ${JSON.stringify(MODULE)};
    console.log(typeof takeKernelLock(process.argv[1]) === 'object' ? 'locked' : 'refused');
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  const [said] = await once(holder.stdout, 'data');
  assert.equal(String(said).trim(), 'locked');
  assert.equal(takeKernelLock(folder), 'taken');
  holder.kill('SIGKILL');
  await once(holder, 'close');
  const lock = takeKernelLock(folder) as KernelLock;
  const { dev, ino, size } = statSync(join(folder, '.lock.kernel'));
  assert.deepEqual(lock.file, { device: String(dev), inode: String(ino) });
  assert.equal(size, 0);
  assert.equal(takeKernelLock(folder), 'taken');
  lock.release();
  (takeKernelLock(folder) as KernelLock).release();
});

test('without a kernel lock nothing is taken for locked', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-kernel-lock-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  t.mock.method(process, 'getBuiltinModule', () => undefined);
  assert.equal(takeKernelLock(folder), null);
  t.mock.restoreAll();
  assert.equal(takeKernelLock(join(folder, 'missing')), null);
});
