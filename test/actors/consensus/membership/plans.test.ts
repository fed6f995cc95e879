/** Peers that leave and moves that are planned, carried out by whoever leads, over a virtual network. Nobody moves points here. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { silentPeers } from '../../../../actors/consensus/agreed/health.js';
import type { CollectionConfig } from '../../../../protocols/model/collection.js';
import { sampleConfig } from '../../samples.js';
import { FakeCluster, type FakeNode, leaderOf } from '../fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

type Three = [FakeNode, FakeNode, FakeNode];

function spread(shards: number): CollectionConfig {
  const config = sampleConfig();
  return { ...config, params: { ...config.params, shard_number: shards } };
}

function transfersOf(node: FakeNode) {
  return [...(node.cluster.state()?.collections ?? [])].flatMap(([collection, { transfers }]) =>
    transfers.map((transfer) => ({ collection, transfer })),
  );
}

/** Ends transfers as soon as they are begun, as if their points had gone over. */
async function finishAll(node: FakeNode, until: () => boolean): Promise<number> {
  let finished = 0;
  while (!until()) {
    await world.until(() => until() || transfersOf(node).length > 0, 'a transfer is begun');
    for (const { collection, transfer } of transfersOf(node)) {
      await world.run(node.cluster.change({ kind: 'finishTransfer', collection, transfer, term: null }, 5000));
      finished += 1;
    }
  }
  return finished;
}

test('a peer that is drained gets no more shards, gives away what it has, and is removed, also when its leader changes meanwhile', async () => {
  const nodes = (await world.founded(4)) as [...Three, FakeNode];
  await world.run(nodes[0].api.createCollection('a', spread(8)));
  const leader = leaderOf(nodes) as FakeNode;
  const leaving = nodes.find((node) => node !== leader) as FakeNode;
  const rest = nodes.filter((node) => node !== leader && node !== leaving);
  const one = rest[0] as FakeNode;
  await world.run(one.cluster.change({ kind: 'markPeer', peerId: leaving.peerId, listens: null, leaving: 'drain' }, 5000));
  await world.run(one.api.createCollection('b', spread(4)));
  const ofB = [...(one.cluster.state()?.collections.get('b')?.shards.values() ?? [])];
  assert.ok(ofB.every(({ replicas }) => !replicas.has(leaving.peerId)));
  await world.until(() => transfersOf(one).length > 0, 'it has begun');
  await world.kill(leader);
  await world.until(() => leaderOf(rest) !== undefined, 'another one leads');
  const isGone = () => one.cluster.state()?.membership.every(({ peerId }) => peerId !== leaving.peerId) === true;
  assert.equal(await finishAll(one, isGone), 2);
  assert.equal(one.cluster.state()?.marks.size, 0);
});

test('a peer is not removed together with a shard that came to it in the same moment', async () => {
  const nodes = (await world.founded(3)) as Three;
  const leaving = nodes[2];
  const removal = nodes[0].cluster.removePeer(leaving.peerId, false, 5000).then(
    () => 'removed',
    () => 'refused',
  );
  const creation = nodes[1].api.createCollection('a', spread(6));
  assert.equal(await world.run(creation), true);
  const outcome = await world.run(removal);
  const state = nodes[0].cluster.state();
  const holds = [...(state?.collections.get('a')?.shards.values() ?? [])].filter(({ replicas }) => replicas.size === 0);
  assert.deepEqual(holds, [], 'no shard was lost');
  const isMember = state?.membership.some(({ peerId }) => peerId === leaving.peerId);
  assert.equal(isMember, outcome === 'refused');
  await world.until(() => nodes[0].cluster.state()?.marks.size === 0, 'a refused removal leaves no mark');
});

test('a planned move is begun by the leader, and a peer that stays after all gets shards again', async () => {
  const nodes = (await world.founded(3)) as Three;
  const [one, two] = nodes;
  await world.run(one.api.createCollection('a', spread(1)));
  const record = one.cluster.state()?.collections.get('a');
  const from = record?.shards.get(0)?.leader ?? 0;
  const to = nodes.map(({ peerId }) => peerId).find((peerId) => peerId !== from) ?? 0;
  const moves = [{ collection: 'a', uid: record?.uid ?? 0, shardId: 0, from, to }];
  await world.run(two.cluster.change({ kind: 'planMoves', moves }, 5000));
  await world.until(() => transfersOf(one).length === 1, 'it has begun');
  assert.deepEqual(one.cluster.state()?.plannedMoves, []);
  await world.run(two.cluster.change({ kind: 'markPeer', peerId: to, listens: null, leaving: 'drain' }, 5000));
  await world.run(two.cluster.change({ kind: 'markPeer', peerId: to, listens: null, leaving: 'stays' }, 5000));
  await world.run(one.api.createCollection('b', spread(3)));
  const holders = [...(one.cluster.state()?.collections.get('b')?.shards.values() ?? [])].flatMap(({ replicas }) => [...replicas.keys()]);
  assert.ok(holders.includes(to));
});

test('a peer that has just been let in has said nothing yet, and is not taken for a silent one; one that has ended is silent at once', () => {
  const membership = [1, 2, 3].map((peerId) => ({ peerId, uri: '', version: '', voter: true }));
  const heard = {
    agreed: { membership },
    identity: { peerId: 1 },
    heardTicks: new Map([[2, 100]]),
    ticks: 500,
    raft: { gone: null },
    upkeep: { leadsSinceTick: 0 },
  };
  const silent = (given: object) => [...silentPeers({ ...heard, ...given } as unknown as Parameters<typeof silentPeers>[0], 100)];
  assert.deepEqual(silent({}), [2]);
  assert.deepEqual(silent({ heardTicks: new Map([[2, 500]]) }), []);
  assert.deepEqual(silent({ heardTicks: new Map([[2, 500]]), raft: { gone: 2 } }), [2]);
});
