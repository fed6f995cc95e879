import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { DamagedFile, readSegmentFile, readSegmentFileInParts, SegmentFileWriter, writeSegmentFile } from '../../../storage/disk/file.js';
import { replicaFolder } from '../segment/fixture.js';

const folder = replicaFolder();
test.after(() => fs.rmSync(folder, { recursive: true }));
test.before(() => initChecksum());

const facts = { segment: 3, text: 'ü', nested: { a: [1, 2] } };

function writeSample(name: string): string {
  const file = path.join(folder, name);
  writeSegmentFile(file, 'rows', facts, { kinds: new Uint8Array([1, 2, 3]), ids: new Uint8Array(200).fill(9), none: new Uint8Array(0) });
  return file;
}

function readAll(file: string): void {
  readSegmentFile(file, 'rows', (reader) => {
    for (const name of ['kinds', 'ids', 'none']) reader.readShared(name);
  });
}

function damageOf(file: string, read: () => void): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof DamagedFile);
    assert.equal(error.code, 'storage');
    assert.equal(error.path, file);
    assert.ok(error.detail.startsWith(`${file}: `));
    return error.detail.slice(file.length + 2);
  }
  return 'no damage';
}

test('a file gives back its facts and sections, sections at multiples of 64', () => {
  const file = writeSample('good');
  readSegmentFile(file, 'rows', (reader) => {
    assert.deepEqual(reader.facts, facts);
    assert.deepEqual([...new Uint8Array(reader.readShared('kinds'))], [1, 2, 3]);
    assert.deepEqual([...new Uint8Array(reader.readShared('ids'))], new Array(200).fill(9));
    assert.equal(reader.readShared('none').byteLength, 0);
    assert.equal(reader.section('ids').offset % 64, 0);
  });
  assert.equal(fs.statSync(file).size % 64, 0);
});

test('every flipped byte of a file is noticed and reported with the file name', () => {
  const file = writeSample('flipped');
  const bytes = fs.readFileSync(file);
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 0x10;
    fs.writeFileSync(file, damaged);
    assert.notEqual(
      damageOf(file, () => readAll(file)),
      'no damage',
      `byte ${at}`,
    );
  }
});

test('a file cut off at any length is reported as torn', () => {
  const file = writeSample('torn');
  const bytes = fs.readFileSync(file);
  for (const length of [0, 7, 63, 64, 100, 400, bytes.length - 1]) {
    fs.writeFileSync(file, bytes.subarray(0, length));
    assert.match(
      damageOf(file, () => readAll(file)),
      /^torn: /,
    );
  }
  fs.writeFileSync(file, Buffer.concat([bytes, Buffer.from([0])]));
  assert.match(
    damageOf(file, () => readAll(file)),
    /^torn: /,
  );
});

test('an unknown format version, another kind and a foreign file are told apart', () => {
  const file = writeSample('kinds');
  assert.equal(
    damageOf(file, () => readSegmentFile(file, 'graph', () => {})),
    'holds rows, not graph',
  );
  const bytes = fs.readFileSync(file);
  bytes.writeUInt32LE(9, 8);
  fs.writeFileSync(file, bytes);
  assert.equal(
    damageOf(file, () => readAll(file)),
    'unknown format version 9; this release reads versions 1 and 2',
  );
  fs.writeFileSync(file, Buffer.alloc(500, 65));
  assert.equal(
    damageOf(file, () => readAll(file)),
    'is no segment file (wrong magic)',
  );
});

test('a missing file, a folder and a link are refused', () => {
  const file = path.join(folder, 'missing');
  assert.equal(
    damageOf(file, () => readAll(file)),
    'is missing',
  );
  const link = path.join(folder, 'link');
  fs.symlinkSync(writeSample('linked'), link);
  assert.match(
    damageOf(link, () => readAll(link)),
    /^is a link/,
  );
  assert.match(
    damageOf(folder, () => readAll(folder)),
    /^is no regular file/,
  );
});

test('sections come from pieces of any size and are read into shared memory, with pauses at parts of 4 MB', async () => {
  const file = path.join(folder, 'pieces');
  const writer = new SegmentFileWriter(file, 'vectors', {}, ['vectors']);
  const pieces = Array.from({ length: 90 }, (_, i) => new Uint8Array(100_003).fill(i));
  writer.section('vectors', pieces);
  writer.finish();
  const memory = new WebAssembly.Memory({ initial: 200, maximum: 200, shared: true });
  const target = new Uint8Array(memory.buffer, 4096, 90 * 100_003);
  readSegmentFile(file, 'vectors', (reader) => {
    reader.readInto('vectors', target);
    assert.match(
      damageOf(file, () => reader.readInto('vectors', target.subarray(1))),
      /bytes where/,
    );
  });
  for (let i = 0; i < 90; i++) assert.equal(target[i * 100_003 + 50_000], i);
  target.fill(0);
  let pauses = 0;
  const pause = async () => void pauses++;
  await readSegmentFileInParts(file, 'vectors', async (reader) => {
    await reader.readIntoInParts('vectors', target, pause);
    assert.equal(pauses, 3);
    await reader.verifyInParts('vectors', pause);
    assert.equal(pauses, 5);
    await assert.rejects(reader.verifyInParts('codes', pause), /no section 'codes'/);
    assert.deepEqual(Buffer.from(await reader.readSharedInParts('vectors', pause)), Buffer.from(target));
  });
  for (let i = 0; i < 90; i++) assert.equal(target[i * 100_003 + 50_000], i);
});

test('a section that is read in parts is refused for a wrong byte in its last part, and where the file ends before it', async () => {
  const file = path.join(folder, 'last-part');
  const writer = new SegmentFileWriter(file, 'vectors', {}, ['vectors']);
  const bytes = 40_000_000;
  writer.section('vectors', [new Uint8Array(bytes).fill(5)]);
  writer.finish();
  const read = (pause = async () => {}) =>
    readSegmentFileInParts(file, 'vectors', (reader) => reader.readIntoInParts('vectors', new Uint8Array(bytes), pause));
  await read();
  const content = fs.readFileSync(file);
  content[content.length - 100_000] = 6;
  fs.writeFileSync(file, content);
  await assert.rejects(read(), /checksum of section 'vectors'/);
  const ends = async (): Promise<void> => fs.truncateSync(file, bytes - 100_000);
  await assert.rejects(read(ends), (error) => error instanceof DamagedFile && /torn: ends at byte/.test(error.message));
});

test('what is broken off between two parts has nothing read into its memory any more', async () => {
  const file = path.join(folder, 'broken-off');
  const writer = new SegmentFileWriter(file, 'vectors', {}, ['vectors']);
  const bytes = 40_000_000;
  writer.section('vectors', [new Uint8Array(bytes).fill(5)]);
  writer.finish();
  const target = new Uint8Array(new SharedArrayBuffer(bytes));
  const breakOff = async (): Promise<void> => {
    throw new Error('the node stops');
  };
  await assert.rejects(
    readSegmentFileInParts(file, 'vectors', (reader) => reader.readIntoInParts('vectors', target, breakOff)),
    /the node stops/,
  );
  const read = target.lastIndexOf(5);
  target.fill(0);
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  assert.ok(read > 0 && target.lastIndexOf(5) === -1);
});
