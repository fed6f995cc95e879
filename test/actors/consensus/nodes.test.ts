/** What nodes of a cluster serve and keep: production actors of several nodes in one process, each with files of its own. */

import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { sampleConfig } from '../samples.js';
import { FakeCluster, type FakeNode, leaderOf } from './fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

type Three = [FakeNode, FakeNode, FakeNode];

function spread(shards: number, params: Partial<CollectionConfig['params']> = {}): CollectionConfig {
  const config = sampleConfig();
  return { ...config, params: { ...config.params, shard_number: shards, ...params } };
}

async function filesOf(node: number, ...path: string[]): Promise<string[]> {
  return (await readdir(join(await world.storagePath(node), ...path)).catch(() => [])).sort();
}

function request(node: FakeNode) {
  return { path: {}, query: {}, body: null, deadlineMs: world.world.nowMs + 10_000, node };
}

/** Node numbers by shard of a collection. */
function holders(nodes: readonly FakeNode[], name: string): Map<number, number[]> {
  const shards = nodes[0]?.cluster.state()?.collections.get(name)?.shards ?? new Map();
  const numberOf = (peerId: number) => nodes.find((node) => node.peerId === peerId)?.number ?? 0;
  return new Map([...shards].map(([shardId, { replicas }]) => [shardId, [...replicas.keys()].map(numberOf)]));
}

test('each node opens the shards that are on it and no others, and shows the collection as the others do', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[1].api.createCollection('spread', spread(5)));
  await world.run(nodes[1].api.createCollection('small', spread(1)));
  for (const node of nodes) {
    const own = [...holders(nodes, 'spread')].filter(([, peers]) => peers.includes(node.number)).map(([shard]) => `spread/${shard}`);
    const opened = [...node.engine.open.keys()].filter((key) => key.startsWith('spread/'));
    assert.deepEqual(opened.sort(), own.sort());
    assert.ok(own.length === 1 || own.length === 2, 'five shards on three nodes');
    for (const name of ['spread', 'small']) {
      assert.equal(node.api.info(name).status, 'green', `${name} on node ${node.number}`);
      assert.deepEqual(node.api.info(name).config, nodes[0].api.info(name).config);
    }
  }
});

test('any node reads points from wherever they are, and brings writes there', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('small', spread(1)));
  await world.run(nodes[0].api.createCollection('spread', spread(3)));
  const count = async (node: FakeNode, name: string) =>
    new TextDecoder().decode(await world.run(node.api.read(name, 'count', request(node))));
  for (const [at, node] of nodes.entries()) {
    assert.equal(await count(node, 'small'), 'count of small/0');
    assert.equal(await count(node, 'spread'), 'count of spread/0, count of spread/1, count of spread/2');
    const body = Buffer.from(JSON.stringify({ points: [{ id: at, vector: [1, 2, 3, 4] }] }));
    await world.run(node.api.write('small', 'upsertPoints', true, { ...request(node), body }));
  }
  const written = nodes.map(({ engine }) => engine.calls.filter((call) => call.startsWith('write small/0')).length);
  assert.deepEqual(
    written,
    nodes.map(({ number }) => (number === holders(nodes, 'small').get(0)?.[0] ? 3 : 0)),
  );
});

test('a collection whose shards are all on one node is served there', async () => {
  const [node] = (await world.founded(1)) as [FakeNode];
  await world.run(node.api.createCollection('spread', spread(3)));
  assert.equal(
    new TextDecoder().decode(await world.run(node.api.read('spread', 'count', request(node)))),
    'count of spread/0,spread/1,spread/2',
  );
  const points = Array.from({ length: 50 }, (_, id) => id);
  const write = { ...request(node), body: Buffer.from(JSON.stringify({ points })) };
  await world.run(node.api.write('spread', 'deletePoints', true, write));
  assert.deepEqual(node.engine.calls.filter((call) => call.startsWith('write')).sort(), [
    'write spread/0 deletePoints until applied',
    'write spread/1 deletePoints until applied',
    'write spread/2 deletePoints until applied',
  ]);
  await world.kill(node);
  const { api } = await world.startAlone(1);
  await world.run(api.whenReady());
  await world.run(api.read('spread', 'count', request(node)));
});

test('a changed configuration reaches the files and replicas of every node', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', spread(3)));
  const change = (config: CollectionConfig) => ({ ...config, optimizer_config: { ...config.optimizer_config, indexing_threshold: 77 } });
  await world.run(nodes[2].api.updateCollection('a', change));
  for (const node of nodes) {
    assert.equal(node.api.info('a').config.optimizer_config.indexing_threshold, 77);
    const stored = await readFile(join(await world.storagePath(node.number), 'collections', 'a', 'config.json'), 'utf8');
    assert.match(stored, /"indexing_threshold":77/);
    assert.deepEqual(
      [...node.engine.open.values()].map(({ config }) => config.optimizer_config.indexing_threshold),
      [77],
    );
  }
});

