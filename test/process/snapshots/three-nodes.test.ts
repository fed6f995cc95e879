/**
 * Three nodes with one bucket for their snapshots.
 *
 * - Backups by schedule: each shard is saved once at each turn, also when its leader has changed or a holder is away.
 * - SIGKILL of a node at random moments while a restore is under way, with each priority: a shard's leader, another holder, or the node that was asked. No
 *   node ever shows a shard with a part of a restore, and afterwards each shard has what it had before or what the snapshot has.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more kills with TROUPE_KILLS=<number>.
 */

import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { manifestOfFile } from '../../../storage/archive/read-archive.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { testSeed } from '../../seed.js';
import { S3Server } from '../../storage/snapshot-store/s3-server.js';
import { leadsAny, untilCalm } from '../replication/shards.js';
import { preloaded, temporaryFolder, until } from '../support.js';
import { contentOf, download, type ShownSnapshot, upload } from './support.js';

const KILLS = Number(process.env.TROUPE_KILLS ?? 2);
const NODES = 3;
const SHARD_KEYS = ['a', 'b'] as const;
/** Of each shard; one page of a scroll has them all, so that it is read at one moment. */
const POINTS = 400;
const DIM = 32;
const LATE_MS_MAX = 800;
const READ_PAUSE_MS = 30;
/** In turn. */
const PRIORITIES = ['snapshot', 'no_sync', 'snapshot', 'replica'] as const;
const VICTIMS = ['leader', 'holder', 'asked'] as const;

interface Archive {
  readonly bytes: Buffer;
  /** The mark of each point in it. */
  readonly mark: number;
}

/** What a read of one shard may show: the mark of all its points. */
type Allowed = ReadonlySet<number>;

async function write(node: LocalNode, mark: number): Promise<void> {
  for (const [at, shard_key] of SHARD_KEYS.entries()) {
    const points = Array.from({ length: POINTS }, (_, id) => ({
      id: at * POINTS + id,
      vector: Array.from({ length: DIM }, (_, axis) => ((id + axis) % 7) + 1),
      payload: { mark },
    }));
    await until(
      async () => (await node.client.call('PUT', '/collections/c/points?wait=true', { points, shard_key })).status,
      (status) => status === 200,
    );
  }
}

async function archiveOf(node: LocalNode, mark: number): Promise<Archive> {
  const { name } = await node.client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
  return { mark, bytes: await download(node.url, `/collections/c/snapshots/${name}`) };
}

/** The mark of a shard as the node shows it; null if it does not answer, or has nothing to show. Throws when there is a part of something. */
async function markShown(node: LocalNode, shard_key: string, allowed: Allowed): Promise<number | null> {
  const body = { shard_key, limit: 2 * POINTS, with_payload: true };
  const answer = await node.client.call('POST', '/collections/c/points/scroll', body).catch(() => null);
  if (answer?.status !== 200) return null;
  const { points } = (JSON.parse(answer.text) as { result: { points: { payload: { mark: number } }[] } }).result;
  const marks = [...new Set(points.map(({ payload }) => payload.mark))];
  const shown = `node ${node.number} shows ${points.length} points of shard key ${shard_key} with marks ${marks}`;
  assert.equal(points.length, POINTS, shown);
  assert.equal(marks.length, 1, shown);
  assert.ok(allowed.has(marks[0] as number), `${shown}; it may be ${[...allowed]}`);
  return marks[0] as number;
}

/** Reads every shard on every node that runs, again and again, until it is ended. Rejects with what must not be shown. */
class Onlooker {
  reads = 0;
  #isOver = false;
  readonly #looking: Promise<void>;

  constructor(cluster: LocalCluster, allowed: Allowed) {
    this.#looking = Promise.all(cluster.nodes.map((node) => this.#look(node, allowed))).then(() => {});
    this.#looking.catch(() => {});
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#looking;
  }

