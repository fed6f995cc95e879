import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { Worker } from 'node:worker_threads';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import { emptyBits, hasBit } from '../../../query/filter/bits.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { findRow } from '../../../storage/segment/ids.js';
import { openIndexOf } from '../../../storage/segment/index/open.js';
import { closeSegmentFiles, readPayloadText } from '../../../storage/segment/payload-file.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import type { BuildJob, FromBuilder, ToBuilder } from '../../../storage/threads/messages.js';
import { replicaFolder } from '../segment/fixture.js';
import { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, onlyBuilt, payloadsFrom } from './fixture.js';

const folder = replicaFolder();
test.after(() => fs.rmSync(folder, { recursive: true }));

const ROWS = 2000;
const PARAMS = { size: 16, distance: 'Euclid' as const };
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([['n', { type: 'integer' }]]);
let source: SegmentHandle;

test.before(async () => {
  await initChecksum();
  const rows = clusteredRows(ROWS, PARAMS.size, { clusters: 40, range: 1, spread: 0.3, seed: 3 });
  const appendable = makeSource({ id: 1, rows: ROWS, vectors: { '': { params: PARAMS, of: (row) => rows[row] } }, idOf: (row) => row * 2 });
  const job = makeJob({ folder, config: makeConfig(PARAMS), sources: [appendable], rows: [ROWS], segmentId: 10, withGraph: false });
  const payloads = payloadsFrom((_, row) => `{"n":${row}}`);
  source = (await buildSegment(job, () => payloads, freeControl)).handle;
});

const sealedJob = (facts: Partial<BuildJob>): BuildJob => ({
  ...makeJob({ folder, config: makeConfig(PARAMS), sources: [source], rows: [ROWS], fields: FIELDS }),
  ...facts,
});

/** Runs a builder to its end; `react` may answer its messages. */
async function runBuilder(
  job: BuildJob,
  react: (message: FromBuilder, post: (message: ToBuilder) => void) => void = () => {},
): Promise<FromBuilder[]> {
  const worker = new Worker(new URL('../../../storage/builder/builder.js', import.meta.url));
  const messages: FromBuilder[] = [];
  const post = (message: ToBuilder) => worker.postMessage(message);
  worker.on('message', (message: FromBuilder) => {
    messages.push(message);
    react(message, post);
  });
  post({ kind: 'build', job, stays: false });
  await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject));
  return messages;
}

test('a builder answers a job with its progress and its result, and ends', async () => {
  const messages = await runBuilder(sealedJob({ segmentIds: [20] }));
  const last = messages.pop();
  assert.ok(last?.kind === 'result', JSON.stringify(last));
  assert.ok(messages.length > 0 && messages.every(({ kind }) => kind === 'progress'));
  const { report, sources } = last.result;
  const { handle, rowMaps } = onlyBuilt(last.result);
  assert.deepEqual(sources, [10]);
  assert.equal(report.graphs[0]?.element, 'i8');
  assert.ok((report.graphs[0]?.recall as number) >= 0.95);
  const row = findRow(handle, 14) as number;
  assert.equal(new Uint32Array(rowMaps[0] as SharedArrayBuffer)[7], row);
  assert.equal(Buffer.from(readPayloadText(handle, row)).toString(), '{"n":7}');
  closeSegmentFiles(handle);
  const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields: FIELDS });
  assert.deepEqual([loaded.damagedFiles, loaded.handle.fieldIndexes.length], [[], 1]);
});

test('a builder that is told to stop leaves nothing behind', async () => {
  const messages = await runBuilder(sealedJob({ segmentIds: [21] }), (message, post) => {
    if (message.kind === 'progress') post({ kind: 'cancel' });
  });
  assert.equal(messages.at(-1)?.kind, 'cancelled');
  assert.deepEqual(
    fs.readdirSync(path.join(folder, 'segments')).filter((name) => name.startsWith('21')),
    [],
  );
});

test('a builder that stays does the next job, also after one that was cancelled', async () => {
  const worker = new Worker(new URL('../../../storage/builder/builder.js', import.meta.url));
  const done = (job: BuildJob, cancels: boolean) =>
    new Promise<FromBuilder>((resolve, reject) => {
      worker.removeAllListeners('message');
      worker.on('error', reject).on('message', (message: FromBuilder) => {
        if (message.kind !== 'progress') resolve(message);
        else if (cancels) worker.postMessage({ kind: 'cancel' });
      });
      worker.postMessage({ kind: 'build', job, stays: true });
    });
  assert.equal((await done(sealedJob({ segmentIds: [22] }), true)).kind, 'cancelled');
  for (const id of [23, 24]) {
    const last = await done(sealedJob({ segmentIds: [id] }), false);
    assert.ok(last.kind === 'result', JSON.stringify(last));
    assert.equal(onlyBuilt(last.result).handle.id, id);
  }
  await worker.terminate();
});

