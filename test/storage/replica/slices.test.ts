/** Operations that touch many points: applied in slices, seen as one (Slice-S1 to Slice-S6). */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs, { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { PointsSelector, UpdateOperation } from '../../../protocols/model/update.js';
import { AppendError } from '../../../storage/disk/append-file.js';
import { narrowSelection } from '../../../storage/replica/apply.js';
import { type Pause, pauseOver } from '../../../storage/replica/operations.js';
import { SegmentRows } from '../../../storage/replica/segment-rows.js';
import { PointSelection } from '../../../storage/replica/selection.js';
import { NO_LEADER } from '../../../storage/wal/log-tags.js';
import { ID_KEY_BYTES, writeIdKey } from '../../../storage/wal/records.js';
import { byIds, configOf, filterOn, Replica, specOf, temporaryFolder, upsert, vectorOf } from './support.js';

const CHILD = fileURLToPath(new URL('./slices-child.js', import.meta.url));

/** More than one transaction takes. */
const POINTS = 5000;

/** Slices of so many times 8 points. */
const slicesOf = (looks: number) => () => {
  let asked = 0;
  return () => ++asked > looks;
};

const ids = Array.from({ length: POINTS }, (_, at) => at + 1);

async function filled(folder: string, looks = 20): Promise<Replica> {
  const replica = await Replica.open(specOf(folder), null, slicesOf(looks));
  for (let from = 0; from < POINTS; from += 1000)
    replica.apply(upsert(ids.slice(from, from + 1000).map((id) => ({ id, seed: id % 7, payload: { n: 0, id } }))));
  return replica;
}

/** Begins an operation as a leader without a cluster does. Its result is the generator's. */
function begin({ store }: Replica, operation: UpdateOperation) {
  const number = store.log.position.last.index + 1;
  return store.operations.applying([{ operation: number, by: NO_LEADER, logged: { operation, chained: false }, isLeaders: true }]);
}

function stepsOf(running: Generator<Pause, unknown>): number {
  let steps = 1;
  while (running.next().done !== true) steps++;
  return steps;
}

/** Segments whose points have all been changed are gone, so this counts how often points were written. */
const rowsOf = ({ store }: Replica) => store.stats().segments.reduce((sum, { rows }) => sum + rows, 0);
const setN = (selector: PointsSelector, n: number): UpdateOperation => ({ kind: 'setPayload', selector, payload: { n }, key: null });
const allOf = filterOn('n', 0);

test('a filter on the key that the operation changes selects the points that matched before it, each once', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  // All points go on to match; each is changed once.
  assert.ok(stepsOf(begin(replica, setN(allOf, 0))) > 10);
  assert.equal(rowsOf(replica), POINTS);
  // No point matches any more after its slice.
  assert.ok(stepsOf(begin(replica, setN(allOf, 1))) > 10);
  assert.equal(rowsOf(replica), POINTS);
  const points = replica.points();
  assert.equal(points.size, POINTS);
  for (const [id, { payload, version }] of points) assert.deepEqual([payload, version], [{ n: 1, id: Number(id) }, 7]);
});

test('whether an operation goes into one transaction is found without a look at each of its points', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const filter = { must: [], should: [], mustNot: [], minShould: null };
  const selection = new PointSelection(replica.store.view(), { kind: 'filter', filter });
  const looks = t.mock.method(SegmentRows.prototype, 'isLive');
  assert.equal(selection.countMax, POINTS);
  assert.equal(narrowSelection(selection), null);
  assert.equal(looks.mock.callCount(), 0);
});

