/** Two nodes of which one ends (Raft-R11), over a virtual network. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { hasGoneAlone } from '../../../../actors/shard-log/ahead.js';
import { sampleConfig } from '../../samples.js';
import { FakeCluster, type FakeNode } from '../fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

type Two = [FakeNode, FakeNode];

async function pair(options: Parameters<FakeCluster['founded']>[1] = {}): Promise<Two> {
  const nodes = (await world.founded(2, options)) as Two;
  const config = sampleConfig();
  const copied = { ...config, params: { ...config.params, shard_number: 2, replication_factor: 2 } };
  await world.run(nodes[0].api.createCollection('a', copied));
  return nodes;
}

const pledged = ({ cluster }: FakeNode) => cluster.status().pledgedBy;
const gone = ({ cluster }: FakeNode) => cluster.status().raft?.gone ?? null;
const leadersOf = ({ cluster }: FakeNode) =>
  [...(cluster.state()?.collections.get('a')?.shards.values() ?? [])].map(({ leader }) => leader);

test('whoever is left when the other one has ended leads everything and agrees on changes, until it is back', async () => {
  for (const away of [1, 0] as const) {
    const nodes = await pair();
    const [other, left] = [nodes[away], nodes[1 - away] as FakeNode];
    await world.until(() => pledged(left) === other.peerId, 'a pledge');
    await world.kill(other);
    await world.until(() => gone(left) === other.peerId, 'it is known to have ended');
    await world.until(() => leadersOf(left).every((leader) => leader === left.peerId), 'all shards are led by who is left');
    await world.run(left.api.createCollection('b', sampleConfig()));
    const back = await world.start(away + 1, 2 - away);
    await world.until(() => back.cluster.state()?.collections.has('b') === true, 'it hears what was agreed on without it');
    await world.until(() => gone(left) === null && pledged(left) === other.peerId, 'it counts again');
    await world.remove();
    world = new FakeCluster();
  }
});

test('one that has ended is looked for as soon as nothing is heard of it, although its connection has not ended yet', async () => {
  const [one, two] = await pair();
  await world.until(() => pledged(one) === two.peerId, 'a pledge');
  world.silence(two);
  world.network.endpoints.delete(two.uri);
  await world.until(() => gone(one) === two.peerId, 'it is known to have ended');
  assert.equal(one.cluster.status().connections.get(two.peerId)?.connected, true);
});

test('one that is silent, or out of reach, may live: nothing is agreed on without it', async () => {
  const nodes = await pair();
  const [one, two] = nodes;
  await world.until(() => pledged(one) === two.peerId, 'a pledge');
  world.network.cut(one.uri, two.uri);
  await world.until(() => one.cluster.status().raft?.leader === null, 'nobody leads');
  await world.pass(5000);
  assert.equal(gone(one), null);
  assert.equal(gone(two), null);
});

test('what ends after its pledge is over says nothing: it may have gone on alone meanwhile', async () => {
  const [one, two] = await pair();
  await world.until(() => pledged(one) === two.peerId, 'a pledge');
  world.network.cut(one.uri, two.uri);
  for (let passed = 0; passed < 4000; passed += 100) await world.pass(100);
  await world.kill(two);
  world.network.heal();
  for (let passed = 0; passed < 2000; passed += 100) await world.pass(100);
  assert.equal(gone(one), null);
});

test('whoever leads something that it may have acknowledged alone, or does not know of, is not to pledge', () => {
  const agreed = (leader: number) => ({ collections: new Map([['a', { shards: new Map([[0, { leader }]]) }]]) });
  const of = (leader: number, mayBeAhead: boolean | null) => {
    const replications = new Map(mayBeAhead === null ? [] : [[0, { mayBeAhead: () => mayBeAhead }]]);
    const [assignments, view] = [{ agreed: agreed(leader), peerId: 1 }, { collections: new Map([['a', { replications }]]) }];
    return hasGoneAlone(...([assignments, view] as unknown as Parameters<typeof hasGoneAlone>));
  };
  assert.equal(hasGoneAlone({ agreed: null, peerId: 1 }, { collections: new Map() }), true, 'it has just started');
  assert.equal(of(1, true), true);
  assert.equal(of(1, null), true);
  assert.equal(of(1, false), false);
  assert.equal(of(2, true), false, 'the other one leads it');
});

test('the other one of two is removed although it has pledges: they end first', async () => {
  const [one, two] = await pair();
  await world.until(() => pledged(one) === two.peerId && pledged(two) === one.peerId, 'both have pledged');
  assert.equal(await world.run(one.cluster.removePeer(two.peerId, true, 20_000)), true);
  assert.equal(one.cluster.state()?.membership.length, 1);
});

test('`cluster.survivor: never`: no pledge is asked for', async () => {
  const [one] = await pair({ survives: false });
  for (let passed = 0; passed < 2000; passed += 100) await world.pass(100);
  assert.equal(pledged(one), null);
});
