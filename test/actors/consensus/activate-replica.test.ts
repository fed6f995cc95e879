import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { prepare } from '../../../actors/consensus/proposals/prepare.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../../../cluster/state/state.js';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

const LOST = { shardId: 0, lost: [] } as const;

test('a shard whose last Active replica was on a peer that was removed goes on with another replica, or with nothing, when somebody asks', async () => {
  const nodes = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  const config = sampleConfig();
  await world.run(nodes[0].api.createCollection('c', { ...config, params: { ...config.params, shard_number: 1, replication_factor: 1 } }));
  const shardOf = (node: FakeNode) => node.cluster.state()?.collections.get('c')?.shards.get(0);
  const [holder] = [...(shardOf(nodes[0])?.replicas.keys() ?? [])];
  const lost = nodes.find(({ peerId }) => peerId === holder) as FakeNode;
  const rest = nodes.filter((node) => node !== lost);
  const [one, two] = rest as [FakeNode, FakeNode];
  const activate = (peerId: number) =>
    world.run(one.cluster.updateCollectionCluster('c', { kind: 'activateReplica', ...LOST, peerId }, 5000));
  await assert.rejects(activate(lost.peerId), { code: 'wrongInput', message: /has an Active replica on peer/ });
  await world.kill(lost);
  await world.until(() => one.cluster.status().raft?.leader !== null && one.cluster.status().raft?.leader !== lost.peerId, 'a leader');
  await world.run(one.cluster.removePeer(lost.peerId, true, 5000));
  assert.equal(shardOf(one)?.replicas.size, 0);
  await assert.rejects(activate(lost.peerId), { code: 'badRequest', message: /does not exist/ });
  assert.equal(await activate(two.peerId), true);
  assert.deepEqual([...(shardOf(one)?.replicas ?? [])], [[two.peerId, 'Active']]);
  assert.equal(shardOf(one)?.leader, two.peerId);
});

/** What is proposed when the replicas of these peers are found to be lost. */
function prepared(state: ClusterState | null, peerId: number, lost: readonly number[]) {
  assert.ok(state !== null);
  const setup = { kind: 'activateReplica', shardId: 0, peerId, lost } as const;
  return prepare({ kind: 'updateCollectionCluster', collection: 'c', update: setup }, state, { transferMethod: 'stream_records' });
}

test('a shard whose Active replica is lost begins anew on its peer where that is the only one', async () => {
  const [one] = (await world.founded(1)) as [FakeNode];
  const { api, cluster, peerId } = one;
  const config = sampleConfig();
  await world.run(api.createCollection('c', { ...config, params: { ...config.params, shard_number: 1, replication_factor: 1 } }));
  const since = () => cluster.state()?.collections.get('c')?.shards.get(0)?.since.get(peerId) ?? 0;
  const before = since();
  assert.throws(() => prepared(cluster.state(), peerId, []), { code: 'wrongInput', message: /has an Active replica on peer/ });
  assert.equal(await world.run(cluster.change(prepared(cluster.state(), peerId, [peerId]), 5000)), true);
  assert.ok(since() > before);
});

test('a shard whose Active replica is lost goes on with another one in one step, and not with the lost one', async () => {
  const [one] = (await world.founded(2)) as [FakeNode];
  const config = sampleConfig();
  await world.run(one.api.createCollection('c', { ...config, params: { ...config.params, shard_number: 1, replication_factor: 2 } }));
  const state = one.cluster.state() as ClusterState;
  const record = state.collections.get('c') as CollectionRecord;
  const shard = record.shards.get(0) as ShardRecord;
  const [lost, other] = [...shard.replicas.keys()] as [number, number];
  const replicas = new Map(shard.replicas).set(other, 'Dead');
  const shown = { ...state, collections: new Map([['c', { ...record, shards: new Map([[0, { ...shard, replicas }]]) }]]) };
  assert.throws(() => prepared(shown, lost, [lost]), { message: new RegExp(`is lost: name one of peer ${other} \\(Dead\\)`) });
  const operation = prepared(shown, other, [lost]);
  assert.ok(operation.kind === 'setReplicaStates');
  assert.deepEqual(
    operation.changes.map(({ from, peerId, to }) => [peerId, from, to]),
    [
      [lost, 'Active', 'Dead'],
      [other, null, 'Active'],
    ],
  );
});