const CHANGES: readonly (readonly [string, UpdateOperation])[] = [
  ['set payload', setN(allOf, 1)],
  ['overwrite payload', { kind: 'overwritePayload', selector: allOf, payload: { other: true }, key: null }],
  ['delete payload', { kind: 'deletePayload', selector: allOf, keys: ['n'] }],
  ['clear payload', { kind: 'clearPayload', selector: allOf }],
  ['delete vectors', { kind: 'deleteVectors', selector: allOf, names: [''] }],
  ['delete points', { kind: 'deletePoints', selector: allOf }],
  ['a long list of ids', setN(byIds(...ids, ...ids, ...ids), 2)],
  ['a large upsert', upsert(Array.from({ length: 12_000 }, (_, at) => ({ id: at + 1000, seed: 3, payload: { n: 9 } })))],
];

for (const [what, operation] of CHANGES) {
  test(`readers see ${what} as a whole: before it until its last slice, after it from then on`, async (t) => {
    const replica = await filled(temporaryFolder(t));
    t.after(() => replica.close());
    const whole = await filled(temporaryFolder(t), Number.POSITIVE_INFINITY);
    t.after(() => whole.close());
    whole.apply(operation);
    const before = replica.points();
    const { appliedOperation, points: count } = replica.store.stats();
    const running = begin(replica, operation);
    let steps = 0;
    while (running.next().done !== true) {
      if (++steps % 8 !== 0) continue;
      assert.deepEqual(replica.points(), before);
      const stats = replica.store.stats();
      assert.deepEqual([stats.appliedOperation, stats.points], [appliedOperation, count]);
    }
    assert.ok(steps > 10);
    const after = whole.points();
    assert.notDeepEqual(after, before);
    assert.deepEqual(replica.points(), after);
    assert.equal(replica.store.stats().points, after.size);
    assert.deepEqual(replica.store.copies.digest(null), whole.store.copies.digest(null));
    replica.apply(upsert([{ id: 1, seed: 50 }]));
    assert.deepEqual(replica.points().get('1')?.vectors, { '': vectorOf(50) });
  });
}

test('replicas whose slices fall differently, one of them closed in between, end alike', async (t) => {
  const folder = temporaryFolder(t);
  const long = await filled(temporaryFolder(t), 100);
  t.after(() => long.close());
  let short = await filled(folder, 3);
  const operations: UpdateOperation[] = [setN(allOf, 1), { kind: 'deletePoints', selector: filterOn('id', 77) }, setN(filterOn('n', 1), 2)];
  for (const operation of operations) {
    const running = begin(short, operation);
    for (let steps = 0; steps < 40 && running.next().done !== true; steps++);
    running.return([]);
    await short.close();
    short = await Replica.open(specOf(folder), null, slicesOf(7));
    stepsOf(begin(long, operation));
  }
  t.after(() => short.close());
  assert.deepEqual(short.warnings, []);
  assert.deepEqual(short.store.copies.digest(null), long.store.copies.digest(null));
  assert.deepEqual(short.points(), long.points());
  assert.equal(rowsOf(short), rowsOf(long));
});

