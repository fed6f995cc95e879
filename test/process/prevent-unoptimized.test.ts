/** What reads see with `prevent_unoptimized` and `indexed_only`, and how writes wait, over both doors of one node. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import { GrpcClient } from '../http/grpc/client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder, until } from './support.js';

const DIM = 64;
/** Rows of 256 bytes that reach the threshold of 10 kB. */
const THRESHOLD_ROWS = 40;
const INDEXED = 200;
const ALL = 300;

interface Info {
  readonly status: string;
  readonly points_count: number;
  readonly indexed_vectors_count: number;
  readonly update_queue: { readonly length: number; readonly deferred_points?: number };
}

const random = seededRandom(11);
const vector = (): number[] => Array.from({ length: DIM }, () => random.unit());
const pointsOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({ id: from + at, vector: vector(), payload: { g: (from + at) % 2 } }));

function infoOf({ client }: NodeUnderTest, name: string): Promise<Info> {
  return client.result<Info>('GET', `/collections/${name}`);
}

function untilInfo(node: NodeUnderTest, name: string, wanted: (info: Info) => boolean): Promise<Info> {
  return until(() => infoOf(node, name), wanted);
}

async function create({ client }: NodeUnderTest, name: string, prevents: boolean): Promise<void> {
  const optimizers = { indexing_threshold: 10, prevent_unoptimized: prevents };
  await client.result('PUT', `/collections/${name}`, { vectors: { size: DIM, distance: 'Dot' }, optimizers_config: optimizers });
  await client.result('PUT', `/collections/${name}/index?wait=true`, { field_name: 'g', field_schema: 'integer' });
}

/** 200 points that are indexed, and 100 that wait for optimizers to be on. */
async function fill(node: NodeUnderTest, name: string): Promise<void> {
  const { client } = node;
  await client.result('PUT', `/collections/${name}/points?wait=true`, { points: pointsOf(0, INDEXED) });
  await untilInfo(node, name, (info) => info.status === 'green' && info.indexed_vectors_count === INDEXED);
  await client.result('PATCH', `/collections/${name}`, { optimizers_config: { max_optimization_threads: 0 } });
  await client.result('PUT', `/collections/${name}/points?wait=false`, { points: pointsOf(INDEXED, ALL) });
  await untilInfo(node, name, ({ points_count, update_queue }) => points_count + (update_queue.deferred_points ?? 0) === ALL);
}

type Ids = readonly { readonly id: unknown }[];
const countOf = (found: unknown): number => new Set((found as Ids).map(({ id }) => JSON.stringify(id))).size;

/** Numbers of points that the searches of both doors find. */
async function searched({ client }: NodeUnderTest, grpc: GrpcClient, name: string, indexedOnly: boolean): Promise<Record<string, number>> {
  const params = { indexed_only: indexedOnly };
  const at = `/collections/${name}/points`;
  const query = vector();
  const found = (path: string, body: object) => client.result<Ids>('POST', `${at}${path}`, { limit: 1000, ...body });
  const queried = async (body: object) =>
    countOf((await client.result<{ points: Ids }>('POST', `${at}/query`, { limit: 1000, ...body })).points);
  const grpcParams = { indexed_only: indexedOnly };
  const nearest = { nearest: { dense: { data: query } } };
  const called = async (method: string, message: object): Promise<number> =>
    countOf((await grpc.call(`Points/${method}`, { collection_name: name, limit: 1000, ...message })).result);
  return {
    search: countOf(await found('/search', { vector: query, params })),
    exact: countOf(await found('/search', { vector: query, params: { ...params, exact: true } })),
    query: await queried({ query, params }),
    filtered: 2 * (await queried({ query, params, filter: { must: [{ key: 'g', match: { value: 0 } }] } })),
    prefetched: await queried({ prefetch: { query, limit: 1000, params }, query: { fusion: 'rrf' } }),
    recommended: (await queried({ query: { recommend: { positive: [1], negative: [3] } }, params })) + 2,
    scored: (await queried({ query: { recommend: { positive: [1], negative: [3], strategy: 'best_score' } }, params })) + 2,
    'gRPC Search': await called('Search', { vector: query, params: grpcParams }),
    'gRPC Query': await called('Query', { query: nearest, params: grpcParams }),
    'gRPC Query, exact': await called('Query', { query: nearest, params: { ...grpcParams, exact: true } }),
  };
}

/** Numbers of points that other reads of both doors see. */
async function read({ client }: NodeUnderTest, grpc: GrpcClient, name: string): Promise<Record<string, number>> {
  const at = `/collections/${name}/points`;
  const ids = Array.from({ length: ALL }, (_, id) => id);
  const counted = async (exact: boolean) => (await client.result<{ count: number }>('POST', `${at}/count`, { exact })).count;
  const facets = await client.result<{ hits: { count: number }[] }>('POST', `/collections/${name}/facet`, { key: 'g', exact: true });
  const grpcIds = ids.map((num) => ({ num }));
  const grpcCount = await grpc.call('Points/Count', { collection_name: name, exact: true });
  return {
    scroll: countOf((await client.result<{ points: Ids }>('POST', `${at}/scroll`, { limit: 1000 })).points),
    count: await counted(false),
    'exact count': await counted(true),
    retrieve: countOf(await client.result<Ids>('POST', at, { ids })),
    facet: facets.hits.reduce((sum, { count }) => sum + count, 0),
    'gRPC Scroll': countOf((await grpc.call('Points/Scroll', { collection_name: name, limit: 1000 })).result),
    'gRPC Get': countOf((await grpc.call('Points/Get', { collection_name: name, ids: grpcIds })).result),
    'gRPC Count': Number((grpcCount.result as { count: string }).count),
  };
}

