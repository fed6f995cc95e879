import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import test from 'node:test';
import { promisify } from 'node:util';
import type { BuildControl } from '../../../storage/builder/control.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { FilePages } from '../../../storage/memory/system-calls.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { findRow } from '../../../storage/segment/ids.js';
import { LIVE, residentOffset, type VectorLayout } from '../../../storage/segment/layout.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { broughtNode } from '../../brought-node.js';
import { temporaryFolder } from '../replica/support.js';
import { replicaFolder } from '../segment/fixture.js';
import { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, payloadsFrom, randomFrom } from './fixture.js';

const folder = replicaFolder();
test.before(() => initChecksum());
test.after(() => fs.rmSync(folder, { recursive: true }));

const DIM = 256;
const COUNT = 6000;
const payloads = payloadsFrom(() => '{}');
/** Row `at` of each of two sources is row `2 * at + n` of these. */
const rows = clusteredRows(COUNT, DIM, { clusters: 60, range: 1, spread: 0.3, seed: 5 });

/** A third of the rows of the first source is deleted, and some rows of the second have no vector. */
function twoSources(): SegmentHandle[] {
  return [0, 1].map((n) =>
    makeSource({
      id: n + 1,
      rows: COUNT / 2,
      vectors: {
        '': { params: { size: DIM, distance: 'Euclid' }, of: (row) => (n === 1 && row % 50 === 7 ? undefined : rows[2 * row + n]) },
      },
      idOf: (row) => 2 * row + n,
      deletedAt: (row) => (n === 0 && row % 3 === 1 ? 5 : LIVE),
    }),
  );
}

let nextSegment = 1;

function build(control: BuildControl, sources = twoSources(), onDisk?: boolean): ReturnType<typeof buildSegment> {
  const config = makeConfig({ size: DIM, distance: 'Euclid', ...(onDisk === undefined ? {} : { on_disk: onDisk }) });
  const job = makeJob({ folder, config, sources, rows: sources.map(() => COUNT / 2), segmentId: nextSegment++ });
  return buildSegment(job, () => payloads, control);
}

/** Memory in which parts are zero, or what their file has, once they were let go of. */
class FakePages implements FilePages {
  readonly placed: { readonly buffer: ArrayBufferLike; readonly offset: number; readonly content: Buffer }[] = [];
  letGoes = 0;

  put(part: Parameters<FilePages['put']>[0], descriptor: number, position: number): boolean {
    const content = Buffer.alloc(part.bytes);
    fs.readSync(descriptor, content, 0, part.bytes, position);
    this.placed.push({ buffer: part.buffer, offset: part.offset, content });
    this.letGo(part);
    return true;
  }

  letGo({ buffer, bytes, offset }: Parameters<FilePages['letGo']>[0]): void {
    this.letGoes++;
    const known = this.placed.find((placed) => placed.buffer === buffer && placed.offset === offset && placed.content.length === bytes);
    const target = new Uint8Array(buffer, offset, bytes);
    if (known === undefined) target.fill(0);
    else target.set(known.content);
  }
}

function vectorOf({ layout, memory, rows: count }: SegmentHandle): { readonly layout: VectorLayout; readonly bytes: Buffer } {
  const vector = layout.vectors[0] as VectorLayout;
  return { layout: vector, bytes: Buffer.from(memory.buffer, residentOffset(vector), count * vector.stride) };
}

test('a build that brings originals only while it reads them makes just what one makes that has them all in memory', async () => {
  const kept = await build(freeControl);
  const pages = new FakePages();
  const sources = twoSources();
  const before = sources.map((source) => Buffer.from(vectorOf({ ...source, rows: COUNT / 2 }).bytes));
  const called = await build({ ...freeControl, pages, onCallBytesMin: 1 << 20 }, sources);
  assert.deepEqual(
    pages.placed.map(({ buffer }) => buffer),
    sources.map(({ memory }) => memory.buffer),
  );
  assert.ok(pages.letGoes > 20, `${pages.letGoes} times`);
  for (const [n, source] of sources.entries())
    assert.ok(vectorOf({ ...source, rows: COUNT / 2 }).bytes.equals(before[n] as Buffer), 'sources can be read as before');
  assert.deepEqual(called.report.graphs, kept.report.graphs);
  for (const handle of [
    called.handle,
    (await loadSealed(called.handle.folder as string, { readers: 1, onDiskPayload: true, fields: new Map() })).handle,
  ]) {
    assert.ok(vectorOf(handle).bytes.equals(vectorOf(kept.handle).bytes));
    assert.equal(findRow(handle, 2), undefined, 'a deleted row');
  }
  for (const file of ['codes.0', 'graph.0']) {
    const [one, other] = [called, kept].map(({ handle }) => fs.readFileSync(`${handle.folder}/${file}`).subarray(1024));
    assert.ok(one?.equals(other as Buffer), file);
  }
  assert.deepEqual(fs.readdirSync(called.handle.folder as string).sort(), fs.readdirSync(kept.handle.folder as string).sort());
});

