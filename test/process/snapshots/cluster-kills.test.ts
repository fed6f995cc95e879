/**
 * SIGKILL of a node of three at random moments while a restore is under way, with each priority: the shard's leader, another holder, or the node that
 * was asked. No node ever shows a shard with a part of a restore, and afterwards each shard has what it had before or what the snapshot has.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more kills with TROUPE_KILLS=<number>.
 */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { testSeed } from '../../seed.js';
import { leadsAny, untilCalm } from '../replication/shards.js';
import { temporaryFolder, until } from '../support.js';
import { download, type ShownSnapshot, upload } from './support.js';

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

/** Folders of files that were sent or unpacked for a restore and belong to nothing. */
async function leftovers(cluster: LocalCluster): Promise<string[]> {
  const names = await Promise.all(cluster.nodes.map(({ folder }) => readdir(join(folder, 'storage', 'collections'))));
  return names.flat().filter((name) => /restore/.test(name));
}

test('whichever node is killed while a cluster restores, no shard is ever shown in part, and each is as before or as the snapshot', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const cluster = await LocalCluster.start({ nodes: NODES, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
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
  assert.deepEqual(await leftovers(cluster), []);
});
