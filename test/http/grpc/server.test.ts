import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { compressionAlgorithms } from '@grpc/grpc-js';
import type { RestClient } from '../../../ops/rest-client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from '../../process/support.js';
import { bytesOf, root } from '../../protocols/grpc/protos.js';
import { failure, GrpcClient } from './client.js';

const OK = 0;
const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const UNIMPLEMENTED = 12;

const dense = (...data: number[]) => ({ vector: { dense: { data } } });
const ids = (...numbers: number[]) => ({ points: { ids: numbers.map((num) => ({ num })) } });
const POINTS = [1, 2, 3, 4].map((num) => ({
  id: { num },
  vectors: { vectors: { vectors: { d: { dense: { data: [num, 1] } }, s: { sparse: { indices: [num], values: [0.5] } } } } },
  payload: { n: { integer_value: num }, t: { string_value: num % 2 === 0 ? 'even' : 'odd' } },
}));

interface Door {
  readonly node: NodeUnderTest;
  readonly rest: RestClient;
  readonly client: GrpcClient;
  readonly call: GrpcClient['call'];
  /** `result` of the answer. */
  result<Result>(method: string, message: object): Promise<Result>;
  /** Status code of a call that fails. */
  codeOf(method: string, message: object): Promise<number>;
}

interface Scored {
  readonly id: { readonly num: string };
  readonly score: number;
  readonly payload: object;
  readonly vectors: object;
}

const COLLECTION = {
  collection_name: 'c',
  vectors_config: { params_map: { map: { d: { size: 2, distance: 'Dot', on_disk: false } } } },
  sparse_vectors_config: { map: { s: { modifier: 'Idf' } } },
};
const IN_C = { collection_name: 'c' };
const NEAREST = { ...IN_C, query: { nearest: { dense: { data: [1, 0] } } }, using: 'd', limit: 2 };

/** A node of its own that takes requests of 1 MB, and a client of its gRPC door. */
async function doorFor(context: TestContext, folder?: string): Promise<Door> {
  const node = await nodeFor(context, {
    folder: folder ?? (await temporaryFolder(context)),
    environment: { SERVICE__SERVICE__MAX_REQUEST_SIZE_MB: '1' },
  });
  const client = new GrpcClient(node.grpcPort);
  context.after(() => client.close());
  const call = client.call.bind(client);
  return {
    node,
    rest: node.client,
    client,
    call,
    result: async <Result>(method: string, message: object) => (await call(method, message)).result as Result,
    codeOf: async (method, message) => (await failure(call(method, message))).code,
  };
}

/** The same with a collection `c` that holds `POINTS`. */
async function doorWithPoints(context: TestContext): Promise<Door> {
  const door = await doorFor(context);
  await door.call('Collections/Create', COLLECTION);
  await door.call('Points/Upsert', { ...IN_C, wait: true, points: POINTS });
  return door;
}

test('a health check tells that the node serves, and which one it is', async (context) => {
  const { client, call } = await doorFor(context);
  const answer = await client.raw('/grpc.health.v1.Health/Check', Buffer.alloc(0));
  assert.deepEqual([...answer], [8, 1]);
  const { title, version } = await call('Qdrant/HealthCheck', {});
  assert.equal(title, 'troupe - vector database');
  assert.match(String(version), /^1\.18\./);
});

test('a collection is created and shown with the settings it was given', async (context) => {
  const { call, result } = await doorFor(context);
  const created = await result('Collections/Create', {
    ...COLLECTION,
    hnsw_config: { m: 8 },
    optimizers_config: { max_optimization_threads: { value: 2 } },
    metadata: { owner: { string_value: 'me' } },
  });
  assert.equal(created, true);
  const { config } = await result<{ config: Record<string, Record<string, unknown>> }>('Collections/Get', IN_C);
  assert.deepEqual(config.params?.vectors_config, { params_map: { map: { d: { size: '2', distance: 'Dot', on_disk: false } } } });
  assert.deepEqual(config.params?.sparse_vectors_config, { map: { s: { modifier: 'Idf' } } });
  assert.equal(config.hnsw_config?.m, '8');
  assert.deepEqual(config.optimizer_config?.max_optimization_threads, { value: '2' });
  assert.deepEqual(config.metadata, { owner: { string_value: 'me' } });
  assert.deepEqual(await result('Collections/CollectionExists', IN_C), { exists: true });
  assert.deepEqual((await call('Collections/List', {})).collections, [{ name: 'c' }]);
});

