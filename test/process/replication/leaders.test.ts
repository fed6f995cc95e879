/** Leads of shards that change on purpose, under writes of real clients: no write fails, and none is lost. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { temporaryFolder, until } from '../support.js';
import { allPoints, peerIds, untilCalm, Writer } from './shards.js';

const VECTORS = { vectors: { size: 4, distance: 'Dot' } };

interface Telemetry {
  readonly collections: {
    readonly collections: readonly { readonly replication: readonly { readonly shard_id: number; readonly role: string }[] }[];
  };
  readonly app: {
    readonly transfers: { readonly digests: { readonly comparisons: number }; readonly hand_overs: { readonly done: number } };
    readonly peer_calls: { readonly made: { readonly responses: Record<string, Record<string, { readonly count: number }>> } };
  };
}

const telemetryOf = ({ client }: LocalNode) => client.result<Telemetry>('GET', '/telemetry?details_level=2');

/** Shards that each node leads, of its one collection. */
async function ledBy(cluster: LocalCluster): Promise<number[][]> {
  const running = cluster.nodes.filter(({ state }) => state === 'running');
  const shown = await Promise.all(running.map(telemetryOf));
  return shown.map(({ collections: { collections } }) =>
    collections.flatMap(({ replication }) => replication.filter(({ role }) => role === 'Leading').map(({ shard_id }) => shard_id)),
  );
}

function untilAllLed(cluster: LocalCluster): Promise<number[][]> {
  return until(
    () => ledBy(cluster),
    (led) => led.flat().length === 6,
  );
}

test('a node that was away leads its share of the shards again once all is well, and no write fails for it', async (t) => {
  const environment = { SERVICE__CLUSTER__LEADER_SPREAD_SEC: '1', SERVICE__CLUSTER__DIGEST_PERIOD_SEC: '1' };
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t), environment });
  t.after(() => cluster.close());
  const one = cluster.node(1);
  await one.client.result('PUT', '/collections/c', { ...VECTORS, shard_number: 6, replication_factor: 2 });
  await untilCalm(one, 'c', 2);
  // A node that goes answers nobody; the others answer on.
  const writer = new Writer(cluster, 'c', 300, 4, [1, 2]);
  await cluster.node(3).stop();
  await untilAllLed(cluster);
  await cluster.start(3);
  await untilCalm(one, 'c', 2);
  // Of the stop, which has a test of its own.
  const before = { failures: writer.failures, refusals: [...writer.refusals] };
  const led = await until(
    () => ledBy(cluster),
    (shards) => shards.every(({ length }) => length === 2),
  );
  assert.deepEqual(led.flat().sort(), [0, 1, 2, 3, 4, 5]);
  const requests = writer.requests;
  await until(
    async () => writer.requests,
    (now) => now > requests + 40,
  );
  await writer.stop();
  assert.equal(writer.failures, before.failures, JSON.stringify([before.refusals, ...writer.refusals]));
  writer.check(await allPoints(one, 'c', 'all'));
  const shown = await Promise.all(cluster.nodes.map(telemetryOf));
  const handOvers = shown.reduce((sum, { app: { transfers } }) => sum + transfers.hand_overs.done, 0);
  t.diagnostic(`${writer.requests} writes, ${handOvers} hand-overs`);
  assert.ok(handOvers >= 2);
  for (const {
    app: { peer_calls },
  } of shown)
    assert.ok((peer_calls.made.responses.append?.ok?.count ?? 0) > 0);
  await until(
    async () => (await Promise.all(cluster.nodes.map(telemetryOf))).every(({ app: { transfers } }) => transfers.digests.comparisons > 0),
    (compared) => compared,
  );
});

test('a leader whose replica is dropped hands over first: no write fails', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const one = cluster.node(1);
  const peers = await peerIds(cluster);
  await one.client.result('PUT', '/collections/c', { ...VECTORS, shard_number: 6, replication_factor: 3 });
  await untilCalm(one, 'c', 3);
  const writer = new Writer(cluster, 'c', 300, 4);
  for (let shard = 0; shard < 6; shard++) {
    const led = await untilAllLed(cluster);
    const leader = led.findIndex((shards) => shards.includes(shard));
    // Asked of another node, and of its own.
    const asked = cluster.node(1 + ((leader + shard) % 3));
    await asked.client.result('POST', '/collections/c/cluster', { drop_replica: { shard_id: shard, peer_id: peers[leader] } });
  }
  await untilCalm(one, 'c', 2);
  await writer.stop();
  assert.deepEqual([...writer.refusals], []);
  t.diagnostic(`${writer.requests} writes`);
  writer.check(await allPoints(one, 'c', 'all'));
});
