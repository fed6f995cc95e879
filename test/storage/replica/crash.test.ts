/** Processes that end in the middle, and disks that are full. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type LogTag, NO_TAG } from '../../../protocols/model/shard-log.js';
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

test('a replica without a leader that is killed at any moment has each write that it told of once, though applied ones have no record', async (t) => {
  const folder = temporaryFolder(t);
  for (let start = 1; start <= 4; start++) {
    const child = spawn(process.execPath, [CHILD, 'alone', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    let told = 0;
    let lines = 0;
    for await (const line of createInterface(child.stdout)) {
      told = Number(line);
      if (++lines === 4 + start * 7) child.kill('SIGKILL');
    }
    const replica = await Replica.open(specOf(folder));
    const { last } = replica.store.log.position;
    assert.ok(last.index >= told, `told of ${told}, ends with ${last.index}`);
    const points = replica.points();
    assert.equal(points.size, last.index);
    for (let id = 1; id <= last.index; id++) {
      assert.equal(points.get(String(id))?.version, id);
      assert.deepEqual(points.get(String(id))?.vectors, { '': vectorOf(id) });
    }
    await replica.close();
  }
});

test('a leader that is killed at any moment has all that it told of, in order and with its tags, and the next one goes on behind it', async (t) => {
  const folder = temporaryFolder(t);
  const leaders: [number, number][] = [];
  for (let term = 1; term <= 4; term++) {
    const child = spawn(process.execPath, [CHILD, 'lead', folder, String(term)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let told = 0;
    let lines = 0;
    for await (const line of createInterface(child.stdout)) {
      told = Number(line);
      if (++lines === 5 + term * 9) child.kill('SIGKILL');
    }
    const replica = await Replica.open(specOf(folder));
    const { base, last } = replica.store.log.position;
    assert.deepEqual([base, last.term, last.peer], [NO_TAG, term, term * 10]);
    assert.ok(last.index >= told && (last.index - term * 1000) % 3 === 0, `told of ${told}, ends with ${last.index}`);
    leaders.push([term, last.index - term * 1000]);
    const part = replica.store.log.entriesAfter(NO_TAG, Number.MAX_SAFE_INTEGER);
    assert.deepEqual(
      part.kind === 'entries' && part.entries.map(({ tag }) => tag),
      leaders.flatMap(([of, count]) => Array.from({ length: count }, (_, at) => ({ peer: of * 10, term: of, index: of * 1000 + at + 1 }))),
    );
    const points = replica.points();
    assert.equal(points.has('888'), false);
    assert.equal(points.get(String((last.index - 2) % 50))?.version, last.index - 2);
    await replica.close();
  }
});

test("a leader's disk that is full has each operation wholly or not at all", {
  skip: process.platform === 'win32',
}, async (t) => {
  const folder = temporaryFolder(t);
  const command = `ulimit -f 2000; exec "${process.execPath}" "${CHILD}" leadToTheEnd "${folder}"`;
  const run = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  const { entries, last, points, written } = JSON.parse(run.stdout) as Record<'entries' | 'points' | 'written', number> & {
    last: LogTag;
  };
  assert.ok(written > 0);
  assert.deepEqual([entries, last, points], [written, { peer: 10, term: 1, index: written }, written]);
  const replica = await Replica.open(specOf(folder));
  assert.deepEqual([replica.store.log.position.last, replica.points().size], [last, written]);
  await replica.close();
});
