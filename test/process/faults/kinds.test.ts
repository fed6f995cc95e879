import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support.js';
import { lateEnd, type RunReport } from './ending.js';
import { compileFailingCalls, FailingCalls, noFailingCalls, variablesFor } from './failing-calls.js';
import { type Counts, type FaultPlan, faultPlan, KINDS, type Kind } from './kinds.js';
import { groupsOf, inLayers, nextTask, type Run } from './order.js';
import { newTally } from './workload.js';

const kindOf = (wanted: string): Kind => KINDS.find(({ name }) => name === wanted) as Kind;

test('one failure is the n-th call alone, failures for a while are twenty from the n-th on', () => {
  const plan = (mode: 'once' | 'while') => faultPlan(kindOf('open'), mode, 4);
  assert.deepEqual(plan('once'), { calls: ['openat'], first: 4, last: 4, error: 'EMFILE', filesOnly: false });
  assert.deepEqual(plan('while'), { calls: ['openat'], first: 4, last: 23, error: 'ENFILE', filesOnly: false });
});

test('a node that crashes between two faults has ended within lmdb where a page could not be written before, and else it is a finding', () => {
  const report = (failed: readonly string[]): RunReport => ({
    ending: 'some refused',
    failed,
    exit: null,
    stuck: null,
    findings: [],
    tally: newTally(),
    counts: { most: new Map(), all: new Map() },
  });
  const crash = { code: null, signal: 'SIGABRT' } as const;
  const page = report(['17 pwrite64(/x/node-1/storage/collections/a/0/lmdb/data.mdb) = -1 ENOSPC (INJECTED)']);
  const other = report(['17 pwrite64(/x/node-1/storage/collections/a/0/wal/1) = -1 ENOSPC (INJECTED)']);
  assert.deepEqual(lateEnd([page, other], crash), { ...other, exit: crash, ending: 'ended within lmdb by a page' });
  assert.equal(lateEnd([other, other], crash), null);
  assert.equal(lateEnd([page], { code: 1, signal: null }), null);
  assert.equal(lateEnd([page], null), null);
});

/** Two threads of a process open, write and rename, and tell what failed. */
const PROGRAM = `
const { openSync, renameSync, writeSync, writeFileSync } = require('node:fs');
const { isMainThread, Worker } = require('node:worker_threads');
const name = isMainThread ? 'main' : 'worker';
const tried = (what, act) => { try { act(); } catch ({ code }) { console.log(name + ' ' + what + ' ' + code); } };
const act = () => {
  for (const at of [1, 2, 3]) {
    tried('open ' + at, () => {
      const file = openSync(name + at, 'w');
      tried('write ' + at, () => writeSync(file, 'x'));
    });
    tried('rename ' + at, () => renameSync(name + at, name + at + '.old'));
  }
};
if (!isMainThread) process.nextTick(act);
else { const worker = new Worker(__filename); worker.on('exit', () => act()); }
`;

test('calls of each thread fail and are counted by themselves, those of some kinds only on files of a folder', {
  skip: noFailingCalls,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const library = compileFailingCalls(folder);
  const program = join(folder, 'program.cjs');
  writeFileSync(program, PROGRAM);
  const log = join(folder, 'failed.log');
  const told = (filesIn: string, plan: FaultPlan | null): { readonly lines: string[]; readonly counts: Counts } => {
    const calls = new FailingCalls(folder, filesIn, log);
    calls.arm(plan);
    const variables = Object.fromEntries(variablesFor(library).map((variable) => variable.split('=') as [string, string]));
    const lines = spawnSync(process.execPath, [program], { cwd: folder, encoding: 'utf8', env: { ...process.env, ...variables } }).stdout;
    const counts = calls.counts();
    calls.close();
    return { lines: lines.split('\n').filter((line) => line !== ''), counts };
  };
  const { counts } = told(folder, null);
  assert.deepEqual([counts.most.get('write'), counts.all.get('write')], [3, 6]);
  assert.deepEqual([counts.most.get('rename'), counts.all.get('rename')], [3, 6]);
  assert.equal(existsSync(log), false, 'nothing has failed');

  assert.deepEqual(told(folder, faultPlan(kindOf('write'), 'once', 2)).lines, ['worker write 2 EIO', 'main write 2 EIO']);
  assert.match(
    readFileSync(log, 'utf8'),
    /^\d+ write\(.*\/worker2\) = -1 EIO \(INJECTED\)\n\d+ write\(.*\/main2\) = -1 EIO \(INJECTED\)\n$/,
  );
  assert.deepEqual(told(join(folder, 'other'), faultPlan(kindOf('write'), 'once', 2)).lines, []);
  const renames = ['worker', 'main'].flatMap((name) => [`${name} rename 2 ENOSPC`, `${name} rename 3 ENOSPC`]);
  assert.deepEqual(told(folder, faultPlan(kindOf('rename'), 'while', 2)).lines, renames);
});

test('runs come from coarse to fine: the first ones of each sort are far apart, sorts with few N are through first, and none is left out', () => {
  const runsOf = (name: string, most: number): Run[] =>
    Array.from({ length: most }, (_, at) => ({ place: 'one', phase: 'work', kind: kindOf(name), mode: 'once', n: at + 1 }));
  const all = [...runsOf('open', 160), ...runsOf('sync', 4)];
  const layered = inLayers(all);
  assert.deepEqual(new Set(layered), new Set(all));
  assert.equal(layered.length, all.length);
  assert.deepEqual(
    layered.slice(0, 5).map((run) => `${run.kind.name} ${run.n}`),
    ['open 1', 'open 129', 'open 65', 'open 33', 'sync 1'],
  );
  assert.ok(layered.findLastIndex(({ kind }) => kind.name === 'sync') < 25);
});

test('groups hold every run once, none runs of two places, and workers keep to a prepared folder while there are as many of them', () => {
  const runsOf = (place: Run['place'], most: number): Run[] =>
    Array.from({ length: most }, (_, at) => ({ place, phase: 'work', kind: kindOf('open'), mode: 'once', n: at + 1 }));
  const runs = [...runsOf('one', 7), ...runsOf('first', 3)];
  const groups = groupsOf(runs, 4);
  assert.deepEqual(
    groups.map((group) => group.map(({ place, n }) => `${place} ${n}`).join()),
    ['one 1,one 2,one 3,one 4', 'one 5,one 6,one 7', 'first 1,first 2,first 3'],
  );
  const waiting = ['1-work', '2-work', '1-start', '1-work'];
  assert.equal(nextTask(waiting, null, ['1-work', null]), 1);
  assert.equal(nextTask(waiting, '1-start', ['1-work', '2-work']), 2);
  assert.equal(nextTask(['1-work'], '1-start', ['1-work', '2-work']), 0, 'at the end each helps');
  assert.equal(nextTask(waiting, '1-start', ['1-work']), 0, 'with too few workers the order counts');
});
