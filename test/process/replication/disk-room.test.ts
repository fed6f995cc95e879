/** A follower whose disk is nearly full takes no entries that need room: it is Dead while it lacks them, and is filled when there is room again. */

import assert from 'node:assert/strict';
import { rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
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

const upsert = ({ client }: LocalNode, ids: readonly number[]) =>
  client.call('PUT', '/collections/c/points?wait=true&timeout=30', {
    points: ids.map((id) => ({ id, vector: [id, 1, 2, 3], payload: { n: id } })),
  });

test('a follower without room on its disk lets no write fail, is Dead while it lacks some, and has all of them when there is room again', async (t) => {
  const folder = await temporaryFolder(t);
  const disks: string[] = [];
  for (const name of ['node-1', 'node-2', 'node-3']) {
    const disk = smallFileSystem(t, DISK_MEGABYTES);
    if (disk === null) return;
    symlinkSync(disk, join(folder, name));
    disks.push(disk);
  }
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const [first] = cluster.nodes as [LocalNode, ...LocalNode[]];
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

  const leads = await Promise.all(cluster.nodes.map(leadsAny));
  const [leader, follower] = [cluster.nodes[leads.indexOf(true)], cluster.nodes[leads.indexOf(false)]];
  assert.ok(leader !== undefined && follower !== undefined, JSON.stringify(leads));
  const disk = disks[cluster.nodes.indexOf(follower)] as string;
  const filler = fill(disk);
  const { peer_id: full } = await follower.client.result<{ peer_id: number }>('GET', '/cluster');
  const answer = await upsert(leader, [4, 5, 6]);
  assert.equal(answer.status, 200, answer.text);
  // It was acknowledged without the follower, which therefore serves nobody.
  assert.equal((await shardsOf(leader, 'c')).replicas.get(0)?.get(full), 'Dead');
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
  const { result } = (await follower.client.call('POST', '/collections/c/points/count?consistency=1', { exact: true })).body as {
    result: { count: number };
  };
  assert.equal(result.count, 6);
});
