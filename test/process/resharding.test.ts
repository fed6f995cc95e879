/** One shard more and one less on three real nodes while clients write, delete, search and count: nothing is lost, doubled or hidden at any moment. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { temporaryFolder, until } from './support.js';

/** Points that nobody changes, and those behind them that are written and deleted. */
const STILL = 900;
const MOVING = 300;

interface ShardInfo {
  readonly shard_id: number;
  readonly state: string;
  readonly shard_key?: string;
}

interface ClusterInfo {
  readonly shard_count: number;
  readonly local_shards: readonly ShardInfo[];
  readonly remote_shards: readonly ShardInfo[];
  readonly resharding_operations?: readonly { readonly direction: string; readonly shard_id: number; readonly peer_id: number }[];
}

const vectorOf = (id: number) => [Math.cos(id), Math.sin(id), id / STILL];
const pointOf = (id: number, round = 0) => ({
  id,
  vector: { v: vectorOf(id), s: { indices: [id % 7, 100 + (id % 5)], values: [1, 2] } },
  payload: { still: id < STILL, round, third: id % 3 },
});
const STILL_ONLY = { must: [{ key: 'still', match: { value: true } }] };

/** Of requests: which shard key they are for; nothing with automatic sharding. */
type Where = { readonly shard_key?: string };

const EVERYWHERE: Where = {};

async function begin(cluster: LocalCluster, settings: object = {}): Promise<void> {
  const { client } = cluster.node(1);
  await client.result('PUT', '/collections/c', {
    ...settings,
    vectors: { v: { size: 3, distance: 'Euclid' } },
    sparse_vectors: { s: {} },
    shard_number: 2,
    replication_factor: 2,
  });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'third', field_schema: 'integer' });
  await client.result('PUT', '/collections/c/points?wait=true', { points: Array.from({ length: STILL }, (_, id) => pointOf(id)) });
}

/** The same points under two keys: those of `resharded`, and those of `still`, which are nobody's business. */
async function beginWithKeys(cluster: LocalCluster): Promise<void> {
  const { client } = cluster.node(1);
  await client.result('PUT', '/collections/c', {
    vectors: { v: { size: 3, distance: 'Euclid' } },
    sparse_vectors: { s: {} },
    sharding_method: 'custom',
    replication_factor: 2,
  });
  await client.result('PUT', '/collections/c/shards', { shard_key: 'resharded', shards_number: 2 });
  await client.result('PUT', '/collections/c/shards', { shard_key: 'still', shards_number: 1 });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'third', field_schema: 'integer' });
  const points = Array.from({ length: STILL }, (_, id) => pointOf(id));
  for (const shard_key of ['resharded', 'still']) await client.result('PUT', '/collections/c/points?wait=true', { points, shard_key });
}

function infoOf({ client }: LocalNode): Promise<ClusterInfo> {
  return client.result<ClusterInfo>('GET', '/collections/c/cluster');
}

/** What a client may say again: the cluster says so, too. */
async function again<T>(action: () => Promise<T>): Promise<T> {
  for (let left = 100; ; left--) {
    try {
      return await action();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => void setTimeout(resolve, 100));
    }
  }
}

/** Looks at points that nobody changes in several ways. */
async function look({ client }: LocalNode, id: number, where: Where): Promise<void> {
  const { count } = await again(() =>
    client.result<{ count: number }>('POST', '/collections/c/points/count', { filter: STILL_ONLY, exact: true, ...where }),
  );
  assert.equal(count, STILL, 'a count is wrong');
  const { points } = await again(() =>
    client.result<{ points: { id: number }[] }>('POST', '/collections/c/points/scroll', { filter: STILL_ONLY, limit: STILL * 2, ...where }),
  );
  assert.deepEqual(
    points.map((point) => point.id),
    Array.from({ length: STILL }, (_, at) => at),
  );
  const nearest = await again(() =>
    client.result<{ points: { id: number }[] }>('POST', '/collections/c/points/query', {
      query: vectorOf(id),
      using: 'v',
      filter: STILL_ONLY,
      limit: 5,
      ...where,
    }),
  );
  assert.equal(nearest.points[0]?.id, id);
  assert.equal(new Set(nearest.points.map((point) => point.id)).size, 5);
  const facet = await again(() =>
    client.result<{ hits: { value: number; count: number }[] }>('POST', '/collections/c/facet', {
      key: 'third',
      filter: STILL_ONLY,
      exact: true,
      ...where,
    }),
  );
  assert.deepEqual(
    facet.hits.map(({ count }) => count),
    [STILL / 3, STILL / 3, STILL / 3],
  );
}

