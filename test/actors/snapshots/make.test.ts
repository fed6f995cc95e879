import assert from 'node:assert/strict';
import { test } from 'node:test';
import { archiveName } from '../../../actors/snapshots/make.js';
import { isSnapshotName } from '../../../storage/snapshot-store/snapshot-store.js';

const TIME_MS = Date.UTC(2026, 10, 21, 1, 4, 22, 700);

test('a snapshot is named by what it has and its time in UTC', () => {
  assert.equal(archiveName('books-0', TIME_MS, 0), 'books-0-2026-11-21-01-04-22.snapshot');
});

test('further snapshots of one second have a number', () => {
  assert.equal(archiveName('books-0', TIME_MS, 1), 'books-0-2026-11-21-01-04-22-2.snapshot');
});

test('a collection may have a name that no file can have', () => {
  for (const name of ['a/b', '.hidden', 'x'.repeat(255), 'ü'.repeat(120), 'tab\t'])
    assert.ok(isSnapshotName(archiveName(name, TIME_MS, 0)), name);
});
