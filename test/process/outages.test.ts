/** What goes on while a node is away. Source: specification, limits, «Temporary node outage». */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { temporaryFolder, until } from './support.js';

const POINTS = 60;
const SETTINGS = { vectors: { size: 2, distance: 'Dot' } };

async function clusterFor(t: TestContext, nodes: number): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ nodes, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  return cluster;
}

function upload({ client }: LocalNode, from: number, count = POINTS, timeout = 20) {
  const points = Array.from({ length: count }, (_, at) => ({ id: from + at, vector: [at, 1] }));
  return client.call('PUT', `/collections/c/points?wait=true&timeout=${timeout}`, { points });
}

async function countOf({ client }: LocalNode, parameters = ''): Promise<number> {
  return (await client.result<{ count: number }>('POST', `/collections/c/points/count${parameters}`, {})).count;
}

test('one node: nothing is answered while it is away, and everything is there when it is back', async (t) => {
  const cluster = await clusterFor(t, 1);
  const only = cluster.node(1);
  await only.client.result('PUT', '/collections/c', { ...SETTINGS, shard_number: 3 });
  assert.equal((await upload(only, 0)).status, 200);
  await only.kill();
  await assert.rejects(countOf(only));
  await cluster.start(1);
  await until(
    () => only.client.call('POST', '/collections/c/points/count', {}),
    ({ text }) => text.includes(`"count":${POINTS}`),
  );
  await until(
    () => upload(only, POINTS),
    ({ status }) => status === 200,
  );
});

test('two nodes without copies: what concerns all shards fails while one is away, and nothing is lost', async (t) => {
  const cluster = await clusterFor(t, 2);
  const one = cluster.node(1);
  await one.client.result('PUT', '/collections/c?timeout=20', { ...SETTINGS, shard_number: 4, replication_factor: 1 });
  assert.equal((await upload(one, 0)).status, 200);
  await cluster.node(2).kill();
  const started = performance.now();
  const read = await one.client.call('POST', '/collections/c/points/count?timeout=5', {});
  const written = await upload(one, POINTS, POINTS, 5);
  for (const { status, text } of [read, written]) assert.ok(status === 503 || status === 408, text);
  assert.ok(performance.now() - started < 15_000);
  await cluster.start(2);
  await until(
    () => upload(one, POINTS),
    ({ status }) => status === 200,
  );
  assert.equal(await countOf(one), 2 * POINTS);
});

test('two nodes with all shards on both: everything goes on at the one that is left, whichever one is killed', async (t) => {
  const cluster = await clusterFor(t, 2);
  await cluster.node(1).client.result('PUT', '/collections/c?timeout=20', { ...SETTINGS, shard_number: 4, replication_factor: 2 });
  assert.equal((await upload(cluster.node(1), 0)).status, 200);
  let points = POINTS;
  for (const away of [1, 2]) {
    const left = cluster.node(3 - away);
    await untilSurvivable(left);
    await cluster.node(away).kill();
    assert.equal(await countOf(left), points);
    assert.equal((await left.client.call('POST', '/collections/c/points/query', { query: [1, 0], limit: 3 })).status, 200);
    // Whoever was away may have been asked already: then the client asks again.
    await until(
      () => upload(left, points),
      ({ status }) => status === 200,
    );
    points += POINTS;
    for (const consistency of ['majority', 'quorum', 'all'])
      assert.equal(await countOf(left, `?consistency=${consistency}&timeout=20`), points);
    const named = await left.client.call('PUT', `/collections/other-${away}?timeout=20`, SETTINGS);
    assert.equal(named.status, 200, named.text);
    await cluster.start(away);
    // Until its replicas have what they missed, and lead again: so that the other one may go.
    await until(
      () => left.client.result<{ status: string }>('GET', '/collections/c'),
      ({ status }) => status === 'green',
      60_000,
    );
    assert.equal(await countOf(cluster.node(away), '?consistency=all&timeout=20'), points);
  }
});

