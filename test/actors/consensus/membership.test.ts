import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode, isVoter, leaderOf } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

function uris({ cluster }: FakeNode): string[] {
  return (cluster.state()?.membership ?? []).map(({ uri }) => uri).sort();
}

test('a node of its own that founds a cluster brings its collections and aliases with it, and others that join have them listed', async () => {
  const alone = await world.startAlone(1);
  await world.run(alone.api.whenReady());
  await world.run(alone.api.createCollection('mine', sampleConfig()));
  await world.run(alone.api.changeAliases([{ kind: 'create', alias: 'also-mine', collection: 'mine' }]));
  alone.stop();
  const one = await world.start(1, null);
  await world.until(() => one.cluster.state() !== null, 'it has founded');
  const record = one.cluster.state()?.collections.get('mine');
  assert.deepEqual([...(record?.shards.get(0)?.replicas ?? [])], [[one.peerId, 'Active']]);
  await world.run(one.cluster.barrier(5000));
  assert.ok(one.engine.open.has('mine/0'));
  // It is led as every other one from now on.
  const points = {
    path: {},
    query: {},
    body: new TextEncoder().encode('{"points":[{"id":1,"vector":[1,2,3,4]}]}'),
    deadlineMs: world.world.nowMs + 10_000,
  };
  await world.run(one.api.write('mine', 'upsertPoints', true, points));
  const two = await world.start(2, 1);
  await world.until(() => two.cluster.status().caughtUp && two.api.exists('also-mine'), 'it has joined');
  assert.equal(two.engine.open.has('mine/0'), false);
  const request = { path: {}, query: {}, body: null, deadlineMs: world.world.nowMs + 5000 };
  for (const node of [one, two])
    assert.equal(new TextDecoder().decode(await world.run(node.api.read('also-mine', 'count', request))), 'count of mine/0');
});

test('a node waits for the one that it joins through, and says so meanwhile', async () => {
  const two = await world.start(2, 1);
  await world.until(() => two.cluster.status().phase === 'Joining' && two.cluster.status().error !== null, 'it tries');
  assert.match(two.cluster.status().error ?? '', /nobody answers/);
  await assert.rejects(world.run(two.api.createCollection('a', sampleConfig())), { code: 'unavailable', message: /is joining a cluster/ });
  await world.start(1, null);
  await world.until(() => two.cluster.status().phase === 'Member' && isVoter(two.cluster), 'it has joined');
  assert.equal(two.cluster.status().error, null);
});

test('a node that was let in and has not heard of its cluster yet decides nothing', async () => {
  const one = await world.start(1, null);
  const two = await world.start(2, 1);
  await world.until(() => two.cluster.status().raft !== null, 'it was let in');
  assert.equal(two.cluster.status().phase, 'Joining');
  await assert.rejects(world.run(two.api.createCollection('a', sampleConfig())), {
    code: 'unavailable',
    message: /is joining its cluster: retry when/,
  });
  await world.until(() => two.cluster.status().phase === 'Member', 'it has heard');
  assert.equal(await world.run(two.api.createCollection('a', sampleConfig())), true);
  assert.ok(one.api.exists('a'));
});

test('a node that crashed while it joined joins as the same peer', async () => {
  const one = await world.start(1, null);
  const two = await world.start(2, 1);
  await world.until(() => one.cluster.state()?.membership.length === 2, 'it was let in');
  const { peerId } = two;
  await world.kill(two);
  const again = await world.start(2, 1);
  await world.until(() => isVoter(again.cluster), 'it is a voter');
  assert.equal(again.peerId, peerId);
  assert.equal(one.cluster.state()?.membership.length, 2);
});

test('a node without an address is reached at the one that it was seen with, and joins through any member', async () => {
  await world.founded(2);
  world.network.cut(world.uri(1), 'http://127.0.0.1:7000');
  const three = await world.start(3, 2, { uri: null, port: 7000 }, 'http://127.0.0.1:7000');
  world.network.heal();
  await world.until(() => isVoter(three.cluster), 'it is a voter');
  assert.deepEqual(uris(three), ['http://127.0.0.1:7000', world.uri(1), world.uri(2)]);
});

test('a node without an address that was seen at one of IPv6 is reached there', async () => {
  await world.founded(1);
  const two = await world.start(2, 1, { uri: null, port: 7000 }, 'http://[::1]:7000');
  await world.until(() => isVoter(two.cluster), 'it is a voter');
  assert.deepEqual(uris(two), ['http://[::1]:7000', world.uri(1)]);
});

