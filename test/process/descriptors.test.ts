/** Nodes that have no file descriptor left: the kernel refuses to open files for a while (`prlimit`). */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { noPrlimit } from '../machine.js';
import { leadsAny, shardsOf, untilCalm } from './replication/shards.js';
import { nodeFor, type Point, sortedById, temporaryFolder, until, untilIndexed } from './support.js';

const run = promisify(execFile);
const POINTS = 2000;
const DIM = 8;
/** Standard streams and what the event loop of the main thread is made of. */
const LASTING = 10;

const SETTINGS = { vectors: { size: DIM, distance: 'Dot' }, optimizers_config: { indexing_threshold: 10 } };

function redPoints(): Point[] {
  return Array.from({ length: POINTS }, (_, id) => ({
    id,
    vector: Array.from({ length: DIM }, (_, at) => ((id * 7 + at) % 13) - 6),
    payload: { color: 'red', text: 'x'.repeat(100) },
  }));
}

const paint = (color: string) => ({ payload: { color }, filter: { must: [{ has_id: [3] }] } });

/** Lets the process open no further file. Resolves with a function that lets it do so again. */
async function withoutDescriptors(pid: number): Promise<() => Promise<void>> {
  // Numbers below it belong to the process for as long as it lives; those above that are closed meanwhile give no room.
  const limit = lowestFree((await readdir(`/proc/${pid}/fd`)).map(Number).filter((descriptor) => descriptor < LASTING));
  const { stdout } = await run('prlimit', ['--pid', String(pid), '--nofile', '--raw', '--noheadings', '--output', 'HARD']);
  const hard = stdout.trim();
  await run('prlimit', ['--pid', String(pid), `--nofile=${limit}:${hard}`]);
  return async () => {
    await run('prlimit', ['--pid', String(pid), `--nofile=${hard}:${hard}`]);
  };
}

test('reads that meet a lack of file descriptors are answered 503 with when to retry, and an acknowledged change is carried out when there are some again', {
  skip: noPrlimit,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  await first.client.result('PUT', '/collections/c', SETTINGS);
  await first.client.result('PUT', '/collections/c/points?wait=true', { points: redPoints() });
  await untilIndexed(first.client, 'c', POINTS);
  await first.end('SIGTERM');

  // After a start no thread has opened the files of the sealed segment yet.
  const node = await nodeFor(t, { folder });
  // The connection is there before the lack begins.
  assert.equal((await node.client.call('POST', '/collections/none/points/payload?wait=true', { payload: {}, points: [1] })).status, 404);
  const restore = await withoutDescriptors(node.pid);
  const unread = await node.client.call('POST', '/collections/c/points/query', { query: Array(DIM).fill(1), with_vector: true });
  assert.equal(unread.status, 503, unread.text);
  assert.equal(unread.headers['retry-after'], '5');
  assert.match(unread.text, /ulimit -n/);
  assert.equal((await node.client.call('POST', '/collections/c/points/payload?wait=false', paint('blue'))).status, 200);
  // Of a request that names its points nothing is logged before it is applied, so it is refused, also without waiting.
  for (const wait of [true, false]) {
    const refused = await node.client.call('POST', `/collections/c/points/payload?wait=${wait}`, {
      payload: { color: 'green' },
      points: [4],
    });
    assert.ok(refused.status >= 500, `nothing was lacking: ${refused.status} ${refused.text}`);
  }
  await restore();
  const colors = async () => {
    const found = await node.client.result<Point[]>('POST', '/collections/c/points', { ids: [3, 4], with_payload: ['color'] });
    return sortedById(found).map(({ payload }) => payload?.color);
  };
  await until(colors, ([three]) => three === 'blue');
  assert.deepEqual(await colors(), ['blue', 'red']);
  await node.end('SIGKILL');

  const again = await nodeFor(t, { folder });
  const [three] = await again.client.result<Point[]>('POST', '/collections/c/points', { ids: [3], with_payload: ['color'] });
  assert.equal(three?.payload?.color, 'blue');
});

test('a node without file descriptors still tells how it is', { skip: noPrlimit }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  await node.client.result('PUT', '/collections/c', SETTINGS);
  const restore = await withoutDescriptors(node.pid);
  const telemetry = await node.client.result<Telemetry>('GET', '/telemetry?details_level=3');
  assert.deepEqual(
    telemetry.collections.collections.map(({ id }) => id),
    ['c'],
  );
  assert.ok(telemetry.memory.allocated_bytes > 0);
  assert.equal(telemetry.memory.resident_bytes, undefined, 'the system did not tell');
  const metrics = await node.client.call('GET', '/metrics');
  assert.equal(metrics.status, 200, metrics.text);
  assert.match(metrics.text, /^collections_total 1$/m);
  assert.match(metrics.text, /^memory_allocated_bytes \d+$/m);
  assert.doesNotMatch(metrics.text, /memory_resident_bytes/);
  await restore();
  const later = await node.client.result<Telemetry>('GET', '/telemetry?details_level=1');
  assert.ok((later.memory.resident_bytes ?? 0) > 0);
});

interface Telemetry {
  readonly collections: { readonly collections: readonly { readonly id: string }[] };
  readonly memory: { readonly allocated_bytes: number; readonly resident_bytes?: number };
}

/**
 * Two nodes with a copy each of points in sealed segments. The second one has just started, so it leads nothing and has opened no segment's
 * files.
 */
