/** What answers say they cost, with `service.hardware_reporting` and without, through both doors. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { noUsage } from '../../protocols/model/usage.js';
import { GrpcClient } from '../http/grpc/client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder, until, untilIndexed } from './support.js';

const MEASURED = { SERVICE__SERVICE__HARDWARE_REPORTING: 'true' };

const POINTS = [
  { id: 1, vector: [1, 2, 3, 4], payload: { a: 1 } },
  { id: 2, vector: [2, 2, 3, 4] },
];

async function collectionOf(t: TestContext, environment: Record<string, string>): Promise<NodeUnderTest> {
  const node = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 4, distance: 'Dot' } });
  return node;
}

/** The usage of an answer; undefined when it has none. */
async function usageOf(node: NodeUnderTest, method: string, path: string, body?: unknown): Promise<HardwareUsage | undefined> {
  const answer = await node.client.call(method, path, body);
  const { usage } = answer.body as { usage?: { hardware: HardwareUsage; inference: null } };
  if (usage !== undefined) assert.deepEqual(usage, { hardware: usage.hardware, inference: null });
  return usage?.hardware;
}

const of = (usage: Partial<HardwareUsage>): HardwareUsage => ({ ...noUsage(), ...usage });

test('an answer says how many bytes of vectors were compared, and of payloads and vectors read and written', async (t) => {
  const node = await collectionOf(t, MEASURED);
  const ask = (method: string, path: string, body?: unknown) => usageOf(node, method, `/collections/c${path}`, body);
  assert.deepEqual(await ask('PUT', '/points?wait=true', { points: POINTS }), of({ vector_io_write: 32, payload_io_write: 7 }));
  assert.deepEqual(await ask('POST', '/points/search', { vector: [1, 2, 3, 4], limit: 3 }), of({ cpu: 32 }));
  assert.deepEqual(await ask('POST', '/points/query', { query: [1, 2, 3, 4], limit: 1 }), of({ cpu: 32 }));
  const twice = { searches: [{ query: [1, 2, 3, 4] }, { query: [1, 2, 3, 4], with_payload: true }] };
  assert.deepEqual(await ask('POST', '/points/query/batch', twice), of({ cpu: 64, payload_io_read: 7 }));
  assert.deepEqual(await ask('POST', '/points/scroll', {}), of({ payload_io_read: 7 }));
  assert.deepEqual(await ask('POST', '/points/count', {}), of({}));
  assert.deepEqual(await ask('POST', '/points', { ids: [1], with_payload: false }), of({}));
  assert.deepEqual(await ask('GET', '/points/1'), of({ payload_io_read: 7 }));
  const changed = await ask('POST', '/points/payload?wait=true', { payload: { b: 2 }, points: [1] });
  assert.deepEqual(changed, of({ payload_io_read: 7, payload_io_write: 13 }));

  const { payload_index_io_write: indexed = 0 } =
    (await ask('PUT', '/index?wait=true', { field_name: 'a', field_schema: 'integer' })) ?? {};
  assert.ok(indexed > 0);
  const filter = { must: [{ key: 'a', match: { value: 1 } }] };
  const counted = await ask('POST', '/points/count', { filter });
  assert.ok(counted !== undefined && counted.payload_index_io_read > 0, JSON.stringify(counted));
  // Without an index every payload is read, that of the row which was replaced too.
  assert.equal((await ask('POST', '/points/count', { filter: { must: [{ key: 'b', match: { value: 2 } }] } }))?.payload_io_read, 20);

  for (const [method, path] of [['GET', ''], ['GET', '/exists'], ['GET', '/aliases']] as const) assert.equal(await ask(method, path), undefined); // biome-ignore format: a line
  assert.equal(await usageOf(node, 'GET', '/collections'), undefined);
  assert.equal(await ask('POST', '/points/query', { query: [1] }), undefined, 'an error');
});

