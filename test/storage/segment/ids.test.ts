import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import type { PointId } from '../../../protocols/model/point-id.js';
import { findRow, idAt, lowerBound, rowAtPosition } from '../../../storage/segment/ids.js';
import { idOf, replicaFolder, sortedIds, writeFixture } from './fixture.js';

const ROWS = 500;
const replica = replicaFolder();
const handle = await writeFixture(replica, 1, ROWS);
fs.rmSync(replica, { recursive: true });

test('every id is found in its row and read back from it', () => {
  for (let row = 0; row < ROWS; row++) {
    assert.equal(findRow(handle, idOf(row)), row);
    assert.equal(idAt(handle, row), idOf(row));
  }
});

test('ids that no row has are not found', () => {
  const known = new Set<PointId>(sortedIds(ROWS));
  for (const id of [10_008, 2n ** 63n, 2n ** 64n - 1n, 'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000']) {
    assert.equal(known.has(id), false);
    assert.equal(findRow(handle, id), undefined);
  }
});

test('positions go through the ids in their order: integers by value, then UUIDs', () => {
  const sorted = sortedIds(ROWS);
  assert.deepEqual(
    sorted.map((_, position) => idAt(handle, rowAtPosition(handle, position))),
    sorted,
  );
});

test('lowerBound is the position of the first id that is not below', () => {
  const sorted = sortedIds(ROWS);
  sorted.forEach((id, position) => {
    assert.equal(lowerBound(handle, id), position);
    if (typeof id === 'number') assert.equal(lowerBound(handle, id + 1), position + 1);
  });
  assert.equal(lowerBound(handle, 0), 0);
  assert.equal(lowerBound(handle, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ROWS);
});
