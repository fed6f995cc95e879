/** Shards on the move and replicas that come back, on real nodes under writes. `TROUPE_MOVES`: transfers by each method (default 4). */

import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { temporaryFolder, until } from '../support.js';
import { allPoints, endedTransfers, leadsAny, moveAround, peerIds, shardsOf, untilCalm, Writer } from './shards.js';

const MOVES = Number(process.env.TROUPE_MOVES ?? 4);
const IDS = 600;

async function started(t: TestContext): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  return cluster;
}

async function create(cluster: LocalCluster, name: string, shards: number, copies: number): Promise<void> {
  const body = { vectors: { size: 4, distance: 'Dot' }, shard_number: shards, replication_factor: copies };
  await cluster.node(1).client.result('PUT', `/collections/${name}`, body);
}

test('shards move again and again under writes, by records and by files: nothing is lost, and every node shows the same', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 3, 2);
  const writer = new Writer(cluster, 'points', IDS, 3);
  for (const method of ['stream_records', 'snapshot']) {
    const times = await moveAround(cluster, 'points', 2, MOVES, method);
    const sorted = [...times].sort((one, other) => one - other);
    t.diagnostic(
      `${method}: ${MOVES} moves, median ${Math.round(sorted[sorted.length >> 1] ?? 0)} ms, longest ${Math.round(sorted.at(-1) ?? 0)} ms`,
    );
  }
  await writer.stop();
  // Nodes that are all there lose no request to a leader that goes elsewhere.
  assert.deepEqual([...writer.refusals], [], `of ${writer.requests} requests`);
  const shown = await Promise.all(cluster.nodes.map((node) => allPoints(node, 'points')));
  for (const points of shown) {
    writer.check(points);
    assert.deepEqual(points, shown[0]);
  }
  for (const consistency of ['all', 'majority', 'quorum'])
    assert.deepEqual(await allPoints(cluster.node(2), 'points', consistency), shown[0]);
});

test('replicas fall behind again and again under writes, and get by `wal_delta` what they lack: nothing is lost, and every node shows the same', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 6, 2);
  const writer = new Writer(cluster, 'points', IDS, 3);
  const peers = await peerIds(cluster);
  /** Method of each, by shard and end. */
  const finished = new Map<string, string>();
  const countOf = (wanted: string) => [...finished.values()].filter((method) => method === wanted).length;
  for (let round = 0; countOf('wal_delta') < MOVES; round += 1) {
    const node = cluster.nodes[round % 3] as LocalNode;
    const other = cluster.nodes[(round + 1) % 3] as LocalNode;
    const peer = peers[round % 3] as number;
    node.pause();
    await until(
      async () => [...(await shardsOf(other, 'points')).replicas.values()].flatMap((states) => states.get(peer) ?? []),
      (states) => states.every((state) => state === 'Dead'),
    );
    // Those that are left agree on changes all the while.
    await other.client.result('PUT', `/collections/made-in-${round}?timeout=20`, { vectors: { size: 4, distance: 'Dot' } });
    node.resume();
    await untilCalm(other, 'points', 2);
    for (const { ended, method, outcome, shard_id } of await endedTransfers(cluster))
      if (outcome === 'finished') finished.set(`${shard_id} ${ended}`, method);
  }
  await writer.stop();
  // Where a source gave up on the way, the next one cannot know what differs.
  const others = finished.size - countOf('wal_delta');
  assert.equal(countOf('stream_records'), others);
  t.diagnostic(`${countOf('wal_delta')} transfers by wal_delta, ${others} by stream_records, ${writer.requests} requests`);
  const shown = await Promise.all(cluster.nodes.map((node) => allPoints(node, 'points', 'all')));
  for (const points of shown) {
    writer.check(points);
    assert.deepEqual(points, shown[0]);
  }
});

test('a node that is stopped in order leaves no write unanswered that goes through another one', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 3, 2);
  await untilCalm(cluster.node(1), 'points', 2);
  const writer = new Writer(cluster, 'points', IDS, 3, [1, 2]);
  await until(
    async () => writer.requests,
    (requests) => requests > 20,
  );
  await cluster.node(3).stop();
  const before = writer.requests;
  await until(
    async () => writer.requests,
    (requests) => requests > before + 50,
  );
  await writer.stop();
  assert.deepEqual([...writer.refusals], [], `of ${writer.requests} requests`);
  writer.check(await allPoints(cluster.node(1), 'points', 'all'));
  await cluster.start(3);
  await untilCalm(cluster.node(1), 'points', 2);
  writer.check(await allPoints(cluster.node(3), 'points', 'all'));
});

test('a node that was away gets what it missed by itself, and every replica has the same points then', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 2, 3);
  const writer = new Writer(cluster, 'points', IDS, 2);
  await until(
    async () => writer.requests,
    (requests) => requests > 20,
  );
  await cluster.node(3).kill();
  const away = writer.requests;
  await until(
    async () => writer.requests,
    (requests) => requests > away + 50,
  );
  cluster.launch(3);
  await cluster.untilReady(3);
  await untilCalm(cluster.node(1), 'points', 3);
  await writer.stop();
  // The log has what it missed: the delta was enough.
  const ended = await until(
    () => endedTransfers(cluster),
    (all) => new Set(all.filter(({ outcome }) => outcome === 'finished').map(({ shard_id }) => shard_id)).size === 2,
  );
  assert.ok(
    ended.filter(({ outcome }) => outcome === 'finished').every(({ method }) => method === 'wal_delta'),
    JSON.stringify(ended),
  );
  // Each node has a replica of each shard, and reads go to its own.
  const shown = await Promise.all(cluster.nodes.map((node) => allPoints(node, 'points')));
  for (const points of shown) {
    writer.check(points);
    assert.deepEqual(points, shown[0]);
  }
});