test('a fieldIndex job adds indexes to its source and keeps the memory', async () => {
  const job = sealedJob({
    plan: 'fieldIndex',
    missingFields: ['n'],
    fields: new Map([...FIELDS, ['other', { type: 'keyword' }]]),
  });
  const last = (await runBuilder(job)).at(-1);
  assert.ok(last?.kind === 'result', JSON.stringify(last));
  const { handle } = onlyBuilt(last.result);
  assert.deepEqual(
    handle.fieldIndexes.map(({ field }) => field),
    ['n'],
  );
  assert.equal(handle.id, source.id);
  new Uint32Array(source.memory.buffer, source.layout.deletedAt, 1)[0] = 77;
  assert.equal(new Uint32Array(handle.memory.buffer, handle.layout.deletedAt, 1)[0], 77);
  new Uint32Array(source.memory.buffer, source.layout.deletedAt, 1)[0] = 0xffff_ffff;
  const loaded = await loadSealed(source.folder as string, { readers: 3, onDiskPayload: true, fields: FIELDS });
  assert.deepEqual(
    loaded.handle.fieldIndexes.map(({ field }) => field),
    ['n'],
  );
});

test('a damaged payload of a source ends the build with an error that names the file', async () => {
  const file = path.join(source.folder as string, 'payload');
  const bytes = fs.readFileSync(file);
  const damaged = Buffer.from(bytes);
  damaged[bytes.length >> 2] = (damaged[bytes.length >> 2] as number) ^ 1;
  fs.writeFileSync(file, damaged);
  const last = (await runBuilder(sealedJob({ segmentIds: [22] }))).at(-1);
  fs.writeFileSync(file, bytes);
  assert.ok(last?.kind === 'error');
  assert.equal(last.error.code, 'storage');
  assert.ok(last.error.detail.startsWith(`${file}: checksum of the payload of row `));
  assert.equal(fs.existsSync(path.join(folder, 'segments', '22.tmp')), false);
});

test('a disk that refuses ends the build with a storage error that names the path', async () => {
  const file = path.join(folder, 'no-folder');
  fs.writeFileSync(file, '');
  const job = sealedJob({ segmentIds: [23] });
  const last = (await runBuilder({ ...job, spec: { ...job.spec, folder: file } })).at(-1);
  assert.ok(last?.kind === 'error');
  assert.equal(last.error.code, 'storage');
  assert.match(last.error.detail, /ENOTDIR.*no-folder/);
});

test('an on_disk index keeps its postings in its file, answers the same, and so it does when the segment is loaded again', async () => {
  const onDisk: FieldSchema = { type: 'integer', params: { type: 'integer', on_disk: true } };
  const fields = new Map([['n', onDisk]]);
  const last = (await runBuilder(sealedJob({ segmentIds: [24], fields }))).at(-1);
  assert.ok(last?.kind === 'result', JSON.stringify(last));
  const { handle } = onlyBuilt(last.result);
  const loaded = await loadSealed(handle.folder as string, { readers: 3, onDiskPayload: true, fields });
  const inMemory = (await runBuilder(sealedJob({ segmentIds: [25], fields: new Map([['n', { type: 'integer' }]]) }))).at(-1);
  assert.ok(inMemory?.kind === 'result');
  const whole = onlyBuilt(inMemory.result).handle.fieldIndexes[0]?.buffer.byteLength as number;
  for (const segment of [handle, loaded.handle]) {
    const [index] = segment.fieldIndexes;
    assert.ok(index?.file !== undefined && index.buffer.byteLength < whole / 4);
    const opened = openIndexOf(segment, index);
    const bits = emptyBits(segment.rows);
    assert.equal(opened.match({ kind: 'range', key: 'n', range: { gte: 5, lt: 25 } }, bits), 'exact');
    const values = Array.from({ length: segment.rows }, (_, row) => row)
      .filter((row) => hasBit(bits, row))
      .map((row) => (JSON.parse(Buffer.from(readPayloadText(segment, row)).toString()) as { n: number }).n);
    assert.deepEqual(
      values.sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, at) => at + 5),
    );
    closeSegmentFiles(segment);
  }
});
