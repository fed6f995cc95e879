import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { LIVE, residentOffset } from '../../../storage/segment/layout.js';
import { closeSegmentFiles, readPayloadText } from '../../../storage/segment/payload-file.js';
import { cleanSegmentFolders, fieldIndexFile, loadSealed, segmentFolder } from '../../../storage/segment/sealed.js';
import { readRows } from '../../../storage/segment/vector-file.js';
import { CITY, PLANS, replicaFolder, textOf, writeFixture } from './fixture.js';

const ROWS = 300;
const replica = replicaFolder();
const written = await writeFixture(replica, 7, ROWS);
const folder = written.folder as string;
const options = { readers: 4, onDiskPayload: true, fields: new Map([['city/..', CITY]]) };
test.after(() => fs.rmSync(replica, { recursive: true }));

/** All arrays that files hold, as text of their bytes, by name. */
function contents({ layout, memory, rows }: SegmentHandle): Record<string, string> {
  const bytes = (offset: number, length: number) => Buffer.from(new Uint8Array(memory.buffer, offset, length)).toString('base64');
  const parts: Record<string, string> = {
    kinds: bytes(layout.kinds, rows),
    ids: bytes(layout.ids, rows * 16),
    versions: bytes(layout.versions, rows * 8),
    order: bytes(layout.order, rows * 4),
  };
  for (const vector of layout.vectors) {
    parts[`${vector.name} vectors`] = bytes(residentOffset(vector), rows * vector.stride);
    parts[`${vector.name} presence`] = bytes(vector.presence, Math.ceil(rows / 32) * 4);
    if (vector.codes) parts[`${vector.name} codes`] = bytes(vector.codes.offset, rows * vector.codes.stride);
    if (vector.graph) parts[`${vector.name} level0`] = bytes(vector.graph.level0, rows * 4 * (1 + vector.graph.m0));
    if (vector.graph) parts[`${vector.name} upper`] = bytes(vector.graph.upper, vector.graph.upperWords * 4);
  }
  return parts;
}

/** Runs `use` while one byte of a file is flipped. */
async function whileFlipped(name: string, share: number, use: () => Promise<void>): Promise<void> {
  const file = path.join(folder, name);
  const bytes = fs.readFileSync(file);
  const damaged = Buffer.from(bytes);
  const at = Math.min(bytes.length - 1, Math.floor(bytes.length * share));
  damaged[at] = (damaged[at] as number) ^ 0x80;
  fs.writeFileSync(file, damaged);
  try {
    await use();
  } finally {
    fs.writeFileSync(file, bytes);
  }
}

test('a segment loads as it was written, into a layout with other scratch slots', async () => {
  const { handle, damagedFiles, description } = await loadSealed(folder, options);
  assert.deepEqual(damagedFiles, []);
  assert.deepEqual(contents(handle), contents(written));
  assert.notEqual(handle.layout.bytes, written.layout.bytes);
  assert.equal(handle.id, 7);
  assert.equal(handle.rows, ROWS);
  assert.equal(handle.folder, folder);
  assert.deepEqual(description.vectors, PLANS);
  assert.deepEqual(
    handle.layout.vectors.map(({ name, codes, graph }) => [name, codes?.scale, codes?.origin, graph?.entryRow, graph?.maxLevel]),
    [
      ['', 0.1, -1.25, 3, 1],
      ['a/../b ü', undefined, undefined, undefined, undefined],
    ],
  );
  assert.ok(new Uint32Array(handle.memory.buffer, handle.layout.deletedAt, ROWS).every((mark) => mark === LIVE));
  assert.equal(Buffer.from(readPayloadText(handle, 1)).toString(), textOf(1));
  assert.deepEqual(
    handle.fieldIndexes.map(({ field, type, buffer }) => [field, type, buffer.byteLength]),
    [['city/..', 'keyword', 100]],
  );
});

test('a file holds the segment only: no file name leaves the folder', () => {
  assert.deepEqual(fs.readdirSync(folder).sort(), [
    'codes.0',
    'graph.0',
    'index.city%2f%2e%2e',
    'payload',
    'rows',
    'segment',
    'vectors.0',
    'vectors.1',
  ]);
  assert.deepEqual(fs.readdirSync(path.dirname(folder)), ['7']);
});

test('damage in graph, codes or a field index is survived and listed', async () => {
  for (const share of [0, 0.05, 0.5, 1]) {
    await whileFlipped('graph.0', share, async () => {
      const { handle, damagedFiles, damages } = await loadSealed(folder, options);
      assert.deepEqual(damagedFiles, ['graph.0']);
      assert.ok(damages.length === 1 && damages[0]?.startsWith(`${path.join(folder, 'graph.0')}: `));
      assert.equal(handle.layout.vectors[0]?.graph, null);
      assert.notEqual(handle.layout.vectors[0]?.codes, null);
    });
    await whileFlipped('codes.0', share, async () => {
      const { handle, damagedFiles } = await loadSealed(folder, options);
      assert.deepEqual(damagedFiles, ['codes.0']);
      assert.equal(handle.layout.vectors[0]?.codes, null);
      assert.notEqual(handle.layout.vectors[0]?.graph, null);
    });
    await whileFlipped('index.city%2f%2e%2e', share, async () => {
      const { handle, damagedFiles } = await loadSealed(folder, options);
      assert.deepEqual(damagedFiles, ['index.city%2f%2e%2e']);
      assert.deepEqual(handle.fieldIndexes, []);
    });
  }
});

