/** Replicas' states as nodes find out about each other, over a virtual network. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { TroupeError } from '../../../../protocols/errors.js';
import type { CollectionConfig } from '../../../../protocols/model/collection.js';
import { EngineWithFiles } from '../../fake-engine.js';
import { sampleConfig } from '../../samples.js';
import { FakeCluster, type FakeNode, leaderOf } from '../fake-cluster.js';

let world = new FakeCluster();

afterEach(async () => {
  await world.remove();
  world = new FakeCluster();
});

type Three = [FakeNode, FakeNode, FakeNode];

function copies(shards: number, replicas: number): CollectionConfig {
  const config = sampleConfig();
  return { ...config, params: { ...config.params, shard_number: shards, replication_factor: replicas } };
}

/** `shard: node state, …, led by node`, as `node` knows it. */
function shown(node: FakeNode, nodes: readonly FakeNode[]): string[] {
  const numberOf = (peerId: number | null) => nodes.find((other) => other.peerId === peerId)?.number ?? 'nobody';
  return [...(node.cluster.state()?.collections.get('a')?.shards ?? [])].map(([shardId, { leader, replicas }]) => {
    const states = [...replicas].map(([peerId, state]) => `${numberOf(peerId)} ${state}`).sort();
    return `${shardId}: ${states.join(', ')}, led by ${numberOf(leader)}`;
  });
}

test('replicas of a node that is silent for two seconds are Dead, others lead what it led, and what it alone has stays its', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(3, 2)));
  await world.run(nodes[0].api.createCollection('b', copies(3, 1)));
  const leaders = shown(nodes[0], nodes).map((line) => line.at(-1));
  assert.deepEqual(leaders.sort(), ['1', '2', '3'], 'each node leads its share');
  const third = nodes[2];
  await world.kill(third);
  const diedMs = world.world.nowMs;
  // Who leads a shard may notice before the leader of the cluster does, which gives another leader to those that the third one led.
  const isLeft = (line: string) => !/3 Active|led by (3|nobody)/.test(line);
  await world.until(() => shown(nodes[0], nodes).every(isLeft), 'all have another leader');
  assert.ok(world.world.nowMs - diedMs < 3000, `${world.world.nowMs - diedMs} ms`);
  const alone = [...(nodes[0].cluster.state()?.collections.get('b')?.shards.values() ?? [])];
  assert.deepEqual(new Set(alone.flatMap(({ replicas }) => [...replicas.values()])), new Set(['Active']));
});

/** Whether whoever leads a shard of `a` knows how far its other replicas are. */
function isKnown(nodes: readonly FakeNode[]): boolean {
  const shards = nodes.flatMap(({ api }) => [...api.localShards('a').values()]);
  return shards.every(({ replication }) => replication?.followers.every(({ phase }) => phase === 'Streaming') === true);
}

test('a replica that cannot be opened gives the lead to another one, unless it may have what that one lacks', async () => {
  const nodes = (await world.founded(2)) as [FakeNode, FakeNode];
  const [first, second] = nodes;
  await world.run(first.api.createCollection('a', copies(4, 2)));
  const led = shown(first, nodes).filter((line) => line.endsWith('2'));
  const [ahead, other] = led.map((line) => Number.parseInt(line, 10)) as [number, number];
  await world.kill(second);
  await writeFile(join(await world.storagePath(2), 'collections', 'a', `${ahead}.ahead`), '');
  const engine = new EngineWithFiles();
  for (const shardId of [0, 1, 2, 3]) engine.unopenable.set(`a/${shardId}`, new TroupeError('storage', 'data.mdb is torn'));
  await world.start(2, 1, {}, world.uri(2), engine);
  await world.until(() => shown(first, nodes)[other]?.endsWith('led by 1') === true, 'another one leads');
  assert.equal(shown(first, nodes)[ahead], `${ahead}: 1 Active, 2 Active, led by 2`);
});

test('a node that stops in order leaves the lead to others before it goes, and nobody waits for what it had', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(3, 2)));
  await world.run(nodes[0].api.createCollection('b', copies(3, 1)));
  const [first, second, third] = nodes;
  await world.until(() => isKnown(nodes), 'leaders are there');
  const stoppedMs = world.world.nowMs;
  await world.run(third.api.close());
  await world.kill(third);
  for (const node of [first, second]) {
    await world.until(() => shown(node, nodes).join().includes('3 Dead'), 'the others know it');
    for (const line of shown(node, nodes)) assert.doesNotMatch(line, /3 Active|led by (3|nobody)/);
  }
  assert.ok(world.world.nowMs - stoppedMs < 1500, `${world.world.nowMs - stoppedMs} ms`);
  const alone = [...(first.cluster.state()?.collections.get('b')?.shards.values() ?? [])];
  assert.deepEqual(new Set(alone.flatMap(({ replicas }) => [...replicas.values()])), new Set(['Active']));
});

