import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { reasonOf } from '../../../protocols/errors.js';
import type { Distance, VectorParams } from '../../../protocols/model/collection.js';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import { BuildCancelled } from '../../../storage/builder/control.js';
import { presentRows, readFloats } from '../../../storage/builder/matrix.js';
import { openPayloadSource } from '../../../storage/builder/payload-source.js';
import { measureRecall } from '../../../storage/builder/recall.js';
import { NOT_TAKEN } from '../../../storage/builder/select-rows.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { FilePages } from '../../../storage/memory/system-calls.js';
import { codeMatrix } from '../../../storage/segment/code-matrix.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { findRow, idAt } from '../../../storage/segment/ids.js';
import { LIVE, scratchOf, type VectorLayout } from '../../../storage/segment/layout.js';
import { readOriginals } from '../../../storage/segment/originals.js';
import { closeSegmentFiles, readPayloadText } from '../../../storage/segment/payload-file.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { learnProfile } from '../../../storage/segment/walk-profile.js';
import type { BuiltSegment } from '../../../storage/threads/messages.js';
import { instantiateKernels } from '../../../vectors/kernels.js';
import { normalizeRows } from '../../../vectors/normalize.js';
import { PROFILE_RANKS } from '../../../vectors/walk-end.js';
import { replicaFolder } from '../segment/fixture.js';
import {
  buildSegment,
  clusteredRows,
  DISTANCES,
  freeControl,
  makeConfig,
  makeJob,
  makeSource,
  payloadsFrom,
  randomFrom,
  type SourceVector,
} from './fixture.js';

const folder = replicaFolder();
test.before(() => initChecksum());
test.after(() => fs.rmSync(folder, { recursive: true }));

const ROWS = 2000;
const DIM = 16;
const payloads = payloadsFrom((source, row) => (row % 3 === 0 ? '{}' : `{"source":${source},"n":${row}}`));

let nextSegment = 1;

/** One source, one unnamed vector. */
async function buildOne(
  distance: Distance,
  rows: Float32Array[],
  facts: { element?: 'f32' | 'f16' | 'u8'; withGraph?: boolean } = {},
  control = freeControl,
): ReturnType<typeof buildSegment> {
  const params: VectorParams = { size: (rows[0] as Float32Array).length, distance };
  const source = makeSource({
    id: 1,
    rows: rows.length,
    vectors: { '': { params, element: facts.element, of: (row) => rows[row] } },
    idOf: (row) => row,
  });
  const job = makeJob({
    folder,
    config: makeConfig(params),
    sources: [source],
    rows: [rows.length],
    segmentId: nextSegment++,
    withGraph: facts.withGraph,
  });
  return buildSegment(job, () => payloads, control);
}

function recallOf({ layout, memory, rows }: SegmentHandle): number {
  const vector = layout.vectors[0];
  assert.ok(vector?.graph);
  return measureRecall({ layout, memory, vector, rows, present: presentRows(memory, vector, rows) }, 64, 0.95);
}

for (const distance of DISTANCES) {
  test(`${distance}: rows are sealed with codes and an 8-bit graph of good recall, and load again from their files`, async () => {
    const rows = clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 });
    if (distance === 'Cosine') for (const row of rows) normalizeRows(row, DIM);
    const { handle, report } = await buildOne(distance, rows);
    assert.equal(report.rows, ROWS);
    assert.deepEqual(
      report.graphs.map(({ name, element }) => [name, element]),
      [['', 'i8']],
    );
    assert.ok((report.graphs[0]?.recall as number) >= 0.95, `recall ${report.graphs[0]?.recall}`);
    const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields: new Map() });
    assert.deepEqual(loaded.damagedFiles, []);
    assert.deepEqual(loaded.description.report, report);
    for (const segment of [handle, loaded.handle]) {
      const vector = segment.layout.vectors[0];
      assert.ok(vector?.codes && vector.graph);
      const taken = Uint32Array.from([0, 999, ROWS - 1], (id) => findRow(segment, id) as number);
      assert.deepEqual(readFloats(segment.memory, vector, taken), concat([rows[0], rows[999], rows[ROWS - 1]]));
      assert.ok(recallOf(segment) >= 0.95);
    }
  });
}

