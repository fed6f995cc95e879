/** Restores to a point in time: a snapshot, and the operations of the collection's log up to then. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { RestClient } from '../../../ops/rest-client.js';
import { untilCalm } from '../replication/shards.js';
import { nodeFor, temporaryFolder } from '../support.js';
import { contentOf, download, type ShownSnapshot, upload } from './support.js';

const POINTS = 300;

interface Answer {
  readonly until: string;
  readonly dry_run: boolean;
  readonly shards: readonly {
    readonly shard_id: number;
    readonly snapshot: { readonly operation: number; readonly time: string };
    readonly restored: { readonly operation: number; readonly time: string };
    readonly operations: number;
    readonly left_out_from: string | null;
  }[];
}

async function made(client: RestClient, name: string, copies = 1): Promise<void> {
  await client.result('PUT', `/collections/${name}`, {
    vectors: { size: 4, distance: 'Dot' },
    shard_number: 2,
    replication_factor: copies,
  });
  await client.result('PUT', `/collections/${name}/points?wait=true`, { points: points(0, POINTS) });
}

const points = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: from + at, vector: [from + at, 1, 2, 3], payload: { n: from + at } }));

/** Writes of each kind. */
async function goOn(client: RestClient, name: string, from: number): Promise<void> {
  const path = `/collections/${name}/points`;
  await client.result('PUT', `${path}?wait=true`, { points: points(from, 50) });
  // More than a record of LMDB takes: it lies in a file of the log.
  const large = { id: from + 60, vector: [1, 1, 1, 1], payload: { text: 'x'.repeat(40_000) } };
  await client.result('PUT', `${path}?wait=false`, { points: [large] });
  await client.result('POST', `${path}/payload?wait=true`, {
    payload: { seen: from },
    filter: { must: [{ key: 'n', range: { lt: 40 } }] },
  });
  await client.result('POST', `${path}/delete?wait=true`, { points: [from + 3, 7] });
  await client.result('PUT', `${path}/vectors?wait=true`, { points: [{ id: 1, vector: [from, 0, 0, 1] }] });
}

/** A time after all that was acknowledged, and before all that comes: clocks tell milliseconds. */
async function now(): Promise<string> {
  const time = Date.now() + 1;
  while (Date.now() <= time + 1) await new Promise((done) => setTimeout(done, 1));
  return new Date(time).toISOString();
}

interface Asked {
  readonly client: RestClient;
  readonly url: string;
}

async function recovered({ client, url }: Asked, name: string, snapshot: ShownSnapshot, body: object): Promise<Answer> {
  const location = `${url}/collections/${name}/snapshots/${snapshot.name}`;
  return client.result<Answer>('PUT', `/collections/${name}/snapshots/recover`, { location, ...body });
}

async function refused(node: Asked, name: string, snapshot: ShownSnapshot, until: string, why: RegExp): Promise<void> {
  const before = await contentOf(node.client, name);
  await assert.rejects(recovered(node, name, snapshot, { until }), why);
  assert.deepEqual(await contentOf(node.client, name), before);
}

const single = async (t: TestContext, folder: string, keeps = true) =>
  nodeFor(t, { folder, environment: { SERVICE__STORAGE__POINT_IN_TIME_RESTORE: String(keeps) } });

