import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditFiles, auditPeriod, filesToDelete } from '../../../http/audit/plan-files.js';

test('a record belongs to the file of its day or hour of UTC, to the last millisecond', () => {
  const end = Date.UTC(2026, 10, 26);
  assert.deepEqual(auditPeriod(end - 1, 'daily'), { file: 'audit-2026-11-25.jsonl', startMs: Date.UTC(2026, 10, 25), endMs: end });
  assert.equal(auditPeriod(end, 'daily').file, 'audit-2026-11-26.jsonl');
  assert.deepEqual(auditPeriod(end - 1, 'hourly'), { file: 'audit-2026-11-25T23.jsonl', startMs: end - 3_600_000, endMs: end });
  assert.equal(auditPeriod(end, 'hourly').file, 'audit-2026-11-26T00.jsonl');
});

test('the oldest files go when there are more than are to be kept, and the one that is written counts and stays', () => {
  const names = ['audit-2026-11-23.jsonl', 'audit-2026-11-25.jsonl', 'audit-2026-11-24.jsonl', 'audit-2026-11-24T05.jsonl'];
  const current = 'audit-2026-11-25.jsonl';
  assert.deepEqual(filesToDelete(names, current, 4), []);
  assert.deepEqual(filesToDelete(names, current, 2), ['audit-2026-11-23.jsonl', 'audit-2026-11-24.jsonl']);
  assert.deepEqual(filesToDelete(names, current, 1).length, 3);
  // A clock that was set back: newer files are there already.
  assert.deepEqual(filesToDelete(['audit-2026-11-25.jsonl', 'audit-2026-11-26.jsonl'], current, 1), ['audit-2026-11-26.jsonl']);
});

test('files of other names are none of the log', () => {
  const others = [
    'audit.jsonl',
    'audit-2026-11-25.jsonl.gz',
    'xaudit-2026-11-25.jsonl',
    'audit-2026-11-25.log',
    'audit-..-..-...jsonl',
    'data.mdb',
  ];
  assert.deepEqual(auditFiles(others), []);
  assert.deepEqual(filesToDelete(others, 'audit-2026-11-25.jsonl', 1), []);
});