test('damage in segment, rows, vectors or payload is an error that names the file', async () => {
  for (const name of ['segment', 'rows', 'vectors.0', 'vectors.1', 'payload']) {
    for (const share of [0, 0.05, 0.5, 1]) {
      await whileFlipped(name, share, async () => {
        await assert.rejects(loadSealed(folder, options), (error: { code: string; detail: string }) => {
          assert.equal(error.code, 'storage');
          assert.ok(error.detail.startsWith(`${path.join(folder, name)}: `));
          return true;
        });
      });
    }
  }
});

test('torn and missing files are named, too', async () => {
  for (const name of fs.readdirSync(folder)) {
    const file = path.join(folder, name);
    const bytes = fs.readFileSync(file);
    const recoverable = /^(graph|codes|index)\./.test(name);
    for (const damage of ['torn', 'missing']) {
      if (damage === 'torn') fs.truncateSync(file, bytes.length - 64);
      else fs.rmSync(file);
      if (recoverable) {
        const { damagedFiles } = await loadSealed(folder, options);
        // A field index that is not there is no damage: it may never have been built.
        assert.deepEqual(damagedFiles, name.startsWith('index.') && damage === 'missing' ? [] : [name]);
      } else {
        await assert.rejects(loadSealed(folder, options), (error: { detail: string }) => error.detail.startsWith(`${file}: `));
      }
      fs.writeFileSync(file, bytes);
    }
  }
});

test('originals that stay on disk take no memory and are verified all the same', async () => {
  const onDisk = { ...options, onDisk: () => true };
  const { handle } = await loadSealed(folder, onDisk);
  const [inMemory] = written.layout.vectors;
  for (const vector of handle.layout.vectors) assert.equal(vector.offset, null);
  const [vector] = handle.layout.vectors;
  assert.ok(vector !== undefined && inMemory !== undefined && vector.file !== null);
  const rows = new Uint8Array(ROWS * vector.stride);
  readRows(handle, vector, 0, rows);
  closeSegmentFiles(handle);
  assert.deepEqual(rows, new Uint8Array(written.memory.buffer, residentOffset(inMemory), rows.length).slice());
  for (const name of ['vectors.0', 'vectors.1']) {
    for (const share of [0, 0.05, 0.5, 1]) {
      await whileFlipped(name, share, async () => {
        await assert.rejects(loadSealed(folder, onDisk), (error: { detail: string }) =>
          error.detail.startsWith(`${path.join(folder, name)}: `),
        );
      });
    }
  }
  await whileFlipped('codes.0', 0.5, async () => {
    const { handle: uncoded, damagedFiles } = await loadSealed(folder, onDisk);
    assert.deepEqual([damagedFiles, uncoded.layout.vectors[0]?.codes, uncoded.layout.vectors[0]?.graph], [['codes.0'], null, null]);
  });
});

test('a file of another segment is not taken for its own', async () => {
  const other = await writeFixture(replica, 8, ROWS);
  const own = fs.readFileSync(path.join(folder, 'rows'));
  fs.copyFileSync(path.join(other.folder as string, 'rows'), path.join(folder, 'rows'));
  await assert.rejects(loadSealed(folder, options), { detail: `${path.join(folder, 'rows')}: belongs to segment 8` });
  fs.writeFileSync(path.join(folder, 'rows'), own);
});

test('an index made for another schema counts as missing', async () => {
  const { handle, damagedFiles } = await loadSealed(folder, { ...options, fields: new Map([['city/..', { type: 'keyword' }]]) });
  assert.deepEqual([handle.fieldIndexes, damagedFiles], [[], []]);
});

test('links are not followed', async () => {
  const file = path.join(folder, 'vectors.0');
  fs.renameSync(file, path.join(replica, 'elsewhere'));
  fs.symlinkSync(path.join(replica, 'elsewhere'), file);
  await assert.rejects(loadSealed(folder, options), { detail: `${file}: is a link, and links are not followed` });
  fs.renameSync(path.join(replica, 'elsewhere'), file);
  const link = segmentFolder(replica, 9);
  fs.symlinkSync(folder, link);
  await assert.rejects(loadSealed(link, options), { detail: `${link}: is no folder` });
  fs.rmSync(link);
});

test('cleaning removes unfinished and unknown folders and keeps the rest', () => {
  fs.mkdirSync(path.join(replica, 'segments', '11.tmp'));
  fs.mkdirSync(path.join(replica, 'segments', '12'));
  cleanSegmentFolders(replica, new Set([7]));
  assert.deepEqual(fs.readdirSync(path.join(replica, 'segments')), ['7']);
});

test('file names of fields are safe, distinct and short', () => {
  assert.equal(fieldIndexFile('a.b[].c'), 'index.a%2eb%5b%5d%2ec');
  assert.notEqual(fieldIndexFile('A'), fieldIndexFile('a'));
  const long = [fieldIndexFile('ü'.repeat(500)), fieldIndexFile(`${'ü'.repeat(500)}x`)];
  assert.notEqual(long[0], long[1]);
  assert.ok(long.every((name) => name.length < 200));
});