test('a build keeps how distances grow in its graph: just what a thread would learn of the files', async () => {
  const rows = clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 });
  const { handle } = await buildOne('Euclid', rows);
  const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields: new Map() });
  const { layout, memory } = loaded.handle;
  const vector = layout.vectors[0];
  assert.ok(vector?.graph && vector.codes);
  const kept = vector.graph.profile;
  assert.equal(kept?.length, PROFILE_RANKS);
  const subject = {
    ...{ memory, rows: ROWS, deletedAt: layout.deletedAt, graph: vector.graph, matrix: codeMatrix(memory, vector, vector.codes) },
    ...{ hasVector: () => true, original: () => assert.fail('walks score codes') },
  };
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  assert.deepEqual(learnProfile(subject, kernels, scratchOf(layout, 1)), kept);
});

test('dot products tell no distances, so their graph has no profile', async () => {
  const { handle } = await buildOne('Dot', clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 }));
  assert.equal(handle.layout.vectors[0]?.graph?.profile, undefined);
});

test('every element type is sealed as it is stored; vectors of bytes need no codes', async () => {
  const bytes = clusteredRows(600, 20, { clusters: 20, range: 100, spread: 9, seed: 8 }).map((row) =>
    row.map((value) => Math.max(0, Math.min(255, Math.round(value + 120)))),
  );
  for (const distance of ['Euclid', 'Dot'] as const) {
    for (const element of ['f16', 'u8'] as const) {
      const { handle, report } = await buildOne(distance, bytes, { element });
      const vector = handle.layout.vectors[0];
      assert.equal(vector?.element, element);
      assert.equal(vector?.codes === null, element === 'u8');
      assert.ok((report.graphs[0]?.recall as number) >= 0.95, `${distance} ${element}: ${JSON.stringify(report)}`);
    }
  }
});

test('vectors that codes stand for are kept as codes alone, and come back to the bit, also from a build of the sealed segment', async () => {
  const dim = 19;
  const of = (row: number) => Float32Array.from({ length: dim }, (_, i) => ((row * 31 + i * 7) % 256) - 100);
  const rows = Array.from({ length: 300 }, (_, row) => of(row));
  const { handle } = await buildOne('Euclid', rows);
  const folderOf = handle.folder as string;
  const again = await buildSegment(
    makeJob({ folder, config: makeConfig({ size: dim, distance: 'Euclid' }), sources: [handle], rows: [300], segmentId: nextSegment++ }),
    openPayloadSource,
    freeControl,
  );
  const loaded = await loadSealed(folderOf, {
    readers: 2,
    onDiskPayload: true,
    fields: new Map(),
    onDisk: (plan) => plan.decoded !== true,
  });
  for (const segment of [handle, again.handle, loaded.handle]) {
    const vector = segment.layout.vectors[0] as VectorLayout;
    assert.deepEqual([vector.decoded, vector.offset, vector.file, vector.codes?.exact], [true, null, null, true]);
    for (const id of [0, 1, 299]) {
      const bytes = new Uint8Array(vector.stride);
      readOriginals(segment, vector, findRow(segment, id) as number, bytes);
      assert.deepEqual(new Float32Array(bytes.buffer, 0, dim), of(id));
    }
  }
  // Four bytes a component less; what is left is presence.
  assert.ok(fs.statSync(path.join(folderOf, 'vectors.0')).size < 2048);
  assert.deepEqual(
    ['segment', 'vectors.0', 'codes.0'].map((name) => fs.readFileSync(path.join(folderOf, name)).readUInt32LE(8)),
    [2, 2, 1],
  );
  const codes = fs.readFileSync(path.join(folderOf, 'codes.0'));
  codes[codes.length - 100] = (codes[codes.length - 100] as number) ^ 1;
  fs.writeFileSync(path.join(folderOf, 'codes.0'), codes);
  await assert.rejects(loadSealed(folderOf, { readers: 2, onDiskPayload: true, fields: new Map() }), /codes\.0/);
  for (const segment of [handle, again.handle, loaded.handle]) closeSegmentFiles(segment);
});