test('REST shows a setting that was changed over gRPC', async (context) => {
  const { rest, result } = await doorWithPoints(context);
  assert.equal(await result('Collections/Update', { ...IN_C, hnsw_config: { ef_construct: 50 } }), true);
  const info = await rest.result<{ config: { hnsw_config: { ef_construct: number } } }>('GET', '/collections/c');
  assert.equal(info.config.hnsw_config.ef_construct, 50);
});

test('the message of an error stays short, whatever the request holds', async (context) => {
  const { call } = await doorWithPoints(context);
  const using = `\u0007\n%41é\u{1f600}${'\u{1f600}'.repeat(100_000)}`;
  const { code, details } = await failure(call('Points/Query', { ...NEAREST, using }));
  assert.equal(code, INVALID_ARGUMENT);
  assert.ok(
    details.startsWith('Wrong input: Not existing vector name error: \u0007\n%41é\u{1f600}') && details.length < 900,
    details.slice(0, 100),
  );
});

test('a write answers with the number of its operation, and whether it was waited for', async (context) => {
  const { call, result } = await doorWithPoints(context);
  const upserted = await call('Points/Upsert', { ...IN_C, wait: true, points: POINTS });
  const { result: written, time } = upserted as { result: Record<string, unknown>; time: number };
  assert.equal(written.status, 'Completed');
  assert.match(String(written.operation_id), /^\d+$/);
  assert.ok(time > 0 && time < 60);
  const change = { ...IN_C, payload: { x: { bool_value: true } }, points_selector: ids(1) };
  assert.equal((await result<{ status: string }>('Points/SetPayload', change)).status, 'Acknowledged');
});

test('a query answers with the points, scores, payloads and vectors that REST answers with', async (context) => {
  const { rest, result } = await doorWithPoints(context);
  const found = await result<Scored[]>('Points/Query', { ...NEAREST, with_payload: { enable: true }, with_vectors: { enable: true } });
  const scores = found.map(({ id, score }) => ({ id: Number(id.num), score }));
  assert.deepEqual(scores, [
    { id: 4, score: 4 },
    { id: 3, score: 3 },
  ]);
  assert.deepEqual(found[0]?.payload, { n: { integer_value: '4' }, t: { string_value: 'even' } });
  assert.deepEqual(found[0]?.vectors, { vectors: { vectors: vectorsOf(4) } });
  const request = { query: [1, 0], using: 'd', limit: 2 };
  const { points } = await rest.result<{ points: { id: number; score: number }[] }>('POST', '/collections/c/points/query', request);
  assert.deepEqual(
    scores,
    points.map(({ id, score }) => ({ id, score })),
  );
});

test('dense and sparse searches, batches, recommendations and matrices are carried out', async (context) => {
  const { result } = await doorWithPoints(context);
  const search = await result<Scored[]>('Points/Search', { ...IN_C, vector: [1, 0], vector_name: 'd', limit: 1 });
  assert.equal(search[0]?.score, 4);
  const sparse = { ...NEAREST, query: { nearest: { sparse: { indices: [3], values: [2] } } }, using: 's' };
  assert.equal((await result<Scored[]>('Points/Query', sparse)).length, 1);
  const batch = { ...IN_C, query_points: [NEAREST, { ...NEAREST, limit: 1 }] };
  assert.deepEqual(
    (await result<{ result: Scored[] }[]>('Points/QueryBatch', batch)).map((one) => one.result.length),
    [2, 1],
  );
  const recommend = { ...IN_C, positive: [{ num: 1 }], using: 'd', limit: 2 };
  assert.equal((await result<Scored[]>('Points/Recommend', recommend)).length, 2);
  const matrix = { ...IN_C, using: 'd', sample: 4, limit: 2 };
  const { ids: rows, scores } = await result<{ ids: unknown[]; scores: number[] }>('Points/SearchMatrixOffsets', matrix);
  assert.deepEqual([rows.length, scores.length], [4, 8]);
});