test('a node that was away makes up for what it missed, and its files with it', async () => {
  const nodes = (await world.founded(3)) as Three;
  for (const name of ['kept', 'gone', 'anew']) await world.run(nodes[0].api.createCollection(name, spread(3)));
  await world.kill(nodes[2]);
  const [one] = nodes;
  await world.run(one.api.deleteCollection('gone'));
  await world.run(one.api.deleteCollection('anew'));
  await world.run(one.api.createCollection('anew', sampleConfig({ indexing_threshold: 5 })));
  await world.run(one.api.createCollection('late', spread(3)));
  await world.run(one.api.changeAliases([{ kind: 'create', alias: 'x', collection: 'late' }]));
  const third = await world.start(3, 1);
  const index = one.cluster.state()?.appliedIndex ?? 0;
  await world.until(() => third.cluster.status().carriedOut >= index, 'it is there');
  assert.deepEqual(third.api.listCollections(), ['anew', 'kept', 'late']);
  assert.deepEqual(third.api.aliases('late'), [{ alias_name: 'x', collection_name: 'late' }]);
  assert.equal(third.api.info('anew').config.optimizer_config.indexing_threshold, 5);
  const folders = await filesOf(3, 'collections');
  assert.deepEqual(
    folders.filter((folder) => !folder.startsWith('.')),
    ['anew', 'kept', 'late'],
  );
  assert.deepEqual(await filesOf(3, 'set-aside'), [], 'what the cluster has deleted is deleted');
});

test('a node of its own that founds a cluster brings its collections, aliases and points along', async () => {
  const { api: alone } = await world.startAlone(1);
  await world.run(alone.whenReady());
  await world.run(alone.createCollection('pictures', spread(1)));
  await world.run(alone.changeAliases([{ kind: 'create', alias: 'newest', collection: 'pictures' }]));
  await world.run(alone.close());
  const [one, two] = (await world.founded(2)) as [FakeNode, FakeNode];
  assert.deepEqual(holders([one, two], 'pictures'), new Map([[0, [1]]]));
  assert.deepEqual([two.api.listCollections(), two.api.aliases(null).length], [['pictures'], 1]);
  assert.deepEqual([...one.engine.open.keys()], ['pictures/0']);
  await world.run(one.api.read('newest', 'count', request(one)));
  assert.deepEqual(await filesOf(1, 'set-aside'), []);
  assert.equal(two.api.info('pictures').status, 'green');
  await world.run(two.api.deleteCollection('pictures'));
  assert.deepEqual(one.api.listCollections(), []);
});

test('a node of its own that joins a cluster keeps its collections aside, also one whose name the cluster has', async () => {
  const { api: alone } = await world.startAlone(2);
  await world.run(alone.whenReady());
  for (const name of ['both', 'own']) await world.run(alone.createCollection(name, spread(1)));
  await world.run(alone.changeAliases([{ kind: 'create', alias: 'mine', collection: 'own' }]));
  await world.run(alone.close());
  const one = await world.start(1, null);
  await world.until(() => one.cluster.status().phase === 'Member' && one.cluster.state() !== null, 'it is founded');
  await world.run(one.api.createCollection('both', sampleConfig({ indexing_threshold: 5 })));
  const two = await world.start(2, 1);
  await world.until(
    () => (two.cluster.status().carriedOut ?? 0) >= (one.cluster.state()?.appliedIndex ?? 0) && two.cluster.state() !== null,
    'it has joined',
  );
  assert.deepEqual([two.api.listCollections(), two.api.aliases(null)], [['both'], []]);
  assert.equal(two.api.info('both').config.optimizer_config.indexing_threshold, 5);
  assert.deepEqual(
    (await filesOf(2, 'set-aside')).map((kept) => kept.replace(/\..*/, '')),
    ['both', 'own'],
  );
});

