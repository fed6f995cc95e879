import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

const LOST = { shardId: 0 } as const;

test('a shard whose last Active replica was on a peer that was removed goes on with another replica, or with nothing, when somebody asks', async () => {
  const nodes = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  const config = sampleConfig();
  await world.run(nodes[0].api.createCollection('c', { ...config, params: { ...config.params, shard_number: 1, replication_factor: 1 } }));
  const shardOf = (node: FakeNode) => node.cluster.state()?.collections.get('c')?.shards.get(0);
  const [holder] = [...(shardOf(nodes[0])?.replicas.keys() ?? [])];
  const lost = nodes.find(({ peerId }) => peerId === holder) as FakeNode;
  const rest = nodes.filter((node) => node !== lost);
  const [one, two] = rest as [FakeNode, FakeNode];
  const activate = (peerId: number) => world.run(one.cluster.setUp('c', { kind: 'activateReplica', ...LOST, peerId }, 5000));
  await assert.rejects(activate(lost.peerId), { code: 'wrongInput', message: /has an Active replica on peer/ });
  await world.kill(lost);
  await world.until(() => one.cluster.status().raft?.leader !== null && one.cluster.status().raft?.leader !== lost.peerId, 'a leader');
  await world.run(one.cluster.removePeer(lost.peerId, true, 5000));
  assert.equal(shardOf(one)?.replicas.size, 0);
  await assert.rejects(activate(lost.peerId), { code: 'wrongInput', message: /is not part of the cluster/ });
  assert.equal(await activate(two.peerId), true);
  assert.deepEqual([...(shardOf(one)?.replicas ?? [])], [[two.peerId, 'Active']]);
  assert.equal(shardOf(one)?.leader, two.peerId);
});