test('originals that somebody wants in memory stay there while a build works', async () => {
  const pages = new FakePages();
  await build({ ...freeControl, pages, onCallBytesMin: 1 << 20 }, twoSources(), false);
  assert.equal(pages.placed.length, 0);
});

test('what walks need the originals for has them all in memory in the end', async () => {
  const random = randomFrom(3);
  // Two far values make codes of no use.
  const wild = Array.from({ length: 2000 }, (_, row) => Float32Array.from({ length: DIM }, () => (row === 5 ? 1e6 : random())));
  const params = { size: DIM, distance: 'Euclid' as const };
  const source = makeSource({ id: 1, rows: wild.length, vectors: { '': { params, of: (row) => wild[row] } }, idOf: (row) => row });
  const job = makeJob({ folder, config: makeConfig(params), sources: [source], rows: [wild.length], segmentId: nextSegment++ });
  const { handle } = await buildSegment(job, () => payloads, { ...freeControl, pages: new FakePages(), onCallBytesMin: 1 << 20 });
  const { bytes, layout } = vectorOf(handle);
  assert.equal(layout.codes, null);
  for (const [id, row] of wild.entries()) {
    const at = (findRow(handle, id) as number) * layout.stride;
    assert.ok(bytes.subarray(at, at + layout.stride).equals(Buffer.from(row.buffer)));
  }
});

/** Builds 17 MB of originals with pages of the system's, and looks at them and at their sources. */
const PROGRAM = `
import { readFileSync } from 'node:fs';
const [modules, folder] = process.argv.slice(1);
const load = (file) => import(new URL(file, modules));
const { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, payloadsFrom } = await load('test/storage/builder/fixture.js');
const { filePages } = await load('storage/memory/system-calls.js');
const { findRow } = await load('storage/segment/ids.js');
const { initChecksum } = await load('storage/disk/checksum.js');
await initChecksum();
const count = 4300;
const params = { size: 1024, distance: 'Euclid' };
const rows = clusteredRows(count, 1024, { clusters: 20, range: 1, spread: 0.3, seed: 5 });
const source = makeSource({ id: 1, rows: count, vectors: { '': { params, of: (row) => rows[row] } }, idOf: (row) => row });
const job = makeJob({ folder, config: makeConfig(params), sources: [source], rows: [count], segmentId: 7 });
const { handle } = await buildSegment(job, () => payloadsFrom(() => '{}'), { ...freeControl, pages: filePages() });
const areThere = ({ layout, memory }, rowOf) =>
  rows.every((row, id) => Buffer.from(memory.buffer, layout.vectors[0].offset + rowOf(id) * 4096, 4096).equals(Buffer.from(row.buffer)));
/** Files that are mapped, and kB of them in memory. */
const mapped = () =>
  readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-)/m).filter((entry) => entry.includes(folder)).map((entry) => [
    / (\\S+( \\(deleted\\))?)$/m.exec(entry)[1].slice(folder.length), Number(/^Anonymous:\\s+(\\d+)/m.exec(entry)[1])]);
const files = mapped();
const built = areThere(handle, (id) => findRow(handle, id));
const kept = areThere(source, (id) => id);
// As when the build was given up.
new Float32Array(source.memory.buffer, source.layout.vectors[0].offset + count * 4096, 1024).fill(1);
console.log(JSON.stringify({ files, built, kept }));
`;

test('with pages of the system, neither the sources of a build nor what it has made hold their originals in memory', async (t) => {
  const runtime = broughtNode();
  if (runtime === null || process.platform !== 'linux') return t.skip('needs the runtime that Troupe brings along, on Linux');
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', PROGRAM];
  const modules = new URL('../../../', import.meta.url).href;
  const { stdout, stderr } = await promisify(execFile)(runtime, [...words, modules, temporaryFolder(t)], {
    env: { ...process.env, TROUPE_STARTED: 'brought' },
  });
  assert.equal(stderr, '');
  const { files, ...rest } = JSON.parse(stdout);
  assert.deepEqual(files.sort(), [
    ['/segments/7/sources (deleted)', 0],
    ['/segments/7/vectors.0', 0],
  ]);
  assert.deepEqual(rest, { built: true, kept: true });
});