test('originals that codes stand for are given up before their graph is built, and nothing needs them any more', async () => {
  const dim = 128;
  const of = (row: number) => Float32Array.from({ length: dim }, (_, i) => (row * 31 + i * (1 + (row % 13))) % 256);
  const rows = Array.from({ length: 600 }, (_, row) => of(row));
  let given = 0;
  const pages: FilePages = {
    put: () => assert.fail('these are too few to be put on disk'),
    letGo: ({ buffer, bytes, offset }) => {
      given += bytes;
      new Uint8Array(buffer, offset, bytes).fill(0);
    },
  };
  const { handle, report } = await buildOne('Euclid', rows, {}, { ...freeControl, pages });
  // Of 300 kB, whole parts of 64.
  assert.ok(given >= 3 << 16, `${given} bytes`);
  const kept = await buildOne('Euclid', rows);
  assert.deepEqual(report.graphs, kept.report.graphs);
  assert.ok((report.graphs[0]?.recall as number) >= 0.95);
  const vector = handle.layout.vectors[0] as VectorLayout;
  for (const [id, row] of rows.entries()) {
    const bytes = new Uint8Array(vector.stride);
    readOriginals(handle, vector, findRow(handle, id) as number, bytes);
    assert.deepEqual(new Float32Array(bytes.buffer, 0, dim), row);
  }
});

test('one component that no code stands for keeps the floats of all', async () => {
  for (const odd of [-0, 1.5, 300]) {
    const rows = Array.from({ length: 300 }, (_, row) => Float32Array.of(row % 256, 255 - (row % 256), row === 299 ? odd : 7));
    const { handle } = await buildOne('Euclid', rows);
    const vector = handle.layout.vectors[0] as VectorLayout;
    assert.equal(vector.decoded, false);
    const [component] = readFloats(handle.memory, vector, Uint32Array.of(findRow(handle, 299) as number)).slice(2);
    assert.ok(Object.is(component, odd));
  }
});

test('cosine of bytes gets an empty graph, as it is never walked', async () => {
  const params = { size: 2, distance: 'Cosine' as const, datatype: 'uint8' as const };
  const source = makeSource({ id: 1, rows: 50, vectors: { '': { params, element: 'u8', of: (row) => [row, 9] } }, idOf: (row) => row });
  const job = makeJob({ folder, config: makeConfig(params), sources: [source], rows: [50], segmentId: nextSegment++ });
  const { handle } = await buildSegment(job, () => payloads, freeControl);
  assert.equal(handle.layout.vectors[0]?.graph?.entryRow, 0xffff_ffff);
});

test('dot products of vectors of one length are built by distance, of any length by product, both with good recall', async () => {
  const rows = clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 6 });
  const stretched = rows.map((row, i) => row.map((value) => value * (1 + (i % 7))));
  for (const data of [rows, stretched]) {
    const { handle } = await buildOne('Dot', data);
    assert.ok(recallOf(handle) >= 0.95, `recall ${recallOf(handle)}`);
  }
});

test('data that 8 bits cannot tell apart is built in a larger type and searched without codes', async () => {
  const elementFor = async (range: number, spread: number) => {
    const { handle, report } = await buildOne('Euclid', clusteredRows(ROWS, DIM, { clusters: 20, range, spread, seed: 7 }));
    assert.equal(handle.layout.vectors[0]?.codes, null);
    assert.equal(handle.layout.vectors[0]?.graph?.byCodes, undefined);
    assert.ok((report.graphs[0]?.recall as number) >= 0.95, JSON.stringify(report));
    assert.equal(fs.existsSync(path.join(handle.folder as string, 'codes.0')), false);
    return report.graphs[0]?.element;
  };
  assert.equal(await elementFor(8, 0.02), 'f16');
  assert.equal(await elementFor(1000, 0.05), 'f32');
  assert.equal(await elementFor(1e6, 1000), 'f32');
});

test('random directions, hard for every type, are built once, in 8 bits, though their graph misses neighbours', async () => {
  const random = randomFrom(11);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const rows = Array.from({ length: 6000 }, () => Float32Array.from({ length: 64 }, normal));
  const graphs: string[] = [];
  const params: VectorParams = { size: 64, distance: 'Euclid' };
  const source = makeSource({ id: 1, rows: rows.length, vectors: { '': { params, of: (row) => rows[row] } }, idOf: (row) => row });
  const config = makeConfig(params, { m: 4, ef_construct: 16 });
  const job = makeJob({ folder, config, sources: [source], rows: [rows.length], segmentId: nextSegment++ });
  const progress = (stage: string) => void (stage.startsWith('checking') && graphs.push(stage));
  const { report } = await buildSegment(job, () => payloads, { ...freeControl, progress });
  assert.ok((report.graphs[0]?.recall as number) < 0.9, JSON.stringify(report));
  assert.deepEqual(graphs, ['checking i8 graph']);
});

