import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { residentOffset, type VectorLayout } from '../../../storage/segment/layout.js';
import { tendOriginals } from '../../../storage/segment/mapped-originals.js';
import { isUnverified, verifyOriginals } from '../../../storage/segment/originals.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { closeVectorFiles, readRows } from '../../../storage/segment/vector-file.js';
import { makeConfig } from '../builder/fixture.js';
import { replicaFolder, writeFixture } from './fixture.js';

/** Three blocks of 64 KB, the last one short. */
const ROWS = 5000;
const ROWS_PER_BLOCK = 2048;
const replica = replicaFolder();
const written = await writeFixture(replica, 7, ROWS, 0);
const folder = written.folder as string;
test.after(() => fs.rmSync(replica, { recursive: true }));

async function load(later = true): Promise<{ handle: SegmentHandle; vector: VectorLayout; damagedFiles: readonly string[] }> {
  const { damagedFiles, handle } = await loadSealed(folder, {
    readers: 1,
    onDiskPayload: true,
    fields: new Map(),
    later: ({ graph }) => later && graph !== null,
  });
  return { handle, vector: handle.layout.vectors[0] as VectorLayout, damagedFiles };
}

/** Runs `use` while a byte of a row's vector is another one in its file. */
async function whileDamaged(row: number, use: () => Promise<void>): Promise<void> {
  const { vector } = await load();
  const file = path.join(folder, 'vectors.0');
  const sound = fs.readFileSync(file);
  const damaged = Buffer.from(sound);
  const at = (vector.file?.start as number) + row * vector.stride;
  damaged[at] = (damaged[at] as number) ^ 1;
  fs.writeFileSync(file, damaged);
  try {
    await use();
  } finally {
    fs.writeFileSync(file, sound);
  }
}

function rowsOf({ handle, vector }: { handle: SegmentHandle; vector: VectorLayout }, row: number, count: number): Buffer {
  const target = Buffer.alloc(count * vector.stride);
  readRows(handle, vector, row, target);
  return target;
}

const damage = { code: 'storage', reason: 'damaged' };
const turn = () => new Promise<void>((done) => setImmediate(done));

test('rows are read as they were written, over the borders of blocks and to the end', async (t) => {
  const segment = await load();
  t.after(() => closeVectorFiles(segment.handle));
  assert.ok(isUnverified(segment.vector));
  const { memory, layout } = written;
  const { stride } = segment.vector;
  for (const [row, count] of [
    [0, 1],
    [ROWS_PER_BLOCK - 1, 2],
    [ROWS - 3, 3],
    [0, ROWS],
  ] as const) {
    const expected = Buffer.from(memory.buffer, residentOffset(layout.vectors[0] as VectorLayout) + row * stride, count * stride);
    assert.ok(rowsOf(segment, row, count).equals(expected), `${count} rows from ${row} on`);
  }
});

test('a block that is damaged is refused by the name of its file before any of it is used, and others are read', async () => {
  await whileDamaged(ROWS_PER_BLOCK + 5, async () => {
    const segment = await load();
    assert.deepEqual(segment.damagedFiles, []);
    rowsOf(segment, 0, ROWS_PER_BLOCK);
    rowsOf(segment, 2 * ROWS_PER_BLOCK, 10);
    // Also rows that are sound themselves.
    for (const row of [ROWS_PER_BLOCK, ROWS_PER_BLOCK + 5, ROWS_PER_BLOCK - 1])
      assert.throws(() => rowsOf(segment, row, 2), { ...damage, path: path.join(folder, 'vectors.0') });
    await assert.rejects(verifyOriginals(segment.handle, segment.vector, turn), damage);
    assert.ok(isUnverified(segment.vector));
    closeVectorFiles(segment.handle);
  });
});

test('originals are put in their place only when their whole file was verified', async () => {
  const { handle, vector } = await load();
  const config = makeConfig({ size: 5, distance: 'Cosine' });
  let puts = 0;
  const pages = { put: () => ++puts > 0, letGo: () => {} };
  assert.equal(tendOriginals(handle, config, pages, 0), false);
  assert.equal(puts, 0);
  await verifyOriginals(handle, vector, turn);
  assert.ok(!isUnverified(vector));
  assert.equal(tendOriginals(handle, config, pages, 0), true);
  assert.equal(puts, 1);
});

test('without sums, with damaged ones and where originals are in memory at once, the whole file is verified by the loading', async () => {
  const file = path.join(folder, 'sums.0');
  const sound = fs.readFileSync(file);
  const flipped = Buffer.from(sound);
  flipped[flipped.length - 60] = (flipped[flipped.length - 60] as number) ^ 1;
  const cases: readonly [string, () => void, boolean, readonly string[]][] = [
    ['missing', () => fs.rmSync(file), true, []],
    ['damaged', () => fs.writeFileSync(file, flipped), true, ['sums.0']],
    ['not needed', () => {}, false, []],
  ];
  for (const [name, prepare, later, damagedFiles] of cases) {
    prepare();
    const segment = await load(later);
    assert.deepEqual([segment.damagedFiles, isUnverified(segment.vector)], [damagedFiles, false], name);
    fs.writeFileSync(file, sound);
    await whileDamaged(ROWS_PER_BLOCK + 5, async () => {
      prepare();
      await assert.rejects(load(later), damage, name);
      fs.writeFileSync(file, sound);
    });
  }
});
