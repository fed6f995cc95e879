import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { itemArrays, itemOffsets, raggedOf } from '../../../storage/segment/ragged.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { CollectionFixture, configOf, type TestPoint } from '../engine/collection-fixture.js';

const ROWS = 300;
const multi = { size: 3, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } as const;
/** Every third point has a vector of a kind, and each another number of items. */
const points: TestPoint[] = Array.from({ length: ROWS }, (_, id) => ({
  id,
  vectors: {
    ...(id % 3 === 0 ? {} : { m: Array.from({ length: 1 + (id % 5) }, (_, token) => [id, token, 1]) }),
    ...(id % 3 === 1 ? {} : { s: { indices: Array.from({ length: id % 4 }, (_, at) => at * 100 + id), values: Array(id % 4).fill(id) } }),
  },
}));
const fixture = new CollectionFixture(configOf({ m: { ...multi, on_disk: true } }, { sparse: { s: {} } }));
await fixture.addSealed(points, true);
const { handle } = fixture.snapshot().segments[0] as NonNullable<ReturnType<CollectionFixture['snapshot']>['segments'][number]>;
const folder = handle.folder as string;
const options = { readers: 7, onDiskPayload: true, fields: new Map() };
after(() => fixture.remove());

/** All arrays of the vectors, as text of their bytes. */
function contents({ layout, memory, rows }: SegmentHandle): string[] {
  const text = (offset: number, bytes: number): string => Buffer.from(new Uint8Array(memory.buffer, offset, bytes)).toString('base64');
  return layout.vectors.flatMap((vector) => [
    text(vector.presence, Math.ceil(rows / 32) * 4),
    [...itemOffsets(memory, vector, rows)].join(),
    ...itemArrays(vector).map(({ offset, stride }) => text(offset, raggedOf(vector).itemCapacity * stride)),
  ]);
}

test('multivectors and sparse vectors are loaded as they were built, and have no more room than they need', async () => {
  const loaded = await loadSealed(folder, options);
  assert.deepEqual(loaded.damagedFiles, []);
  assert.deepEqual(contents(loaded.handle), contents(handle));
  const counted = points.reduce((sum, { vectors }) => sum + ((vectors.m as number[][] | undefined)?.length ?? 0), 0);
  assert.deepEqual(
    loaded.handle.layout.vectors.map((vector) => [
      vector.kind,
      raggedOf(vector).itemCapacity,
      itemOffsets(loaded.handle.memory, vector, ROWS).at(-1),
    ]),
    [
      ['multi', counted, counted],
      ['sparse', 300, 300],
    ],
  );
});

test('multivectors stay in memory whatever is configured', () => {
  assert.deepEqual(
    handle.layout.vectors.map(({ file }) => file),
    [null, null],
  );
});

test('damage in a file of such vectors is an error that names it', async () => {
  for (const name of ['vectors.0', 'vectors.1']) {
    const file = path.join(folder, name);
    const bytes = fs.readFileSync(file);
    const flipped = (share: number): Uint8Array => {
      const at = Math.min(bytes.length - 1, Math.floor(bytes.length * share));
      return bytes.map((byte, index) => (index === at ? byte ^ 0x10 : byte));
    };
    const damages = [0, 0.1, 0.4, 0.7, 0.95, 1].map(flipped);
    for (const damaged of [...damages, bytes.subarray(0, bytes.length - 64), null]) {
      if (damaged === null) fs.rmSync(file);
      else fs.writeFileSync(file, damaged);
      await assert.rejects(loadSealed(folder, options), (error: { code: string; detail: string }) => {
        assert.ok(error.code === 'storage' && error.detail.startsWith(`${file}: `), error.detail);
        return true;
      });
    }
    fs.writeFileSync(file, bytes);
  }
});