test('a node whose collections are gone from its disk is filled again without a hand, while clients write', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 2, 3);
  const writer = new Writer(cluster, 'points', IDS, 2);
  await until(
    async () => writer.acknowledged.size,
    (size) => size === IDS,
  );
  const node = cluster.node(2);
  await node.kill();
  await rm(join(node.folder, 'storage', 'collections'), { recursive: true });
  cluster.launch(2);
  await cluster.untilReady(2);
  await untilCalm(cluster.node(1), 'points', 3);
  await writer.stop();
  const shown = await Promise.all(cluster.nodes.map((each) => allPoints(each, 'points')));
  for (const points of shown) {
    writer.check(points);
    assert.deepEqual(points, shown[0]);
  }
});

test('a node that comes back with an empty disk takes the place of the peer it was, without a hand, while clients write', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 3, 2);
  const writer = new Writer(cluster, 'points', IDS, 2);
  await until(
    async () => writer.acknowledged.size,
    (size) => size === IDS,
  );
  const node = cluster.node(2);
  const before = await cluster.peerIdOf(node);
  await node.kill();
  await rm(join(node.folder, 'storage'), { recursive: true });
  cluster.launch(2);
  await cluster.untilReady(2);
  const after = await cluster.peerIdOf(node);
  assert.notEqual(after, before);
  // The peer that it was is drained first.
  await until(
    () => cluster.node(1).cluster(),
    (answer) => answer !== null && !(before in answer.peers),
    60_000,
  );
  const { replicas } = await untilCalm(cluster.node(1), 'points', 2);
  assert.ok([...replicas.values()].some((states) => states.has(after)));
  await writer.stop();
  const shown = await Promise.all(cluster.nodes.map((each) => allPoints(each, 'points', 'all')));
  for (const points of shown) {
    writer.check(points);
    assert.deepEqual(points, shown[0]);
  }
});

test('a node whose files went while all nodes were down serves nothing less until they are back', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 2, 3);
  const writer = new Writer(cluster, 'points', 100, 1);
  await until(
    async () => writer.acknowledged.size,
    (size) => size === 100,
  );
  await writer.stop();
  // One that leads: another one has to come to lead before it can be filled.
  const leads = await Promise.all(cluster.nodes.map(leadsAny));
  const node = cluster.nodes[leads.indexOf(true)] as LocalNode;
  // Killed, as nodes that stop in order tell the others to go on without them.
  await Promise.all(cluster.nodes.map((each) => each.kill()));
  await rm(join(node.folder, 'storage', 'collections'), { recursive: true });
  for (const { number } of cluster.nodes) cluster.launch(number);
  await Promise.all(cluster.nodes.map(({ number }) => cluster.untilReady(number)));
  // Whatever it says until it is filled, it never says that there is less.
  let answers = 0;
  await until(
    async () => {
      const answer = await node.client.call('POST', '/collections/points/points/count', { exact: true });
      if (answer.status === 200) {
        assert.equal((JSON.parse(answer.text) as { result: { count: number } }).result.count, 100);
        answers += 1;
      }
      return answers;
    },
    (count) => count >= 20,
  );
  await untilCalm(cluster.node(1), 'points', 3);
  writer.check(await allPoints(node, 'points'));
});

test('a transfer is aborted on request: its target is gone again, and its source serves on', async (t) => {
  const cluster = await started(t);
  await create(cluster, 'points', 1, 1);
  const writer = new Writer(cluster, 'points', 50, 1);
  const peers = await peerIds(cluster);
  const { replicas } = await shardsOf(cluster.node(1), 'points');
  const [from] = [...(replicas.get(0)?.keys() ?? [])];
  const to = peers.find((peer) => peer !== from) as number;
  const other = cluster.nodes[peers.indexOf(to)];
  // It cannot take anything: the transfer waits for it.
  other?.pause();
  const asked = cluster.nodes[peers.indexOf(from as number)]?.client;
  const body = { shard_id: 0, from_peer_id: from, to_peer_id: to };
  await asked?.result('POST', '/collections/points/cluster', { move_shard: { ...body, method: 'stream_records' } });
  const { status } = (await asked?.call('POST', '/collections/points/cluster', { abort_transfer: body })) ?? { status: 0 };
  // It may have been given up before, as its target does not answer.
  assert.ok([200, 400, 404].includes(status), String(status));
  other?.resume();
  const calm = await untilCalm(cluster.node(1), 'points', 1);
  assert.deepEqual([...(calm.replicas.get(0)?.keys() ?? [])], [from]);
  await writer.stop();
  // The one that was paused may not be heard again yet.
  const points = await until(
    () => allPoints(cluster.node(1), 'points').catch(() => null),
    (found) => found !== null,
  );
  writer.check(points ?? []);
});