test('sparse vectors, multivectors, 16-bit originals and originals on disk are counted by their own bytes', async (t) => {
  const node = await collectionOf(t, MEASURED);
  await node.client.result('PUT', '/collections/k', {
    vectors: {
      multi: { size: 4, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
      half: { size: 8, distance: 'Dot', datatype: 'float16' },
      filed: { size: 32, distance: 'Dot', on_disk: true },
    },
    sparse_vectors: { sparse: {} },
    optimizers_config: { indexing_threshold: 1 },
  });
  const ask = (method: string, path: string, body?: unknown) => usageOf(node, method, `/collections/k${path}`, body);
  const points = [
    { id: 1, vector: { multi: [[1, 2, 3, 4], [4, 3, 2, 1]], half: Array(8).fill(1), sparse: { indices: [1, 2, 3], values: [1, 1, 1] } } }, // biome-ignore format: one point a line
    { id: 2, vector: { multi: [[1, 1, 1, 1]] } },
  ];
  assert.deepEqual(await ask('PUT', '/points?wait=true', { points }), of({ vector_io_write: 3 * 16 + 16 + 3 * 8 }));
  // Two vectors of the query with three of the points.
  assert.deepEqual(await ask('POST', '/points/query', { query: [[1, 0, 0, 0], [0, 1, 0, 0]], using: 'multi' }), of({ cpu: 6 * 16 })); // biome-ignore format: a line
  const sparse = { query: { indices: [2, 9], values: [1, 1] }, using: 'sparse' };
  assert.deepEqual(await ask('POST', '/points/query', sparse), of({ cpu: 24 }));
  assert.equal((await ask('POST', '/points/query', { query: Array(8).fill(1), using: 'half' }))?.cpu, 16);

  const many = Array.from({ length: 400 }, (_, id) => ({
    id: id + 10,
    vector: { filed: Array.from({ length: 32 }, (_, i) => Math.sin(id * i)) },
  }));
  assert.deepEqual(await ask('PUT', '/points?wait=true', { points: many }), of({ vector_io_write: 400 * 128 }));
  await untilIndexed(node.client, 'k', 400);
  const query = { query: Array(32).fill(0.1), using: 'filed', limit: 2 };
  const exact = await until(
    () => ask('POST', '/points/query', { ...query, params: { exact: true } }),
    (usage) => (usage?.vector_io_read ?? 0) > 0,
  );
  assert.equal(exact?.cpu, 400 * 128);
  assert.ok((exact?.vector_io_read ?? 0) >= 400 * 128);
});

test('a collection of several shards costs what one with a single shard does', async (t) => {
  const node = await collectionOf(t, MEASURED);
  const points = Array.from({ length: 40 }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { a: id % 4 } }));
  const costs = async (collection: string) => {
    const ask = (method: string, path: string, body?: unknown) => usageOf(node, method, `/collections/${collection}${path}`, body);
    await node.client.result('PUT', `/collections/${collection}/index?wait=true`, { field_name: 'a', field_schema: 'integer' });
    const filter = { must: [{ key: 'a', match: { value: 1 } }] };
    const each = { a: 1, b: 2 };
    const operations = [{ delete: { points: [1] } }, { upsert: { points: points.slice(0, 9) } }];
    const found: Record<string, HardwareUsage | undefined> = {
      upsert: await ask('PUT', '/points?wait=true', { points }),
      search: await ask('POST', '/points/search', { vector: [1, 2, 3, 4], limit: 40 }),
      filtered: await ask('POST', '/points/query', { query: [1, 2, 3, 4], filter, limit: 40, with_payload: true }),
      batch: await ask('POST', '/points/query/batch', { searches: [{ query: [1, 2, 3, 4] }, { query: [1, 2, 3, 4] }] }),
      groups: await ask('POST', '/points/query/groups', { query: [1, 2, 3, 4], group_by: 'a', limit: 4, group_size: 10 }),
      recommend: await ask('POST', '/points/query', { query: { recommend: { positive: [1] } } }),
      retrieve: await ask('POST', '/points', { ids: [1, 2, 3], with_payload: true }),
      scroll: await ask('POST', '/points/scroll', { limit: 40 }),
      facet: await ask('POST', '/facet', { key: 'a' }),
      matrix: await ask('POST', '/points/search/matrix/pairs', { sample: 40, limit: 2 }),
      payload: await ask('POST', '/points/payload?wait=true', { payload: each, points: [1, 2, 3, 4, 5, 6] }),
      byFilter: await ask('POST', '/points/payload/delete?wait=true', { keys: ['b'], filter }),
      operations: await ask('POST', '/points/batch?wait=true', { operations }),
    };
    return found;
  };
  await node.client.result('PUT', '/collections/four', { vectors: { size: 4, distance: 'Dot' }, shard_number: 4 });
  const [one, four] = [await costs('c'), await costs('four')];
  assert.deepEqual([four.upsert?.vector_io_write, four.search?.cpu], [40 * 16, 40 * 16]);
  // Index files are read by shard: several small ones have other lengths than a large one.
  const compared = (usage: HardwareUsage | undefined) => usage && { ...usage, payload_index_io_read: 0, payload_index_io_write: 0 };
  for (const [name, usage] of Object.entries(four)) assert.deepEqual(compared(usage), compared(one[name]), name);
});