  async #look(node: LocalNode, allowed: Allowed): Promise<void> {
    while (!this.#isOver) {
      for (const key of SHARD_KEYS) if (node.state === 'running' && (await markShown(node, key, allowed)) !== null) this.reads++;
      await pause(READ_PAUSE_MS);
    }
  }
}

async function chooseVictim(cluster: LocalCluster, asked: LocalNode, random: RandomNumbers): Promise<{ node: LocalNode; role: string }> {
  const role = VICTIMS[random.integer(VICTIMS.length)] as (typeof VICTIMS)[number];
  if (role === 'asked') return { node: asked, role };
  const leading = await Promise.all(cluster.nodes.map(async (node) => ({ node, leads: await leadsAny(node) })));
  const fitting = leading.filter(({ leads }) => leads === (role === 'leader'));
  const node = fitting[random.integer(Math.max(1, fitting.length))]?.node ?? asked;
  return { node, role };
}

/** The folder that a node puts parts of files in as they come from another one. */
const PARTS_OF_RESTORE = /^\.creating-restored-\d+-\d+-[0-9a-f-]{36}$/;

/** Folders of files that were sent or unpacked for a restore and belong to nothing. */
async function leftovers(cluster: LocalCluster): Promise<string[]> {
  const names = await Promise.all(cluster.nodes.map(({ folder }) => readdir(join(folder, 'storage', 'collections'))));
  return names.flat().filter((name) => /restore/.test(name));
}

const HOUR_MS = 3_600_000;
const SAVED_SHARDS = 6;

/** Loaded before each node, in each of its threads: dates are later by the milliseconds in a file. */
const clockProgram = (file: string): string => `
  import fs from 'node:fs';
  const now = Date.now;
  let stepMs = 0;
  let lookedMs = -1000;
  Date.now = () => {
    if (performance.now() - lookedMs > 100) {
      lookedMs = performance.now();
      try { stepMs = Number(fs.readFileSync(${JSON.stringify(file)}, 'utf8')); } catch {}
    }
    return now() + stepMs;
  };`;

interface World {
  readonly cluster: LocalCluster;
  readonly folder: string;
  /** Sets the clocks of all nodes on to the next full hour. */
  nextHour(): Promise<void>;
}

async function worldFor(t: TestContext): Promise<World> {
  await initChecksum();
  const folder = await temporaryFolder(t);
  const clockFile = join(folder, 'clock');
  const s3 = await S3Server.start(t);
  const { accessKey, bucket, endpointUrl, region, secretKey } = s3.settings;
  const store = 'SERVICE__STORAGE__SNAPSHOTS_CONFIG';
  const cluster = await LocalCluster.start({
    nodes: NODES,
    folder,
    nodeArguments: await preloaded(folder, clockProgram(clockFile)),
    environment: {
      [`${store}__SNAPSHOTS_STORAGE`]: 's3',
      [`${store}__S3_CONFIG__BUCKET`]: bucket,
      [`${store}__S3_CONFIG__REGION`]: region ?? undefined,
      [`${store}__S3_CONFIG__ENDPOINT_URL`]: endpointUrl as string,
      [`${store}__S3_CONFIG__ACCESS_KEY`]: accessKey as string,
      [`${store}__S3_CONFIG__SECRET_KEY`]: secretKey as string,
      SERVICE__STORAGE__BACKUPS: JSON.stringify([
        { name: 'hourly', schedule: '0 * * * *', collections: ['saved'], keep: { last: 1 }, verify: 'restore' },
      ]),
    },
  });
  t.after(() => cluster.close());
  let stepMs = 0;
  const nextHour = () => {
    const nowMs = Date.now() + stepMs;
    stepMs += HOUR_MS - (nowMs % HOUR_MS);
    return writeFile(clockFile, String(stepMs));
  };
  return { cluster, folder, nextHour };
}

interface Actors {
  readonly actors: { readonly children: readonly Readonly<Record<string, unknown>>[] };
}