test('points are counted, scrolled through and retrieved', async (context) => {
  const { call, result } = await doorWithPoints(context);
  const odd = { must: [{ field: { key: 't', match: { keyword: 'odd' } } }] };
  assert.deepEqual(await result('Points/Count', { ...IN_C, filter: odd }), { count: '2' });
  const page = await call('Points/Scroll', { ...IN_C, limit: 3, with_payload: { enable: false } });
  assert.deepEqual(
    (page.result as Scored[]).map(({ id }) => id.num),
    ['1', '2', '3'],
  );
  assert.deepEqual(page.next_page_offset, { num: '4' });
  const got = await result<Scored[]>('Points/Get', { ...IN_C, ids: [{ num: 2 }], with_payload: { include: { fields: ['n'] } } });
  assert.deepEqual(got[0]?.payload, { n: { integer_value: '2' } });
});

test('a payload index is made, shown, used by facets and groups, and dropped', async (context) => {
  const { call, result } = await doorWithPoints(context);
  const index = { ...IN_C, wait: true, field_name: 't' };
  const made = await result<{ status: string }>('Points/CreateFieldIndex', { ...index, field_type: 'FieldTypeKeyword' });
  assert.equal(made.status, 'Completed');
  const schema = async () =>
    (await result<{ payload_schema: Record<string, { data_type: string }> }>('Collections/Get', IN_C)).payload_schema;
  assert.equal((await schema()).t?.data_type, 'Keyword');
  assert.deepEqual(
    (await call('Points/Facet', { ...IN_C, key: 't' })).hits,
    ['even', 'odd'].map((string_value) => ({ value: { string_value }, count: '2' })),
  );
  const { groups } = await result<{ groups: { id: unknown; hits: Scored[] }[] }>('Points/QueryGroups', {
    ...NEAREST,
    group_by: 't',
    group_size: 1,
  });
  assert.deepEqual(
    groups.map(({ id, hits }) => [id, hits[0]?.score]),
    [
      [{ string_value: 'even' }, 4],
      [{ string_value: 'odd' }, 3],
    ],
  );
  assert.equal((await result<{ status: string }>('Points/DeleteFieldIndex', index)).status, 'Completed');
  assert.deepEqual(await schema(), {});
});

test('numbers come back as they came, over both protocols, from changed payloads, and after the process was killed', async (context) => {
  const folder = await temporaryFolder(context);
  const { node, rest, call, result } = await doorFor(context, folder);
  await call('Collections/Create', COLLECTION);
  const sent = '{"points":[{"id":1,"vector":{},"payload":{"a":1.0,"b":[2,3.0,1e2],"c":{"d":-4.0},"e":9007199254740993,"f":"x"}}]}';
  await rest.call('PUT', '/collections/c/points?wait=true', sent);
  const doubles = { a: { double_value: 1 }, l: { list_value: { values: [{ double_value: 2 }, { integer_value: 2 }] } } };
  await call('Points/Upsert', {
    ...IN_C,
    wait: true,
    points: [{ id: { num: 2 }, vectors: { vectors: { vectors: {} } }, payload: doubles }],
  });
  await rest.call('POST', '/collections/c/points/payload?wait=true', '{"payload":{"g":{"h":5.0}},"points":[1]}');
  const whole = '{"a":1.0,"b":[2,3.0,100.0],"c":{"d":-4.0},"e":9007199254740993,"f":"x","g":{"h":5.0}}';
  const text = async (client: RestClient, id: number) => (await client.call('GET', `/collections/c/points/${id}`)).text;
  assert.ok((await text(rest, 1)).includes(`"payload":${whole}`), await text(rest, 1));
  assert.ok((await text(rest, 2)).includes('"payload":{"a":1.0,"l":[2.0,2]}'), await text(rest, 2));
  const parts = await rest.call('POST', '/collections/c/points', '{"ids":[1],"with_payload":["c","b[]"]}');
  assert.ok(parts.text.includes('"payload":{"b":[2,3.0,100.0],"c":{"d":-4.0}}'), parts.text);
  const got = await result<{ payload: object }[]>('Points/Get', { ...IN_C, ids: [{ num: 2 }], with_payload: { enable: true } });
  const values = [{ double_value: 2 }, { integer_value: '2' }];
  assert.deepEqual(got[0]?.payload, { a: { double_value: 1 }, l: { list_value: { values } } });
  const match = await rest.call(
    'POST',
    '/collections/c/points/count',
    '{"filter":{"must":[{"key":"a","match":{"value":1}},{"key":"c.d","range":{"lt":0}}]}}',
  );
  assert.ok(match.text.includes('"count":1'), match.text);
  const half = await rest.call('PUT', '/collections/c/points', '{"points":[{"id":3,"vector":{},"payload":{"a":"\\ud800"}}]}');
  assert.equal(half.status, 400);
  assert.match(half.text, /lone surrogate.* at line 1 column 53/);
  await node.end('SIGKILL');
  const again = await nodeFor(context, { folder });
  assert.ok((await text(again.client, 1)).includes(`"payload":${whole}`));
});