test('a removed peer that joins afresh starts with nothing, and what it held is kept aside', async () => {
  const nodes = (await world.founded(3)) as Three;
  const [one, , three] = nodes;
  await world.run(one.api.createCollection('a', spread(3, { replication_factor: 2 })));
  const shard = [...holders(nodes, 'a')].find(([, peers]) => peers.includes(3))?.[0] ?? 0;
  const folder = join(await world.storagePath(3), 'collections', 'a', String(shard));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'points'), 'valuable');
  const former = three.peerId;
  assert.equal(await world.run(one.cluster.removePeer(former, true, 5000)), true);
  await world.until(() => three.cluster.status().phase === 'Removed', 'it is told');
  await world.kill(three);
  const again = await world.start(3, 1);
  await world.until(() => again.cluster.status().phase === 'Member' && again.cluster.status().carriedOut > 0, 'it has joined again');
  assert.notEqual(again.peerId, former);
  await world.until(() => again.engine.open.size === 0 && again.api.exists('a'), 'it holds nothing of the collection');
  const [kept] = await filesOf(3, 'set-aside');
  assert.equal(await readFile(join(await world.storagePath(3), 'set-aside', kept as string, String(shard), 'points'), 'utf8'), 'valuable');
});

test('shards of a key come and go with it, on the nodes that hold them', async () => {
  const nodes = (await world.founded(3)) as Three;
  const [one, two] = nodes;
  await world.run(one.api.createCollection('a', spread(1, { sharding_method: 'custom' })));
  assert.deepEqual(
    nodes.map(({ engine }) => engine.open.size),
    [0, 0, 0],
  );
  assert.equal(two.api.info('a').status, 'green');
  assert.equal(new TextDecoder().decode(await world.run(two.api.read('a', 'count', request(two)))), 'nothing');
  const key = { kind: 'createShardKey', key: 'north', shardsNumber: 3, replicationFactor: 1, placement: null, initialState: null } as const;
  assert.equal(await world.run(two.cluster.updateCollectionCluster('a', key, 5000)), true);
  assert.deepEqual(
    nodes.map(({ engine }) => engine.open.size),
    [1, 1, 1],
  );
  assert.equal(await world.run(one.cluster.updateCollectionCluster('a', { kind: 'dropShardKey', key: 'north' }, 5000)), true);
  assert.deepEqual(
    nodes.map(({ engine }) => engine.open.size),
    [0, 0, 0],
  );
  for (const { number } of nodes) assert.deepEqual(await filesOf(number, 'collections', 'a'), ['config.json']);
});

test('a shard key is made beside one whose replica does not serve, and beside one that cannot be made', async () => {
  const [one] = (await world.founded(1)) as [FakeNode];
  const { api, cluster, engine, peerId } = one;
  await world.run(api.createCollection('a', spread(1, { sharding_method: 'custom' })));
  const key = { kind: 'createShardKey', shardsNumber: 1, replicationFactor: 1, placement: null, initialState: null } as const;
  const create = (name: string) => world.run(cluster.updateCollectionCluster('a', { ...key, key: name }, 5000));
  await create('north');
  engine.unopenable.set('a/0', new TroupeError('storage', 'data.mdb is torn'));
  engine.fail('a/0', new TroupeError('storage', 'data.mdb is torn'));
  assert.equal(await create('south'), true);
  engine.unopenable.set('a/2', new TroupeError('storage', 'no file can be made'));
  await assert.rejects(create('east'), { code: 'unavailable', message: /no file can be made|data.mdb is torn/ });
  assert.equal(await create('west'), true);
  const states = [...(cluster.state()?.collections.get('a')?.shards ?? [])].map(([id, { replicas }]) => `${id} ${replicas.get(peerId)}`);
  assert.deepEqual(states, ['0 Active', '1 Active', '2 Initializing', '3 Active']);
});

test('a shard key that is to be placed on no peer of the cluster is refused at once', async () => {
  const [one] = (await world.founded(2)) as [FakeNode, FakeNode];
  await world.run(one.api.createCollection('a', spread(1, { sharding_method: 'custom' })));
  const key = { kind: 'createShardKey', key: 'north', shardsNumber: null, replicationFactor: null, initialState: null } as const;
  const before = one.cluster.state()?.appliedIndex;
  await assert.rejects(world.run(one.cluster.updateCollectionCluster('a', { ...key, placement: [one.peerId, 5] }, 5000)), {
    code: 'badRequest',
    detail: 'Peer 5 does not exist',
  });
  assert.equal(one.cluster.state()?.appliedIndex, before);
});

test('points of a collection with shard keys are read here where all of it is here', async () => {
  const [one] = (await world.founded(1)) as [FakeNode];
  await world.run(one.api.createCollection('a', spread(1, { sharding_method: 'custom' })));
  const key = { kind: 'createShardKey', key: 'north', shardsNumber: 1, replicationFactor: 1, placement: null, initialState: null } as const;
  await world.run(one.cluster.updateCollectionCluster('a', key, 5000));
  assert.equal(new TextDecoder().decode(await world.run(one.api.read('a', 'count', request(one)))), 'count of a/0');
});

