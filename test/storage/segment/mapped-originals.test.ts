import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { VectorParams } from '../../../protocols/model/collection.js';
import type { VectorLayout } from '../../../storage/segment/layout.js';
import { mappedRange, mayBeMapped } from '../../../storage/segment/mapped-originals.js';
import { broughtNode } from '../../brought-node.js';
import { makeConfig } from '../builder/fixture.js';
import { CollectionFixture, configOf, randomOf } from '../engine/collection-fixture.js';
import { temporaryFolder } from '../replica/support.js';

const KB64 = 65_536;

test('whole 64 KB of originals are mapped, where they lie in memory as they lie in their file', () => {
  assert.deepEqual(mappedRange(KB64 + 192, 192, 3 * KB64), { offset: 2 * KB64, bytes: 2 * KB64, position: KB64 });
  assert.deepEqual(mappedRange(2 * KB64, KB64, KB64), { offset: 2 * KB64, bytes: KB64, position: KB64 });
  assert.equal(mappedRange(KB64 + 192, 192, 2 * KB64 - 193), null, 'no whole 64 KB');
  assert.equal(mappedRange(KB64 + 256, 192, 3 * KB64), null, 'another place');
});

test('originals are mapped where they are many, a walk scores codes, and nobody wants them in memory', () => {
  const vector = { name: '', kind: 'dense', codes: {}, graph: {}, offset: 1024, stride: 1024 } as VectorLayout;
  const rows = (16 << 20) / 1024;
  const decide = (onDisk: VectorParams['on_disk'], memmapKb: number | null, more: Partial<VectorLayout> = {}, count = rows) => {
    const config = makeConfig({ size: 256, distance: 'Dot', on_disk: onDisk });
    return mayBeMapped({ ...vector, ...more }, count, {
      ...config,
      optimizer_config: { ...config.optimizer_config, memmap_threshold: memmapKb },
    });
  };
  assert.equal(decide(undefined, null), true);
  assert.equal(decide(undefined, 1 << 30), true);
  assert.equal(decide(undefined, null, {}, rows - 1), false);
  assert.equal(decide(false, null), false);
  assert.equal(decide(undefined, 0), false);
  for (const more of [{ codes: null }, { graph: null }, { offset: null }, { kind: 'multi' }] as const)
    assert.equal(decide(undefined, null, more), false, JSON.stringify(more));
});

/** Loads a segment, has its originals mapped, reads them, lets go of them and reads them again when their file has lost its name. */
const PROGRAM = `
import { readFileSync, rmSync } from 'node:fs';
const [modules, folder, config] = process.argv.slice(1);
const load = (file) => import(new URL(file, modules));
const { loadSealed } = await load('segment/sealed.js');
const { originalsOffset } = await load('segment/originals.js');
const { tendOriginals } = await load('segment/mapped-originals.js');
const { filePages, memoryEmptier } = await load('memory/system-calls.js');
const { handle } = await loadSealed(folder, { readers: 1, onDiskPayload: true, fields: new Map(), later: () => true });
const [vector] = handle.layout.vectors;
const there = () => originalsOffset(handle.memory, vector) !== null;
const file = folder + '/vectors.0';
const stored = readFileSync(file).subarray(vector.file.start, vector.file.start + handle.rows * vector.stride);
const areEqual = () => Buffer.from(handle.memory.buffer, vector.offset, stored.length).equals(stored);
/** kB of the file that are mapped and in memory. */
const resident = () =>
  readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-)/m).filter((entry) => entry.includes(file)).reduce((sum, entry) => sum + Number(/^Rss:\\s+(\\d+)/m.exec(entry)[1]), 0);
const pages = filePages();
const before = there();
const mapped = tendOriginals(handle, JSON.parse(config), pages, 0);
const after = there();
const equal = areEqual();
const read = resident();
const again = tendOriginals(handle, JSON.parse(config), pages, 0);
const left = resident();
rmSync(file);
const equalWithoutName = areEqual();
const { buffer } = handle.memory;
const kept = readFileSync('/proc/self/smaps', 'utf8').includes(file);
memoryEmptier()({ buffer, offset: 0, bytes: buffer.byteLength });
const isEmpty = new Uint32Array(buffer).every((word) => word === 0);
const gone = !readFileSync('/proc/self/smaps', 'utf8').includes(file);
console.log(JSON.stringify({ before, mapped, after, equal, read: read > 0, again, left, equalWithoutName, kept, isEmpty, gone }));
`;

test('originals that are mapped are those of the file, take memory only from when they are read until they are let go of, need no name of their file, and leave with what was there when their memory is emptied', async (t) => {
  const runtime = broughtNode();
  if (runtime === null || process.platform !== 'linux') return t.skip('needs the runtime that Troupe brings along, on Linux');
  const random = randomOf(7);
  const fixture = new CollectionFixture(configOf({ size: 203, distance: 'Dot' }));
  t.after(() => fixture.remove());
  const vectors = () => ({ '': Array.from({ length: 203 }, () => random() * 2 - 1) });
  await fixture.addSealed(
    Array.from({ length: 400 }, (_, id) => ({ id, vectors: vectors(), payload: {} })),
    true,
  );
  const built = fixture.snapshot().segments[0]?.handle;
  assert.ok(built?.folder);
  const folder = path.join(temporaryFolder(t), String(built.id));
  cpSync(built.folder, folder, { recursive: true });
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', PROGRAM];
  const modules = new URL('../../../storage/', import.meta.url).href;
  const { stdout, stderr } = await promisify(execFile)(runtime, [...words, modules, folder, JSON.stringify(fixture.config)], {
    env: { ...process.env, TROUPE_STARTED: 'brought' },
  });
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), {
    before: false,
    mapped: true,
    after: true,
    equal: true,
    read: true,
    again: true,
    left: 0,
    equalWithoutName: true,
    kept: true,
    isEmpty: true,
    gone: true,
  });
});
