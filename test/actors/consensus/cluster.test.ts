import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode, isVoter, leaderOf } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

/** What a node serves. */
function served({ api }: FakeNode) {
  return { collections: api.listCollections(), aliases: api.aliases(null).map(({ alias_name }) => alias_name) };
}

test('a node that founds a cluster leads it, and others that join become voters', async () => {
  const nodes = await world.founded(3);
  assert.equal(leaderOf(nodes), nodes[0]);
  const memberships = nodes.map(({ cluster }) => cluster.state()?.membership.map(({ uri, voter }) => `${uri} ${voter}`));
  assert.deepEqual(new Set(memberships[0]), new Set([1, 2, 3].map((number) => `${world.uri(number)} true`)));
  assert.deepEqual(memberships[1], memberships[0]);
  assert.deepEqual(memberships[2], memberships[0]);
  assert.equal(new Set(nodes.map(({ cluster }) => cluster.state()?.clusterId)).size, 1);
});

test('a collection that was created through any node is on all of them when it is answered, with Active replicas', async () => {
  const nodes = await world.founded(3);
  for (const [at, node] of nodes.entries()) {
    assert.equal(await world.run(node.api.createCollection(`collection-${at}`, sampleConfig())), true);
    for (const other of nodes) {
      assert.ok(other.api.exists(`collection-${at}`), `node ${other.number}`);
    }
    const record = node.cluster.state()?.collections.get(`collection-${at}`);
    assert.deepEqual([...(record?.shards.get(0)?.replicas.values() ?? [])], ['Active']);
  }
  const [one, two] = nodes as [FakeNode, FakeNode];
  assert.equal(await world.run(two.api.changeAliases([{ kind: 'create', alias: 'newest', collection: 'collection-2' }])), true);
  assert.deepEqual(served(one), { collections: ['collection-0', 'collection-1', 'collection-2'], aliases: ['newest'] });
  assert.equal(await world.run(one.api.deleteCollection('collection-2')), true);
  assert.equal(await world.run(one.api.deleteCollection('collection-2')), false);
  assert.deepEqual(served(two), { collections: ['collection-0', 'collection-1'], aliases: [] });
});

test('when the leader dies, another one takes its place within two seconds and operations go on', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const rest = nodes.filter((node) => node !== leader);
  await world.kill(leader);
  const diedMs = world.world.nowMs;
  await world.until(() => leaderOf(rest) !== undefined, 'a new leader');
  assert.ok(world.world.nowMs - diedMs < 2000, `${world.world.nowMs - diedMs} ms`);
  for (const node of rest) assert.equal(await world.run(node.api.createCollection(`by-${node.number}`, sampleConfig())), true);
  const again = await world.start(leader.number, null);
  await world.until(() => again.api.listCollections().length === 2, 'the restarted node has caught up');
  assert.equal(again.peerId, leader.peerId);
});

test('an operation that is begun before a new leader is found is carried out by it, once', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const [one, two] = nodes.filter((node) => node !== leader) as [FakeNode, FakeNode];
  await world.kill(leader);
  const made = [one.api.createCollection('a', sampleConfig()), two.api.createCollection('b', sampleConfig())];
  assert.deepEqual(await world.run(Promise.all(made)), [true, true]);
  const { collections } = one.cluster.state() ?? assert.fail('no state');
  assert.deepEqual([...collections.keys()].sort(), ['a', 'b']);
});

test('without a majority, operations and barriers are refused in time and say why', async () => {
  const nodes = await world.founded(3);
  const [one, two, three] = nodes as [FakeNode, FakeNode, FakeNode];
  await world.run(one.api.createCollection('a', sampleConfig()));
  await world.kill(two);
  await world.kill(three);
  await world.pass(5000);
  const beganMs = world.world.nowMs;
  await assert.rejects(world.run(one.api.deleteCollection('a')), { code: 'unavailable', message: /no leader.*more than half/ });
  await assert.rejects(world.run(one.cluster.barrier(5000)), { code: 'unavailable', message: /no leader/ });
  assert.ok(world.world.nowMs - beganMs < 100);
  assert.deepEqual(one.api.listCollections(), ['a']);
});

test('an operation that a leader took before it lost its majority is answered as uncertain', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  for (const node of nodes) if (node !== leader) await world.kill(node);
  const beganMs = world.world.nowMs;
  await assert.rejects(world.run(leader.api.createCollection('a', sampleConfig())), {
    code: 'timeout',
    outcome: 'unknown',
  });
  assert.ok(world.world.nowMs - beganMs < 6000);
});

test('an unreachable peer is not waited for, and catches up when it is back', async () => {
  const nodes = await world.founded(3);
  const [one, two, three] = nodes as [FakeNode, FakeNode, FakeNode];
  world.network.cut(one.uri, three.uri);
  world.network.cut(two.uri, three.uri);
  await world.pass(3000);
  const beganMs = world.world.nowMs;
  const other = [one, two].find((node) => node !== leaderOf([one, two])) as FakeNode;
  assert.equal(await world.run(other.api.createCollection('a', sampleConfig())), true);
  assert.ok(world.world.nowMs - beganMs < 1000, `${world.world.nowMs - beganMs} ms`);
  assert.deepEqual(three.api.listCollections(), []);
  world.network.heal();
  await world.until(() => three.api.exists('a'), 'it has caught up');
});

