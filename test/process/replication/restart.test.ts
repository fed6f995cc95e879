/** What a node says right after it was started again, on real nodes. */

import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import { temporaryFolder, until } from '../support.js';
import { untilCalm } from './shards.js';

const SETTINGS = { vectors: { size: 2, distance: 'Dot' }, shard_number: 3, replication_factor: 2 };

test('a node that is back says nothing of collections and points before it knows what was agreed while it was away', async (t) => {
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
        if (result.collections !== undefined)
          assert.deepEqual(
            result.collections.map(({ name }) => name),
            ['new', 'old'],
          );
        assert.notEqual(result.exists, false);
      }
      return answers;
    },
    (count) => count >= 40,
    60_000,
  );
  t.diagnostic(JSON.stringify([...seen]));
});

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
  await Promise.all(cluster.nodes.map((node) => node.stop()));
  const node = cluster.node(2);
  // Its folder stays: nothing is missing that its node would look for.
  const folder = join(node.folder, 'storage', 'collections', 'c', '0');
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
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
  // Its own, which is what it asks first.
  const { local_shards } = await node.client.result<{ local_shards: { points_count: number; state: string }[] }>(
    'GET',
    '/collections/c/cluster',
  );
  assert.deepEqual(
    local_shards.map(({ points_count, state }) => [points_count, state]),
    [[points.length, 'Active']],
  );
});