async function pairFor(t: TestContext): Promise<{ cluster: LocalCluster; leader: LocalNode; follower: LocalNode }> {
  const environment = { SERVICE__CLUSTER__DIGEST_PERIOD_SEC: '1' };
  const cluster = await LocalCluster.start({ nodes: 2, folder: await temporaryFolder(t), environment });
  t.after(() => cluster.close());
  const leader = cluster.node(1);
  await leader.client.result('PUT', '/collections/c?timeout=20', { ...SETTINGS, shard_number: 1, replication_factor: 2 });
  await until(
    () => leader.client.call('PUT', '/collections/c/points?wait=true', { points: redPoints() }),
    ({ status }) => status === 200,
  );
  for (const node of cluster.nodes) {
    await untilIndexed(node.client, 'c', POINTS);
    await node.stop();
    await cluster.start(node.number);
    await untilCalm(leader, 'c', 2);
  }
  return { cluster, leader: cluster.node(1), follower: cluster.node(2) };
}

/** A node that has answered one of these knows all that was agreed on before it was asked. By default it reads by what it knows (Route-W3). */
const SURE = ['?consistency=majority&timeout=1', '?consistency=all&timeout=1'];
const QUERIES = ['', ...SURE];
const LATE_MS = 4000;

/**
 * What the point's color is at each node, for each of the queries; null: the read failed. One request at a time: a node without descriptors
 * takes no further connection.
 */
async function colorsOf(nodes: readonly LocalNode[], queries = QUERIES): Promise<(string | null)[]> {
  const body = { ids: [3], with_payload: ['color'] };
  const colorOf = async ({ client }: LocalNode, query: string) => {
    const late = new Promise<null>((done) => setTimeout(() => done(null), LATE_MS).unref());
    const answer = await Promise.race([late, client.call('POST', `/collections/c/points${query}`, body).catch(() => null)]);
    if (answer?.status !== 200) return null;
    const [point] = (answer.body as { result: Point[] }).result;
    return String(point?.payload?.color);
  };
  const all = nodes.map(async (node) => {
    const colors: (string | null)[] = [];
    for (const query of queries) colors.push(await colorOf(node, query));
    return colors;
  });
  return (await Promise.all(all)).flat();
}

test('a follower that lacks descriptors is not Active while it lacks what was acknowledged, and no read of a node that knows it shows what was before', {
  skip: noPrlimit,
}, async (t) => {
  const { cluster, follower, leader } = await pairFor(t);
  const peer = await cluster.peerIdOf(follower);
  assert.deepEqual([...new Set(await colorsOf(cluster.nodes))], ['red']);
  const restore = await withoutDescriptors(follower.pid as number);
  const set = await leader.client.call('POST', '/collections/c/points/payload?wait=true&timeout=30', paint('blue'));
  assert.equal(set.status, 200, set.text);
  const states = (await shardsOf(leader, 'c')).replicas.get(0);
  assert.notEqual(states?.get(peer), 'Active', 'it lacks an acknowledged operation');
  const during: (string | null)[] = [];
  for (const node of cluster.nodes) {
    const sure = await colorsOf([node], SURE);
    const knows = node === leader || sure.some((color) => color !== null);
    during.push(...sure, ...(knows ? await colorsOf([node], ['']) : []));
  }
  assert.deepEqual(
    [...new Set(during)].filter((color) => color !== null),
    ['blue'],
  );
  await restore();
  await untilCalm(leader, 'c', 2);
  await until(
    () => colorsOf(cluster.nodes),
    (colors) => colors.every((color) => color !== null),
  ).then((colors) => assert.deepEqual([...new Set(colors)], ['blue']));
  // The other one's copy alone, too.
  await leader.kill();
  await until(
    () => colorsOf([follower]),
    ([color]) => color === 'blue',
  );
});

interface Digests {
  readonly app: { readonly transfers: { readonly digests: { readonly repaired: number } } };
}

test('a leader that lacks descriptors takes nothing from its follower that it has not applied itself', { skip: noPrlimit }, async (t) => {
  const { cluster, follower, leader } = await pairFor(t);
  const [one, two] = (await leadsAny(leader)) ? [leader, follower] : [follower, leader];
  assert.deepEqual([...new Set(await colorsOf(cluster.nodes))], ['red']);
  const digests = async () => (await one.client.result<Digests>('GET', '/telemetry?details_level=2')).app.transfers.digests;
  const restore = await withoutDescriptors(one.pid as number);
  const set = await one.client.call('POST', '/collections/c/points/payload?wait=false', paint('blue'));
  assert.equal(set.status, 200, set.text);
  // Both what is logged and digests are tried again and again: it tells nobody what it has before it has applied what it has logged.
  await until(
    async () => one.log().split('is applied one by one').length - 1,
    (failures) => failures >= 6,
  );
  await restore();
  await until(
    () => colorsOf(cluster.nodes),
    (colors) => colors.every((color) => color === 'blue'),
  );
  assert.equal((await digests()).repaired, 0);
  await one.kill();
  await until(
    () => colorsOf([two]),
    ([color]) => color === 'blue',
  );
});

/** The number that the next opened file would get. */
function lowestFree(open: readonly number[]): number {
  const taken = new Set(open);
  let free = 0;
  while (taken.has(free)) free++;
  return free;
}