test('a replica that is dropped is closed and its files go', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', spread(1, { replication_factor: 3 })));
  const third = nodes[2];
  await world.run(nodes[1].cluster.updateCollectionCluster('a', { kind: 'dropReplica', shardId: 0, peerId: third.peerId }, 5000));
  assert.deepEqual(
    nodes.map(({ engine }) => engine.open.size),
    [1, 1, 0],
  );
  assert.deepEqual(await filesOf(3, 'collections', 'a'), ['config.json']);
  assert.equal(third.api.info('a').points_count, 0);
});

test('a collection may be called as an actor is', async () => {
  const nodes = (await world.founded(2)) as [FakeNode, FakeNode];
  for (const name of ['consensus', '$consensus', '__proto__']) await world.run(nodes[1].api.createCollection(name, spread(1)));
  assert.deepEqual(nodes[0].api.listCollections(), ['$consensus', '__proto__', 'consensus']);
});

test('a cluster goes on after all of its nodes were killed, and each opens what it had before it knows the others', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', spread(3)));
  for (const node of nodes) await world.kill(node);
  const one = await world.start(1, null);
  await world.until(() => one.engine.open.size === 1, 'its shard is open');
  assert.deepEqual(one.api.listCollections(), ['a']);
  const others = [await world.start(2, 1), await world.start(3, 1)];
  await world.until(() => leaderOf([one, ...others]) !== undefined, 'there is a leader');
  await world.run(one.api.createCollection('b', spread(3)));
  for (const node of [one, ...others]) assert.deepEqual(node.api.listCollections(), ['a', 'b']);
});

test('a node that is started without its cluster serves collections of one shard and refuses what it has a part of', async () => {
  const nodes = (await world.founded(2)) as [FakeNode, FakeNode];
  await world.run(nodes[0].api.createCollection('small', spread(1, { replication_factor: 2 })));
  await world.run(nodes[0].api.createCollection('spread', spread(4)));
  for (const node of nodes) await world.kill(node);
  const { api } = await world.startAlone(2);
  await world.run(api.whenReady());
  assert.deepEqual(api.listCollections(), ['small', 'spread']);
  await world.run(api.read('small', 'count', request(nodes[1])));
  const refused = { code: 'unsupported', detail: /spread, which was made in a cluster and has 2 of its 4 shards on this node/ };
  await assert.rejects(api.read('spread', 'count', request(nodes[1])), refused);
  await assert.rejects(api.write('spread', 'upsertPoints', true, request(nodes[1])), refused);
});

test('a node that has one shard of several does not pass it for the whole collection when it is started without its cluster', async () => {
  const nodes = (await world.founded(2)) as [FakeNode, FakeNode];
  await world.run(nodes[0].api.createCollection('halved', spread(2)));
  for (const node of nodes) await world.kill(node);
  const { api } = await world.startAlone(1);
  await world.run(api.whenReady());
  await assert.rejects(api.read('halved', 'count', request(nodes[0])), {
    code: 'unsupported',
    detail: /has 1 of its 2 shards on this node/,
  });
});

test('a cluster that is founded anew on one node of a former one knows which shards it has lost, also when it is founded once more', async () => {
  const nodes = (await world.founded(2)) as [FakeNode, FakeNode];
  await world.run(nodes[0].api.createCollection('whole', spread(1, { replication_factor: 2 })));
  await world.run(nodes[0].api.createCollection('halved', spread(2)));
  for (const name of ['one', 'two']) await world.run(nodes[0].api.createCollection(name, spread(1)));
  const away = ['one', 'two'].find((name) => !nodes[0].engine.open.has(`${name}/0`)) as string;
  for (const node of nodes) await world.kill(node);
  let first = nodes[0];
  for (const _ of ['once', 'twice']) {
    world.forgetConsensus(first);
    first = await world.start(1, null);
    await world.until(() => first.cluster.status().phase === 'Member' && first.api.exists(away), 'it is founded');
    await world.run(first.cluster.barrier(5000));
    const counted = new TextDecoder().decode(await first.api.read('whole', 'count', request(first)));
    assert.equal(counted, 'count of whole/0');
    assert.equal(first.api.info('whole').status, 'green');
    for (const name of ['halved', away]) {
      assert.equal(first.api.info(name).status, 'red');
      await assert.rejects(first.api.read(name, 'count', request(first)), {
        code: 'unavailable',
        detail: /is not whole: its shard \d is on no peer/,
      });
    }
    await world.kill(first);
  }
});
