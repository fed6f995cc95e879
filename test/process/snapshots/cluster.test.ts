/** Snapshots between nodes and clusters of different sizes, with each priority. */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { untilCalm } from '../replication/shards.js';
import { nodeFor, temporaryFolder, until } from '../support.js';
import { contentOf, download, type ShownSnapshot, upload } from './support.js';

const POINTS = 400;

/** Three nodes for tests with collections of their own names. */
let three: LocalCluster;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'troupe-process-'));
  three = await LocalCluster.start({ nodes: 3, folder });
});
after(async () => {
  await three.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function clusterOf(t: TestContext, nodes: number): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ nodes, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  return cluster;
}

type Client = LocalNode['client'];

async function fill(client: Client, name: string, shards: number, copies: number): Promise<unknown[]> {
  await client.result('PUT', `/collections/${name}`, {
    vectors: { size: 4, distance: 'Dot' },
    shard_number: shards,
    replication_factor: copies,
  });
  await client.result('PUT', `/collections/${name}/index?wait=true`, { field_name: 'n', field_schema: 'integer' });
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { n: id } }));
  await client.result('PUT', `/collections/${name}/points?wait=true`, { points });
  return contentOf(client, name);
}

async function archiveOf({ client, url }: { readonly client: Client; readonly url: string }, collection: string): Promise<Buffer> {
  const { name } = await client.result<ShownSnapshot>('POST', `/collections/${collection}/snapshots`);
  return download(url, `/collections/${collection}/snapshots/${name}`);
}

async function restore(node: { readonly url: string }, collection: string, archive: Buffer, priority: string): Promise<void> {
  const { status, text } = await upload(node.url, `/collections/${collection}/snapshots/upload?priority=${priority}`, archive);
  assert.equal(status, 200, text);
}

test('a collection of a node of its own goes to a cluster, is spread and copied there, and comes back to a node of its own', async (t) => {
  const single = await nodeFor(t, { folder: await temporaryFolder(t) });
  const content = await fill(single.client, 'c', 3, 2);
  const archive = await archiveOf(single, 'c');
  const cluster = three;
  await restore(cluster.node(2), 'spread', archive, 'snapshot');
  await untilCalm(cluster.node(1), 'spread', 2);
  for (const node of cluster.nodes) assert.deepEqual(await contentOf(node.client, 'spread'), content);
  // Each node has a snapshot of its own shards; together they are the collection.
  const back = await nodeFor(t, { folder: await temporaryFolder(t) });
  for (const node of cluster.nodes) await restore(back, 'c', await archiveOf(node, 'spread'), 'snapshot');
  assert.deepEqual(await contentOf(back.client, 'c'), content);
});

test('snapshots of the nodes of one cluster make the collection again in a smaller one', async (t) => {
  const larger = await clusterOf(t, 3);
  const content = await fill(larger.node(1).client, 'c', 3, 1);
  const smaller = await clusterOf(t, 2);
  for (const node of larger.nodes) await restore(smaller.node(2), 'c', await archiveOf(node, 'c'), 'snapshot');
  await untilCalm(smaller.node(1), 'c', 1);
  for (const node of smaller.nodes) assert.deepEqual(await contentOf(node.client, 'c'), content);
});

test('shard keys are made again with their points, whatever ids their shards get', async (t) => {
  const source = await clusterOf(t, 2);
  const { client } = source.node(1);
  const body = { vectors: { size: 4, distance: 'Dot' }, sharding_method: 'custom', shard_number: 2 };
  await client.result('PUT', '/collections/c', body);
  const keys = ['red', 'blue', 7];
  for (const shard_key of keys) await client.result('PUT', '/collections/c/shards', { shard_key });
  for (const [at, shard_key] of keys.entries()) {
    const points = Array.from({ length: 60 }, (_, id) => ({ id: at * 1000 + id, vector: [id, at, 2, 3], payload: { n: id } }));
    await client.result('PUT', '/collections/c/points?wait=true', { points, shard_key });
  }
  const content = await contentOf(client, 'c');
  const target = await clusterOf(t, 3);
  for (const node of source.nodes) await restore(target.node(2), 'c', await archiveOf(node, 'c'), 'snapshot');
  await untilCalm(target.node(1), 'c', 1);
  for (const node of target.nodes) assert.deepEqual(await contentOf(node.client, 'c'), content);
  for (const shard_key of keys) {
    const { count } = await target.node(3).client.result<{ count: number }>('POST', '/collections/c/points/count', { shard_key });
    assert.equal(count, 60, String(shard_key));
  }
  const alone = await nodeFor(t, { folder: await temporaryFolder(t) });
  const { status, text } = await upload(
    alone.url,
    '/collections/c/snapshots/upload?priority=snapshot',
    await archiveOf(source.node(1), 'c'),
  );
  assert.equal(status, 400, text);
  assert.match(text, /restore it in a cluster/);
  assert.deepEqual(await alone.client.result('GET', '/collections'), { collections: [] });
});