test('a process that is killed between two slices goes on at that slice when it starts again: every point is changed, each once', async (t) => {
  const folder = temporaryFolder(t);
  await (await filled(folder)).close();
  for (let killed = 0; killed < 3; killed++) {
    const child = spawn(process.execPath, [CHILD, 'slices', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    let lines = 0;
    for await (const line of createInterface(child.stdout)) {
      assert.notEqual(line, 'done');
      if (++lines === 6) child.kill('SIGKILL');
    }
  }
  const replica = await Replica.open(specOf(folder));
  t.after(() => replica.close());
  assert.deepEqual(replica.warnings, []);
  assert.equal(replica.store.stats().appliedOperation, 6);
  assert.equal(rowsOf(replica), POINTS);
  const points = replica.points();
  assert.equal(points.size, POINTS);
  for (const [id, { payload, version }] of points) assert.deepEqual([payload, version], [{ n: 1, id: Number(id) }, 6]);
});

test('an operation over many points needs no heap that grows with them', { timeout: 120_000 }, (t) => {
  const folder = temporaryFolder(t);
  const run = spawnSync(process.execPath, ['--max-old-space-size=30', CHILD, 'heap', folder], { encoding: 'utf8', timeout: 100_000 });
  assert.equal(run.stdout, 'changed 120000 points\n', run.stderr.slice(0, 2000));
});

test('id records of rows that slices deleted are no damage; where one is, all are made anew and the operation goes on', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await filled(folder);
  const [segment] = [...replica.view.refresh().appendable.keys()] as [number];
  const running = begin(replica, setN(allOf, 1));
  for (let steps = 0; steps < 8; steps++) running.next();
  running.return([]);
  await replica.close();
  const copy = temporaryFolder(t);
  cpSync(folder, copy, { recursive: true });
  const sound = await Replica.within(t, specOf(copy));
  assert.deepEqual(sound.warnings, []);

  const file = path.join(folder, 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  const key = Buffer.alloc(ID_KEY_BYTES);
  writeIdKey(segment, 1, key);
  // Its value, the row.
  for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + 1)) (bytes[at + key.length] as number) ^= 64;
  writeFileSync(file, bytes);
  const again = await Replica.open(specOf(folder), null, slicesOf(20));
  t.after(() => again.close());
  assert.match(again.warnings.join(), /ids of segment \d+ are damaged and made anew/);
  assert.equal([...again.points().values()].filter(({ payload }) => payload.n === 1).length, POINTS);
});

test('what ends between two slices waits: nothing is built or logged behind it, and the next try goes on', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const { store } = replica;
  const sources = store.stats().segments.map(({ id }) => id);
  const running = begin(replica, setN(allOf, 1));
  for (let steps = 0; steps < 8; steps++) running.next();
  running.return([]);
  assert.equal(store.operations.waiting, 1);
  assert.throws(() => store.builds.begin(sources), { code: 'conflict' });
  assert.equal(rowsOf(replica), POINTS);
  assert.deepEqual(store.operations.apply(), [{ operation: 6, error: null, isNothing: false }]);
  assert.equal(rowsOf(replica), POINTS);
  store.builds.begin(store.stats().segments.map(({ id }) => id));
});

/** As `filled`, with slices of so many times 8 points, in portions of 8. */
async function inPortions(folder: string, looks: number): Promise<Replica> {
  await (await filled(folder)).close();
  return Replica.open(specOf(folder), null, slicesOf(looks), slicesOf(0));
}

test('the portions of a slice share one commit, and between them nobody sees that it has begun', async (t) => {
  const replica = await inPortions(temporaryFolder(t), 100);
  t.after(() => replica.close());
  const before = replica.points();
  const held = replica.store.stats();
  const running = begin(replica, setN(allOf, 1));
  let portions = 0;
  while (running.next().done !== true) {
    const { commits, ...now } = replica.store.stats();
    // Those of the log and of the database change with each slice.
    assert.deepEqual(
      { ...now, walBytes: 0, position: held.position, queuedOperations: 0, database: held.database, commits: held.commits },
      { ...held, walBytes: 0 },
    );
    assert.ok(commits <= held.commits + 7);
    if (++portions % 50 === 0) assert.deepEqual(replica.points(), before);
  }
  assert.ok(portions >= POINTS / 8, `${portions} pauses`);
  const slices = replica.store.stats().commits - held.commits;
  assert.ok(slices <= 7, `${slices} commits`);
  assert.ok([...replica.points().values()].every(({ payload }) => payload.n === 1));
  assert.equal(rowsOf(replica), POINTS);
});