test('a mistake is undone: a snapshot and the log bring the collection to the moment before it, on a node of its own', async (t) => {
  const folder = await temporaryFolder(t);
  const node = await single(t, folder);
  const { client } = node;
  await made(client, 'c');
  const snapshot = await client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
  await goOn(client, 'c', 1000);
  const early = { time: await now(), content: await contentOf(client, 'c') };
  await goOn(client, 'c', 2000);
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'n', field_schema: 'integer' });
  const good = { time: await now(), content: await contentOf(client, 'c') };
  await client.result('POST', '/collections/c/points/delete?wait=true', { filter: { must: [{ key: 'n', range: { gte: 0 } }] } });
  const late = await client.result<ShownSnapshot>('POST', '/collections/c/snapshots');

  const dry = await recovered(node, 'c', snapshot, { until: good.time, dry_run: true });
  assert.equal(dry.dry_run, true);
  assert.deepEqual(dry.shards.map(({ shard_id }) => shard_id).sort(), [0, 1]);
  for (const { left_out_from, operations, restored, snapshot: at } of dry.shards) {
    assert.ok(at.time < restored.time && restored.time <= good.time && (left_out_from ?? '') > good.time, JSON.stringify(dry));
    assert.equal(restored.operation - at.operation, operations);
  }
  assert.equal((await contentOf(client, 'c')).length, 2, 'a dry run has changed something');

  const done = await recovered(node, 'c', snapshot, { until: good.time });
  assert.deepEqual(done.shards, dry.shards);
  assert.deepEqual(await contentOf(client, 'c'), good.content);
  const counted = await client.result<{ payload_schema: object }>('GET', '/collections/c');
  assert.deepEqual(Object.keys(counted.payload_schema), ['n']);
  await node.end('SIGKILL');
  const again = await single(t, folder);
  assert.deepEqual(await contentOf(again.client, 'c'), good.content);

  // The log goes on from there: other writes follow, and earlier moments are still within reach.
  await goOn(again.client, 'c', 3000);
  const after = { time: await now(), content: await contentOf(again.client, 'c') };
  await refused(again, 'c', late, after.time, /not one of what shard \d has now/);
  await recovered(again, 'c', snapshot, { until: early.time });
  assert.deepEqual(await contentOf(again.client, 'c'), early.content);
});

test('what the log cannot bring back is refused with the figures, and nothing changes', async (t) => {
  const node = await single(t, await temporaryFolder(t));
  const { client, url } = node;
  const before = await now();
  await made(client, 'a');
  await made(client, 'b');
  const snapshot = await client.result<ShownSnapshot>('POST', '/collections/a/snapshots');
  const other = await client.result<ShownSnapshot>('POST', '/collections/b/snapshots');
  const time = await now();
  await refused(node, 'a', snapshot, new Date(Date.now() + 60_000).toISOString(), /`until` is 20.* and it is 20.* now/);
  await refused(node, 'a', snapshot, before, /the snapshot has operations of shard \d up to 20.*: take an older snapshot/);
  const archive = await download(url, `/collections/b/snapshots/${other.name}`);
  const foreign = await upload(url, `/collections/a/snapshots/upload?until=${time}`, archive);
  assert.equal(foreign.status, 400);
  assert.match(foreign.text, /operation \d+ of the log is of 20.*, and that of the snapshot of 20/);
  const unknown = await upload(url, `/collections/new/snapshots/upload?until=${time}`, archive);
  assert.match(unknown.text, /collection new does not exist, and `until` needs its log/);
  for (const [body, why] of [
    [{ until: 'soon' }, /does not match accepted datetime format/],
    [{ until: time, priority: 'replica' }, /`until` goes with priority `snapshot`/],
    [{ dry_run: true }, /`dry_run` goes with `until`/],
  ] as const)
    await assert.rejects(recovered(node, 'a', snapshot, body), why);
});

test('a node that keeps no log for it says so', async (t) => {
  const node = await single(t, await temporaryFolder(t), false);
  const { client } = node;
  await made(client, 'c');
  const snapshot = await client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
  await goOn(client, 'c', 1000);
  await refused(node, 'c', snapshot, await now(), /does not reach back to the snapshot.*`storage.point_in_time_restore`|does not say when/);
});

test('in a cluster the leader of each shard takes its log back, whichever node is asked, and the other copies follow', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const { client } = cluster.node(1);
  await made(client, 'c', 3);
  const maker = cluster.node(2);
  const snapshot = await maker.client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
  await goOn(client, 'c', 1000);
  const good = { time: await now(), content: await contentOf(client, 'c') };
  await client.result('POST', '/collections/c/points/delete?wait=true', { filter: { must: [{ key: 'n', range: { gte: 5 } }] } });
  await goOn(client, 'c', 2000);
  const body = { location: `${maker.url}/collections/c/snapshots/${snapshot.name}`, until: good.time };
  const done = await cluster.node(3).client.result<Answer>('PUT', '/collections/c/snapshots/recover', body);
  assert.equal(done.shards.length, 2);
  await untilCalm(cluster.node(1), 'c', 3);
  for (const node of cluster.nodes) assert.deepEqual(await contentOf(node.client, 'c'), good.content);
  await goOn(client, 'c', 3000);
  const after = await contentOf(client, 'c');
  for (const node of cluster.nodes) assert.deepEqual(await contentOf(node.client, 'c'), after);
});