test('what a barrier has waited for is there, also on a node that was behind', async () => {
  const nodes = await world.founded(3);
  const [one, , three] = nodes as [FakeNode, FakeNode, FakeNode];
  for (let at = 0; at < 5; at++) {
    world.network.cut(one.uri, three.uri);
    await world.run(one.api.createCollection(`a${at}`, sampleConfig()));
    world.network.heal();
    await world.run(three.cluster.barrier(5000));
    assert.ok(three.api.exists(`a${at}`));
  }
});

test('changes of a configuration that are made at the same time are all in it', async () => {
  const nodes = await world.founded(3);
  await world.run((nodes[0] as FakeNode).api.createCollection('a', sampleConfig()));
  const changes = [10, 20, 30, 40, 50, 60].map((added, at) =>
    (nodes[at % 3] as FakeNode).api.updateCollection('a', (config) => ({
      ...config,
      wal_config: { ...config.wal_config, wal_capacity_mb: config.wal_config.wal_capacity_mb + added },
    })),
  );
  await world.run(Promise.all(changes));
  for (const { api } of nodes) assert.equal(api.info('a').config.wal_config.wal_capacity_mb, 32 + 210);
});

test('what a change throws is the answer, and nothing has changed', async () => {
  const nodes = await world.founded(1);
  const [one] = nodes as [FakeNode];
  await world.run(one.api.createCollection('a', sampleConfig()));
  const fail = () => {
    throw new TroupeError('wrongInput', 'no such vector');
  };
  await assert.rejects(world.run(one.api.updateCollection('a', fail)), { code: 'wrongInput', detail: 'no such vector' });
  await assert.rejects(world.run(one.api.updateCollection('b', fail)), { code: 'notFound' });
});

test('a collection that this node has not heard of yet can be changed through it', async () => {
  const nodes = await world.founded(3);
  const [one, two, three] = nodes as [FakeNode, FakeNode, FakeNode];
  world.network.cut(one.uri, three.uri);
  world.network.cut(two.uri, three.uri);
  await world.run(one.api.createCollection('a', sampleConfig(), 1000));
  world.network.heal();
  assert.equal(await world.run(three.api.updateCollection('a', (config) => config)), true);
});

test('a node that starts serves nothing before it knows all that was agreed before, and what it has where nobody leads', async () => {
  const nodes = await world.founded(3);
  const [one, , three] = nodes as [FakeNode, FakeNode, FakeNode];
  await world.run(one.api.createCollection('old', sampleConfig()));
  await world.kill(three);
  await world.run(one.api.createCollection('new', sampleConfig()));
  world.network.cut(world.uri(3), world.uri(1));
  world.network.cut(world.uri(3), world.uri(2));
  const again = await world.start(3, null);
  await world.until(() => again.cluster.state() !== null, 'its log is read');
  const startedMs = world.world.nowMs;
  for (const name of ['old', 'new']) {
    const refused = { code: 'unavailable', message: /is starting/ };
    assert.throws(() => again.cluster.checkStarted(), refused);
    const count = again.api.read(name, 'count', { body: null, deadlineMs: world.world.nowMs + 500 } as never);
    await assert.rejects(world.run(count), refused);
  }
  // Nobody comes: what it has is better than nothing, and what it does not know may be there.
  await world.until(() => again.cluster.status().leaderless, 'it gives up to wait for a leader');
  assert.ok(world.world.nowMs - startedMs < 10_000);
  again.cluster.checkStarted();
  assert.ok(again.api.exists('old'));
  assert.throws(() => again.api.exists('new'), { code: 'unavailable', message: /no leader since/ });
  world.network.heal();
  await world.until(() => again.cluster.status().caughtUp, 'it has heard what was agreed');
  assert.ok(again.api.exists('new'));
  assert.ok(!again.api.exists('other'));
  // Without a leader it goes on serving what it knew.
  world.network.cut(world.uri(3), world.uri(1));
  world.network.cut(world.uri(3), world.uri(2));
  await world.until(() => again.cluster.status().raft?.leader === null, 'its leader is gone');
  again.cluster.checkStarted();
});

