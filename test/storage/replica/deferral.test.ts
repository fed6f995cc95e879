/** Random histories of a collection that defers points, with builds and openings in between: what a reader may see. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import { openPayloadSource } from '../../../storage/builder/payload-source.js';
import type { BuildJob, BuildResult } from '../../../storage/threads/messages.js';
import { byIds, configOf, filterOn, publishBuild, Replica, type SeenPoint, specOf, temporaryFolder, upsert, vectorOf } from './support.js';

/** Rows of 16 bytes that fit beneath the threshold of 1 kB. */
const SHOWN_ROWS = 64;

function deferring(changes: Partial<CollectionConfig['optimizer_config']> = {}): CollectionConfig {
  const config = configOf();
  return { ...config, optimizer_config: { ...config.optimizer_config, indexing_threshold: 1, prevent_unoptimized: true, ...changes } };
}

function points(from: number, to: number, seed = from): UpdateOperation {
  return upsert(Array.from({ length: to - from }, (_, at) => ({ id: from + at, seed: seed + at, payload: { g: at % 3 } })));
}

function build(replica: Replica, segments: readonly number[]): Promise<BuildResult> {
  const job: BuildJob = {
    ...replica.store.builds.begin(segments),
    plan: 'segment',
    missingFields: [],
    withGraph: true,
    threads: 1,
    niceness: 0,
  };
  return buildSegments(job, openPayloadSource, { checkpoint: async () => {}, progress: () => {}, now: () => 0 });
}

async function buildAll(replica: Replica): Promise<void> {
  const ids = replica.store.stats().segments.flatMap(({ id, rows }) => (rows > 0 ? [id] : []));
  publishBuild(replica.store, await build(replica, ids));
}

function figures(replica: Replica): number[] {
  const { points: shown, deferredPoints } = replica.store.stats();
  assert.equal(replica.points().size, shown);
  return [shown, deferredPoints];
}

test('rows beyond the threshold are kept and seen by nobody before they are built, also after opening anew', async (t) => {
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder, deferring()));
  replica.apply(points(0, 100));
  assert.deepEqual(figures(replica), [SHOWN_ROWS, 36]);
  await replica.close();
  replica = await Replica.open(specOf(folder, deferring()));
  assert.deepEqual(figures(replica), [SHOWN_ROWS, 36]);
  await buildAll(replica);
  assert.deepEqual(figures(replica), [100, 0]);
  await replica.close();
});

test('a replaced point keeps its older row for readers until the newer one is built; a deleted one is gone at once', async (t) => {
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder, deferring()));
  replica.apply(points(0, 70), upsert([{ id: 1, seed: 500 }]), upsert([{ id: 2, seed: 501 }]), upsert([{ id: 1, seed: 502 }]));
  replica.apply({ kind: 'setPayload', selector: byIds(3), payload: { changed: true }, key: null });
  const shownOf = (id: number) => replica.points().get(String(id));
  assert.deepEqual(shownOf(1)?.vectors[''], vectorOf(1));
  assert.deepEqual(shownOf(3)?.payload, { g: 0 });
  replica.apply({ kind: 'deletePoints', selector: byIds(2) });
  assert.equal(shownOf(2), undefined);
  await replica.close();
  replica = await Replica.open(specOf(folder, deferring()));
  assert.deepEqual(shownOf(1)?.vectors[''], vectorOf(1));
  assert.equal(shownOf(2), undefined);
  await buildAll(replica);
  assert.deepEqual(shownOf(1)?.vectors[''], vectorOf(502));
  assert.deepEqual(shownOf(3)?.payload, { g: 0, changed: true });
  assert.deepEqual(figures(replica), [69, 0]);
  await replica.close();
});

