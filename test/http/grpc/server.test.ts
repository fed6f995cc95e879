import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compressionAlgorithms } from '@grpc/grpc-js';
import { nodeFor, temporaryFolder } from '../../process/support.js';
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

test('the gRPC door', async (context) => {
  const node = await nodeFor(context, {
    folder: await temporaryFolder(context),
    environment: { SERVICE__SERVICE__MAX_REQUEST_SIZE_MB: '1' },
  });
  const client = new GrpcClient(node.grpcPort);
  context.after(() => client.close());
  const { client: rest } = node;
  const call = client.call.bind(client);

  await context.test('tells that the node serves, and which one it is', async () => {
    const answer = await client.raw('/grpc.health.v1.Health/Check', Buffer.alloc(0));
    assert.deepEqual([...answer], [8, 1]);
    const { title, version } = await call('Qdrant/HealthCheck', {});
    assert.equal(title, 'troupe - vector database');
    assert.match(String(version), /^1\.18\./);
  });

  await context.test('creates collections and shows their settings as REST does', async () => {
    const config = {
      vectors_config: { params_map: { map: { d: { size: 2, distance: 'Dot', on_disk: false } } } },
      sparse_vectors_config: { map: { s: { modifier: 'Idf' } } },
      hnsw_config: { m: 8 },
      optimizers_config: { max_optimization_threads: { value: 2 } },
      metadata: { owner: { string_value: 'me' } },
    };
    assert.equal((await call('Collections/Create', { collection_name: 'c', ...config })).result, true);
    const { result: shown } = (await call('Collections/Get', { collection_name: 'c' })) as { result: Record<string, never> };
    const { config: settings } = shown as unknown as { config: Record<string, Record<string, unknown>> };
    assert.deepEqual(settings.params?.vectors_config, {
      params_map: { map: { d: { size: '2', distance: 'Dot', on_disk: false } } },
    });
    assert.deepEqual(settings.params?.sparse_vectors_config, { map: { s: { modifier: 'Idf' } } });
    assert.equal(settings.hnsw_config?.m, '8');
    assert.deepEqual(settings.optimizer_config?.max_optimization_threads, { value: '2' });
    assert.deepEqual(settings.metadata, { owner: { string_value: 'me' } });
    assert.deepEqual((await call('Collections/CollectionExists', { collection_name: 'c' })).result, { exists: true });
    assert.deepEqual((await call('Collections/List', {})).collections, [{ name: 'c' }]);
    assert.equal((await call('Collections/Update', { collection_name: 'c', hnsw_config: { ef_construct: 50 } })).result, true);
    const info = await rest.result('GET', '/collections/c');
    assert.equal((info as { config: { hnsw_config: { ef_construct: number } } }).config.hnsw_config.ef_construct, 50);
  });

  await context.test('tells what went wrong in short, whatever the request holds', async () => {
    const using = `\u0007\n%41é\u{1f600}${'\u{1f600}'.repeat(100_000)}`;
    const query = { collection_name: 'c', query: { nearest: { dense: { data: [1, 2] } } }, using };
    const { code, details } = await failure(call('Points/Query', query));
    assert.equal(code, INVALID_ARGUMENT);
    assert.ok(
      details.startsWith('Wrong input: the collection has no vector named `\u0007\n%41é\u{1f600}') && details.length < 900,
      details.slice(0, 100),
    );
  });

  await context.test('writes points and answers with the number of the operation', async () => {
    const upserted = await call('Points/Upsert', { collection_name: 'c', wait: true, points: POINTS });
    const { result, time } = upserted as { result: Record<string, unknown>; time: number };
    assert.equal(result.status, 'Completed');
    assert.match(String(result.operation_id), /^\d+$/);
    assert.ok(time > 0 && time < 60);
    const quick = await call('Points/SetPayload', { collection_name: 'c', payload: { x: { bool_value: true } }, points_selector: ids(1) });
    assert.equal((quick.result as { status: string }).status, 'Acknowledged');
  });

  await context.test('answers reads as REST does', async () => {
    const request = { collection_name: 'c', query: { nearest: { dense: { data: [1, 0] } } }, using: 'd', limit: 2 };
    const both = { with_payload: { enable: true }, with_vectors: { enable: true } };
    const { result } = (await call('Points/Query', { ...request, ...both })) as { result: Record<string, unknown>[] };
    assert.deepEqual(
      result.map(({ id, score }) => [id, score]),
      [
        [{ num: '4' }, 4],
        [{ num: '3' }, 3],
      ],
    );
    assert.deepEqual(result[0]?.payload, { n: { integer_value: '4' }, t: { string_value: 'even' } });
    assert.deepEqual(result[0]?.vectors, { vectors: { vectors: vectorsOf(4) } });
    const { points } = (await rest.result('POST', '/collections/c/points/query', {
      query: [1, 0],
      using: 'd',
      limit: 2,
    })) as { points: { id: number; score: number }[] };
    assert.deepEqual(
      result.map(({ id, score }) => ({ id: Number((id as { num: string }).num), score })),
      points.map(({ id, score }) => ({ id, score })),
    );

    const old = await call('Points/Search', { collection_name: 'c', vector: [1, 0], vector_name: 'd', limit: 1 });
    assert.equal((old.result as { score: number }[])[0]?.score, 4);
    const sparse = await call('Points/Query', { ...request, query: { nearest: { sparse: { indices: [3], values: [2] } } }, using: 's' });
    assert.equal((sparse.result as unknown[]).length, 1);
    const batch = await call('Points/QueryBatch', { collection_name: 'c', query_points: [request, { ...request, limit: 1 }] });
    assert.deepEqual(
      (batch.result as { result: unknown[] }[]).map((one) => one.result.length),
      [2, 1],
    );
    const odd = { must: [{ field: { key: 't', match: { keyword: 'odd' } } }] };
    assert.deepEqual((await call('Points/Count', { collection_name: 'c', filter: odd })).result, { count: '2' });
    const page = await call('Points/Scroll', { collection_name: 'c', limit: 3, with_payload: { enable: false } });
    assert.deepEqual(
      (page.result as { id: unknown }[]).map(({ id }) => id),
      [1, 2, 3].map((num) => ({ num: String(num) })),
    );
    assert.deepEqual(page.next_page_offset, { num: '4' });
    const got = await call('Points/Get', { collection_name: 'c', ids: [{ num: 2 }], with_payload: { include: { fields: ['n'] } } });
    assert.deepEqual((got.result as { payload: unknown }[])[0]?.payload, { n: { integer_value: '2' } });
    const recommended = await call('Points/Recommend', { collection_name: 'c', positive: [{ num: 1 }], using: 'd', limit: 2 });
    assert.equal((recommended.result as unknown[]).length, 2);
    const matrix = await call('Points/SearchMatrixOffsets', { collection_name: 'c', using: 'd', sample: 4, limit: 2 });
    const { ids: rows, scores } = matrix.result as { ids: unknown[]; scores: number[] };
    assert.deepEqual([rows.length, scores.length], [4, 8]);
  });

  await context.test('makes payload indexes, groups and facets', async () => {
    const index = { collection_name: 'c', wait: true, field_name: 't', field_type: 'FieldTypeKeyword' };
    assert.equal(((await call('Points/CreateFieldIndex', index)).result as { status: string }).status, 'Completed');
    const { result } = (await call('Collections/Get', { collection_name: 'c' })) as {
      result: { payload_schema: Record<string, { data_type: string }> };
    };
    assert.equal(result.payload_schema.t?.data_type, 'Keyword');
    const facet = await call('Points/Facet', { collection_name: 'c', key: 't' });
    assert.deepEqual(
      facet.hits,
      ['even', 'odd'].map((string_value) => ({ value: { string_value }, count: '2' })),
    );
    const groups = await call('Points/QueryGroups', {
      collection_name: 'c',
      query: { nearest: { dense: { data: [1, 0] } } },
      using: 'd',
      group_by: 't',
      group_size: 1,
    });
    const found = (groups.result as { groups: { id: unknown; hits: { score: number }[] }[] }).groups;
    assert.deepEqual(
      found.map(({ id, hits }) => [id, hits[0]?.score]),
      [
        [{ string_value: 'even' }, 4],
        [{ string_value: 'odd' }, 3],
      ],
    );
    assert.equal(
      ((await call('Points/DeleteFieldIndex', { collection_name: 'c', wait: true, field_name: 't' })).result as { status: string }).status,
      'Completed',
    );
  });

  await context.test('gives a living collection vectors, and takes them away', async () => {
    const named = { collection_name: 'c', vector_name: 'late', wait: true };
    const made = await call('Points/CreateVectorName', { ...named, dense_config: { size: 3, distance: 'Cosine' } });
    assert.equal((made.result as { status: string }).status, 'Completed');
    const vectorNames = async () => {
      const { config } = await rest.result<{ config: { params: { vectors: object } } }>('GET', '/collections/c');
      return Object.keys(config.params.vectors);
    };
    assert.deepEqual(await vectorNames(), ['d', 'late']);
    await call('Points/DeleteVectorName', named);
    assert.deepEqual(await vectorNames(), ['d']);
  });

  await context.test('carries out batches of operations with one result for each', async () => {
    const operations = [
      { set_payload: { payload: { y: { double_value: 1.5 } }, points_selector: ids(1, 2) } },
      { delete_payload: { keys: ['n'], points_selector: ids(2) } },
      { delete_vectors: { points_selector: ids(3), vectors: { names: ['d'] } } },
      { delete_points: { points: ids(4) } },
    ];
    const { result } = (await call('Points/UpdateBatch', { collection_name: 'c', wait: true, operations })) as {
      result: { status: string }[];
    };
    assert.deepEqual(
      result.map(({ status }) => status),
      Array(4).fill('Completed'),
    );
    const points = (await rest.result('POST', '/collections/c/points', { ids: [2, 3, 4], with_payload: true })) as {
      id: number;
      payload: object;
    }[];
    assert.deepEqual(
      points.map(({ id }) => id),
      [2, 3],
    );
    assert.deepEqual(points[0]?.payload, { t: 'even', y: 1.5 });
  });

  await context.test('gives the status that fits', async () => {
    const statusOf = async (method: string, message: object) => (await failure(call(method, message))).code;
    assert.deepEqual(await failure(call('Points/Count', { collection_name: 'none' })).then(({ code, details }) => [code, details]), [
      NOT_FOUND,
      "Not found: Collection `none` doesn't exist!",
    ]);
    assert.equal(
      await statusOf('Collections/Create', { collection_name: 'c', vectors_config: { params: { size: 1, distance: 1 } } }),
      ALREADY_EXISTS,
    );
    assert.equal(await statusOf('Points/Search', { collection_name: 'c', vector: [1], vector_name: 'd', limit: 1 }), INVALID_ARGUMENT);
    assert.equal(
      await statusOf('Points/Search', { collection_name: 'c', vector: [1, 2], vector_name: 'd' }),
      INVALID_ARGUMENT,
      'a limit of 0',
    );
    assert.equal(await statusOf('Points/Count', { collection_name: 'c', timeout: 0 }), INVALID_ARGUMENT);
    assert.equal(await statusOf('Points/Count', { collection_name: '' }), INVALID_ARGUMENT);
    const nan = [{ id: { num: 9 }, vectors: { vectors: { vectors: { d: { dense: { data: [Number.NaN, 1] } } } } } }];
    assert.equal(await statusOf('Points/Upsert', { collection_name: 'c', wait: true, points: nan }), INVALID_ARGUMENT);
    assert.equal(await statusOf('Snapshots/Create', { collection_name: 'c' }), UNIMPLEMENTED);
    const request = { shard_key: { keyword: 'a' } };
    assert.equal(await statusOf('Collections/CreateShardKey', { collection_name: 'c', request }), FAILED_PRECONDITION);
    assert.equal((await failure(client.raw('/qdrant.Points/NoSuchMethod', Buffer.alloc(0)))).code, UNIMPLEMENTED);
  });

  await context.test('refuses broken messages, and goes on', async () => {
    const whole = Buffer.from(bytesOf('UpsertPoints', { collection_name: 'c', wait: true, points: POINTS }));
    for (let length = 4; length < whole.length; length += 7) {
      const code = await client.raw('/qdrant.Points/Upsert', whole.subarray(0, length)).then(
        () => OK,
        (error: { code: number }) => error.code,
      );
      assert.ok(code === OK || code === INVALID_ARGUMENT || code === NOT_FOUND, `${length} bytes: ${code}`);
    }
    assert.equal((await failure(client.raw('/qdrant.Collections/Create', Buffer.from([0xff, 0xff])))).code, INVALID_ARGUMENT);
    assert.deepEqual((await call('Points/Count', { collection_name: 'c' })).result, { count: '3' });
  });

  await context.test('takes compressed messages, and none above the limit', async () => {
    const compressed = new GrpcClient(node.grpcPort, { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip });
    context.after(() => compressed.close());
    assert.deepEqual((await compressed.call('Points/Count', { collection_name: 'c' })).result, { count: '3' });
    const large = {
      collection_name: 'c',
      points: [{ id: { num: 9 }, vectors: dense(1), payload: { a: { string_value: 'x'.repeat(2 << 20) } } }],
    };
    assert.equal((await failure(call('Points/Upsert', large))).code, RESOURCE_EXHAUSTED);
    // Small on the way, too large once it is unpacked.
    assert.equal((await failure(compressed.call('Points/Upsert', large))).code, RESOURCE_EXHAUSTED);
  });

  await context.test('stops at the deadline of the client', async () => {
    const late = await failure(call('Points/Count', { collection_name: 'c' }, { deadline: Date.now() - 1 }));
    assert.equal(late.code, DEADLINE_EXCEEDED);
    assert.deepEqual((await call('Points/Count', { collection_name: 'c' }, { deadline: Date.now() + 30_000 })).result, { count: '3' });
  });

  await context.test('keeps and shows aliases', async () => {
    const actions = [{ create_alias: { collection_name: 'c', alias_name: 'also' } }];
    assert.equal((await call('Collections/UpdateAliases', { actions })).result, true);
    const alias = { alias_name: 'also', collection_name: 'c' };
    assert.deepEqual((await call('Collections/ListAliases', {})).aliases, [alias]);
    assert.deepEqual((await call('Collections/ListCollectionAliases', { collection_name: 'c' })).aliases, [alias]);
    assert.deepEqual((await call('Points/Count', { collection_name: 'also' })).result, { count: '3' });
  });

  await context.test('is counted in metrics and telemetry', async () => {
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    assert.match(metrics, /^grpc_responses_total\{endpoint="\/qdrant\.Points\/Count",status="5"\} 1$/m);
    const telemetry = (await rest.result('GET', '/telemetry')) as {
      requests: { grpc: { responses: Record<string, Record<string, { count: number }>> } };
    };
    assert.equal(telemetry.requests.grpc.responses['/qdrant.Points/Upsert']?.[OK]?.count !== undefined, true);
  });

  await context.test('every method of the contract is there', async () => {
    for (const service of ['Points', 'Collections', 'Snapshots', 'Qdrant']) {
      for (const { name } of root.lookupService(`qdrant.${service}`).methodsArray) {
        const { details } = await failure(client.raw(`/qdrant.${service}/${name}`, Buffer.from([0x07]))).catch(() => ({ details: '' }));
        assert.doesNotMatch(details, /does not implement/, `${service}/${name}`);
      }
    }
  });
});

function vectorsOf(num: number): object {
  return { d: { data: [], dense: { data: [num, 1] } }, s: { data: [], sparse: { indices: [num], values: [0.5] } } };
}

test('a node without a gRPC port has none', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context), environment: { SERVICE__SERVICE__GRPC_PORT: 'null' } });
  assert.doesNotMatch(node.log(), /grpc=/);
});