test('two nodes with all shards on both: where the other one is silent, and may live, nothing is agreed on without it, and what is led here is written', async (t) => {
  const cluster = await clusterFor(t, 2);
  const one = cluster.node(1);
  await one.client.result('PUT', '/collections/c?timeout=20', { ...SETTINGS, shard_number: 2, replication_factor: 2 });
  assert.equal((await upload(one, 0)).status, 200);
  cluster.node(2).pause();
  // Until it counts as silent.
  assert.equal((await upload(one, 0, POINTS, 20)).status, 503);
  assert.equal(await countOf(one), POINTS);
  const search = await one.client.call('POST', '/collections/c/points/query', { query: [1, 0], limit: 3 });
  assert.equal(search.status, 200, search.text);
  // Nobody can agree on another leader: what this node leads is written, and kept; the other shard is not.
  const ids = Array.from({ length: 24 }, (_, at) => POINTS + at);
  const answers = await Promise.all(ids.map(async (id) => ({ id, ...(await upload(one, id, 1, 5)) })));
  const written = answers.filter(({ status }) => status === 200).map(({ id }) => id);
  const refused = answers.filter(({ status }) => status !== 200);
  assert.ok(written.length > 0 && refused.length > 0, `${written.length} written, ${refused.length} refused`);
  for (const { status, text } of refused) assert.ok(status === 503 || status === 408, text);
  assert.match(refused.at(-1)?.text ?? '', /leads it and cannot be reached, and a cluster of two nodes has no majority without it/);
  const created = await one.client.call('PUT', '/collections/other?timeout=3', SETTINGS);
  assert.ok(created.status === 503 || created.status === 408, created.text);
  assert.deepEqual((await aheadOf(one)).sort(), [false, true], 'what it leads is ahead of the other copy, and stays its to lead');
  cluster.node(2).resume();
  const found = await until(
    () => cluster.node(2).client.call('POST', '/collections/c/points?consistency=all&timeout=20', { ids: written }),
    ({ status }) => status === 200,
  );
  assert.equal((found.body as { result: unknown[] }).result.length, written.length);
  await until(
    () => upload(one, POINTS),
    ({ status }) => status === 200,
  );
  for (const number of [1, 2]) {
    assert.equal(await countOf(cluster.node(number), '?consistency=majority&timeout=20'), 2 * POINTS);
  }
  await until(
    () => aheadOf(one),
    (ahead) => !ahead.includes(true),
  );
});

/** Until it would go on alone if the other one ended. */
async function untilSurvivable({ client }: LocalNode): Promise<void> {
  await until(
    () => client.result<{ cluster: { raft: { pledged_by: number | null } } }>('GET', '/telemetry?details_level=3'),
    ({ cluster }) => cluster.raft.pledged_by !== null,
  );
}

/** Of the replicas of a node. */
async function aheadOf(node: LocalNode): Promise<boolean[]> {
  interface Report {
    readonly collections: { readonly collections: readonly { readonly replication: readonly { readonly may_be_ahead: boolean }[] }[] };
  }
  const { collections } = await node.client.result<Report>('GET', '/telemetry?details_level=3');
  return collections.collections.flatMap(({ replication }) => replication.map(({ may_be_ahead }) => may_be_ahead));
}

test('three nodes with two copies of each shard: everything goes on, whichever one is away', async (t) => {
  const cluster = await clusterFor(t, 3);
  await cluster.node(1).client.result('PUT', '/collections/c?timeout=20', { ...SETTINGS, shard_number: 6, replication_factor: 2 });
  let points = 0;
  for (const away of [1, 2, 3]) {
    await cluster.node(away).kill();
    const others = cluster.nodes.filter(({ number }) => number !== away);
    for (const node of others) {
      // Whoever was away may have been asked already: then the client asks again.
      const from = points;
      await until(
        () => upload(node, from),
        ({ status }) => status === 200,
      );
      points += POINTS;
    }
    for (const node of others) {
      assert.equal(await countOf(node), points);
      assert.equal(await countOf(node, '?consistency=majority&timeout=20'), points);
    }
    const named = await others[0]?.client.call('PUT', `/collections/other-${away}?timeout=20`, SETTINGS);
    assert.equal(named?.status, 200, named?.text);
    await cluster.start(away);
    // Until its replicas have what they missed.
    await until(
      () => others[0]?.client.result<{ status: string }>('GET', '/collections/c') ?? Promise.reject(new Error('nobody is there')),
      ({ status }) => status === 'green',
      60_000,
    );
  }
  for (const node of cluster.nodes) assert.equal(await countOf(node, '?consistency=all&timeout=20'), points);
  // Each of a shard's replicas tells how far its log goes, not its leader's alone.
  await until(
    async () => (await Promise.all(cluster.nodes.map(positionsOf))).flat().sort(),
    (told) => told.length === 12 && told.every((position, at) => position === told[at - (at % 2)]),
  );
});

/** `shard:position` of each of the node's replicas. */
async function positionsOf({ client }: LocalNode): Promise<string[]> {
  interface Told {
    readonly collections: { readonly collections: readonly { readonly id: string; readonly replication: readonly Replication[] }[] };
  }
  interface Replication {
    readonly shard_id: number;
    readonly position: number | null;
  }
  const { collections } = await client.result<Told>('GET', '/telemetry?details_level=3');
  const { replication } = collections.collections.find(({ id }) => id === 'c') ?? { replication: [] };
  return replication.flatMap(({ position, shard_id }) => (position === null ? [] : [`${shard_id}:${position}`]));
}
