import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import { openPayloadSource } from '../../../storage/builder/payload-source.js';
import type { FilePart } from '../../../storage/memory/system-calls.js';
import type { BuildJob, BuildResult } from '../../../storage/threads/messages.js';
import { onlyBuilt } from '../builder/fixture.js';
import { byIds, filterOn, publishBuild, Replica, specOf, temporaryFolder, upsert } from './support.js';

const ROWS = 200;
const INTEGER = { type: 'integer' } as const;

function build(replica: Replica, segments: readonly number[], results = 1): Promise<BuildResult> {
  const job: BuildJob = {
    ...replica.store.builds.begin(segments, results),
    plan: 'segment',
    missingFields: [],
    withGraph: false,
    threads: 1,
    niceness: 0,
  };
  return buildSegments(job, openPayloadSource, { checkpoint: async () => {}, progress: () => {}, now: () => 0 });
}

function segmentIds(replica: Replica): number[] {
  return replica.store.stats().segments.map(({ id }) => id);
}

async function filled(folder: string): Promise<Replica> {
  const replica = await Replica.open(specOf(folder));
  replica.apply({ kind: 'createFieldIndex', field: 'n', schema: INTEGER });
  replica.apply(upsert(Array.from({ length: ROWS }, (_, id) => ({ id, seed: id, payload: { n: id % 5 } }))));
  replica.apply({ kind: 'deletePoints', selector: byIds(0) });
  return replica;
}

test('a built segment takes the place of its sources, with what was deleted and changed meanwhile, also after opening anew', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  const result = await build(replica, [1]);
  replica.apply(
    { kind: 'deletePoints', selector: byIds(1, 2) },
    { kind: 'setPayload', selector: byIds(3), payload: { n: 77 }, key: null },
    upsert([{ id: ROWS, seed: 1, payload: { n: 1 } }]),
  );
  const before = replica.points();
  publishBuild(replica.store, result);
  assert.deepEqual(replica.points(), before);
  const { points, fieldPoints, segments } = replica.store.stats();
  assert.deepEqual([points, fieldPoints.get('n')], [ROWS - 2, ROWS - 2]);
  assert.deepEqual(
    segments.map(({ kind, rows, deleted, missingFields }) => ({ kind, rows, deleted, missingFields })),
    [
      { kind: 'appendable', rows: 2, deleted: 0, missingFields: [] },
      { kind: 'sealed', rows: ROWS - 1, deleted: 3, missingFields: [] },
    ],
  );
  replica.apply({ kind: 'deletePoints', selector: filterOn('n', 1) }, upsert([{ id: 4, seed: 500 }]));
  const after = replica.points();
  assert.equal(after.size, before.size - ROWS / 5);
  const counted = replica.store.stats().fieldPoints.get('n');
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.points(), after);
  assert.equal(again.store.stats().fieldPoints.get('n'), counted);
});

test('a build is prepared in portions while readers see its sources, and takes their place in one step', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder), null, undefined, () => () => true);
  const rows = 9000;
  replica.apply(upsert(Array.from({ length: rows }, (_, id) => ({ id, seed: id }))));
  const result = await build(replica, segmentIds(replica));
  replica.apply({ kind: 'deletePoints', selector: byIds(0, rows / 2, rows - 1) });
  const before = replica.points();
  const shown = replica.sets.size;
  let pauses = 0;
  for (const work = replica.store.builds.publishing(result); work.next().done !== true; pauses++) assert.equal(replica.sets.size, shown);
  assert.ok(pauses > 2 * result.sources.length, `${pauses} pauses`);
  assert.ok(replica.store.stats().segments.some(({ deleted, kind }) => kind === 'sealed' && deleted === 3));
  assert.deepEqual(replica.points(), before);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.points(), before);
});

test('what readers have dropped is removed from LMDB and from disk, piece by piece, and its memory is emptied', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  publishBuild(replica.store, await build(replica, [1]));
  const [first] = segmentIds(replica) as [number];
  replica.apply(upsert([{ id: 7, seed: 1 }]));
  publishBuild(replica.store, await build(replica, segmentIds(replica)));
  const old = path.join(folder, 'segments', String(first));
  assert.ok(existsSync(old));
  const points = replica.points();
  const handles = [...replica.sets.values()].flatMap(({ segments }) => segments);
  const memoryOf = (id: number) => handles.find((handle) => handle.id === id)?.memory.buffer;
  const emptied: FilePart[] = [];
  replica.store.retired(Number.MAX_SAFE_INTEGER, (part) => emptied.push(part));
  assert.ok(!existsSync(old));
  for (const id of [1, first])
    assert.ok(
      emptied.some(({ buffer }) => buffer === memoryOf(id)),
      `segment ${id}`,
    );
  for (const { id } of replica.store.stats().segments) assert.ok(!emptied.some(({ buffer }) => buffer === memoryOf(id)), `segment ${id}`);
  assert.equal(replica.view.findRow(1, 5) !== undefined, true, 'records of a dropped appendable segment are still there');
  while (replica.store.purge());
  replica.view.refresh();
  assert.equal(replica.view.findRow(1, 5), undefined);
  assert.deepEqual(replica.points(), points);
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(again.points(), points);
});

