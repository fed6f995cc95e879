import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backupMark, backupTime, isPlanName } from '../../../actors/backups/plan.js';
import { type BackupSnapshot, backupsToRemove } from '../../../actors/backups/retention.js';
import { archiveName } from '../../../actors/snapshots/make.js';
import { isSnapshotName } from '../../../storage/snapshot-store/snapshot-store.js';

/** Backups that are called as their times. */
const backups = (...times: readonly string[]): BackupSnapshot[] =>
  times.map((time) => ({ name: time, timeMs: Date.parse(`${time}${time.length === 10 ? 'T02:00' : ''}:00Z`) }));

const keep = (given: { last?: number; daily?: number; weekly?: number }) => ({ last: 0, daily: 0, weekly: 0, ...given });
const DAYS = ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04'];

test('the newest ones stay and older ones go, the oldest first, in whatever order they are listed', () => {
  assert.deepEqual(backupsToRemove(backups(...DAYS), keep({ last: 2 }), '2026-03-04'), ['2026-03-01', '2026-03-02']);
  assert.deepEqual(backupsToRemove(backups(...DAYS.toReversed()), keep({ last: 2 }), '2026-03-04'), ['2026-03-01', '2026-03-02']);
  assert.deepEqual(backupsToRemove(backups(...DAYS), keep({ last: 9 }), '2026-03-04'), []);
});

test('without keep nothing goes', () => {
  assert.deepEqual(backupsToRemove(backups(...DAYS), null, '2026-03-04'), []);
});

test('of each day the newest one stays, and days without a backup do not count', () => {
  const given = backups('2026-03-01T02:00', '2026-03-01T14:00', '2026-03-05T02:00', '2026-03-05T14:00', '2026-03-06T02:00');
  assert.deepEqual(backupsToRemove(given, keep({ daily: 2 }), '2026-03-06T02:00'), [
    '2026-03-01T02:00',
    '2026-03-01T14:00',
    '2026-03-05T02:00',
  ]);
  assert.deepEqual(backupsToRemove(given, keep({ daily: 3 }), '2026-03-06T02:00'), ['2026-03-01T02:00', '2026-03-05T02:00']);
});

test('weeks begin on Monday', () => {
  // 1 March 2026 is a Sunday.
  const given = backups('2026-02-23', '2026-03-01', '2026-03-02', '2026-03-08', '2026-03-09');
  assert.deepEqual(backupsToRemove(given, keep({ weekly: 3 }), '2026-03-09'), ['2026-02-23', '2026-03-02']);
});

test('what one of the three wants stays', () => {
  const given = backups('2026-02-22', '2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04');
  const kept = { last: 1, daily: 2, weekly: 2 };
  assert.deepEqual(backupsToRemove(given, kept, '2026-03-04'), ['2026-02-22', '2026-03-02']);
});

test('the backup that was just made stays though others are of a later date, as after a date was set back', () => {
  const given = backups('2025-01-01', '2026-03-03', '2026-03-04');
  assert.deepEqual(backupsToRemove(given, keep({ last: 2 }), '2025-01-01'), []);
  assert.deepEqual(backupsToRemove(given, keep({ last: 1 }), '2025-01-01'), ['2026-03-03']);
});

test('a name says which plan of which peer made a snapshot, and when', () => {
  const timeMs = Date.parse('2026-03-04T02:00:07Z');
  const mark = backupMark('nightly', 7);
  assert.equal(archiveName('c-7', timeMs, 0, mark), 'c-7-2026-03-04-02-00-07.backup-nightly-7.snapshot');
  for (const taken of [0, 1, 41]) assert.equal(backupTime(archiveName('c-7', timeMs, taken, mark), mark), timeMs);
  for (const other of [backupMark('nightly', 8), backupMark('nightly-7', 7), backupMark('ly', 7), backupMark('nightly', 77)])
    assert.equal(backupTime(archiveName('c-7', timeMs, 0, mark), other), null, other);
});

test('no snapshot that a request has made is taken for a plan’s, whatever its collection is called', () => {
  const mark = backupMark('p', 1);
  const timeMs = Date.parse('2026-03-04T02:00:07Z');
  for (const collection of ['c', 'c.backup-p-1', '.backup-p-1.snapshot', 'x-2026-03-04-02-00-07.backup-p-1', 'ü/…'])
    for (const taken of [0, 2]) assert.equal(backupTime(archiveName(`${collection}-1`, timeMs, taken), mark), null, collection);
});

test('the longest names of collections and plans make names that snapshots can have, with the mark', () => {
  const plan = 'p'.repeat(32);
  assert.ok(isPlanName(plan));
  assert.ok(!isPlanName(`${plan}p`));
  const mark = backupMark(plan, Number.MAX_SAFE_INTEGER);
  for (const collection of ['c'.repeat(255), 'ü'.repeat(80)]) {
    const name = archiveName(`${collection}-${Number.MAX_SAFE_INTEGER}`, 0, 100, mark);
    assert.ok(isSnapshotName(name), name);
    assert.equal(backupTime(name, mark), 0);
  }
});