/** Writes and deletes until `end`; what is acknowledged stands in `there`: round by id, null: deleted. */
class Writer {
  readonly there = new Map<number, number>();
  ended = false;
  #round = 0;

  constructor(
    private readonly nodes: () => readonly LocalNode[],
    private readonly where: Where,
  ) {}

  async run(): Promise<void> {
    const { where } = this;
    while (!this.ended) {
      const round = ++this.#round;
      const nodes = this.nodes();
      const { client } = nodes[round % nodes.length] as LocalNode;
      const ids = Array.from({ length: 20 }, (_, at) => STILL + ((round * 37 + at * 11) % MOVING));
      if (round % 3 === 0) {
        await again(() => client.result('POST', '/collections/c/points/delete?wait=true', { points: ids, ...where }));
        for (const id of ids) this.there.delete(id);
      } else if (round % 7 === 0) {
        const filter = { must: [{ key: 'still', match: { value: false } }] };
        await again(() => client.result('POST', '/collections/c/points/payload?wait=true', { payload: { round }, filter, ...where }));
        for (const id of this.there.keys()) this.there.set(id, round);
      } else {
        await again(() =>
          client.result('PUT', '/collections/c/points?wait=true', { points: ids.map((id) => pointOf(id, round)), ...where }),
        );
        for (const id of ids) this.there.set(id, round);
      }
    }
  }
}

async function checkMoving({ client }: LocalNode, there: ReadonlyMap<number, number>, where: Where): Promise<void> {
  const filter = { must_not: [{ key: 'still', match: { value: true } }] };
  const { points } = await client.result<{ points: { id: number; payload: { round: number } }[] }>(
    'POST',
    '/collections/c/points/scroll?consistency=all',
    { filter, limit: STILL, ...where },
  );
  assert.deepEqual(
    new Map(points.map(({ id, payload }) => [id, payload.round])),
    new Map([...there].sort(([one], [other]) => one - other)),
  );
}

/** Reshards while clients are busy; `meanwhile` happens then, too. */
async function reshard(
  cluster: LocalCluster,
  direction: 'up' | 'down',
  shards: number,
  meanwhile: () => Promise<void>,
  where = EVERYWHERE,
): Promise<void> {
  const running = () => cluster.nodes.filter((node) => node.state === 'running');
  const writer = new Writer(running, where);
  const writing = writer.run();
  const { client } = cluster.node(1);
  assert.equal(await client.result('POST', '/collections/c/cluster', { start_resharding: { direction, ...where } }), true);
  const during = await infoOf(cluster.node(1));
  if (during.resharding_operations !== undefined) assert.equal(during.resharding_operations[0]?.direction, direction);
  await meanwhile();
  let looks = 0;
  await until(
    async () => {
      const nodes = running();
      await look(nodes[looks % nodes.length] as LocalNode, (looks++ * 7) % STILL, where);
      return infoOf(cluster.node(1));
    },
    ({ resharding_operations }) => resharding_operations === undefined,
  );
  writer.ended = true;
  await writing;
  for (const node of running()) {
    assert.equal((await infoOf(node)).shard_count, shards);
    await look(node, 5, where);
    await checkMoving(node, writer.there, where);
  }
  const { points_count } = await client.result<{ points_count: number }>('GET', '/collections/c');
  const others = where === EVERYWHERE ? 0 : STILL;
  assert.equal(points_count, STILL + others + writer.there.size);
  await client.result('POST', '/collections/c/points/delete?wait=true', {
    filter: { must_not: [{ key: 'still', match: { value: true } }] },
    ...where,
  });
}