test('both doors tell the same, and telemetry the sum for each collection', async (t) => {
  const node = await collectionOf(t, MEASURED);
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  const hardware = async (): Promise<Record<string, HardwareUsage>> => {
    const report = await node.client.result<{ hardware: { collection_data: Record<string, HardwareUsage> } }>(
      'GET',
      '/telemetry?details_level=3',
    );
    return report.hardware.collection_data;
  };
  assert.deepEqual(await hardware(), {});
  const sum = noUsage();
  const grpcUsage = async (method: string, message: object): Promise<HardwareUsage | undefined> => {
    const { usage, time } = (await grpc.call(method, { collection_name: 'c', ...message })) as {
      usage?: { hardware: Record<string, string> };
      time: number;
    };
    assert.ok(time > 0);
    if (!usage) return undefined;
    const counted = of(Object.fromEntries(Object.entries(usage.hardware).map(([name, bytes]) => [name, Number(bytes)])));
    for (const name of Object.keys(sum) as (keyof HardwareUsage)[]) sum[name] += counted[name];
    return counted;
  };
  const points = POINTS.map(({ id, vector, payload }) => ({
    id: { num: id },
    vectors: { vector: { dense: { data: vector } } },
    payload: payload === undefined ? {} : { a: { integer_value: 1 } },
  }));
  assert.deepEqual(await grpcUsage('Points/Upsert', { wait: true, points }), of({ vector_io_write: 32, payload_io_write: 7 }));
  const nearest = { query: { nearest: { dense: { data: [1, 2, 3, 4] } } }, with_payload: { enable: true } };
  assert.deepEqual(await grpcUsage('Points/Query', nearest), of({ cpu: 32, payload_io_read: 7 }));
  assert.deepEqual(
    await grpcUsage('Points/QueryBatch', { query_points: [{ ...nearest, collection_name: 'c' }] }),
    of({ cpu: 32, payload_io_read: 7 }),
  );
  assert.deepEqual(await grpcUsage('Points/Scroll', { with_payload: { enable: true } }), of({ payload_io_read: 7 }));
  assert.deepEqual(await grpcUsage('Points/Count', {}), of({}));
  assert.equal((await grpc.call('Collections/Get', { collection_name: 'c' })).usage, undefined);
  assert.deepEqual(await hardware(), { c: sum });

  // By another name it is the same collection; what is applied after its answer comes into the sum then.
  await node.client.result('POST', '/collections/aliases', { actions: [{ create_alias: { collection_name: 'c', alias_name: 'other' } }] });
  assert.deepEqual(await usageOf(node, 'PUT', '/collections/other/points', { points: POINTS }), noUsage());
  const later = { ...sum, vector_io_write: sum.vector_io_write + 32, payload_io_write: sum.payload_io_write + 7 };
  assert.deepEqual(await until(hardware, ({ c }) => c?.vector_io_write === later.vector_io_write), { c: later });
  await node.client.result('DELETE', '/collections/c');
  assert.deepEqual(await hardware(), {});
});

test('without hardware reporting no answer says what it cost', async (t) => {
  const node = await collectionOf(t, {});
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  for (const [method, path, body] of [
    ['PUT', '?wait=true', { points: POINTS }],
    ['POST', '/search', { vector: [1, 2, 3, 4], limit: 3 }],
    ['POST', '/scroll', {}],
    ['POST', '/payload?wait=true', { payload: { b: 2 }, points: [1] }],
  ] as const) {
    const answer = await node.client.call(method, `/collections/c/points${path}`, body);
    assert.deepEqual(Object.keys(answer.body as object), ['result', 'status', 'time']);
  }
  assert.equal((await grpc.call('Points/Count', { collection_name: 'c' })).usage, undefined);
  const report = await node.client.result<{ hardware: unknown }>('GET', '/telemetry?details_level=3');
  assert.deepEqual(report.hardware, { collection_data: {} });
});