test('nodes that all stop at the same time leave an Active replica of each shard', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(6, 2)));
  await world.run(Promise.all(nodes.map(({ api }) => api.close())));
  for (const node of nodes) {
    for (const line of shown(node, nodes)) assert.match(line, / Active/);
  }
});

test('a peer that is about to be Dead is not counted on to get back what it missed', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(6, 2)));
  const leader = leaderOf(nodes) as FakeNode;
  const silent = nodes.find((node) => node !== leader) as FakeNode;
  // Its connections stay, as those of a process that was paused do for a while.
  world.silence(silent);
  const begun: unknown[] = [];
  for (let tenths = 0; tenths < 35; tenths++) {
    await world.pass(100);
    begun.push(...(leader.cluster.state()?.collections.get('a')?.transfers ?? []));
  }
  assert.deepEqual(begun, []);
});

test('a node that is cut off for less than that keeps its replicas, also when it led the cluster', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(3, 3)));
  const before = shown(nodes[0], nodes);
  const leader = leaderOf(nodes) as FakeNode;
  for (const node of nodes) if (node !== leader) world.network.cut(leader.uri, node.uri);
  for (let tenths = 0; tenths < 12; tenths++) await world.pass(100);
  world.network.heal();
  for (let tenths = 0; tenths < 50; tenths++) await world.pass(100);
  for (const node of nodes) assert.deepEqual(shown(node, nodes), before);
});

test('a replica that cannot be opened is Dead to all, and another one leads its shard', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(1, 3)));
  const led = shown(nodes[0], nodes)[0]?.at(-1);
  const leading = nodes.find(({ number }) => String(number) === led) as FakeNode;
  const others = nodes.filter((node) => node !== leading);
  leading.engine.unopenable.set('a/0', new TroupeError('storage', 'its files are damaged'));
  leading.engine.fail('a/0', new TroupeError('storage', 'its files are damaged'));
  const line = () => shown(others[0] as FakeNode, nodes)[0] ?? '';
  await world.until(() => line().includes(`${led} Dead`), 'it is Dead');
  assert.doesNotMatch(line(), new RegExp(`led by (${led}|nobody)`));
});

test('a node that only listens has a Listener of every shard beside the others, and leads none', async () => {
  const nodes = [await world.start(1, null), await world.start(2, 1), await world.start(3, 1, { listens: true })];
  await world.until(() => nodes.every(({ cluster }) => cluster.state()?.marks.size === 1), 'all know that it listens');
  await world.run((nodes[0] as FakeNode).api.createCollection('a', copies(2, 1)));
  await world.until(
    () =>
      !shown(nodes[0] as FakeNode, nodes)
        .join()
        .includes('Initializing'),
    'it is made',
  );
  assert.deepEqual(
    shown(nodes[0] as FakeNode, nodes).map((line) => line.replace(/(\d) Active(.*)led by \1/, 'one Active$2led by it')),
    ['0: one Active, 3 Listener, led by it', '1: one Active, 3 Listener, led by it'],
  );
});

test('a shard is moved and copied by the agreed record, and a transfer is aborted or begun anew as asked', async () => {
  const nodes = (await world.founded(3)) as Three;
  await world.run(nodes[0].api.createCollection('a', copies(1, 1)));
  const record = () => nodes[0].cluster.state()?.collections.get('a');
  const from = record()?.shards.get(0)?.leader ?? 0;
  const [to, third] = nodes.map(({ peerId }) => peerId).filter((peerId) => peerId !== from) as [number, number];
  const transfer = { shardId: 0, toShardId: null, from, to };
  const ask = (setup: Parameters<FakeNode['cluster']['updateCollectionCluster']>[1]) =>
    world.run(nodes[1].cluster.updateCollectionCluster('a', setup, 5000));
  assert.equal(await ask({ kind: 'moveShard', ...transfer, method: null }), true);
  assert.deepEqual(
    record()?.transfers.map(({ method, sync }) => [method, sync]),
    [['stream_records', false]],
  );
  await assert.rejects(ask({ kind: 'replicateShard', ...transfer, method: null }), { code: 'conflict' });
  assert.equal(await ask({ kind: 'restartTransfer', ...transfer, method: 'snapshot' }), true);
  assert.equal(record()?.shards.get(0)?.replicas.get(to), 'PartialSnapshot');
  assert.equal(await ask({ kind: 'abortTransfer', ...transfer }), true);
  assert.equal(record()?.transfers.length, 0);
  await assert.rejects(ask({ kind: 'abortTransfer', ...transfer }), { code: 'notFound' });
  await assert.rejects(ask({ kind: 'moveShard', ...transfer, to: 5, method: null }), { code: 'badRequest' });
  assert.equal(await ask({ kind: 'replicateShard', ...transfer, to: third, method: 'stream_records' }), true);
  assert.equal(record()?.transfers[0]?.sync, true);
});
