/** Processes that end in the middle, and disks that are full. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Replica, specOf, temporaryFolder, upsert, vectorOf } from './support.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));

test('acknowledged writes that were not applied when the process was killed are applied once at the next start', async (t) => {
  const folder = temporaryFolder(t);
  const child = spawn(process.execPath, [CHILD, 'log', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  child.kill('SIGKILL');
  await once(child, 'close');
  assert.equal(line, 'logged 2 3 4');
  for (let start = 0; start < 2; start++) {
    const replica = await Replica.open(specOf(folder));
    const points = replica.points();
    assert.deepEqual([...points.keys()].sort(), ['2', '3']);
    assert.deepEqual(points.get('2'), { vectors: { '': vectorOf(20) }, payload: { n: 1 }, version: 3 });
    assert.equal(replica.store.stats().appliedOperation, 4);
    await replica.close();
  }
});

test('on a full disk writes answer a storage error, change nothing, and are taken again when there is room', {
  skip: process.platform === 'win32',
}, (t) => {
  const folder = temporaryFolder(t);
  // 2000 blocks of 512 or 1024 bytes, as the shell has it.
  const run = spawnSync('/bin/sh', ['-c', `ulimit -f 2000; exec "${process.execPath}" "${CHILD}" fill "${folder}"`], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  const report = JSON.parse(run.stdout) as { written: number; refused: number; code: string; points: number; small: boolean };
  assert.ok(report.written > 0 && report.refused > 0, run.stdout);
  assert.deepEqual([report.code, report.points, report.small], ['storage', report.written, true]);
  return Replica.open(specOf(folder)).then(async (replica) => {
    assert.equal(replica.points().size, report.written);
    replica.apply(upsert([{ id: 'ffffffff-0000-4000-8000-000000000000', seed: 1 }]));
    assert.equal(replica.points().size, report.written + 1);
    await replica.close();
  });
});
