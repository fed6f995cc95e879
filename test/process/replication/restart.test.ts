/** What a node says right after it was started again, on real nodes. */

import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { temporaryFolder, until } from '../support.js';
import { untilCalm } from './shards.js';

const SETTINGS = { vectors: { size: 2, distance: 'Dot' }, shard_number: 3, replication_factor: 2 };

test('a node that is back lists what it knew, and says nothing else before it knows what was agreed while it was away', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const one = cluster.node(1);
  const back = cluster.node(3);
  const points = Array.from({ length: 50 }, (_, id) => ({ id, vector: [id, 1] }));
  const upload = (name: string) => one.client.call('PUT', `/collections/${name}/points?wait=true`, { points });
  await one.client.result('PUT', '/collections/old', SETTINGS);
  await until(
    () => upload('old'),
    ({ status }) => status === 200,
  );
  await back.kill();
  await one.client.result('PUT', '/collections/new', SETTINGS);
  for (const name of ['old', 'new'])
    await until(
      () => upload(name),
      ({ status }) => status === 200,
    );
  cluster.launch(3);
  const seen = new Map<string, number>();
  let answers = 0;
  await until(
    async () => {
      const asked = [
        back.client.call('POST', '/collections/new/points/count', { exact: true }),
        back.client.call('POST', '/collections/old/points/count', { exact: true }),
        back.client.call('GET', '/collections'),
        back.client.call('GET', '/collections/new/exists'),
        back.client.call('GET', '/collections/new'),
      ];
      for (const answer of await Promise.all(asked.map((call) => call.catch(() => null)))) {
        if (answer === null) continue;
        seen.set(String(answer.status), (seen.get(String(answer.status)) ?? 0) + 1);
        assert.ok(answer.status === 200 || answer.status === 503, answer.text);
        if (answer.status !== 200) continue;
        answers += 1;
        const { result } = JSON.parse(answer.text) as {
          result: { count?: number; collections?: { name: string }[]; exists?: boolean };
        };
        if (result.count !== undefined) assert.equal(result.count, points.length);
        if (result.collections !== undefined) assert.match(result.collections.map(({ name }) => name).join(), /^(new,)?old$/);
        assert.notEqual(result.exists, false);
      }
      return answers;
    },
    (count) => count >= 40,
    60_000,
  );
  t.diagnostic(JSON.stringify([...seen]));
});

/** Its folder stays: nothing is missing that its node would look for. */
async function emptyReplica({ folder }: LocalNode): Promise<void> {
  const replica = join(folder, 'storage', 'collections', 'c', '0');
  for (const name of await readdir(replica)) await rm(join(replica, name), { recursive: true });
}

test('a node whose replica has come back empty serves nothing of it until another one has filled it', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const settings = { ...SETTINGS, shard_number: 1, replication_factor: 3 };
  await cluster.node(1).client.result('PUT', '/collections/c', settings);
  const points = Array.from({ length: 30 }, (_, id) => ({ id, vector: [id, 1] }));
  await until(
    () => cluster.node(1).client.call('PUT', '/collections/c/points?wait=true', { points }),
    ({ status }) => status === 200,
  );
  // Killed, as nodes that stop in order tell the others to go on without them.
  await Promise.all(cluster.nodes.map((node) => node.kill()));
  const node = cluster.node(2);
  await emptyReplica(node);
  for (const { number } of cluster.nodes) cluster.launch(number);
  let answers = 0;
  await until(
    async () => {
      const answer = await node.client.call('POST', '/collections/c/points/count', { exact: true }).catch(() => null);
      if (answer?.status === 200) {
        assert.equal((JSON.parse(answer.text) as { result: { count: number } }).result.count, points.length);
        answers += 1;
      }
      return answers;
    },
    (count) => count >= 10,
    60_000,
  );
  await untilCalm(cluster.node(1), 'c', 3);
  // Its own, which is what it asks first; it hears of the end a moment after the others.
  const { local_shards } = await until(
    () => node.client.result<{ local_shards: { points_count: number; state: string }[] }>('GET', '/collections/c/cluster'),
    (shown) => shown.local_shards.every(({ state }) => state === 'Active'),
  );
  assert.deepEqual(
    local_shards.map(({ points_count, state }) => [points_count, state]),
    [[points.length, 'Active']],
  );
});

interface LocalShard {
  readonly shard_id: number;
  readonly points_count: number;
  readonly state: string;
}

/** What a node shows of its own replicas. */
async function localShards(node: LocalNode): Promise<readonly LocalShard[]> {
  return (await node.client.result<{ local_shards: LocalShard[] }>('GET', '/collections/c/cluster')).local_shards;
}

