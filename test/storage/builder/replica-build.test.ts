/** Builds from a real replica: freeze, build in a worker, publish, and what happens meanwhile. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { Worker } from 'node:worker_threads';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { PointsSelector, UpdateOperation } from '../../../protocols/model/update.js';
import { ReplicaStore } from '../../../storage/replica/store.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { findRow } from '../../../storage/segment/ids.js';
import { LIVE } from '../../../storage/segment/layout.js';
import { closeSegmentFiles, readPayloadText } from '../../../storage/segment/payload-file.js';
import type { BuildJob, BuildResult, BuiltSegment, FromBuilder, ReplicaSpec } from '../../../storage/threads/messages.js';
import { applyTo, publishBuild } from '../replica/support.js';
import { replicaFolder } from '../segment/fixture.js';
import { clusteredRows, makeConfig, onlyBuilt } from './fixture.js';

const ROWS = 1000;
const DIM = 8;
const rows = clusteredRows(ROWS, DIM, { clusters: 20, range: 1, spread: 0.3, seed: 12 });
const hooks = {
  publish() {},
  published() {},
  warn() {},
  now: () => 1,
  beginSlice: () => () => false,
  beginPortion: () => () => false,
  pause: async () => {},
};

/** looks: a slice ends after so many looks at the clock; 0: by its size alone. */
async function openReplica(folder: string, looks = 0, pause = hooks.pause): Promise<ReplicaStore> {
  const spec: ReplicaSpec = { key: 'c/0', folder, config: makeConfig({ size: DIM, distance: 'Euclid' }), readers: 1 };
  const beginSlice = () => {
    let asked = 0;
    return () => looks > 0 && ++asked > looks;
  };
  return ReplicaStore.open(spec, null, { ...hooks, beginSlice, beginPortion: beginSlice, pause });
}

function upsert(ids: readonly number[], version: string): UpdateOperation {
  const values = new Float32Array(ids.length * DIM);
  ids.forEach((id, i) => {
    values.set(rows[id] as Float32Array, i * DIM);
  });
  const payloads = ids.map((id) => (id % 3 === 0 ? undefined : { id, version }));
  return { kind: 'upsert', batch: { ids, vectors: [{ kind: 'dense', name: '', dim: DIM, points: null, values }], payloads } };
}

function apply(store: ReplicaStore, ...operations: UpdateOperation[]): void {
  for (const { error } of applyTo(
    store,
    operations.map((operation) => ({ operation, chained: false })),
  ))
    assert.equal(error, null);
}

const deletion = (ids: readonly PointId[]): UpdateOperation => ({ kind: 'deletePoints', selector: { kind: 'ids', ids } });

async function build(job: BuildJob): Promise<BuildResult & BuiltSegment> {
  const worker = new Worker(new URL('../../../storage/builder/builder.js', import.meta.url));
  const last = await new Promise<FromBuilder>((resolve, reject) => {
    worker.on('error', reject).on('message', (message: FromBuilder) => {
      if (message.kind !== 'progress') resolve(message);
    });
    worker.postMessage({ kind: 'build', job, stays: false });
  });
  assert.ok(last.kind === 'result', JSON.stringify(last));
  return { ...last.result, ...onlyBuilt(last.result) };
}

const jobOf = (store: ReplicaStore, segments: readonly number[]): BuildJob => ({
  ...store.builds.begin(segments),
  plan: 'segment',
  missingFields: [],
  withGraph: true,
  threads: 1,
  niceness: 5,
});

function payloadOf(handle: SegmentHandle, id: number): string {
  return Buffer.from(readPayloadText(handle, findRow(handle, id) as number)).toString();
}