test('without a graph rows are sealed with codes only', async () => {
  const { handle, report } = await buildOne('Euclid', clusteredRows(200, 4, { clusters: 4, range: 1, spread: 1, seed: 1 }), {
    withGraph: false,
  });
  assert.deepEqual([report.graphs, handle.layout.vectors[0]?.graph], [[], null]);
  assert.notEqual(handle.layout.vectors[0]?.codes, null);
});

test('rows of several sources come together; deleted ones stay behind, and maps carry later deletions over', async () => {
  const params = { size: 3, distance: 'Euclid' as const };
  const of = (row: number) => [row, -row, 0.5];
  const first = makeSource({
    id: 1,
    rows: 400,
    vectors: { '': { params, of } },
    idOf: (row) => 1000 - row,
    deletedAt: (row) => (row % 4 === 0 ? 90 : row % 4 === 1 ? 110 : LIVE),
  });
  const second = makeSource({
    id: 2,
    rows: 300,
    vectors: { '': { params, of } },
    idOf: (row) => `00000000-0000-4000-8000-${String(row).padStart(12, '0')}`,
  });
  const config = makeConfig(params);
  const fields = new Map([['n', { type: 'integer' as const }]]);
  const one = await buildSegment(
    makeJob({ folder, config, sources: [first, second], rows: [400, 200], seq: 100, segmentId: nextSegment++, fields }),
    () => payloads,
    freeControl,
  );
  assert.deepEqual(one.sources, [1, 2]);
  assert.equal(one.handle.rows, 300 + 200);
  const maps = one.rowMaps.map((map) => new Uint32Array(map));
  assert.deepEqual(
    maps.map((map) => map.length),
    [400, 200],
  );
  assert.equal(maps[0]?.[0], NOT_TAKEN);
  for (let row = 0; row < 400; row++) {
    if (row % 4 === 0) continue;
    const taken = maps[0]?.[row] as number;
    assert.equal(idAt(one.handle, taken), 1000 - row);
    assert.equal(findRow(one.handle, 1000 - row), taken);
    assert.equal(Buffer.from(readPayloadText(one.handle, taken)).toString(), Buffer.from(payloads.text(first, row)).toString());
    assert.deepEqual([...readFloats(one.handle.memory, one.handle.layout.vectors[0] as never, Uint32Array.of(taken))], of(row));
  }
  assert.equal(findRow(one.handle, 1000), undefined);
  assert.deepEqual(
    one.handle.fieldIndexes.map(({ field, type }) => [field, type]),
    [['n', 'integer']],
  );

  // The sealed segment as a source: rows deleted since are left out, payloads come from its file.
  new Uint32Array(one.handle.memory.buffer, one.handle.layout.deletedAt, one.handle.rows)[5] = 101;
  const again = await buildSegment(
    makeJob({ folder, config, sources: [one.handle], rows: [500], seq: 101, segmentId: nextSegment++, fields }),
    openPayloadSource,
    freeControl,
  );
  assert.equal(again.handle.rows, 499);
  for (const row of [0, 4, 6, 250, 499]) {
    const taken = new Uint32Array(again.rowMaps[0] as SharedArrayBuffer)[row] as number;
    assert.deepEqual(idAt(again.handle, taken), idAt(one.handle, row));
    assert.deepEqual(readPayloadText(again.handle, taken), readPayloadText(one.handle, row));
  }
  closeSegmentFiles(one.handle);
  closeSegmentFiles(again.handle);
});

