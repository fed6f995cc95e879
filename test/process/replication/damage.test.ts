/** Bytes that are damaged on one node of a cluster: its replica is Dead with the reason, and filled anew from another one. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { type Point, sortedById, temporaryFolder, until } from '../support.js';
import { untilCalm } from './shards.js';

const POINTS = 50;
/** A payload is a record of its own, whose content nobody reads before somebody asks for it. */
const textOf = (id: number) => `text-of-${id}-${'x'.repeat(40)}`;

async function pairFor(t: TestContext): Promise<{ cluster: LocalCluster; leader: LocalNode; follower: LocalNode }> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const [leader, , follower] = cluster.nodes as [LocalNode, LocalNode, LocalNode];
  await leader.client.result('PUT', '/collections/c?timeout=20', {
    vectors: { size: 4, distance: 'Dot' },
    shard_number: 1,
    replication_factor: 3,
  });
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { text: textOf(id) } }));
  await until(
    () => leader.client.call('PUT', '/collections/c/points?wait=true', { points }),
    ({ status }) => status === 200,
  );
  await untilCalm(leader, 'c', 3);
  return { cluster, leader, follower };
}

const databaseOf = ({ folder }: LocalNode) => join(folder, 'storage', 'collections', 'c', '0', 'lmdb', 'data.mdb');

/** Flips a bit of each copy of these bytes in the replica's database; the node must not run. */
async function damage(node: LocalNode, needle: Uint8Array): Promise<void> {
  const bytes = await readFile(databaseOf(node));
  let found = 0;
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1), found++) (bytes[at] as number) ^= 1;
  assert.ok(found > 0, 'the bytes are not there');
  await writeFile(databaseOf(node), bytes);
}

/** The node is stopped in order, damaged and started again. It leads nothing then. */
async function damaged(cluster: LocalCluster, node: LocalNode, needle: Uint8Array): Promise<void> {
  await node.stop();
  await damage(node, needle);
  await cluster.start(node.number);
}

async function untilFilled(cluster: LocalCluster, node: LocalNode): Promise<void> {
  const aside = join(node.folder, 'storage', 'set-aside');
  await until(
    async () => existsSync(aside) && (await readdir(aside)).length > 0,
    (isThere) => isThere,
  );
  await untilCalm(cluster.node(1), 'c', 3);
  await untilCalm(node, 'c', 3);
}

async function pointsAt(node: LocalNode): Promise<Point[]> {
  const body = { limit: 1000, with_payload: true, with_vector: true };
  return sortedById((await node.client.result<{ points: Point[] }>('POST', '/collections/c/points/scroll', body)).points);
}

test('a replica whose rows are damaged is Dead when its node starts, and is filled anew from another one', async (t) => {
  const { cluster, follower, leader } = await pairFor(t);
  const before = await pointsAt(leader);
  await damaged(cluster, follower, new Uint8Array(Float32Array.of(7, 1, 2, 3).buffer));
  await untilFilled(cluster, follower);
  assert.deepEqual(await pointsAt(follower), before);
});

test('a damaged payload that an acknowledged change needs drops no write: the replica is Dead, and filled anew from another one', async (t) => {
  const { cluster, follower, leader } = await pairFor(t);
  await damaged(cluster, follower, Buffer.from(textOf(7)));
  await untilCalm(leader, 'c', 3);
  const change = { payload: { color: 'blue' }, points: [6, 7, 8] };
  await until(
    () => leader.client.call('POST', '/collections/c/points/payload?wait=true&timeout=20', change),
    ({ status }) => status === 200,
  );
  const wanted = (await pointsAt(leader)).map(({ payload }) => payload?.color ?? null);
  assert.deepEqual([wanted[5], wanted[6], wanted[7], wanted[8]], [null, 'blue', 'blue', 'blue']);
  await untilFilled(cluster, follower);
  assert.deepEqual(
    (await pointsAt(follower)).map(({ payload }) => payload?.color ?? null),
    wanted,
  );
});
