/** Plans of backups on a real node with a store in a folder: only the date and the timer of the actor are the test's. */

import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { type Cron, parseCron } from '../../../actors/backups/cron.js';
import type { BackupPlan } from '../../../actors/backups/plan.js';
import { BACKUP_LOOK_MS } from '../../../actors/backups/shell.js';
import type { PlanStatus } from '../../../actors/backups/state.js';
import type { NodeApi } from '../../../actors/requests/node-api.js';
import { systemPorts, systemTimers } from '../../../actors/runtime/system-ports.js';
import type { CheckArchive } from '../../../actors/snapshots/snapshots.js';
import { startNode } from '../../../actors/start/start-node.js';
import { checkArchive } from '../../../ops/check-archive.js';
import { ArchiveThread } from '../../../storage/archive/archive-thread.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import { LocalSnapshotStore } from '../../../storage/snapshot-store/local.js';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { FakeWorld } from '../fake-world.js';
import { sampleConfig } from '../samples.js';

const DAY_MS = 86_400_000;
const START = Date.parse('2026-03-01T12:00:00Z');
const ARCHIVES = { kind: 'collection', collection: 'c' } as const;

let pool: EnginePool;
before(async () => {
  pool = await EnginePool.start({ readers: 1, writers: 1 });
});
after(() => pool.close());

const plan = (given: Partial<BackupPlan>): BackupPlan => ({
  name: 'nightly',
  schedule: parseCron('0 2 * * *') as Cron,
  collections: 'all',
  keep: { last: 2, daily: 0, weekly: 0 },
  verify: 'none',
  ...given,
});

/** A node whose date is the test's, and whose actor of backups looks at it when the test says so. */
class Harness {
  dateMs = START;
  /** Put before the real check. */
  beforeCheck: (file: string) => Promise<void> = async () => {};
  readonly checked: (string | null)[] = [];
  #look: (() => void) | null = null;
  #wakeLook: () => void = () => {};
  #wakeShown: (plans: readonly PlanStatus[]) => void = () => {};
  #node: NodeApi | null = null;

  constructor(private readonly folder: string) {}

  get node(): NodeApi {
    assert.ok(this.#node);
    return this.#node;
  }

  /** Resolves when the actor knows what was made before. */
  async start(...backups: BackupPlan[]): Promise<void> {
    const { log } = new FakeWorld();
    const clock = { nowMs: steadyNowMs, dateMs: () => this.dateMs };
    const timers = {
      after: (delayMs: number, run: () => void) => {
        if (delayMs !== BACKUP_LOOK_MS) return systemTimers.after(delayMs, run);
        this.#look = run;
        this.#wakeLook();
        return () => {};
      },
    };
    const check: CheckArchive = async (file, unpackIn, signal) => {
      this.checked.push(unpackIn);
      await this.beforeCheck(file);
      return checkArchive(file, unpackIn, signal);
    };
    const archive = new ArchiveThread();
    this.#look = null;
    const waits = this.#nextLook();
    this.#node = await startNode({
      storagePath: join(this.folder, 'storage'),
      pool,
      log,
      clock,
      ports: { ...systemPorts(log, clock), timers },
      backups,
      snapshots: {
        store: new LocalSnapshotStore({ folder: join(this.folder, 'snapshots'), freeBytesMin: 0 }),
        archive,
        tempFolder: join(this.folder, 'temp'),
        version: '0.0.0',
        freeBytesMin: 0,
        locate: () => assert.fail('nothing is fetched'),
        dateMs: clock.dateMs,
        checkArchive: check,
      },
    });
    let plans = this.node.backups.plans;
    Object.defineProperty(this.node.backups, 'plans', {
      get: () => plans,
      set: (shown: readonly PlanStatus[]) => {
        plans = shown;
        this.#wakeShown(shown);
      },
    });
    await waits;
  }

  /** The actor looks at this date, and no turn begins. */
  async lookIdle(dateMs: number): Promise<void> {
    this.dateMs = dateMs;
    const waits = this.#nextLook();
    this.#look?.();
    await waits;
  }

  /** The actor looks at this date. Resolves with the first plan when the turn has ended that begins then. */
  async turn(dateMs: number): Promise<PlanStatus> {
    const shown = new Promise<readonly PlanStatus[]>((resolve) => {
      this.#wakeShown = resolve;
    });
    await this.lookIdle(dateMs);
    const [status] = await shown;
    assert.ok(status);
    return status;
  }

  async names(): Promise<string[]> {
    return (await this.node.snapshots.list(ARCHIVES)).map(({ name }) => name);
  }

  #nextLook(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeLook = resolve;
    });
  }
}