test('a collection with points gains a named vector and loses it', async (context) => {
  const { rest, call, result } = await doorWithPoints(context);
  const named = { ...IN_C, vector_name: 'late', wait: true };
  const vectorNames = async () => {
    const { config } = await rest.result<{ config: { params: { vectors: object } } }>('GET', '/collections/c');
    return Object.keys(config.params.vectors);
  };
  const made = await result<{ status: string }>('Points/CreateVectorName', { ...named, dense_config: { size: 3, distance: 'Cosine' } });
  assert.equal(made.status, 'Completed');
  assert.deepEqual(await vectorNames(), ['d', 'late']);
  await call('Points/DeleteVectorName', named);
  assert.deepEqual(await vectorNames(), ['d']);
});

test('a batch of operations answers with one result for each', async (context) => {
  const { rest, result } = await doorWithPoints(context);
  const operations = [
    { set_payload: { payload: { y: { double_value: 1.5 } }, points_selector: ids(1, 2) } },
    { delete_payload: { keys: ['n'], points_selector: ids(2) } },
    { delete_vectors: { points_selector: ids(3), vectors: { names: ['d'] } } },
    { delete_points: { points: ids(4) } },
  ];
  const results = await result<{ status: string }[]>('Points/UpdateBatch', { ...IN_C, wait: true, operations });
  assert.deepEqual(
    results.map(({ status }) => status),
    Array(4).fill('Completed'),
  );
  const points = await rest.result<{ id: number; payload: object; vector: object }[]>('POST', '/collections/c/points', {
    ids: [2, 3, 4],
    with_payload: true,
    with_vector: true,
  });
  assert.deepEqual(
    points.map(({ id }) => id),
    [2, 3],
  );
  assert.deepEqual(points[0]?.payload, { t: 'even', y: 1.5 });
  assert.deepEqual(Object.keys(points[1]?.vector ?? {}), ['s']);
});

test('a request that cannot be carried out fails with the status that fits', async (context) => {
  const { client, call, codeOf } = await doorWithPoints(context);
  const missing = await failure(call('Points/Count', { collection_name: 'none' }));
  assert.deepEqual([missing.code, missing.details], [NOT_FOUND, "Not found: Collection `none` doesn't exist!"]);
  const search = { ...IN_C, vector_name: 'd' };
  const nan = [{ id: { num: 9 }, vectors: { vectors: { vectors: { d: { dense: { data: [Number.NaN, 1] } } } } } }];
  const codes: [method: string, message: object, code: number][] = [
    ['Collections/Create', COLLECTION, ALREADY_EXISTS],
    ['Points/Search', { ...search, vector: [1], limit: 1 }, INVALID_ARGUMENT],
    ['Points/Search', { ...search, vector: [1, 2], limit: 0 }, INVALID_ARGUMENT],
    ['Points/Count', { ...IN_C, timeout: 0 }, INVALID_ARGUMENT],
    ['Points/Count', { collection_name: '' }, INVALID_ARGUMENT],
    ['Points/Upsert', { ...IN_C, wait: true, points: nan }, INVALID_ARGUMENT],
    ['Snapshots/Create', { collection_name: 'none' }, NOT_FOUND],
    ['Collections/CreateShardKey', { ...IN_C, request: { shard_key: { keyword: 'a' } } }, FAILED_PRECONDITION],
  ];
  for (const [method, message, code] of codes) assert.equal(await codeOf(method, message), code, `${method} ${JSON.stringify(message)}`);
  assert.equal((await failure(client.raw('/qdrant.Points/NoSuchMethod', Buffer.alloc(0)))).code, UNIMPLEMENTED);
});