test('a slice that is broken off between two portions is undone, in memory as on disk, and done again from its beginning', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await inPortions(folder, 100);
  const whole = await inPortions(temporaryFolder(t), 100);
  t.after(() => whole.close());
  const before = replica.points();
  const { log, stats } = { log: replica.store.log.position, stats: replica.store.stats() };
  const running = begin(replica, setN(allOf, 1));
  // The first few find the points.
  for (let portions = 0; portions < 30; portions++) running.next();
  running.return([]);
  assert.deepEqual([replica.store.log.position, replica.store.unfinished], [log, null]);
  assert.deepEqual(replica.store.stats().segments, stats.segments);
  assert.deepEqual(replica.points(), before);
  // Into the second slice: the first one stays.
  const again = begin(replica, setN(allOf, 1));
  while (replica.store.stats().commits === stats.commits) again.next();
  for (let portions = 0; portions < 20; portions++) again.next();
  again.return([]);
  assert.deepEqual(replica.points(), before);
  await replica.close();
  const opened = await Replica.open(specOf(folder));
  t.after(() => opened.close());
  assert.deepEqual(opened.warnings, []);
  assert.equal(rowsOf(opened), POINTS);
  whole.apply(setN(allOf, 1));
  assert.deepEqual(opened.points(), whole.points());
  assert.deepEqual(opened.store.copies.digest(null), whole.store.copies.digest(null));
});

test('rows of a slice are stored while it goes on; those of one that is broken off count nowhere, and the next one has all of them', async (t) => {
  const folder = temporaryFolder(t);
  const dim = 128;
  const spec = specOf(folder, configOf({ size: dim, distance: 'Dot' }));
  const replica = await Replica.open(spec, null, undefined, slicesOf(0));
  for (let from = 0; from < POINTS; from += 1000) {
    const some = ids.slice(from, from + 1000);
    const values = Float32Array.from({ length: some.length * dim }, (_, at) => from + at);
    const vectors = [{ kind: 'dense' as const, name: '', dim, points: null, values }];
    replica.apply({ kind: 'upsert', batch: { ids: some, vectors, payloads: some.map(() => ({ n: 0 })) } });
  }
  const storedBytes = (): number =>
    readdirSync(path.join(folder, 'rows')).reduce((sum, name) => sum + statSync(path.join(folder, 'rows', name)).size, 0);
  const before = { bytes: storedBytes(), points: replica.points(), commits: replica.store.stats().commits };
  const broken = begin(replica, setN(allOf, 1));
  while (storedBytes() < before.bytes * 1.5) broken.next();
  assert.equal(replica.store.stats().commits, before.commits);
  broken.return([]);
  assert.deepEqual(replica.points(), before.points);
  stepsOf(begin(replica, setN(allOf, 1)));
  const after = replica.points();
  assert.ok([...after.values()].every(({ payload }) => payload.n === 1));
  assert.deepEqual(
    [...after].map(([id, { vectors }]) => [id, vectors]),
    [...before.points].map(([id, { vectors }]) => [id, vectors]),
  );
  await replica.close();
  const opened = await Replica.within(t, spec);
  assert.deepEqual([opened.warnings, rowsOf(opened)], [[], POINTS]);
  assert.deepEqual(opened.points(), after);
});

test('a slice whose rows the disk refuses while others work is undone, and made again with the next try', async (t) => {
  const replica = await filled(temporaryFolder(t), 1000);
  t.after(() => replica.close());
  const before = replica.points();
  const goOn = async (): Promise<void> => {
    for (const pause of begin(replica, setN(allOf, 1))) await pauseOver(pause);
  };
  const refused = t.mock.method(fs, 'fdatasync', (_fd: number, done: (error: Error | null) => void) => done(new Error('EIO')), {
    times: 1,
  });
  await assert.rejects(goOn(), AppendError);
  assert.equal(refused.mock.callCount(), 1);
  assert.deepEqual([replica.points(), replica.store.unfinished], [before, null]);
  await goOn();
  assert.ok([...replica.points().values()].every(({ payload }) => payload.n === 1));
});