test('named vectors: rows that lack one are not in its graph, a name that no row has gets an empty graph', async () => {
  const vector = (size: number, of: SourceVector['of'], hnsw_config = {}): SourceVector => ({
    params: { size, distance: 'Euclid', hnsw_config },
    of,
  });
  const vectors = {
    image: vector(4, (row) => [row, 1, 2, 3]),
    'te/xt': vector(3, (row) => (row % 2 ? [row, 1, 2] : undefined), { m: 4 }),
    none: vector(2, () => undefined),
    plain: vector(2, (row) => [row, row], { m: 0 }),
  };
  const params = Object.fromEntries(Object.entries(vectors).map(([name, value]) => [name, value.params]));
  const source = makeSource({ id: 1, rows: 100, vectors, idOf: (row) => row });
  const { handle, report } = await buildSegment(
    makeJob({ folder, config: makeConfig(params), sources: [source], rows: [100], segmentId: nextSegment++ }),
    () => payloads,
    freeControl,
  );
  assert.deepEqual(
    report.graphs.map(({ name }) => name),
    ['image', 'te/xt', 'none'],
  );
  const [image, text, none, plain] = handle.layout.vectors;
  assert.deepEqual([image?.graph?.m, text?.graph?.m, none?.graph?.m, plain?.graph], [8, 4, 8, null]);
  assert.equal(none?.graph?.entryRow, 0xffff_ffff);
  assert.ok(text?.graph);
  const words = 1 + text.graph.m0;
  const level0 = new Uint32Array(handle.memory.buffer, text.graph.level0, 100 * words);
  for (let row = 0; row < 100; row++) {
    const neighbours = [...level0.subarray(row * words + 1, row * words + 1 + (level0[row * words] as number))];
    assert.equal(neighbours.length > 0, Number(idAt(handle, row)) % 2 === 1);
    assert.ok(neighbours.every((neighbour) => Number(idAt(handle, neighbour)) % 2 === 1));
  }
  assert.equal((await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: false, fields: new Map() })).damagedFiles.length, 0);
});

test('sources with no rows left make an empty segment', async () => {
  const params = { size: 3, distance: 'Dot' as const };
  const source = makeSource({ id: 1, rows: 5, vectors: { '': { params, of: () => [1, 2, 3] } }, idOf: (row) => row, deletedAt: () => 1 });
  const { handle } = await buildSegment(
    makeJob({ folder, config: makeConfig(params), sources: [source], rows: [5], segmentId: nextSegment++ }),
    () => payloads,
    freeControl,
  );
  assert.equal(handle.rows, 0);
  const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields: new Map() });
  assert.equal(loaded.handle.rows, 0);
  assert.equal(findRow(loaded.handle, 1), undefined);
});

test('payloads that are kept in memory come with the handle', async () => {
  const params = { size: 1, distance: 'Dot' as const };
  const source = makeSource({ id: 1, rows: 5, vectors: { '': { params, of: () => [1] } }, idOf: (row) => row });
  const config = makeConfig(params);
  config.params.on_disk_payload = false;
  const { handle } = await buildSegment(
    makeJob({ folder, config, sources: [source], rows: [5], segmentId: nextSegment++ }),
    () => payloads,
    freeControl,
  );
  fs.rmSync(handle.folder as string, { recursive: true });
  assert.equal(Buffer.from(readPayloadText(handle, 2)).toString(), '{"source":1,"n":2}');
});

test('a build that is given up or fails leaves no folder, and an interrupted one is written over', async () => {
  const params = { size: 2, distance: 'Euclid' as const };
  const source = makeSource({ id: 1, rows: 50, vectors: { '': { params, of: (row) => [row, 1] } }, idOf: (row) => row });
  const job = makeJob({ folder, config: makeConfig(params), sources: [source], rows: [50], segmentId: nextSegment++ });
  const segments = path.join(folder, 'segments');
  const before = fs.readdirSync(segments).length;
  for (let checkpoints = 0; checkpoints < 4; checkpoints++) {
    let left = checkpoints;
    const checkpoint = async () => {
      if (left-- === 0) throw new BuildCancelled();
    };
    await assert.rejects(
      buildSegment(job, () => payloads, { ...freeControl, checkpoint }),
      BuildCancelled,
    );
    assert.equal(fs.readdirSync(segments).length, before);
  }
  const broken = payloadsFrom(() => {
    throw new Error('no payload');
  });
  await assert.rejects(
    buildSegment(job, () => broken, freeControl),
    /no payload/,
  );
  assert.equal(fs.readdirSync(segments).length, before);
  fs.mkdirSync(path.join(segments, `${job.segmentIds[0]}.tmp`));
  fs.writeFileSync(path.join(segments, `${job.segmentIds[0]}.tmp`, 'remains'), 'x');
  const { handle } = await buildSegment(job, () => payloads, freeControl);
  assert.equal(fs.existsSync(path.join(handle.folder as string, 'remains')), false);
});