/** How the last turn of the plan on a node went, and when it ended; null where there was none yet. */
async function turnOf({ client }: LocalNode): Promise<{ readonly result: unknown; readonly ended: unknown } | null> {
  const { app } = await client.result<{ app: Actors }>('GET', '/telemetry?details_level=3');
  const facts = app.actors.children.find(({ kind }) => kind === 'backups') ?? {};
  return facts['hourly last'] === undefined ? null : { result: facts['hourly lastResult'], ended: facts['hourly last'] };
}

/** A turn of the plan on these nodes. Resolves with the archives that are there afterwards, by name, each with its shards. */
async function turn({ cluster, folder, nextHour }: World, nodes: readonly LocalNode[]): Promise<ReadonlyMap<string, readonly number[]>> {
  const before = await Promise.all(nodes.map(turnOf));
  await nextHour();
  for (const [at, node] of nodes.entries()) {
    const after = await until(
      () => turnOf(node),
      (now) => now !== null && now.ended !== before[at]?.ended,
      60_000,
    );
    assert.equal(after?.result, 'ok', `node ${node.number}`);
  }
  const [asked] = nodes as [LocalNode];
  const shards = new Map<string, readonly number[]>();
  for (const { name } of await asked.client.result<ShownSnapshot[]>('GET', '/collections/saved/snapshots')) {
    const file = join(folder, 'saved.snapshot');
    await writeFile(file, await download(asked.url, `/collections/saved/snapshots/${name}`));
    const { collections } = await manifestOfFile(file);
    shards.set(name, collections[0]?.shards.map(({ id }) => id) ?? []);
  }
  return shards;
}

const allShards = (archives: Iterable<readonly number[]>) => [...archives].flat().sort((one, other) => one - other);
const SAVED = Array.from({ length: SAVED_SHARDS }, (_, id) => id);

async function savesOnce(world: World): Promise<void> {
  const { cluster } = world;
  const first = cluster.node(1);
  await first.client.result('PUT', '/collections/saved', {
    vectors: { size: 4, distance: 'Dot' },
    shard_number: SAVED_SHARDS,
    replication_factor: NODES,
  });
  const points = Array.from({ length: 300 }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { id } }));
  await first.client.result('PUT', '/collections/saved/points?wait=true', { points });
  await untilCalm(first, 'saved', NODES);
  const content = await contentOf(first.client, 'saved');
  const one = await turn(world, cluster.nodes);
  assert.equal(one.size, NODES, 'each node saves its share');
  assert.deepEqual(allShards(one.values()), SAVED);

  const leader = await cluster.untilLeader();
  const peer = await cluster.peerIdOf(leader);
  await leader.kill();
  const others = cluster.nodes.filter((node) => node !== leader);
  await until(
    async () => others.map((node) => node.log().includes(`peer ${peer} is not connected any more`)),
    (know) => know.every(Boolean),
  );
  const without = await turn(world, others);
  const made = [...without].filter(([name]) => !one.has(name));
  assert.equal(made.length, NODES - 1, 'their own older archives are removed, and the other node’s stays');
  assert.deepEqual(allShards(made.map(([, shards]) => shards)), SAVED);

  // The node that is back leads nothing, makes up its turn, and has its share again.
  await cluster.start(leader.number);
  await untilCalm(first, 'saved', NODES);
  await until(
    () => turnOf(leader),
    (now) => now !== null,
    60_000,
  );
  const again = await turn(world, cluster.nodes);
  assert.equal(again.size, NODES);
  assert.deepEqual(allShards(again.values()), SAVED);
  await first.client.result('POST', '/collections/saved/points/delete?wait=true', { filter: {} });
  for (const name of again.keys()) {
    const location = `${first.url}/collections/saved/snapshots/${name}`;
    await first.client.result('PUT', '/collections/saved/snapshots/recover', { location, priority: 'snapshot' });
  }
  await untilCalm(first, 'saved', NODES);
  assert.deepEqual(await contentOf(first.client, 'saved'), content);
}

