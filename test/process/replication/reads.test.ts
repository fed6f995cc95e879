/** Reads at majority, quorum and all, on real nodes that are paused and killed while points are written: each sees all that was acknowledged. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import { temporaryFolder, until } from '../support.js';
import { untilCalm } from './shards.js';

const LEVELS = ['majority', 'quorum', 'all'] as const;
/** The newest points that a read asks for. */
const NEWEST = 12;
const PATIENCE_MS = 6000;

/** Writes points 1, 2, 3… each through the next node, again until it is acknowledged; reads them through all nodes at each level. */
class Traffic {
  /** All points up to it are. */
  acknowledged = 0;
  readonly reads: Record<string, number> = {};
  readonly missed: string[] = [];
  readonly unexpected: string[] = [];
  #stopped = false;
  readonly #ended: Promise<void>[];

  constructor(private readonly cluster: LocalCluster) {
    this.#ended = [this.#write(), ...LEVELS.flatMap((level) => [this.#retrieve(level), this.#search(level)])];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#ended);
  }

  /** So many more reads were answered at every level. */
  async more(count: number): Promise<void> {
    const before = { ...this.reads };
    await until(
      async () => ({ ...this.reads }),
      (reads) => LEVELS.every((level) => (reads[level] ?? 0) >= (before[level] ?? 0) + count),
      60_000,
    );
  }

  async #write(): Promise<void> {
    for (let round = 0; !this.#stopped; round += 1) {
      const id = this.acknowledged + 1;
      const points = [{ id, vector: [id, 1], payload: { id } }];
      const answer = await this.#ask(round, 'PUT', '/collections/c/points?wait=true&timeout=5', { points });
      if (answer !== null) this.acknowledged = id;
    }
  }

  async #retrieve(level: string): Promise<void> {
    for (let round = 0; !this.#stopped; round += 1) {
      const newest = this.acknowledged;
      const ids = Array.from({ length: Math.min(NEWEST, newest) }, (_, at) => newest - at);
      const answer = await this.#ask(round, 'POST', `/collections/c/points?timeout=5&consistency=${level}`, { ids });
      if (answer !== null) this.#check(level, ids, answer as { id: number }[]);
    }
  }

  /** The newest have the highest scores. */
  async #search(level: string): Promise<void> {
    for (let round = 1; !this.#stopped; round += 1) {
      const newest = this.acknowledged;
      const ids = Array.from({ length: Math.min(NEWEST, newest) }, (_, at) => newest - at);
      const filter = { must: [{ key: 'id', range: { lte: newest } }] };
      const body = { query: [1, 0], filter, limit: NEWEST };
      const answer = await this.#ask(round, 'POST', `/collections/c/points/query?timeout=5&consistency=${level}`, body);
      if (answer !== null) this.#check(level, ids, (answer as { points: { id: number }[] }).points);
    }
  }

  #check(level: string, ids: readonly number[], found: readonly { readonly id: number }[]): void {
    this.reads[level] = (this.reads[level] ?? 0) + 1;
    const there = new Set(found.map(({ id }) => id));
    const missing = ids.filter((id) => !there.has(id));
    if (missing.length > 0) this.missed.push(`a read at ${level} misses ${missing.join(', ')}`);
  }

  /** The result; null when the node does not answer well. */
  async #ask(round: number, method: string, path: string, body: unknown): Promise<unknown> {
    const running = this.cluster.nodes.filter(({ state }) => state === 'running');
    const node = running[round % running.length];
    if (node === undefined) return null;
    const answer = await withPatience(node.client.call(method, path, body).catch(() => null));
    if (answer?.status === 200) return (answer.body as { result: unknown }).result;
    if (answer !== null && ![408, 429, 503].includes(answer.status)) this.unexpected.push(`${path}: ${answer.status} ${answer.text}`);
    await new Promise((done) => setTimeout(done, 30));
    return null;
  }
}

/** A paused node says nothing; null then. */
async function withPatience<T>(answer: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE_MS);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

async function started(t: TestContext): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const body = { vectors: { size: 2, distance: 'Dot' }, shard_number: 2, replication_factor: 3 };
  await cluster.node(1).client.result('PUT', '/collections/c?timeout=30', body);
  return cluster;
}

test('a read at majority, quorum or all never misses a point that was acknowledged before it, whichever node is paused or killed', async (t) => {
  const cluster = await started(t);
  const traffic = new Traffic(cluster);
  t.after(() => traffic.stop());
  await traffic.more(10);
  for (const number of [1, 2, 3]) {
    const node = cluster.node(number);
    if (number === 2) {
      await node.kill();
      await traffic.more(10);
      cluster.launch(number);
      // Reads go on while it gets what it missed.
      await traffic.more(5);
      await cluster.untilReady(number);
    } else {
      node.pause();
      await traffic.more(10);
      // It may still take itself for the leader of its shards.
      node.resume();
      await traffic.more(10);
    }
    await untilCalm(cluster.node((number % 3) + 1), 'c', 3);
  }
  await traffic.stop();
  t.diagnostic(`${traffic.acknowledged} points, reads ${JSON.stringify(traffic.reads)}`);
  assert.deepEqual(traffic.missed, []);
  assert.deepEqual(traffic.unexpected, []);
});
