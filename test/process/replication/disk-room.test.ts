/**
 * Disks that are nearly full in a cluster. A follower takes no entries that need room: it is Dead while it lacks them, and is filled when there is
 * room again. A leader lets another one lead, so that writes go on.
 */

import assert from 'node:assert/strict';
import { rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { smallFileSystem } from '../../machine.js';
import { type Point, sortedById, temporaryFolder, until } from '../support.js';
import { leadsAny, shardsOf, untilCalm } from './shards.js';

const MEBIBYTE = 1 << 20;
const DISK_MEGABYTES = 24;
/** Less than half of the mark of so small a disk, 4 MB, and more than the few points of this test need. */
const LEFT_BYTES = 1.5 * MEBIBYTE;

/** Leaves so much of a disk. */
function fill(folder: string): string {
  const file = join(folder, 'filler');
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(file, Buffer.alloc(bavail * bsize - LEFT_BYTES));
  return file;
}

async function pointsAt({ client }: LocalNode): Promise<Point[]> {
  return sortedById((await client.result<{ points: Point[] }>('POST', '/collections/c/points/scroll', { limit: 1000 })).points);
}

interface Cluster {
  readonly disks: readonly string[];
  readonly nodes: readonly LocalNode[];
}

/** Three nodes, each with a small disk, and a collection that all have. Null, with the test skipped, where none can be mounted. */
async function clusterOnSmallDisks(t: TestContext): Promise<Cluster | null> {
  const folder = await temporaryFolder(t);
  const disks: string[] = [];
  for (const name of ['node-1', 'node-2', 'node-3']) {
    const disk = smallFileSystem(t, DISK_MEGABYTES);
    if (disk === null) return null;
    symlinkSync(disk, join(folder, name));
    disks.push(disk);
  }
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const [first] = cluster.nodes as [LocalNode];
  await first.client.result('PUT', '/collections/c?timeout=20', {
    vectors: { size: 4, distance: 'Dot' },
    shard_number: 1,
    replication_factor: 3,
  });
  await until(
    () => upsert(first, [1, 2, 3]),
    ({ status }) => status === 200,
  );
  await untilCalm(first, 'c', 3);
  return { disks, nodes: cluster.nodes };
}

/** The node that leads the shard, its disk, and the others. */
async function leaderOf({ disks, nodes }: Cluster): Promise<{ leader: LocalNode; disk: string; others: readonly [LocalNode, LocalNode] }> {
  const leads = await Promise.all(nodes.map(leadsAny));
  const at = leads.indexOf(true);
  const [leader, disk] = [nodes[at], disks[at]];
  assert.ok(leader !== undefined && disk !== undefined, JSON.stringify(leads));
  return { leader, disk, others: nodes.filter((node) => node !== leader) as [LocalNode, LocalNode] };
}

const peerIdOf = async ({ client }: LocalNode) => (await client.result<{ peer_id: number }>('GET', '/cluster')).peer_id;

const upsert = ({ client }: LocalNode, ids: readonly number[]) =>
  client.call('PUT', '/collections/c/points?wait=true&timeout=30', {
    points: ids.map((id) => ({ id, vector: [id, 1, 2, 3], payload: { n: id } })),
  });

test('full disks in a cluster', async (t) => {
  const cluster = await clusterOnSmallDisks(t);
  if (cluster === null) return;
  await t.test(
    'a follower without room lets no write fail, is Dead while it lacks some, and has all of them when there is room again',
    () => fillFollower(cluster),
  );
  await t.test('a leader without room lets another one lead: writes through every node go on, none is lost, and reports tell why', () =>
    fillLeader(cluster),
  );
});

async function fillFollower(cluster: Cluster): Promise<void> {
  const {
    leader,
    others: [follower],
  } = await leaderOf(cluster);
  const disk = cluster.disks[cluster.nodes.indexOf(follower)] as string;
  const filler = fill(disk);
  const full = await peerIdOf(follower);
  const answer = await upsert(leader, [4, 5, 6]);
  assert.equal(answer.status, 200, answer.text);
  // It was acknowledged without the follower, which therefore serves nobody. A transfer that begins before its peers know that its disk is full
  // is refused there.
  const stateThere = async () => (await shardsOf(leader, 'c')).replicas.get(0)?.get(full);
  assert.notEqual(await stateThere(), 'Active');
  await until(stateThere, (state) => state === 'Dead');
  assert.deepEqual(
    (await pointsAt(follower)).map(({ id }) => id),
    [1, 2, 3, 4, 5, 6],
    'a read at the follower is answered by others',
  );
  const { bavail, bsize } = statfsSync(disk);
  assert.ok(bavail * bsize > MEBIBYTE, `the follower has filled its disk up: ${bavail * bsize} bytes are left`);

  rmSync(filler);
  await untilCalm(leader, 'c', 3);
  await untilCalm(follower, 'c', 3);
  assert.equal(await ownCount(follower), 6);
  for (const node of cluster.nodes) await untilNobodyIsFull(node);
}

/** Of the node's own replica. */
async function ownCount({ client }: LocalNode): Promise<number> {
  return (await client.result<{ count: number }>('POST', '/collections/c/points/count?consistency=1', { exact: true })).count;
}

interface ShownPeers {
  readonly full_disk_peers?: readonly number[];
}

const shownPeers = ({ client }: LocalNode) => client.result<ShownPeers>('GET', '/collections/c/cluster');
const untilNobodyIsFull = (node: LocalNode) =>
  until(
    () => shownPeers(node),
    ({ full_disk_peers }) => full_disk_peers === undefined,
  );

async function fillLeader(cluster: Cluster): Promise<void> {
  const { disk, leader, others } = await leaderOf(cluster);
  const full = await peerIdOf(leader);
  const filler = fill(disk);
  const acknowledged = [1, 2, 3, 4, 5, 6];
  // Refused until another one leads; a client would ask again as well.
  for (const [at, node] of [...cluster.nodes, ...cluster.nodes].entries()) {
    const id = 10 + at;
    const answer = await until(
      () => upsert(node, [id]),
      ({ status }) => status === 200,
    );
    assert.equal(answer.status, 200, answer.text);
    acknowledged.push(id);
  }
  assert.equal(await leadsAny(leader), false);
  for (const node of cluster.nodes)
    assert.deepEqual(
      (await pointsAt(node)).map(({ id }) => id),
      acknowledged,
    );

  const [other] = others;
  assert.deepEqual((await shownPeers(other)).full_disk_peers, [full]);
  const { app } = await other.client.result<{ app: ShownPeers }>('GET', '/telemetry?details_level=1');
  assert.deepEqual(app.full_disk_peers, [full]);
  const { issues } = await other.client.result<{ issues: { id: string }[] }>('GET', '/issues');
  assert.ok(
    issues.some(({ id }) => id === `DISK/peer ${full}`),
    JSON.stringify(issues),
  );

  rmSync(filler);
  await untilNobodyIsFull(other);
  await untilCalm(leader, 'c', 3);
  assert.equal(await ownCount(leader), acknowledged.length);
}