test('rows of an appendable segment are sealed with their payloads, and deletions made meanwhile are carried over', async () => {
  const folder = replicaFolder();
  const store = await openReplica(folder);
  const ids = Array.from({ length: ROWS }, (_, id) => id);
  apply(store, { kind: 'createFieldIndex', field: 'id', schema: { type: 'integer' } }, upsert(ids, 'first'), deletion([7, 8]));
  const first = store.stats().segments[0]?.id as number;
  const job = jobOf(store, [first]);
  apply(store, upsert([10, 11], 'second'), deletion([12]));
  const result = await build(job);
  assert.equal(result.handle.rows, ROWS - 2);
  apply(store, deletion([13]));
  publishBuild(store, result);

  const stats = store.stats();
  const sealed = stats.segments.find(({ kind }) => kind === 'sealed');
  assert.equal(stats.points, ROWS - 4);
  assert.deepEqual(
    [sealed?.rows, sealed?.deleted, sealed?.graphs.length, sealed?.missingFields, sealed?.damagedFiles],
    [ROWS - 2, 4, 1, [], []],
  );
  const deletedAt = new Uint32Array(result.handle.memory.buffer, result.handle.layout.deletedAt, result.handle.rows);
  for (const id of [10, 11, 12, 13]) assert.ok((deletedAt[findRow(result.handle, id) as number] as number) < LIVE);
  assert.equal(payloadOf(result.handle, 20), '{"id":20,"version":"first"}');
  assert.equal(payloadOf(result.handle, 21), '{}');
  closeSegmentFiles(result.handle);
  await store.close();

  const again = await openReplica(folder);
  assert.deepEqual([again.stats().points, again.stats().segments.find(({ kind }) => kind === 'sealed')?.deleted], [ROWS - 4, 4]);
  const merged = await build(
    jobOf(
      again,
      again
        .stats()
        .segments.filter((segment) => segment.rows > 0)
        .map(({ id }) => id),
    ),
  );
  publishBuild(again, merged);
  assert.equal(merged.handle.rows, ROWS - 4);
  assert.equal(payloadOf(merged.handle, 10), '{"id":10,"version":"second"}');
  assert.deepEqual(
    again
      .stats()
      .segments.filter((segment) => segment.rows > 0)
      .map(({ kind, deleted }) => [kind, deleted]),
    [['sealed', 0]],
  );
  closeSegmentFiles(merged.handle);
  await again.close();
  fs.rmSync(folder, { recursive: true });
});

test('an operation in slices changes the points of sealed segments too, each once', async (t) => {
  const folder = replicaFolder();
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const store = await openReplica(folder, 2);
  t.after(() => store.close());
  const many = 5000;
  for (let from = 0; from < many; from += ROWS) {
    const { batch } = upsert(
      Array.from({ length: ROWS }, (_, id) => id),
      'first',
    ) as Extract<UpdateOperation, { kind: 'upsert' }>;
    apply(store, { kind: 'upsert', batch: { ...batch, ids: batch.ids.map((id) => from + Number(id)) } });
  }
  // The rows are more than the first segment of a replica takes.
  const sources = store.stats().segments.filter(({ rows: count }) => count > 0);
  const job = jobOf(
    store,
    sources.map(({ id }) => id),
  );
  const result = await build({ ...job, withGraph: false });
  publishBuild(store, result);
  apply(store, deletion([3, 4, 5]));
  const commits = store.stats().commits;
  const all: PointsSelector = { kind: 'filter', filter: { must: [], should: [], mustNot: [], minShould: null } };
  apply(store, { kind: 'setPayload', selector: all, payload: { changed: true }, key: null });
  const { points, segments, commits: after } = store.stats();
  assert.ok(after - commits > 10);
  assert.equal(points, many - 3);
  assert.deepEqual(
    segments.map(({ deleted, kind, rows: count }) => [kind, count, deleted]),
    [
      ['sealed', many, many],
      ['appendable', many - 3, 0],
    ],
  );
});

test('a replica is opened in portions, between which its writer has time for others', async (t) => {
  const folder = replicaFolder();
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const store = await openReplica(folder);
  apply(
    store,
    upsert(
      Array.from({ length: ROWS }, (_, id) => id),
      'first',
    ),
  );
  const result = await build(jobOf(store, [store.stats().segments[0]?.id as number]));
  publishBuild(store, result);
  closeSegmentFiles(result.handle);
  await store.close();
  let pauses = 0;
  const again = await openReplica(folder, 0, async () => {
    pauses++;
  });
  // Around the vectors, around codes and graph, and behind each segment.
  assert.ok(pauses >= 4, `${pauses} pauses`);
  await again.close();
  await assert.rejects(
    openReplica(folder, 0, () => Promise.reject(new Error('not wanted any more'))),
    /not wanted any more/,
  );
  await (await openReplica(folder)).close();
});