test('nothing is deferred without a threshold or without the option, and what was is shown by the change', async (t) => {
  for (const changes of [{ indexing_threshold: 0 }, { prevent_unoptimized: false }]) {
    const replica = await Replica.within(t, specOf(temporaryFolder(t), deferring(changes)));
    replica.apply(points(0, 100));
    assert.deepEqual(figures(replica), [100, 0]);
    replica.store.configure(deferring());
    replica.apply(points(100, 110), upsert([{ id: 5, seed: 900 }]));
    assert.deepEqual(figures(replica), [100, 11]);
    replica.store.configure(deferring(changes));
    assert.deepEqual(figures(replica), [110, 0]);
    assert.deepEqual(replica.points().get('5')?.vectors[''], vectorOf(900));
  }
});

test('while optimizers are off, points are deferred all the same, and wait until they are on', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t), deferring({ max_optimization_threads: 0 })));
  replica.apply(points(0, 100));
  assert.deepEqual(figures(replica), [SHOWN_ROWS, 36]);
  replica.store.configure(deferring());
  await buildAll(replica);
  assert.deepEqual(figures(replica), [100, 0]);
});

test('a replica tells from which operation on points are deferred: those that one build shows wait no longer, and a replaced one hands its wait on', async (t) => {
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder, deferring()));
  const from = () => replica.store.stats().deferredFrom;
  const ids = () => replica.store.stats().segments.flatMap(({ id, rows, building }) => (rows > 0 && !building ? [id] : []));
  replica.apply(points(0, 50));
  assert.equal(from(), undefined);
  const first = replica.store.stats().appliedOperation + 1;
  replica.apply(points(50, 100));
  assert.equal(from(), first);
  replica.apply(points(100, 120));
  assert.equal(from(), first);
  const running = build(replica, ids());
  // Behind the build: new points, and a newer row of one that the build shows.
  replica.apply(points(200, 280));
  replica.apply(points(110, 111, 900));
  publishBuild(replica.store, await running);
  assert.equal(from(), first + 2);
  // Readers keep the row of point 1 that a staying segment has, whatever deferred rows are built meanwhile.
  replica.apply(points(1, 2, 800));
  const third = from();
  const deferred = replica.store.stats().segments.filter((segment) => segment.deferred);
  const part = build(replica, deferred.map(({ id }) => id)); // biome-ignore format: a line
  replica.apply(points(600, 700), points(1, 2, 801));
  publishBuild(replica.store, await part);
  assert.deepEqual([replica.points().get('1')?.vectors[''], from()], [vectorOf(1), third]);
  await buildAll(replica);
  assert.deepEqual([replica.points().get('1')?.vectors[''], from()], [vectorOf(801), undefined]);
  replica.apply(points(300, 400));
  const second = replica.store.stats().appliedOperation;
  assert.equal(from(), second);
  const next = build(replica, ids());
  replica.apply(points(500, 600));
  publishBuild(replica.store, await next);
  assert.equal(from(), second + 1, 'only later points are deferred now');
  await replica.close();
  replica = await Replica.open(specOf(folder, deferring()));
  assert.equal(from(), 0, 'after an opening it may be any');
  await replica.close();
});

// ------------------------------------------------------------------ random histories

const IDS = 150;

/** Numbers of a seed, the same on every machine. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What was written of each point since it was last deleted, newest last. */
type History = Map<number, Pick<SeenPoint, 'vectors' | 'payload'>[]>;

function step(random: (below: number) => number, history: History): UpdateOperation {
  const ids = [...new Set(Array.from({ length: 1 + random(12) }, () => random(IDS)))];
  const known = ids.filter((id) => history.has(id));
  const kind = random(10);
  const g = random(40);
  if (kind < 6 || known.length === 0) {
    const batch = ids.map((id) => ({ id, seed: random(1000), payload: { g } }));
    for (const { id, seed, payload } of batch) history.set(id, [...(history.get(id) ?? []), { vectors: { '': vectorOf(seed) }, payload }]);
    return upsert(batch);
  }
  if (kind === 6) {
    for (const id of known.slice(0, 3)) history.delete(id);
    return { kind: 'deletePoints', selector: byIds(...known.slice(0, 3)) };
  }
  if (kind === 7) {
    for (const [id, states] of history) if (states.at(-1)?.payload.g === g) history.delete(id);
    return { kind: 'deletePoints', selector: filterOn('g', g) };
  }
  for (const id of known) {
    const states = history.get(id) as { vectors: SeenPoint['vectors']; payload: SeenPoint['payload'] }[];
    history.set(id, [...states, { vectors: (states.at(-1) as SeenPoint).vectors, payload: { g } }]);
  }
  return { kind: 'overwritePayload', selector: byIds(...known), payload: { g }, key: null };
}