async function harnessFor(t: TestContext): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-backups-'));
  const harness = new Harness(folder);
  t.after(async () => {
    await harness.node.close();
    await rm(folder, { recursive: true, force: true });
  });
  return harness;
}

async function fill(node: NodeApi, name: string): Promise<void> {
  await node.createCollection(name, sampleConfig());
  const points = Array.from({ length: 200 }, (_, id) => ({ id, vector: [id, 1, 2, 3] }));
  const body = new TextEncoder().encode(JSON.stringify({ points }));
  await node.write(name, 'upsertPoints', true, { path: {}, query: {}, body, deadlineMs: steadyNowMs() + 20_000 });
}

const night = (day: number): number => Date.parse('2026-03-01T02:00:05Z') + (day - 1) * DAY_MS;
const nameOf = (day: number): string => `c-0-2026-03-0${day}-02-00-05.backup-nightly-0.snapshot`;

test('a plan makes a snapshot each night and removes its older ones, and those that others have made stay', {
  timeout: 60_000,
}, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({}));
  await fill(harness.node, 'c');
  const { name: own } = await harness.node.snapshots.create(ARCHIVES);
  await harness.lookIdle(night(2) - 60_000);
  assert.deepEqual(await harness.names(), [own]);
  for (const day of [2, 3]) assert.deepEqual((await harness.turn(night(day))).last?.failures, []);
  assert.deepEqual((await harness.names()).sort(), [own, nameOf(2), nameOf(3)].sort());
  const { last, lastSuccessMs, nextMs } = await harness.turn(night(4));
  assert.deepEqual([last?.made, last?.removed, lastSuccessMs], [1, 1, night(4)]);
  assert.ok((last?.bytes ?? 0) > 0);
  assert.equal(nextMs, night(5) - 5000);
  assert.deepEqual((await harness.names()).sort(), [own, nameOf(3), nameOf(4)].sort());
});

test('after a restart a plan knows its snapshots by their names, and makes up one missed turn', { timeout: 60_000 }, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({}));
  await fill(harness.node, 'c');
  await harness.turn(night(2));
  await harness.node.close();
  harness.dateMs = night(5) + 3_600_000;
  await harness.start(plan({}));
  const [before] = harness.node.backups.plans;
  assert.equal(before?.lastSuccessMs, night(2));
  await harness.turn(harness.dateMs);
  assert.deepEqual(await harness.names(), [nameOf(2), 'c-0-2026-03-05-03-00-05.backup-nightly-0.snapshot']);
  await harness.lookIdle(harness.dateMs + 60_000);
  assert.equal((await harness.names()).length, 2);
});

// Checks are processes of low priority: beside other work they take several times as long.
for (const verify of ['archive', 'restore'] as const) {
  test(`verify ${verify}: a damaged archive is found and goes, and older backups stay`, { timeout: 180_000 }, async (t) => {
    const harness = await harnessFor(t);
    await harness.start(plan({ verify, keep: { last: 1, daily: 0, weekly: 0 } }));
    await fill(harness.node, 'c');
    const sound = await harness.turn(night(2));
    assert.deepEqual(sound.last?.failures, []);
    assert.equal(harness.checked.length, 1);
    assert.equal(typeof harness.checked[0] === 'string', verify === 'restore');
    harness.beforeCheck = flipByte;
    const failed = await harness.turn(night(3));
    assert.equal(failed.failures, 1);
    assert.match(failed.last?.failures[0] ?? '', /^collection c: the check of c-0-2026-03-03.* has failed, the snapshot is removed: /);
    assert.equal(failed.lastSuccessMs, night(2));
    assert.deepEqual(await harness.names(), [nameOf(2)]);
    harness.beforeCheck = async () => {};
    assert.equal((await harness.turn(night(4))).failures, 1, 'no other one');
    assert.deepEqual(await harness.names(), [nameOf(4)]);
  });
}