test('a shard comes and goes while clients write, delete, search and count on three nodes: no point is lost, doubled or hidden', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  await begin(cluster);
  await reshard(cluster, 'up', 3, async () => {});
  await reshard(cluster, 'down', 2, async () => {});
});

test("a shard key's shards become one more and one less while clients write under it: other keys keep theirs", async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  await beginWithKeys(cluster);
  const where = { shard_key: 'resharded' };
  const counted = async () => {
    const { local_shards, remote_shards } = await infoOf(cluster.node(1));
    const ids = new Map([...local_shards, ...remote_shards].map(({ shard_id, shard_key }) => [shard_id, shard_key]));
    return ['resharded', 'still', 'new'].map((key) => [...ids.values()].filter((one) => one === key).length);
  };
  const { client } = cluster.node(2);
  const refused = await client.call('POST', '/collections/c/cluster', { start_resharding: { direction: 'up' } });
  assert.equal(refused.status, 400);
  await reshard(cluster, 'up', 4, async () => {}, where);
  assert.deepEqual(await counted(), [3, 1, 0]);
  await reshard(
    cluster,
    'down',
    3,
    async () => {
      await cluster.node(3).kill();
      await cluster.start(3);
    },
    where,
  );
  assert.deepEqual(await counted(), [2, 1, 0]);
  await look(cluster.node(3), 5, { shard_key: 'still' });
  // A new key has as many shards as the collection says, whatever became of others.
  await client.result('PUT', '/collections/c/shards', { shard_key: 'new' });
  assert.deepEqual(await counted(), [2, 1, 1]);
});

test('points that `prevent_unoptimized` holds back go to their new shard with all others, and are held back again afterwards', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const { client } = cluster.node(1);
  await begin(cluster, { optimizers_config: { prevent_unoptimized: true, indexing_threshold: 1 } });
  const held = Array.from({ length: 400 }, (_, at) => pointOf(STILL + MOVING + at));
  for (const [round, direction] of (['up', 'down'] as const).entries()) {
    await client.result('PUT', '/collections/c/points', { points: held.map(({ id }) => pointOf(id, round)) });
    await client.result('POST', '/collections/c/cluster', { start_resharding: { direction } });
    await until(
      () => infoOf(cluster.node(2)),
      ({ resharding_operations }) => resharding_operations === undefined,
    );
    for (const node of cluster.nodes) {
      await checkMoving(node, new Map(held.map(({ id }) => [id, round])), EVERYWHERE);
      await look(node, 4, EVERYWHERE);
    }
  }
  interface Info {
    readonly config: { readonly optimizer_config: { readonly prevent_unoptimized: boolean } };
  }
  assert.equal((await client.result<Info>('GET', '/collections/c')).config.optimizer_config.prevent_unoptimized, true);
});

test('a node that is killed while points are copied holds nothing up for good: whoever leads then goes on', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  await begin(cluster);
  await reshard(cluster, 'up', 3, async () => {
    await cluster.node(3).kill();
    await cluster.start(3);
  });
});

test('resharding that is aborted leaves every point where it was', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 1, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  await begin(cluster);
  const { client } = cluster.node(1);
  for (const direction of ['up', 'down']) {
    await client.result('POST', '/collections/c/cluster', { start_resharding: { direction } });
    // It may be too late.
    const aborted = await client.call('POST', '/collections/c/cluster', { abort_resharding: {} });
    const info = await until(
      () => infoOf(cluster.node(1)),
      ({ resharding_operations }) => resharding_operations === undefined,
    );
    if (aborted.status === 200) assert.equal(info.shard_count, 2, direction);
    await look(cluster.node(1), 3, EVERYWHERE);
  }
});