test('a request to a node that has just started is held until the node knows what was agreed, or the time of the request is over', async () => {
  const [one, , three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  await world.kill(three);
  await world.run(one.api.createCollection('new', sampleConfig()));
  world.network.cut(world.uri(3), world.uri(1));
  world.network.cut(world.uri(3), world.uri(2));
  const again = await world.start(3, null);
  await world.until(() => again.cluster.state() !== null, 'its log is read');
  const patient = again.cluster.whenStarted(60_000);
  const startedMs = world.world.nowMs;
  await assert.rejects(world.run(again.cluster.whenStarted(300) as Promise<void>), { code: 'unavailable', message: /is starting/ });
  assert.ok(world.world.nowMs - startedMs < 400);
  world.network.heal();
  await world.run(patient as Promise<void>);
  assert.ok(again.api.exists('new'));
  assert.equal(again.cluster.whenStarted(1000), null);
});

test('a node that has just started lists no collection before it has read from its disk which ones it knew', async () => {
  const [one, , three] = (await world.founded(3)) as [FakeNode, FakeNode, FakeNode];
  await world.run(one.api.createCollection('known', sampleConfig()));
  await world.until(() => three.api.exists('known'), 'it knows the collection');
  await world.kill(three);
  world.network.cut(world.uri(3), world.uri(1));
  world.network.cut(world.uri(3), world.uri(2));
  const again = await world.start(3, null);
  const held = again.cluster.whenRead(60_000);
  assert.notEqual(held, null);
  await world.run(held as Promise<void>);
  assert.deepEqual(again.api.listCollections(), ['known']);
  assert.equal(again.cluster.whenRead(1000), null);
  assert.throws(() => again.cluster.checkStarted(), { code: 'unavailable' });
});

test('a node whose log refuses a write is as one that crashed, and comes back when there is room again', async () => {
  const nodes = await world.founded(3);
  const [one, two, three] = nodes as [FakeNode, FakeNode, FakeNode];
  const leader = leaderOf(nodes) as FakeNode;
  leader.store.full = true;
  const made = leader.api.createCollection('a', sampleConfig());
  await assert.rejects(world.run(made), { code: 'unavailable', message: /no space left/, outcome: 'unknown' });
  assert.equal(leader.cluster.status().phase, 'Broken');
  const rest = nodes.filter((node) => node !== leader);
  await world.until(() => leaderOf(rest) !== undefined, 'a new leader');
  assert.equal(await world.run((rest[0] as FakeNode).api.createCollection('b', sampleConfig())), true);
  await world.pass(10_000);
  leader.store.full = false;
  await world.until(() => leader.cluster.status().phase === 'Member' && leader.api.exists('b'), 'it is back');
  for (const node of [one, two, three]) assert.equal(node.cluster.state()?.collections.has('b'), true);
});

test('all nodes started again from their logs have the same state as before', async () => {
  const nodes = await world.founded(3, { compactEntries: 8 });
  for (let at = 0; at < 20; at++) await world.run((nodes[at % 3] as FakeNode).api.createCollection(`c${at}`, sampleConfig()));
  await world.run((nodes[0] as FakeNode).cluster.barrier(5000));
  const before = (nodes[0] as FakeNode).cluster.state();
  for (const node of nodes) await world.kill(node);
  const again: FakeNode[] = [];
  for (const { number } of nodes) again.push(await world.start(number, null, { compactEntries: 8 }));
  await world.until(() => again.every(({ api }) => api.listCollections().length === 20), 'all collections are there');
  await world.until(() => leaderOf(again) !== undefined, 'a leader');
  for (const { cluster } of again) {
    await world.run(cluster.barrier(5000));
    assert.deepEqual(cluster.state()?.collections, before?.collections);
  }
});

test('a node joins a cluster whose log was compacted, by its snapshot', async () => {
  const nodes = await world.founded(1, { compactEntries: 8 });
  const [one] = nodes as [FakeNode];
  for (let at = 0; at < 40; at++) await world.run(one.api.createCollection(`c${at}`, sampleConfig()));
  assert.ok((one.cluster.status().raft?.log.snapshot?.index ?? 0) > 1);
  const two = await world.start(2, 1);
  await world.until(() => two.api.listCollections().length === 40 && isVoter(two.cluster), 'it has joined');
});

test('a change that is asked of a node behind the others is made on what they have', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const late = nodes.find((node) => node !== leader) as FakeNode;
  for (const node of nodes) if (node !== late) world.network.cut(node.uri, late.uri);
  assert.equal(await world.run(leader.api.createCollection('new', sampleConfig(), 500).catch(() => true)), true);
  world.network.heal();
  assert.equal(late.cluster.state()?.collections.size, 0);
  assert.equal(await world.run(late.api.updateCollection('new', (config) => ({ ...config, metadata: { changed: true } }))), true);
  assert.deepEqual(leader.cluster.state()?.collections.get('new')?.config.metadata, { changed: true });
});

test('a peer that is removed says of what it has begun that it may still be carried out', async () => {
  const nodes = await world.founded(3);
  const leader = leaderOf(nodes) as FakeNode;
  const leaving = nodes.find((node) => node !== leader) as FakeNode;
  for (const node of nodes) if (node !== leaving) world.network.cut(node.uri, leaving.uri);
  const begun = leaving.api.createCollection('begun', sampleConfig());
  begun.catch(() => {});
  assert.equal(await world.run(leader.cluster.removePeer(leaving.peerId, true, 500).catch(() => true)), true);
  world.network.heal();
  await assert.rejects(world.run(begun), { message: /has removed this peer/, outcome: 'unknown' });
});