test('a node that lost the folder of a collection is filled, though no other node noticed that it was away', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const one = cluster.node(1);
  await one.client.result('PUT', '/collections/c', {
    vectors: { d: { size: 2, distance: 'Dot' } },
    sparse_vectors: { s: {} },
    shard_number: 2,
    replication_factor: 2,
  });
  const points = Array.from({ length: 100 }, (_, id) => ({ id, vector: { d: [id, 1], s: { indices: [id % 7], values: [1] } } }));
  await until(
    () => one.client.call('PUT', '/collections/c/points?wait=true', { points }),
    ({ status }) => status === 200,
  );
  await untilCalm(one, 'c', 2);
  const counts = new Map<number, number>();
  const owners: LocalNode[] = [];
  for (const node of cluster.nodes) {
    const own = await localShards(node);
    if (own.length > 0) owners.push(node);
    for (const { points_count, shard_id } of own) counts.set(shard_id, points_count);
  }
  const lost = owners.at(-1) as LocalNode;
  const others = cluster.nodes.filter((node) => node !== lost);
  // Nobody hears that it is away, so nobody has it agreed that its replicas are Dead.
  for (const node of others) node.pause();
  await lost.kill();
  await rm(join(lost.folder, 'storage', 'collections', 'c'), { recursive: true });
  cluster.launch(lost.number);
  await until(
    () => lost.client.call('GET', '/livez').catch(() => null),
    (answer) => answer?.status === 200,
  );
  for (const node of others) node.resume();
  await lost.client.call('POST', '/cluster/recover').catch(() => null);
  const shown = await until(
    async () => {
      const own = await localShards(lost).catch(() => []);
      for (const { points_count, shard_id, state } of own)
        if (state === 'Active') assert.equal(points_count, counts.get(shard_id), `shard ${shard_id} is shown as Active`);
      const body = { exact: true };
      const answer = await lost.client.call('POST', '/collections/c/points/count?consistency=all&timeout=1', body).catch(() => null);
      if (answer?.status === 200) assert.equal((JSON.parse(answer.text) as { result: { count: number } }).result.count, points.length);
      return own;
    },
    (own) => own.length > 0 && own.every(({ state }) => state === 'Active'),
    30_000,
  );
  assert.ok(shown.length > 0);
  await untilCalm(one, 'c', 2);
  for (const node of cluster.nodes) {
    const path = '/collections/c/points/count?consistency=all';
    assert.equal((await node.client.result<{ count: number }>('POST', path, { exact: true })).count, points.length);
  }
});

test('a shard whose last Active replica has lost its files says so, serves nothing, and goes on with another one when somebody asks', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const settings = { ...SETTINGS, shard_number: 1, replication_factor: 3 };
  const [one, two, three] = cluster.nodes as [LocalNode, LocalNode, LocalNode];
  await one.client.result('PUT', '/collections/c', settings);
  const points = Array.from({ length: 30 }, (_, id) => ({ id, vector: [id, 1] }));
  await until(
    () => one.client.call('PUT', '/collections/c/points?wait=true', { points }),
    ({ status }) => status === 200,
  );
  const lost = await cluster.peerIdOf(two);
  // The second goes last: nobody else is Active then.
  for (const node of [one, three, two]) await node.stop();
  await emptyReplica(two);
  for (const { number } of cluster.nodes) cluster.launch(number);
  await Promise.all(cluster.nodes.map(({ number }) => cluster.untilReady(number)));
  const count = () => one.client.call('POST', '/collections/c/points/count?timeout=2', { exact: true });
  const refused = await until(count, ({ status, text }) => status === 503 && text.includes('activate_replica'), 60_000);
  assert.match(refused.text, /on peer \d+: the replica is Dead: its files are gone, and no other replica of the shard is Active/);
  const written = await three.client.call('PUT', '/collections/c/points?wait=true&timeout=2', { points: [{ id: 100, vector: [1, 1] }] });
  assert.ok(written.status === 503 || written.status === 408, written.text);
  const body = (peer: number) => ({ activate_replica: { shard_id: 0, peer_id: peer, accept_data_loss: true } });
  const itself = await three.client.call('POST', '/collections/c/cluster', body(lost));
  assert.equal(itself.status, 400);
  assert.match(itself.text, /is the one that is lost: name one of peer/);
  await three.client.result('POST', '/collections/c/cluster', body(await cluster.peerIdOf(three)));
  await untilCalm(one, 'c', 3);
  for (const node of cluster.nodes)
    assert.equal(
      (await node.client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true })).count,
      points.length,
    );
});