test('the index of a field over many rows is made in portions: all of it with the last one, none of it before', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await inPortions(folder, 10);
  t.after(() => replica.close());
  const operation: UpdateOperation = { kind: 'createFieldIndex', field: 'id', schema: { type: 'integer' } };
  const { commits } = replica.store.stats();
  const broken = begin(replica, operation);
  for (let portions = 0; portions < 40; portions++) {
    broken.next();
    assert.deepEqual([...replica.store.stats().fields.keys()], []);
  }
  broken.return([]);
  assert.deepEqual([replica.store.stats().commits, replica.store.log.position.last.index], [commits, 5]);
  const running = begin(replica, operation);
  assert.ok(stepsOf(running) > POINTS / 32);
  const stats = replica.store.stats();
  assert.equal(stats.commits, commits + 1);
  assert.deepEqual([...stats.fields.keys()], ['id']);
  assert.equal(stats.fieldPoints.get('id'), POINTS);
  replica.apply({ kind: 'deletePoints', selector: filterOn('id', 77) });
  assert.equal(replica.points().size, POINTS - 1);
  // Again with the same schema: there is nothing to do.
  assert.equal(stepsOf(begin(replica, operation)), 1);
});

test('operations that change many points time and again leave no segments behind', async (t) => {
  const replica = await filled(temporaryFolder(t), 200);
  t.after(() => replica.close());
  const { store } = replica;
  for (let round = 0; round < 6; round++) {
    stepsOf(begin(replica, setN(filterOn('n', round), round + 1)));
    store.retired(Number.MAX_SAFE_INTEGER);
    while (store.purge());
    assert.ok(store.stats().segments.length <= 2, `${store.stats().segments.length} segments`);
  }
  assert.equal(rowsOf(replica), POINTS);
});

test('a log that begins anew gives up what was begun: its points are stale, and readers see them as they are', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const { store } = replica;
  const running = begin(replica, setN(allOf, 1));
  for (let steps = 0; steps < 8; steps++) running.next();
  running.return([]);
  store.log.reset({ peer: 3, term: 4, index: 900 });
  const changed = [...replica.points().values()].filter(({ payload }) => payload.n === 1).length;
  assert.ok(changed > 0 && changed < POINTS);
  assert.notEqual(store.stale, null);
  assert.deepEqual([store.operations.waiting, store.stats().appliedOperation, store.unfinished], [0, 900, null]);
});

test('a copy of the files never has a part of an operation: the operation begins when the copy is made', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const folder = path.join(temporaryFolder(t), 'copy');
  const copy = replica.store.checkpoint(folder);
  const running = begin(replica, setN(allOf, 1));
  const { value } = running.next();
  assert.equal(value, replica.store.copying);
  assert.throws(() => replica.store.operations.apply([numberedLike(replica)]), { code: 'unavailable' });
  await value;
  assert.ok(stepsOf(running) > 10);
  assert.equal((await copy).at.index, 5);
  const opened = await Replica.open(specOf(folder));
  t.after(() => opened.close());
  assert.ok([...opened.points().values()].every(({ payload, version }) => payload.n === 0 && version <= 5));
});

function numberedLike({ store }: Replica) {
  const operation = store.log.position.last.index + 1;
  return { operation, by: NO_LEADER, logged: { operation: setN(allOf, 1), chained: false }, isLeaders: true };
}

test('an update of the vectors of many points, one of which is missing, changes none of them', async (t) => {
  const replica = await filled(temporaryFolder(t));
  t.after(() => replica.close());
  const before = replica.points();
  const { batch } = upsert(Array.from({ length: 12_000 }, (_, at) => ({ id: (at % 6000) + 1, seed: 5 }))) as Extract<
    UpdateOperation,
    { kind: 'upsert' }
  >;
  const [outcome] = replica.apply({ kind: 'updateVectors', batch });
  assert.deepEqual(
    [outcome?.error instanceof Error && outcome.error.message, outcome?.isNothing],
    ['Not found: No point with id 5001 found', true],
  );
  assert.deepEqual(replica.points(), before);
  assert.equal(rowsOf(replica), POINTS);
});