test('with priority snapshot every replica gets the data of the snapshot, with priority replica they keep theirs', async () => {
  const cluster = three;
  const { client } = cluster.node(1);
  const content = await fill(client, 'prior', 2, 3);
  const archive = await archiveOf(cluster.node(1), 'prior');
  const filter = { must: [{ key: 'n', range: { lt: POINTS / 2 } }] };
  await client.result('POST', '/collections/prior/points/delete?wait=true', { filter });
  const rest = await contentOf(client, 'prior');

  await restore(cluster.node(3), 'prior', archive, 'replica');
  await untilCalm(cluster.node(1), 'prior', 3);
  for (const node of cluster.nodes) assert.deepEqual(await contentOf(node.client, 'prior'), rest, 'replica');

  await restore(cluster.node(3), 'prior', archive, 'snapshot');
  await untilCalm(cluster.node(1), 'prior', 3);
  for (const node of cluster.nodes) assert.deepEqual(await contentOf(node.client, 'prior'), content, 'snapshot');
  // Replicas that were filled with it follow what comes after.
  await client.result('PUT', '/collections/prior/points?wait=true', { points: [{ id: 9999, vector: [1, 2, 3, 4] }] });
  for (const node of cluster.nodes) assert.equal((await contentOf(node.client, 'prior')).length, POINTS + 1);
});

test('a new collection of a cluster stays empty with priority replica', async (t) => {
  const cluster = await clusterOf(t, 2);
  await fill(cluster.node(1).client, 'c', 1, 2);
  const archive = await archiveOf(cluster.node(1), 'c');
  await restore(cluster.node(1), 'd', archive, 'replica');
  await untilCalm(cluster.node(1), 'd', 2);
  assert.deepEqual(await contentOf(cluster.node(2).client, 'd'), []);
});

test('with no_sync the replica of the node that is asked has the data of the snapshot', async (t) => {
  const cluster = await clusterOf(t, 2);
  const { client } = cluster.node(1);
  const content = await fill(client, 'c', 1, 1);
  await untilCalm(cluster.node(1), 'c', 1);
  const holder = (
    await Promise.all(
      cluster.nodes.map(async (node) => ({
        node,
        shown: await node.client.result<{ local_shards: unknown[] }>('GET', '/collections/c/cluster'),
      })),
    )
  ).find(({ shown }) => shown.local_shards.length === 1)?.node as LocalNode;
  const archive = await archiveOf(holder, 'c');
  await client.result('POST', '/collections/c/points/delete?wait=true', { filter: {} });
  await restore(holder, 'c', archive, 'no_sync');
  assert.deepEqual(
    await until(
      () => contentOf(client, 'c'),
      (points) => points.length > 0,
    ),
    content,
  );
});

test('a restore under writes loses no write that is acknowledged after it', async () => {
  const cluster = three;
  const { client } = cluster.node(1);
  await fill(client, 'written', 2, 2);
  const archive = await archiveOf(cluster.node(1), 'written');
  const kept = new Set<number>();
  let isRestored = false;
  let ended = false;
  const write = async (node: LocalNode, from: number) => {
    for (let id = from; !ended; id++) {
      const after = isRestored;
      const answer = await node.client.call('PUT', '/collections/written/points?wait=true', { points: [{ id, vector: [id, 0, 0, 0] }] });
      if (answer.status === 200 && after) kept.add(id);
    }
  };
  const writing = cluster.nodes.map((node, at) => write(node, 100_000 * (at + 1)));
  await restore(cluster.node(2), 'written', archive, 'snapshot');
  isRestored = true;
  await untilCalm(cluster.node(1), 'written', 2);
  const wanted = kept.size + 30;
  await until(
    async () => kept.size,
    (size) => size >= wanted,
  );
  ended = true;
  await Promise.all(writing);
  for (const node of cluster.nodes) {
    const ids = new Set((await contentOf(node.client, 'written')).map((point) => (point as { id: number }).id));
    assert.deepEqual(
      [...kept].filter((id) => !ids.has(id)),
      [],
      'acknowledged and missing',
    );
  }
});