test('a peer that was started with another address or version says so, and the others follow', async () => {
  const [one, two, three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  await world.kill(two);
  const again = await world.start(2, null, { uri: 'http://elsewhere:6335', version: '1.1.0' });
  await world.until(() => [one, again, three].every((node) => uris(node)[0] === 'http://elsewhere:6335'), 'all know the address');
  assert.equal(three.cluster.state()?.membership.find(({ peerId }) => peerId === again.peerId)?.version, '1.1.0');
  await world.until(() => leaderOf([one, again, three]) !== undefined, 'a leader');
  assert.equal(await world.run(again.api.createCollection('a', sampleConfig())), true);
});

test('a peer that holds shards is removed by force only; it says that it was removed, and joins afresh as another peer', async () => {
  const [one, two, three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  const config = { ...sampleConfig(), params: { ...sampleConfig().params, shard_number: 3 } };
  await world.run(one.api.createCollection('wide', config));
  const { peerId } = three;
  await assert.rejects(world.run(one.cluster.removePeer(peerId, false, 5000)), {
    code: 'badRequest',
    message: /there are shards on it, of `wide`/,
  });
  assert.equal(await world.run(one.cluster.removePeer(12345, false, 5000)), true, 'a removal may be repeated');
  assert.equal(await world.run(two.cluster.removePeer(peerId, true, 5000)), true);
  assert.deepEqual(uris(one), [world.uri(1), world.uri(2)]);
  await world.until(() => three.cluster.status().phase === 'Removed', 'it knows');
  await assert.rejects(world.run(three.api.createCollection('a', sampleConfig())), {
    code: 'unavailable',
    message: /has removed this peer/,
  });

  await world.kill(three);
  const still = await world.start(3, null);
  await world.until(() => still.cluster.status().phase === 'Removed', 'it has not forgotten');
  await world.kill(still);
  const afresh = await world.start(3, 1);
  await world.until(() => isVoter(afresh.cluster), 'it has joined afresh');
  assert.notEqual(afresh.peerId, peerId);
  assert.equal(await world.run(afresh.api.createCollection('b', sampleConfig())), true);
});

test('a node that joins at the address of a member replaces it if that has no shards: the former process stops taking part', async () => {
  const [one, two, three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  const former = two.peerId;
  const next = await world.start(4, 1, { uri: world.uri(2) });
  await world.until(() => isVoter(next.cluster), 'it has joined');
  await world.until(() => two.cluster.status().phase === 'Removed', 'the former process knows');
  const peers = one.cluster.state()?.membership.map(({ peerId }) => peerId) ?? [];
  assert.deepEqual([...peers].sort(), [one.peerId, three.peerId, next.peerId].sort());
  assert.ok(!peers.includes(former));
});

test('a node that asks to join at the address of a member that answers and has shards is refused, and gives up after a while', async () => {
  const [one, two] = (await world.founded(2)) as [FakeNode, FakeNode];
  const config = { ...sampleConfig(), params: { ...sampleConfig().params, shard_number: 2 } };
  await world.run(one.api.createCollection('wide', config));
  const reasons: string[] = [];
  const startedMs = world.world.nowMs;
  const next = await world.start(3, 1, { uri: two.uri, onGivenUp: (why) => reasons.push(why) }, world.uri(3));
  await world.until(() => reasons.length > 0, 'it gives up');
  assert.match(reasons[0] ?? '', new RegExp(`peer ${two.peerId} is at ${two.uri}, answers and has shards`));
  // A member that has just ended may count as connected for four seconds.
  assert.ok(world.world.nowMs - startedMs > 5000);
  assert.equal(next.cluster.status().phase, 'Joining');
  assert.equal(one.cluster.state()?.membership.length, 2);
});

test('a peer that was down when it was removed is told when it is back', async () => {
  const [one, , three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  await world.kill(three);
  assert.equal(await world.run(one.cluster.removePeer(three.peerId, false, 5000)), true);
  const again = await world.start(3, null);
  await world.until(() => again.cluster.status().phase === 'Removed', 'it knows');
});

test('a leader that is told to remove itself hands its lead over, and is answered', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  assert.equal(await world.run(leader.cluster.removePeer(leader.peerId, false, 10_000)), true);
  const rest = nodes.filter((node) => node !== leader);
  await world.until(() => leaderOf(rest) !== undefined, 'a new leader');
  for (const node of rest) await world.until(() => uris(node).length === 2, 'it is gone');
  assert.equal(await world.run((rest[0] as FakeNode).api.createCollection('a', sampleConfig())), true);
});

test('a leader is removed through another peer', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const rest = nodes.filter((node) => node !== leader);
  assert.equal(await world.run((rest[0] as FakeNode).cluster.removePeer(leader.peerId, false, 10_000)), true);
  await world.until(() => leader.cluster.status().phase === 'Removed', 'it knows');
  assert.equal(await world.run((rest[1] as FakeNode).api.createCollection('a', sampleConfig())), true);
});

test('the last voter cannot be removed', async () => {
  const [one] = (await world.founded(1)) as [FakeNode];
  await assert.rejects(world.run(one.cluster.removePeer(one.peerId, false, 5000)), {
    code: 'wrongInput',
    message: /is the only one with a vote.*let another peer join first/,
  });
});

test("a follower takes over the leader's state when it is told to, and the leader refuses to", async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const follower = nodes.find((node) => node !== leader) as FakeNode;
  await world.run(leader.api.createCollection('a', sampleConfig()));
  assert.equal(await world.run(follower.cluster.recover(10_000)), true);
  assert.deepEqual(follower.api.listCollections(), ['a']);
  assert.equal(await world.run(leader.cluster.recover(10_000)), true, 'a leader has the newest state itself');
  assert.equal(await world.run(follower.api.createCollection('b', sampleConfig())), true);
});

test('who is to take over the state of a leader that is not there is refused at once', async () => {
  const [one, two] = (await world.founded(2)) as [FakeNode, FakeNode];
  world.kill(two);
  await world.until(() => one.cluster.status().leaderless, 'it has given up looking for a leader');
  await assert.rejects(world.run(one.cluster.recover(10_000)), { code: 'unavailable', message: /has no leader/ });
});

test('nodes that join together are voters soon, one after the other', async () => {
  const first = await world.start(1, null);
  await world.until(() => isVoter(first.cluster), 'the cluster is founded');
  const sinceMs = world.world.nowMs;
  const joining = [await world.start(2, 1), await world.start(3, 1), await world.start(4, 1), await world.start(5, 1)];
  await world.until(() => joining.every(({ cluster }) => isVoter(cluster)), 'all are voters');
  assert.ok(world.world.nowMs - sinceMs < 3000, `${world.world.nowMs - sinceMs} ms`);
});
