import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { closeSegmentFiles, readPayloadText, readPayloadTexts, writePayloadFile } from '../../../storage/segment/payload-file.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { replicaFolder, textOf, writeFixture } from './fixture.js';

const ROWS = 3000;
const replica = replicaFolder();
const handle = await writeFixture(replica, 1, ROWS);
test.after(() => fs.rmSync(replica, { recursive: true }));

const read = (source: SegmentHandle, row: number) => Buffer.from(readPayloadText(source, row)).toString();

test('texts are read in order, backwards and at random, an empty payload as {}', () => {
  for (let row = 0; row < ROWS; row++) assert.equal(read(handle, row), textOf(row));
  for (let row = ROWS - 1; row >= 0; row--) assert.equal(read(handle, row), textOf(row));
  for (let i = 0; i < ROWS; i++) assert.equal(read(handle, (i * 7919) % ROWS), textOf((i * 7919) % ROWS));
  closeSegmentFiles(handle);
  assert.equal(read(handle, 5), textOf(5));
  closeSegmentFiles(handle);
});

test('texts are read from memory where the collection keeps payloads there', async () => {
  const loaded = await loadSealed(handle.folder as string, { readers: 1, onDiskPayload: false, fields: new Map() });
  for (let row = 0; row < ROWS; row++) assert.equal(read(loaded.handle, row), textOf(row));
});

test('a text beyond the write buffer and an empty file are written whole', () => {
  const folder = path.join(replica, 'large');
  fs.mkdirSync(folder);
  const texts = ['{"a":1}', JSON.stringify({ text: 'x'.repeat(3_000_000) }), '', '{"b":2}'];
  const payloadOffsets = writePayloadFile(folder, 2, texts.length, (row) => Buffer.from(texts[row] as string));
  const large = { ...handle, folder, rows: texts.length, payloadOffsets };
  for (const row of [1, 0, 3, 2]) assert.equal(read(large, row), texts[row] || '{}');
  closeSegmentFiles(large);
});

test('texts of many rows come in the order asked for, rows that are far apart, missing texts and those beyond a block among them', () => {
  const folder = path.join(replica, 'many');
  fs.mkdirSync(folder);
  const texts = Array.from({ length: 2000 }, (_, row) => (row % 7 === 0 ? '' : JSON.stringify({ row, text: 'é'.repeat(row % 50) })));
  texts[700] = JSON.stringify({ text: 'x'.repeat(700_000) });
  const payloadOffsets = writePayloadFile(folder, 3, texts.length, (row) => Buffer.from(texts[row] as string));
  const many = { ...handle, folder, rows: texts.length, payloadOffsets };
  for (const rows of [texts.map((_, i) => (i * 1_663) % 2000), [1999, 0, 1000, 3, 2], [701, 700, 699], [5], []]) {
    const textAt = readPayloadTexts(many, Uint32Array.from(rows));
    assert.deepEqual(
      rows.map((_, place) => Buffer.from(textAt(place)).toString()),
      rows.map((row) => texts[row]),
    );
  }
  closeSegmentFiles(many);
});

test('a flipped byte of a record is reported, not returned', () => {
  const file = path.join(handle.folder as string, 'payload');
  const bytes = fs.readFileSync(file);
  const offsets = new Float64Array(handle.payloadOffsets as SharedArrayBuffer);
  for (const at of [offsets[8] as number, (offsets[8] as number) + 4, (offsets[9] as number) - 1]) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 1;
    fs.writeFileSync(file, damaged);
    assert.throws(() => readPayloadTexts(handle, Uint32Array.of(10, 8)), {
      name: 'DamagedFile',
      detail: `${file}: checksum of the payload of row 8 does not match`,
    });
    assert.throws(() => read(handle, 8), { name: 'DamagedFile', detail: `${file}: checksum of the payload of row 8 does not match` });
    assert.equal(read(handle, 10), textOf(10));
    closeSegmentFiles(handle);
  }
  fs.writeFileSync(file, bytes);
});
