import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { SegmentRows } from '../../../storage/replica/segment-rows.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { readSparseIndex, sparseFile } from '../../../storage/segment/sparse-file.js';
import { CollectionFixture, configOf, type TestPoint } from '../engine/collection-fixture.js';

const points: TestPoint[] = Array.from({ length: 300 }, (_, id) => ({
  id,
  vectors: { d: [id, 1], a: { indices: [id % 7, 100 + id], values: [1, id] }, b: { indices: [id % 3], values: [-1] } },
}));
const fixture = new CollectionFixture(configOf({ d: { size: 2, distance: 'Dot' } }, { sparse: { a: {}, b: {} } }));
await fixture.addSealed(points, true);
const { handle } = fixture.snapshot().segments[0] as NonNullable<ReturnType<CollectionFixture['snapshot']>['segments'][number]>;
const folder = handle.folder as string;
const options = { readers: 3, onDiskPayload: true, fields: new Map() };
after(() => fixture.remove());

test('a segment is loaded with the inverted indexes that its build wrote', async () => {
  const loaded = await loadSealed(folder, options);
  assert.deepEqual(loaded.damagedFiles, []);
  assert.deepEqual(
    loaded.handle.sparseIndexes.map(({ name, buffer }) => [name, Buffer.from(buffer)]),
    handle.sparseIndexes.map(({ name, buffer }) => [name, Buffer.from(buffer)]),
  );
  assert.deepEqual(
    handle.sparseIndexes.map(({ name }) => name),
    ['a', 'b'],
  );
});

test('a damaged, missing or foreign inverted index is survived and listed, so that it is built again', async () => {
  const file = path.join(folder, sparseFile(1));
  const bytes = fs.readFileSync(file);
  const damages: [string, () => void][] = [
    [
      'flipped',
      () =>
        fs.writeFileSync(
          file,
          bytes.map((byte, at) => (at === bytes.length - 70 ? byte ^ 1 : byte)),
        ),
    ],
    ['torn', () => fs.writeFileSync(file, bytes.subarray(0, bytes.length - 64))],
    ['another vector’s', () => fs.copyFileSync(path.join(folder, sparseFile(2)), file)],
    ['missing', () => fs.rmSync(file)],
  ];
  for (const [name, damage] of damages) {
    damage();
    const loaded = await loadSealed(folder, options);
    assert.deepEqual(loaded.damagedFiles, [sparseFile(1)], name);
    assert.deepEqual(
      loaded.handle.sparseIndexes.map((index) => index.name),
      ['b'],
      name,
    );
    fs.writeFileSync(file, bytes);
  }
  await assert.rejects(
    readSparseIndex(folder, handle.id + 1, 1, 'a', async () => {}),
    /belongs to another vector/,
  );
});

test('a sparse vector that the collection has lost takes its inverted index with it', () => {
  const segment = new SegmentRows(handle, handle.rows);
  segment.dropVectors(['a', 'd']);
  assert.deepEqual(
    segment.handle.sparseIndexes.map(({ name }) => name),
    ['b'],
  );
});