function concat(rows: (Float32Array | undefined)[]): Float32Array {
  return Float32Array.from(rows.flatMap((row) => [...(row as Float32Array)]));
}

test('a job of several segments makes each from its part of the rows, with a graph of its own, and loads them again', async () => {
  const rows = clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 });
  const params: VectorParams = { size: DIM, distance: 'Euclid' };
  const source = makeSource({ id: 1, rows: ROWS, vectors: { '': { params, of: (row) => rows[row] } }, idOf: (row) => row });
  const stages: string[] = [];
  const segmentIds = [nextSegment++, nextSegment++, nextSegment++];
  const job = { ...makeJob({ folder, config: makeConfig(params), sources: [source], rows: [ROWS] }), segmentIds };
  const { built, report } = await buildSegments(job, () => payloads, { ...freeControl, progress: (stage) => stages.push(stage) });
  assert.equal(report.rows, ROWS);
  assert.deepEqual(
    built.map(({ handle }) => [handle.id, handle.rows, recallOf(handle) >= 0.95]),
    [
      [segmentIds[0], 666, true],
      [segmentIds[1], 667, true],
      [segmentIds[2], 667, true],
    ],
  );
  assert.ok(stages.includes('segment 3 of 3: writing files'));
  const maps = built.map(({ rowMaps }) => new Uint32Array(rowMaps[0] as SharedArrayBuffer));
  for (let row = 0; row < ROWS; row++) {
    const at = maps.findIndex((map) => map[row] !== NOT_TAKEN);
    assert.equal(maps.filter((map) => map[row] !== NOT_TAKEN).length, 1);
    assert.equal(idAt((built[at] as BuiltSegment).handle, maps[at]?.[row] as number), row);
  }
  for (const { handle } of built) {
    const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields: new Map() });
    assert.deepEqual([loaded.handle.rows, loaded.damagedFiles], [handle.rows, []]);
  }
});

test('a job of several segments that is given up in a later one leaves no folder of an earlier one', async () => {
  const params: VectorParams = { size: 2, distance: 'Euclid' };
  const source = makeSource({ id: 1, rows: 50, vectors: { '': { params, of: (row) => [row, 1] } }, idOf: (row) => row });
  const segmentIds = [nextSegment++, nextSegment++];
  const job = { ...makeJob({ folder, config: makeConfig(params), sources: [source], rows: [50] }), segmentIds };
  const before = fs.readdirSync(path.join(folder, 'segments')).length;
  let published = false;
  const checkpoint = async () => {
    const folders = fs.readdirSync(path.join(folder, 'segments'));
    published ||= folders.includes(`${segmentIds[0]}`);
    if (folders.includes(`${segmentIds[1]}.tmp`)) throw new BuildCancelled();
  };
  await assert.rejects(
    buildSegments(job, () => payloads, { ...freeControl, checkpoint }),
    BuildCancelled,
  );
  assert.ok(published);
  assert.equal(fs.readdirSync(path.join(folder, 'segments')).length, before);
});

test('a segment that does not fit in a memory with a vector that was added is refused as too large, with its bytes', async () => {
  const params: VectorParams = { size: 2, distance: 'Euclid' };
  const added: VectorParams = { size: 65_536, distance: 'Dot' };
  const rows = 14_000;
  const source = makeSource({ id: 1, rows, vectors: { a: { params, of: (row) => [row, 1] } }, idOf: (row) => row });
  const config = makeConfig(params);
  config.params.vectors = { a: params, b: added };
  const job = makeJob({ folder, config, sources: [source], rows: [rows], segmentId: nextSegment++ });
  await assert.rejects(
    buildSegments(job, () => payloads, freeControl),
    (error) => reasonOf(error) === 'segmentTooLarge' && /a segment of 14000 rows needs 4\d{9} bytes/.test(String(error)),
  );
});
