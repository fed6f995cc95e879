import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeOwner, type LockHolder, type ProcessIdentity, parseHolder } from '../../../ops/lock/judge-owner.js';

const SELF: ProcessIdentity = { pid: 7, startTicks: '900', bootId: 'boot', pidNamespace: 'pid:[1]', host: 'here' };
const FILE = { device: '64', inode: '12' };
const HOLDER: LockHolder = {
  session: 's',
  pid: 3,
  startTicks: '100',
  bootId: 'boot',
  pidNamespace: 'pid:[1]',
  host: 'here',
  kernelLock: null,
};

/** The processes that this one sees: number 3, started at 100. */
const running = (pid: number): string | null => (pid === 3 ? '100' : null);
const judge = (holder: Partial<LockHolder>, kernelLock: typeof FILE | null = null, self: Partial<ProcessIdentity> = {}) =>
  judgeOwner({ ...HOLDER, ...holder }, { ...SELF, ...self }, kernelLock, running);

test('an owner in the same namespace of processes is alive while its number and its start are there, and dead afterwards', () => {
  assert.equal(judge({}), 'alive');
  assert.equal(judge({ startTicks: '101' }), 'dead');
  assert.equal(judge({ pid: 4 }), 'dead');
});

test('a process that is alive keeps its folder, also when its kernel lock is gone', () => {
  assert.equal(judge({ kernelLock: FILE }, FILE), 'alive');
});

test('nothing is known of an owner in another container, on another machine or of an earlier start of the machine', () => {
  assert.equal(judge({ pidNamespace: 'pid:[2]' }), 'unknown');
  assert.equal(judge({ pidNamespace: 'pid:[2]', pid: 4 }), 'unknown');
  assert.equal(judge({ bootId: 'other' }), 'unknown');
  assert.equal(judge({ bootId: null }, null, { bootId: null }), 'unknown');
  assert.equal(judge({ pidNamespace: null }, null, { pidNamespace: null }), 'unknown');
  assert.equal(judge({ startTicks: null }), 'unknown');
});

test('an owner in another container of this machine has ended when its kernel lock could be taken', () => {
  assert.equal(judge({ pidNamespace: 'pid:[2]', kernelLock: FILE }, FILE), 'dead');
});

test('a kernel lock on another file, or of another machine, says nothing', () => {
  const elsewhere = { pidNamespace: 'pid:[2]', kernelLock: FILE };
  assert.equal(judge(elsewhere, null), 'unknown');
  assert.equal(judge(elsewhere, { device: '65', inode: '12' }), 'unknown');
  assert.equal(judge(elsewhere, { device: '64', inode: '13' }), 'unknown');
  assert.equal(judge({ ...elsewhere, bootId: 'other' }, FILE), 'unknown');
});

test('a lock file is read back as it was written; a torn one, or one of other things, has no holder', () => {
  const full = { ...HOLDER, kernelLock: FILE };
  assert.deepEqual(parseHolder(JSON.stringify(full)), full);
  assert.deepEqual(parseHolder(JSON.stringify(HOLDER)), HOLDER);
  for (const content of ['', '{"pid":', 'null', '[]', '{"pid":"3","session":"s"}', '{"pid":3}']) assert.equal(parseHolder(content), null);
});