test('an archive that could not be looked through stays, and so do older ones', { timeout: 60_000 }, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({ verify: 'archive', keep: { last: 1, daily: 0, weekly: 0 } }));
  await fill(harness.node, 'c');
  await harness.turn(night(2));
  harness.beforeCheck = () => Promise.reject(new Error('no more processes'));
  assert.deepEqual((await harness.turn(night(3))).last?.failures, ['collection c: no more processes']);
  assert.deepEqual(await harness.names(), [nameOf(2), nameOf(3)]);
});

test('a backup that is the base of a snapshot which somebody has made stays as long as that one', { timeout: 60_000 }, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({ keep: { last: 1, daily: 0, weekly: 0 } }));
  await fill(harness.node, 'c');
  await harness.turn(night(2));
  const { name: onBase } = await harness.node.snapshots.create(ARCHIVES, nameOf(2));
  const second = await harness.turn(night(3));
  assert.deepEqual([second.last?.failures, second.last?.removed], [[], 0]);
  assert.deepEqual((await harness.names()).sort(), [onBase, nameOf(2), nameOf(3)].sort());
  await harness.node.snapshots.remove(ARCHIVES, onBase);
  assert.equal((await harness.turn(night(4))).last?.removed, 2);
  assert.deepEqual(await harness.names(), [nameOf(4)]);
});

test('a collection that a plan names and that is missing does not keep others from their backup', { timeout: 60_000 }, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({ collections: ['missing', 'c'] }));
  await fill(harness.node, 'c');
  const { last, lastSuccessMs } = await harness.turn(night(2));
  assert.deepEqual([last?.made, last?.failures.length, lastSuccessMs], [1, 1, null]);
  assert.match(last?.failures[0] ?? '', /^collection missing: /);
  assert.deepEqual(await harness.names(), [nameOf(2)]);
});

test('a plan of the whole storage makes full snapshots, and telemetry shows its turns', { timeout: 60_000 }, async (t) => {
  const harness = await harnessFor(t);
  await harness.start(plan({ collections: 'storage' }));
  await fill(harness.node, 'c');
  await harness.turn(night(2));
  const full = await harness.node.snapshots.list({ kind: 'full' });
  assert.deepEqual(
    full.map(({ name }) => name),
    ['full-snapshot-2026-03-02-02-00-05.backup-nightly-0.snapshot'],
  );
  const actor = [...harness.node.telemetry().children].find(({ kind }) => kind === 'backups');
  const { 'nightly lastBytes': bytes, 'nightly lastSeconds': seconds, ...facts } = actor?.facts ?? {};
  assert.equal(bytes, full[0]?.size);
  assert.equal(typeof seconds, 'number');
  assert.deepEqual(facts, {
    'nightly next': '2026-03-03T02:00:00.000Z',
    'nightly lastSuccess': '2026-03-02T02:00:05.000Z',
    'nightly last': '2026-03-02T02:00:05.000Z',
    'nightly lastResult': 'ok',
    'nightly lastSnapshots': 1,
    'nightly lastRemoved': 0,
    'nightly failures': 0,
  });
});

/** Of the middle, which is in the file of a database. */
async function flipByte(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    const at = Math.floor((await handle.stat()).size / 2);
    const byte = Buffer.alloc(1);
    await handle.read(byte, 0, 1, at);
    byte[0] = (byte[0] as number) ^ 0xff;
    await handle.write(byte, 0, 1, at);
  } finally {
    await handle.close();
  }
}