for (const seed of [1, 2, 3, 4]) {
  test(`no point is lost, doubled or older than it was, in history ${seed}`, async (t) => {
    const random = randomOf(seed);
    const folder = temporaryFolder(t);
    const spec = specOf(folder, deferring());
    const history: History = new Map();
    let before = new Map<string, SeenPoint>();
    let replica = await Replica.open(spec);
    if (seed % 2 === 0) replica.apply({ kind: 'createFieldIndex', field: 'g', schema: { type: 'integer' } });
    let running: BuildResult | null = null;
    let deferredMost = 0;
    const look = (where: string): void => {
      const seen = replica.points();
      for (const [id, { vectors, payload, version }] of seen) {
        const states = history.get(Number(id)) ?? [];
        assert.ok(
          states.some((state) => JSON.stringify([vectors, payload]) === JSON.stringify([state.vectors, state.payload])),
          `${where}: point ${id} is seen as it never was`,
        );
        assert.ok(version >= (before.get(id)?.version ?? 0), `${where}: point ${id} is older than it was`);
      }
      const { deferredPoints, points: shown, fieldPoints } = replica.store.stats();
      assert.equal(shown, seen.size, where);
      if (seed % 2 === 0) assert.equal(fieldPoints.get('g'), seen.size, where);
      for (const id of before.keys()) if (history.has(Number(id))) assert.ok(seen.has(id), `${where}: point ${id} is lost`);
      if (deferredPoints === 0) {
        const newest = [...history].map(([id, states]) => [String(id), states.at(-1)] as const);
        const plain = [...seen].map(([id, { vectors, payload }]) => [id, { vectors, payload }] as const);
        assert.deepEqual(Object.fromEntries(plain), Object.fromEntries(newest), where);
      }
      deferredMost = Math.max(deferredMost, deferredPoints);
      before = seen;
    };
    for (let round = 0; round < 80; round++) {
      for (let operations = 1 + random(3); operations > 0; operations--) {
        // A group with an operation that meets a bug is taken back, and its operations are applied one by one.
        const bug = random(8) === 0 ? [{ kind: 'none' } as unknown as UpdateOperation] : [];
        assert.equal(replica.apply(step(random, history), ...bug)[0]?.error, null);
        before = new Map([...before].filter(([id]) => history.has(Number(id))));
        look(`round ${round}`);
      }
      if (running === null && random(3) === 0) {
        const full = replica.store.stats().segments.filter(({ rows }) => rows > 0);
        const sources = full.filter(() => random(2) === 0).map(({ id }) => id);
        if (sources.length > 0) running = await build(replica, sources);
      } else if (running !== null && random(3) === 0) {
        if (random(4) === 0) replica.store.builds.abandon(running.sources);
        else publishBuild(replica.store, running);
        running = null;
        look(`publication after round ${round}`);
      }
      if (random(10) === 0) {
        running = null;
        await replica.close();
        replica = await Replica.open(spec);
        look(`opening after round ${round}`);
      }
      if (random(25) === 0) {
        replica.store.configure(deferring({ prevent_unoptimized: false }));
        look(`change after round ${round}`);
        replica.store.configure(deferring());
      }
    }
    assert.ok(deferredMost > 20, `${deferredMost} points were deferred at most`);
    await replica.close();
  });
}
