/** A node whose disk is full lets others lead, as nodes find out about each other over a virtual network. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { CollectionConfig } from '../../../../protocols/model/collection.js';
import { sampleConfig } from '../../samples.js';
import { FakeCluster, type FakeNode, leaderOf } from '../fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

function copies(shards: number, replicas: number): CollectionConfig {
  const config = sampleConfig();
  return { ...config, params: { ...config.params, shard_number: shards, replication_factor: replicas } };
}

/** How many shards of all collections a node leads, as `seer` knows it. */
function ledBy(node: FakeNode, seer: FakeNode): number {
  const records = [...(seer.cluster.state()?.collections.values() ?? [])];
  return records.flatMap(({ shards }) => [...shards.values()]).filter(({ leader }) => leader === node.peerId).length;
}

/** Ten seconds, in steps that are shorter than a tick: nodes see all of them pass. */
async function passSome(): Promise<void> {
  for (let step = 0; step < 200; step++) await world.pass(50);
}

const knowFull = (nodes: readonly FakeNode[], full: readonly FakeNode[]) =>
  nodes.every(({ cluster }) => {
    const known = cluster.status().fullPeers;
    return known.size === full.length && full.every(({ peerId }) => known.has(peerId));
  });

test('a full disk is told to all peers: others lead its shards and consensus until there is room again, and then they are spread anew', async () => {
  const nodes = await world.founded(3, { restMs: 3000 });
  const full = leaderOf(nodes) as FakeNode;
  const [seer] = nodes.filter((node) => node !== full) as [FakeNode];
  await world.run(full.api.createCollection('a', copies(3, 3)));
  await world.run(full.api.createCollection('b', copies(3, 1)));
  assert.equal(ledBy(full, seer), 2);
  world.fullDisks.add(full.number);
  await world.until(() => knowFull(nodes, [full]), 'all know it');
  await world.until(() => ledBy(full, seer) === 1, 'others lead, but for the shard that it alone has');
  await world.until(() => leaderOf(nodes) !== full && leaderOf(nodes) !== undefined, 'another one leads consensus');
  const leader = leaderOf(nodes);
  const { term } = seer.cluster.status().raft as { term: number };
  await passSome();
  assert.equal(ledBy(full, seer), 1, 'nothing comes back meanwhile');
  assert.deepEqual([leaderOf(nodes), seer.cluster.status().raft?.term], [leader, term], 'the lead of consensus stays as well');

  world.fullDisks.delete(full.number);
  await world.until(() => knowFull(nodes, []), 'it is forgotten');
  await world.until(() => ledBy(full, seer) === 2, 'it leads its share again');
});

test('while the disks of all are full everybody leads on, and one that has room gets the leads of all others', async () => {
  const nodes = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  await world.run(nodes[0].api.createCollection('a', copies(6, 3)));
  for (const { number } of nodes) world.fullDisks.add(number);
  await world.until(() => knowFull(nodes, nodes), 'all know it');
  const leader = leaderOf(nodes);
  await passSome();
  assert.deepEqual(
    nodes.map((node) => ledBy(node, nodes[0])),
    [2, 2, 2],
  );
  assert.equal(leaderOf(nodes), leader);
  const roomy = nodes.find((node) => node !== leader) as FakeNode;
  world.fullDisks.delete(roomy.number);
  await world.until(() => ledBy(roomy, nodes[0]) === 6 && leaderOf(nodes) === roomy, 'one leads all');
});

test('a full disk of a node that is gone is forgotten', async () => {
  const nodes = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  const full = nodes.find((node) => node !== leaderOf(nodes)) as FakeNode;
  const others = nodes.filter((node) => node !== full);
  world.fullDisks.add(full.number);
  await world.until(() => knowFull(others, [full]), 'the others know it');
  await world.kill(full);
  await world.until(() => knowFull(others, []), 'they have forgotten it');
});