test('a broken message is refused, and the node goes on', async (context) => {
  const { client, result } = await doorWithPoints(context);
  const whole = Buffer.from(bytesOf('UpsertPoints', { ...IN_C, wait: true, points: POINTS }));
  for (let length = 4; length < whole.length; length += 7) {
    const code = await client.raw('/qdrant.Points/Upsert', whole.subarray(0, length)).then(
      () => OK,
      (error: { code: number }) => error.code,
    );
    assert.ok(code === OK || code === INVALID_ARGUMENT || code === NOT_FOUND, `${length} bytes: ${code}`);
  }
  assert.equal((await failure(client.raw('/qdrant.Collections/Create', Buffer.from([0xff, 0xff])))).code, INVALID_ARGUMENT);
  assert.deepEqual(await result('Points/Count', IN_C), { count: '4' });
});

test('a compressed message is read, and none above the limit is, compressed or not', async (context) => {
  const { node, codeOf } = await doorWithPoints(context);
  const compressed = new GrpcClient(node.grpcPort, { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip });
  context.after(() => compressed.close());
  assert.deepEqual((await compressed.call('Points/Count', IN_C)).result, { count: '4' });
  const large = { ...IN_C, points: [{ id: { num: 9 }, vectors: dense(1), payload: { a: { string_value: 'x'.repeat(2 << 20) } } }] };
  assert.equal(await codeOf('Points/Upsert', large), RESOURCE_EXHAUSTED);
  // Small on the way, too large once it is unpacked.
  assert.equal((await failure(compressed.call('Points/Upsert', large))).code, RESOURCE_EXHAUSTED);
});

test('a call ends at the deadline of its client', async (context) => {
  const { call } = await doorWithPoints(context);
  const late = await failure(call('Points/Count', IN_C, { deadline: Date.now() - 1000 }));
  assert.equal(late.code, DEADLINE_EXCEEDED);
  assert.deepEqual((await call('Points/Count', IN_C, { deadline: Date.now() + 30_000 })).result, { count: '4' });
});

test('an alias is listed and stands for its collection', async (context) => {
  const { call, result } = await doorWithPoints(context);
  const alias = { alias_name: 'also', collection_name: 'c' };
  assert.equal(await result('Collections/UpdateAliases', { actions: [{ create_alias: alias }] }), true);
  assert.deepEqual((await call('Collections/ListAliases', {})).aliases, [alias]);
  assert.deepEqual((await call('Collections/ListCollectionAliases', IN_C)).aliases, [alias]);
  assert.deepEqual(await result('Points/Count', { collection_name: 'also' }), { count: '4' });
});

test('metrics and telemetry count calls by method and status', async (context) => {
  const { node, rest, codeOf } = await doorWithPoints(context);
  assert.equal(await codeOf('Points/Count', { collection_name: 'none' }), NOT_FOUND);
  const metrics = await (await fetch(`${node.url}/metrics`)).text();
  assert.match(metrics, /^grpc_responses_total\{endpoint="\/qdrant\.Points\/Count",status="5"\} 1$/m);
  const { requests } = await rest.result<{ requests: { grpc: { responses: Record<string, Record<string, { count: number }>> } } }>(
    'GET',
    '/telemetry',
  );
  assert.equal(requests.grpc.responses['/qdrant.Points/Upsert']?.[OK]?.count, 1);
});

test('every method of the contract is there', async (context) => {
  const { client } = await doorFor(context);
  for (const service of ['Points', 'Collections', 'Snapshots', 'Qdrant']) {
    for (const { name } of root.lookupService(`qdrant.${service}`).methodsArray) {
      const { details } = await failure(client.raw(`/qdrant.${service}/${name}`, Buffer.from([0x07]))).catch(() => ({ details: '' }));
      assert.doesNotMatch(details, /does not implement/, `${service}/${name}`);
    }
  }
});

test('a node without a gRPC port has none', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context), environment: { SERVICE__SERVICE__GRPC_PORT: 'null' } });
  assert.doesNotMatch(node.log(), /grpc=/);
});

function vectorsOf(num: number): object {
  return { d: { data: [], dense: { data: [num, 1] } }, s: { data: [], sparse: { indices: [num], values: [0.5] } } };
}