test('a build of nothing but deleted rows leaves no segment', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  const result = await build(replica, [1]);
  replica.apply({ kind: 'deletePoints', selector: { kind: 'filter', filter: { must: [], should: [], mustNot: [], minShould: null } } });
  publishBuild(replica.store, result);
  const ids = segmentIds(replica);
  publishBuild(replica.store, await build(replica, ids));
  assert.equal(replica.points().size, 0);
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.equal(again.points().size, 1);
});

test('abandoned sources take rows again; a build knows no segment twice', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  replica.store.builds.begin([1]);
  assert.throws(() => replica.store.builds.begin([1]), { code: 'conflict' });
  assert.throws(() => replica.store.builds.begin([99]), { code: 'conflict' });
  replica.store.builds.abandon([1]);
  replica.apply(upsert([{ id: 5000, seed: 1 }]));
  assert.deepEqual(segmentIds(replica), [1]);
});

test('behind a segment that a build took before it was full there is room for twice its rows, and behind a full one for as many as elsewhere', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const roomBehind = (rows: number): number | undefined => {
    const from = replica.points().size;
    replica.apply(upsert(Array.from({ length: rows }, (_, id) => ({ id: from + id, seed: id }))));
    const taken = replica.store.stats().segments.filter(({ building }) => !building);
    replica.store.builds.begin(taken.map(({ id }) => id));
    replica.apply(upsert([{ id: from + rows, seed: 1 }]));
    return [...replica.sets.values()].at(-1)?.segments.at(-1)?.layout.capacity;
  };
  const full = roomBehind(4096) as number;
  assert.ok(full > 100_000, `room for ${full}`);
  assert.equal(roomBehind(6000), 2 * 6001);
  assert.equal(roomBehind(100), 4096);
});

test('folders of builds that were never published go when the replica is opened', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  const { handle } = onlyBuilt(await build(replica, [1]));
  assert.ok(existsSync(handle.folder as string));
  await replica.close();
  const again = await Replica.within(t, specOf(folder));
  assert.ok(!existsSync(handle.folder as string));
  assert.equal(again.points().size, ROWS - 1);
});

test('a field index made after sealing is missing until its build is published', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  publishBuild(replica.store, await build(replica, [1]));
  replica.apply({ kind: 'createFieldIndex', field: 'm', schema: INTEGER });
  assert.deepEqual(
    replica.store.stats().segments.map(({ missingFields }) => missingFields),
    [['m']],
  );
  replica.apply({ kind: 'deleteFieldIndex', field: 'm' }, { kind: 'deleteFieldIndex', field: 'n' });
  assert.deepEqual([replica.store.stats().segments[0]?.missingFields, replica.fields.size], [[], 0]);
  assert.equal(replica.sets.get(replica.published.at(-1) as number)?.segments[0]?.fieldIndexes.length, 0);
});

test('payloads of sealed segments follow on_disk_payload at once, also those of a build that runs meanwhile', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  t.after(() => replica.close());
  const running = await build(replica, [1]);
  const before = replica.points();
  const { config } = replica.spec;
  const inMemory = (): boolean[] =>
    [...(replica.sets.get(Math.max(...replica.published))?.segments ?? [])].flatMap(({ kind, payloadBytes }) =>
      kind === 'sealed' ? [payloadBytes !== null] : [],
    );
  replica.store.configure({ ...config, params: { ...config.params, on_disk_payload: false } });
  publishBuild(replica.store, running);
  assert.deepEqual([inMemory(), replica.points()], [[true], before]);
  replica.store.configure(config);
  assert.deepEqual([inMemory(), replica.points()], [[false], before]);
});

test('a segment is split into several, with what was deleted and changed meanwhile, also after opening anew', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  publishBuild(replica.store, await build(replica, [1]));
  const [sealed] = segmentIds(replica) as [number];
  const result = await build(replica, [sealed], 3);
  replica.apply(
    { kind: 'deletePoints', selector: byIds(1, 100, ROWS - 1) },
    { kind: 'setPayload', selector: byIds(3, 150), payload: { n: 77 }, key: null },
  );
  const before = replica.points();
  publishBuild(replica.store, result);
  assert.deepEqual(replica.points(), before);
  const { fieldPoints, points, segments } = replica.store.stats();
  assert.deepEqual([points, fieldPoints.get('n')], [ROWS - 4, ROWS - 4]);
  const made = segments.filter(({ kind }) => kind === 'sealed');
  assert.deepEqual(
    [made.map(({ rows }) => rows), made.reduce((sum, { deleted }) => sum + deleted, 0), made.flatMap(({ missingFields }) => missingFields)],
    [[66, 66, 67], 5, []],
  );
  await replica.close();
  const again = await Replica.open(specOf(folder));
  assert.deepEqual(again.points(), before);
  again.apply({ kind: 'deletePoints', selector: filterOn('n', 1) }, upsert([{ id: 120, seed: 500 }]));
  const after = again.points();
  publishBuild(again.store, await build(again, segmentIds(again)));
  assert.deepEqual(again.points(), after);
  await again.close();
});

test('no folder stays of segments whose publication is refused', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const result = await build(replica, [1], 2);
  const folders = result.built.map(({ handle }) => handle.folder as string);
  assert.deepEqual(
    folders.map((folder) => existsSync(folder)),
    [true, true],
  );
  assert.throws(() => publishBuild(replica.store, { ...result, sources: [99] }), { code: 'conflict' });
  assert.deepEqual(
    folders.map((folder) => existsSync(folder)),
    [false, false],
  );
});
