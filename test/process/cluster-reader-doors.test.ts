/** A cluster whose readers take the connections of clients and ask peers themselves: while shards move and nodes go, no answer lacks points. */

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { canSharePort } from '../../http/context/share-port.js';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { temporaryFolder, until } from './support.js';

const POINTS = 300;
const CONNECTIONS = 4;
const COPIES = { one: 1, two: 2, three: 3 } as const;
const skip = canSharePort() ? false : 'this Node cannot share a port between threads';

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Asks a node on connections that stay, so that all its readers are asked. */
class Connections {
  readonly #agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));

  constructor(readonly node: LocalNode) {}

  post(path: string, body: unknown, at: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const agent = this.#agents[at % CONNECTIONS] as Agent;
      const asking = request(`http://127.0.0.1:${this.node.port}${path}`, { agent, method: 'POST' }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      });
      asking.on('error', reject);
      asking.end(JSON.stringify(body));
    });
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
  }
}

async function clusterOf(t: TestContext): Promise<{ cluster: LocalCluster; doors: Connections[] }> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const { client } = cluster.node(1);
  for (const [name, copies] of Object.entries(COPIES)) {
    const settings = { vectors: { size: 2, distance: 'Euclid' }, shard_number: 6, replication_factor: copies };
    await client.result('PUT', `/collections/${name}?timeout=20`, settings);
    const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: [id, 0], payload: { even: id % 2 === 0 } }));
    await client.result('PUT', `/collections/${name}/points?wait=true&timeout=20`, { points });
  }
  const doors = [1, 2, 3].map((number) => new Connections(cluster.node(number)));
  t.after(() => {
    for (const door of doors) door.close();
  });
  return { cluster, doors };
}

/** One read of each kind. Answers of 200 have all points; returned is '200', or another answer. */
async function read(door: Connections, collection: string, at: number): Promise<string> {
  const near = 10 + ((at * 7) % (POINTS - 20));
  const [count, nearest] = await Promise.all([
    door.post(`/collections/${collection}/points/count?timeout=20`, { filter: { must: [{ key: 'even', match: { value: true } }] } }, at),
    door.post(`/collections/${collection}/points/query?timeout=20`, { query: [near, 0.25], limit: 3, with_payload: true }, at + 1),
  ]);
  if (count.status === 200) assert.match(count.text, new RegExp(`"count":${POINTS / 2}\\b`));
  if (nearest.status === 200) {
    const { points } = (JSON.parse(nearest.text) as { result: { points: { id: number; payload: { even: boolean } }[] } }).result;
    const ids = points.map(({ id }) => id);
    assert.deepEqual([...ids].sort(), [near - 1, near, near + 1].sort());
    for (const { id, payload } of points) assert.equal(payload.even, id % 2 === 0);
  }
  const other = [count, nearest].find(({ status }) => status !== 200);
  return other === undefined ? '200' : other.text;
}

/** Reads until `work` is over. Returns the answers that occurred, as `read` does. */
async function readDuring(doors: readonly Connections[], collections: readonly string[], work: Promise<unknown>): Promise<Set<string>> {
  const statuses = new Set<string>();
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  const reading = doors.map(async (door, from) => {
    for (let at = from; !isOver; at++) statuses.add(await read(door, collections[at % collections.length] as string, at));
  });
  await Promise.all([over, ...reading]);
  return statuses;
}

/** Reads that the main threads of all nodes have asked peers for, or were asked for by peers. */
async function readsOfMainThreads(doors: readonly Connections[]): Promise<number> {
  type Calls = { responses: Record<string, Record<string, { count: number }>> };
  const reports = await Promise.all(
    doors.map(({ node }) => node.client.result<{ app: { peer_calls: { made: Calls; answered: Calls } } }>('GET', '/telemetry')),
  );
  const calls = reports.flatMap(({ app: { peer_calls } }) => [peer_calls.made, peer_calls.answered]);
  const outcomes = calls.flatMap(({ responses }) => Object.values(responses.read ?? {}));
  return outcomes.reduce((sum, { count }) => sum + count, 0);
}

test('readers of a cluster answer with all points, also while shards move and a node is killed', { skip }, async (t) => {
  const { cluster, doors } = await clusterOf(t);
  const names = Object.keys(COPIES);
  const survivors = doors.slice(0, 2);

  await t.test('from every node and on every connection, and readers ask readers of peers', async () => {
    // Streams between readers and peers open with the first questions.
    await until(
      async () => {
        const before = await readsOfMainThreads(doors);
        for (const door of doors)
          for (let at = 0; at < 3 * CONNECTIONS; at++) assert.equal(await read(door, names[at % 3] as string, at), '200');
        return (await readsOfMainThreads(doors)) - before;
      },
      (calls) => calls === 0,
    );
  });

  await t.test('while a shard moves', async () => {
    const { client } = cluster.node(1);
    const peers = await Promise.all([1, 2, 3].map((number) => cluster.peerIdOf(cluster.node(number))));
    const shardsAt = async (number: number): Promise<number[]> => {
      const info = await cluster.node(number).client.result<{ local_shards: { shard_id: number }[] }>('GET', '/collections/one/cluster');
      return info.local_shards.map(({ shard_id }) => shard_id);
    };
    for (const [from, to] of [
      [1, 2],
      [2, 3],
    ] as const) {
      const [shard_id] = await shardsAt(from);
      const move = { shard_id, from_peer_id: peers[from - 1], to_peer_id: peers[to - 1] };
      await client.result('POST', '/collections/one/cluster?timeout=20', { move_shard: move });
      const moved = until(
        () => shardsAt(from),
        (shards) => !shards.includes(shard_id as number),
      );
      // The only copy: a read that comes as it closes on one node may be refused, and never lacks points.
      for (const answer of await readDuring(doors, ['one'], moved)) assert.match(answer, /^200$|the replica is being closed/);
    }
  });

  await t.test('while a node is killed and comes back', async () => {
    const statuses = await readDuring(survivors, ['two', 'three'], cluster.node(3).kill());
    assert.deepEqual([...statuses], ['200']);
    const declared = until(
      () => Promise.all(survivors.map((door, at) => read(door, 'two', at))),
      (answers) => answers.every((answer) => answer === '200'),
    );
    await readDuring(survivors, ['one'], declared);
    const back = await readDuring(survivors, ['two', 'three'], cluster.start(3));
    assert.deepEqual([...back], ['200']);
    await until(
      () => Promise.all(doors.flatMap((door) => names.map((name, at) => read(door, name, at)))),
      (answers) => answers.every((answer) => answer === '200'),
    );
  });
});