function assertAll(numbers: Record<string, number>, wanted: number, what: string): void {
  assert.deepEqual(numbers, Object.fromEntries(Object.keys(numbers).map((read) => [read, wanted])), what);
}

test('prevent_unoptimized and indexed_only', { timeout: 120_000 }, async (t) => {
  const folder = await temporaryFolder(t);
  let node = await nodeFor(t, { folder });
  let grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  const names = { plain: false, prevents: true };
  for (const [name, prevents] of Object.entries(names)) await create(node, name, prevents);
  await Promise.all(Object.keys(names).map((name) => fill(node, name)));

  /** name, `indexed_only`, and how many points reads see. Source: service specification, «`prevent_unoptimized` versus `indexed_only`». */
  const cells: [keyof typeof names, boolean, number][] = [
    ['plain', false, ALL],
    ['plain', true, INDEXED],
    ['prevents', false, INDEXED + THRESHOLD_ROWS],
    ['prevents', true, INDEXED],
  ];
  const look = async (): Promise<void> => {
    for (const [name, indexedOnly, wanted] of cells)
      assertAll(await searched(node, grpc, name, indexedOnly), wanted, `${name}, indexed_only ${indexedOnly}`);
    assertAll(await read(node, grpc, 'plain'), ALL, 'plain');
    assertAll(await read(node, grpc, 'prevents'), INDEXED + THRESHOLD_ROWS, 'prevents');
  };

  await t.test('reads see what the table of the specification says, whichever read it is', look);

  await t.test(
    'deferred points are counted in the collection, in telemetry and in metrics, of a collection that defers none only there',
    async () => {
      const deferred = ALL - INDEXED - THRESHOLD_ROWS;
      const grey = await infoOf(node, 'prevents');
      assert.deepEqual([grey.status, grey.update_queue], ['grey', { length: 0, deferred_points: deferred }]);
      assert.deepEqual((await infoOf(node, 'plain')).update_queue, { length: 0 });
      const info = (await grpc.call('Collections/Get', { collection_name: 'prevents' })).result as { update_queue: object };
      assert.deepEqual(info.update_queue, { deferred_points: String(deferred) });
      const telemetry = await node.client.result<{ collections: { collections: { id: string; update_queue?: object }[] } }>(
        'GET',
        '/telemetry?details_level=3',
      );
      const told = telemetry.collections.collections.find(({ id }) => id === 'prevents');
      assert.deepEqual(told?.update_queue, { length: 0, deferred_points: deferred });
      const { text } = await node.client.call('GET', '/metrics');
      assert.match(text, new RegExp(`^collection_deferred_points\\{id="prevents"\\} ${deferred}$`, 'm'));
      assert.doesNotMatch(text, /^collection_deferred_points\{id="plain"\}/m);
    },
  );

  await t.test(
    'a write that waits is told when its time is up, and those behind it too; one that does not wait is taken at once',
    async () => {
      const { client } = node;
      const put = (id: number, how: string) =>
        client.result<{ status: string }>('PUT', `/collections/prevents/points?${how}`, { points: pointsOf(id, id + 1) });
      const begun = performance.now();
      const first = put(1000, 'wait=true&timeout=1');
      const removed = client.result<{ status: string }>('POST', '/collections/prevents/points/delete?wait=true&timeout=1', {
        points: [9999],
      });
      assert.equal((await put(1001, 'wait=false')).status, 'acknowledged');
      assert.deepEqual([(await first).status, (await removed).status], ['wait_timeout', 'wait_timeout']);
      assert.ok(performance.now() - begun >= 900);
      const point = { id: { num: 1002 }, vectors: { vector: { data: vector() } } };
      const answer = await grpc.call('Points/Upsert', { collection_name: 'prevents', wait: true, timeout: 1, points: [point] });
      assert.equal((answer.result as { status: string }).status, 'WaitTimeout');
      assert.deepEqual(await client.result('POST', '/collections/prevents/points', { ids: [1000, 1001, 1002] }), []);
      for (const id of [1000, 1001, 1002]) await client.result('POST', '/collections/prevents/points/delete?wait=false', { points: [id] });
      await untilInfo(node, 'prevents', ({ update_queue: { deferred_points: count } }) => count === ALL - INDEXED - THRESHOLD_ROWS);
    },
  );

  await t.test('a start shows no more than was shown before', async () => {
    grpc.close();
    await node.end('SIGKILL');
    node = await nodeFor(t, { folder });
    grpc = new GrpcClient(node.grpcPort);
    await look();
  });

  await t.test('with optimizers on again every read sees every point, and who waits is answered then', async () => {
    const waits = node.client.result<{ status: string }>('PUT', '/collections/prevents/points?wait=true&timeout=60', {
      points: [{ id: 0, vector: vector(), payload: { g: 0 } }],
    });
    for (const name of Object.keys(names))
      await node.client.result('PATCH', `/collections/${name}`, { optimizers_config: { max_optimization_threads: 'auto' } });
    assert.equal((await waits).status, 'completed');
    assertAll(await searched(node, grpc, 'prevents', false), ALL, 'as soon as it is answered');
    await untilInfo(node, 'plain', (info) => info.indexed_vectors_count === ALL);
    for (const [name, indexedOnly] of cells) assertAll(await searched(node, grpc, name, indexedOnly), ALL, name);
    assert.equal((await infoOf(node, 'prevents')).update_queue.deferred_points, 0);
  });
});