async function killsWhileItRestores(t: TestContext, cluster: LocalCluster): Promise<void> {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const first = cluster.node(1);
  await first.client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Dot' },
    sharding_method: 'custom',
    shard_number: 1,
    replication_factor: NODES,
  });
  for (const shard_key of SHARD_KEYS) await first.client.result('PUT', '/collections/c/shards', { shard_key });
  let mark = 0;
  await write(first, mark);
  await untilCalm(first, 'c', NODES);
  const archives: Archive[] = [await archiveOf(first, mark)];
  const tally = new Map<string, number>();
  let reads = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    mark++;
    await write(first, mark);
    const archive = archives[random.integer(archives.length)] as Archive;
    const priority = PRIORITIES[kill % PRIORITIES.length] as (typeof PRIORITIES)[number];
    const asked = cluster.node(1 + random.integer(NODES));
    const { node: victim, role } = await chooseVictim(cluster, asked, random);
    const lateMs = random.unit() * LATE_MS_MAX;
    const story = `kill ${kill}: ${priority} on node ${asked.number}, node ${victim.number} (${role}) killed after ${Math.round(lateMs)} ms`;
    const allowed = new Set([mark, archive.mark]);
    const onlooker = new Onlooker(cluster, allowed);
    const restoring = upload(asked.url, `/collections/c/snapshots/upload?priority=${priority}`, archive.bytes).catch(() => null);
    await pause(lateMs);
    await victim.kill();
    await cluster.start(victim.number);
    const answer = await restoring;
    await untilCalm(first, 'c', NODES);
    reads += await onlooker.end().then(
      () => onlooker.reads,
      (error: unknown) => assert.fail(`${story}: ${String(error)}`),
    );
    const isRestored = answer?.status === 200;
    tally.set(
      `${priority} ${role} ${answer?.status ?? 'no answer'}`,
      (tally.get(`${priority} ${role} ${answer?.status ?? 'no answer'}`) ?? 0) + 1,
    );
    const may = priority === 'replica' ? new Set([mark]) : isRestored && priority === 'snapshot' ? new Set([archive.mark]) : allowed;
    for (const key of SHARD_KEYS) {
      const shown = await Promise.all(cluster.nodes.map((node) => markShown(node, key, may)));
      assert.ok(!shown.includes(null), `${story}: an Active replica does not answer`);
      if (priority !== 'no_sync') assert.equal(new Set(shown).size, 1, `${story}: nodes show ${shown} of shard key ${key}`);
    }
    if (archives.length < 3) {
      mark++;
      await write(first, mark);
      archives.push(await archiveOf(asked, mark));
    }
  }
  const planned = cluster.nodes.map((node) => node.log().split('it is planned again').length - 1).reduce((sum, count) => sum + count, 0);
  t.diagnostic(
    `${KILLS} kills, ${reads} reads of a shard beside them; ${planned} restores planned again by processes that run; ${JSON.stringify([...tally])}`,
  );
  // A node waits five minutes for the next part from one that was killed, unless it starts again before.
  await until(
    () => leftovers(cluster),
    (names) => names.every((name) => PARTS_OF_RESTORE.test(name)),
  );
  for (const { number } of cluster.nodes) {
    await cluster.node(number).kill();
    await cluster.start(number);
  }
  assert.deepEqual(await leftovers(cluster), []);
}

test('three nodes with one bucket', async (t) => {
  const world = await worldFor(t);
  await t.test(
    'each turn of a plan saves each shard once, whoever leads it and whichever node is away, and its archives make the collection again',
    () => savesOnce(world),
  );
  await t.test(
    'whichever node is killed while a cluster restores, no shard is ever shown in part, and each is as before or as the snapshot',
    (t) => killsWhileItRestores(t, world.cluster),
  );
});
