/** Peers that come and go with points in the cluster, as real processes: everything moves, and nothing is lost. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { temporaryFolder, until } from './support.js';

const POINTS = 600;

interface Plan {
  readonly started: boolean;
  readonly moves: readonly {
    readonly shard_id: number;
    readonly from_peer_id?: number;
    readonly to_peer_id?: number;
    readonly bytes: number;
  }[];
  readonly stuck: readonly unknown[];
  readonly balance: { readonly before: Record<string, { replicas: number }>; readonly after: Record<string, { replicas: number }> };
}

function replicasOf(plan: Plan, when: 'before' | 'after'): number[] {
  return Object.values(plan.balance[when]).map(({ replicas }) => replicas);
}

async function fill({ client }: LocalNode): Promise<void> {
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { id } }));
  await client.result('PUT', '/collections/c/points?wait=true', { points });
}

async function idsOf({ client }: LocalNode): Promise<number[]> {
  const answer = await client.result<{ points: { id: number }[] }>('POST', '/collections/c/points/scroll?consistency=all', {
    limit: POINTS * 2,
  });
  return answer.points.map(({ id }) => id);
}

async function peersOf({ client }: LocalNode): Promise<number[]> {
  const { peers } = await client.result<{ peers: Record<string, unknown> }>('GET', '/cluster');
  return Object.keys(peers).map(Number);
}

test('a drained peer gives away its shards and leaves, and a new one gets its share: no point is lost', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const [one, two, three] = [cluster.node(1), cluster.node(2), cluster.node(3)];
  await one.client.result('PUT', '/collections/c', { vectors: { size: 4, distance: 'Dot' }, shard_number: 6, replication_factor: 1 });
  await fill(one);
  const all = Array.from({ length: POINTS }, (_, id) => id);
  const { peer_id: leaving } = await three.client.result<{ peer_id: number }>('GET', '/cluster');
  const dry = await one.client.result<Plan>('POST', `/cluster/peer/${leaving}/drain?dry_run=true`);
  assert.deepEqual([dry.started, dry.moves.length, replicasOf(dry, 'before'), dry.stuck], [false, 2, [2, 2, 2], []]);
  assert.deepEqual(replicasOf(dry, 'after').sort(), [0, 3, 3]);
  assert.ok(dry.moves.every(({ bytes, from_peer_id }) => bytes > 0 && from_peer_id === leaving));
  assert.equal((await peersOf(one)).length, 3);

  const begun = await two.client.result<Plan>('POST', `/cluster/peer/${leaving}/drain`);
  assert.deepEqual([begun.started, begun.moves], [true, dry.moves]);
  await until(
    () => peersOf(one),
    (peers) => !peers.includes(leaving),
  );
  assert.deepEqual(await idsOf(one), all);
  assert.deepEqual(await idsOf(two), all);

  const fourth = await cluster.add();
  const balanced = await one.client.result<Plan>('POST', '/cluster/rebalance');
  assert.deepEqual([balanced.started, replicasOf(balanced, 'after').sort()], [true, [2, 2, 2]]);
  await until(
    () => fourth.client.result<{ local_shards: unknown[]; shard_transfers: unknown[] }>('GET', '/collections/c/cluster'),
    ({ local_shards, shard_transfers }) => local_shards.length === 2 && shard_transfers.length === 0,
  );
  for (const node of [one, two, fourth]) assert.deepEqual(await idsOf(node), all);
});

test('where the number of copies is kept, those of a node that was removed are made elsewhere, and a smaller number drops what is too much', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const [one, two, three] = [cluster.node(1), cluster.node(2), cluster.node(3)];
  const vectors = { size: 4, distance: 'Dot' };
  await one.client.result('PUT', '/collections/c', { vectors, shard_number: 3, replication_factor: 2 });
  await fill(one);
  await one.client.result('POST', '/collections/c/cluster', { auto_replication: { enabled: true } });
  const placed = () =>
    one.client.result<{
      local_shards: { state: string }[];
      remote_shards: { state: string; peer_id: number }[];
      shard_transfers: unknown[];
    }>('GET', '/collections/c/cluster');
  const { peer_id: lost } = await three.client.result<{ peer_id: number }>('GET', '/cluster');
  await three.kill();
  await one.client.result('DELETE', `/cluster/peer/${lost}?force=true&timeout=20`);
  await until(placed, ({ local_shards, remote_shards, shard_transfers }) => {
    const states = [...local_shards, ...remote_shards].map(({ state }) => state);
    const isGone = remote_shards.every(({ peer_id }) => peer_id !== lost);
    return isGone && shard_transfers.length === 0 && states.length === 6 && states.every((state) => state === 'Active');
  });
  const all = Array.from({ length: POINTS }, (_, id) => id);
  assert.deepEqual(await idsOf(one), all);
  await one.client.result('PATCH', '/collections/c', { params: { replication_factor: 1 } });
  await until(placed, ({ local_shards, remote_shards }) => local_shards.length + remote_shards.length === 3);
  assert.deepEqual(await idsOf(two), all);
});
