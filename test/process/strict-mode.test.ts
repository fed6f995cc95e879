/** Limits of strict mode on a node with reader threads, over REST and over gRPC. What each limit says is tested in `test/storage/limits`. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestClient } from '../../ops/rest-client.js';
import { failure, GrpcClient } from '../http/grpc/client.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const CONNECTIONS = 8;
const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;

const STRICT = {
  enabled: true,
  max_query_limit: 5,
  max_timeout: 10,
  unindexed_filtering_retrieve: false,
  unindexed_filtering_update: false,
  search_max_hnsw_ef: 50,
  search_allow_exact: false,
  search_max_oversampling: 2,
  search_max_batchsize: 2,
  upsert_max_batchsize: 200,
  max_payload_index_count: 2,
  condition_max_size: 2,
  filter_max_conditions: 3,
};

const match = (key: string) => ({ key, match: { value: 1 } });
const grpcMatch = (key: string) => ({ must: [{ field: { key, match: { integer: 1 } } }] });
const long = 'x'.repeat(200);
const nearest = { nearest: { dense: { data: [1, 0] } } };

/** The limit, a request that goes beyond it over REST, and the same one over gRPC. */
const BEYOND: readonly (readonly [string, string, string, object, string, object])[] = [
  ['max_query_limit', 'POST', 'points/query', { query: [1, 0] }, 'Points/Query', { query: nearest }],
  ['max_query_limit', 'POST', 'points/scroll', { limit: 6 }, 'Points/Scroll', { limit: 6 }],
  [
    'max_query_limit',
    'POST',
    'points/search/groups',
    { vector: [1, 0], limit: 2, group_size: 3, group_by: 'a' },
    'Points/SearchGroups',
    { vector: [1, 0], limit: 2, group_size: 3, group_by: 'a' },
  ],
  ['max_timeout', 'POST', 'points/count?timeout=11', { exact: false }, 'Points/Count', { exact: false, timeout: 11 }],
  [
    'max_timeout',
    'POST',
    'points/delete?timeout=11',
    { points: [9] },
    'Points/Delete',
    { points: { points: { ids: [{ num: 9 }] } }, timeout: 11 },
  ],
  [
    'unindexed_filtering_retrieve',
    'POST',
    'points/query',
    { query: [1, 0], limit: 1, prefetch: { limit: 1, filter: { must: [match('b')] } } },
    'Points/Query',
    { query: nearest, limit: 1, prefetch: [{ limit: 1, filter: grpcMatch('b') }] },
  ],
  [
    'unindexed_filtering_update',
    'POST',
    'points/delete',
    { filter: { must: [match('b')] } },
    'Points/Delete',
    { points: { filter: grpcMatch('b') } },
  ],
  [
    'search_max_hnsw_ef',
    'POST',
    'points/search',
    { vector: [1, 0], limit: 1, params: { hnsw_ef: 51 } },
    'Points/Search',
    { vector: [1, 0], limit: 1, params: { hnsw_ef: 51 } },
  ],
  ['search_allow_exact', 'POST', 'points/count', {}, 'Points/Count', {}],
  [
    'search_max_oversampling',
    'POST',
    'points/query',
    { query: [1, 0], limit: 1, params: { quantization: { oversampling: 3 } } },
    'Points/Query',
    { query: nearest, limit: 1, params: { quantization: { oversampling: 3 } } },
  ],
  [
    'search_max_batchsize',
    'POST',
    'points/query/batch',
    { searches: [{ limit: 1 }, { limit: 1 }, { limit: 1 }] },
    'Points/QueryBatch',
    { query_points: [{ limit: 1 }, { limit: 1 }, { limit: 1 }].map((query) => ({ ...query, collection_name: 'c' })) },
  ],
  [
    'upsert_max_batchsize',
    'PUT',
    'points?wait=true',
    { points: [{ id: 9, vector: [1, 1], payload: { long } }] },
    'Points/Upsert',
    {
      wait: true,
      points: [{ id: { num: 9 }, vectors: { vector: { dense: { data: [1, 1] } } }, payload: { long: { string_value: long } } }],
    },
  ],
  [
    'max_payload_index_count',
    'PUT',
    'index',
    { field_name: 'd', field_schema: 'integer' },
    'Points/CreateFieldIndex',
    { field_name: 'd', field_type: 'FieldTypeInteger' },
  ],
  [
    'condition_max_size',
    'POST',
    'points/scroll',
    { filter: { must: [{ has_id: [1, 2, 3] }] } },
    'Points/Scroll',
    { filter: { must: [{ has_id: { has_id: [{ num: 1 }, { num: 2 }, { num: 3 }] } }] } },
  ],
  [
    'filter_max_conditions',
    'POST',
    'points/scroll',
    { filter: { must: [1, 2, 3, 4].map(() => match('a')) } },
    'Points/Scroll',
    { filter: { must: [1, 2, 3, 4].flatMap(() => grpcMatch('a').must) } },
  ],
];

test('a node refuses what goes beyond the limits of a collection, by name, over both doors and in every thread', async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const { client } = node;
  const doors = Array.from({ length: CONNECTIONS }, () => new RestClient(node.port, 1));
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => {
    grpc.close();
    for (const door of doors) door.close();
  });
  await client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, strict_mode_config: STRICT });
  await client.result('PUT', '/collections/free', { vectors: { size: 2, distance: 'Dot' } });
  for (const name of ['c', 'free'])
    await client.result('PUT', `/collections/${name}/points?wait=true`, {
      points: [1, 2].map((id) => ({ id, vector: [id, 1], payload: { a: 1 } })),
    });

  await t.test('each index counts as soon as it is there, in every thread', async () => {
    const scroll = () =>
      Promise.all(doors.map((door) => door.call('POST', '/collections/c/points/scroll', { filter: { must: [match('a')] } })));
    for (let round = 0; round < 5; round++) {
      assert.deepEqual(new Set((await scroll()).map(({ status }) => status)), new Set([400]));
      await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'a', field_schema: 'integer' });
      assert.deepEqual(new Set((await scroll()).map(({ status }) => status)), new Set([200]));
      await client.result('DELETE', '/collections/c/index/a?wait=true');
    }
    for (const field_name of ['a', 'c'])
      await client.result('PUT', '/collections/c/index?wait=true', { field_name, field_schema: 'integer' });
  });

  await t.test('every limit holds over both doors and is named, and nothing is changed', async () => {
    for (const [limit, method, path, body, call, message] of BEYOND) {
      const rest = await client.call(method, `/collections/c/${path}`, body);
      assert.deepEqual([rest.status, rest.headers['troupe-limit']], [400, limit], `${path} ${rest.text}`);
      assert.ok((await client.call(method, `/collections/free/${path}`, body)).status === 200, `without limits: ${path}`);
      const refused = await failure(grpc.call(call, { collection_name: 'c', ...message }));
      assert.deepEqual([refused.code, refused.metadata.get('troupe-limit')], [INVALID_ARGUMENT, [limit]], `${call} ${refused.details}`);
      // Both say the same, but for the bytes of an upsert.
      const said = (rest.body as { status: { error: string } }).status.error;
      if (limit !== 'upsert_max_batchsize') assert.equal(refused.details, said);
    }
    assert.equal((await client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: false })).count, 2);
  });

  await t.test('limits that are switched off and on hold for the next request on every connection', async () => {
    const query = () => Promise.all(doors.map((door) => door.call('POST', '/collections/c/points/query', { limit: 6 })));
    for (let round = 0; round < 10; round++) {
      const enabled = round % 2 === 1;
      await client.result('PATCH', '/collections/c', { strict_mode_config: { enabled } });
      assert.deepEqual(new Set((await query()).map(({ status }) => status)), new Set([enabled ? 400 : 200]));
    }
  });

  await t.test('a bucket of reads is one for all threads and both doors, and says when to come again', async () => {
    await client.result('PATCH', '/collections/free', {
      strict_mode_config: { enabled: true, read_rate_limit: 5, write_rate_limit: 3, upsert_max_batchsize: 150 },
    });
    const count = (door: RestClient) => door.call('POST', '/collections/free/points/count', {});
    const answers = await Promise.all(doors.map(count));
    assert.equal(answers.filter(({ status }) => status === 200).length, 5);
    const refused = answers.find(({ status }) => status === 429);
    assert.match(String(refused?.headers['retry-after']), /^1?\d$/);
    assert.equal(refused?.headers['troupe-limit'], 'read_rate_limit');
    const { code, metadata } = await failure(grpc.call('Points/Count', { collection_name: 'free' }));
    assert.deepEqual([code, metadata.get('troupe-limit')], [RESOURCE_EXHAUSTED, ['read_rate_limit']]);
    assert.match(String(metadata.get('retry-after')[0]), /^1?\d$/);
  });

  await t.test('points of a write cost a token each, and what is refused costs none', async () => {
    const points = (count: number) => ({ points: Array.from({ length: count }, (_, id) => ({ id, vector: [1, 1] })) });
    const write = (count: number) => client.call('PUT', '/collections/free/points?wait=true', points(count));
    assert.match((await write(4)).text, /request larger than rate limiter capacity/);
    // The thread with the connection has taken its tokens before another one finds it too large.
    const long = { points: [1, 2, 3].map((id) => ({ id, vector: [1, 1], payload: { pad: 'x'.repeat(50) } })) };
    const tooLong = await client.call('PUT', '/collections/free/points?wait=true', long);
    assert.deepEqual([tooLong.status, tooLong.headers['troupe-limit']], [400, 'upsert_max_batchsize'], tooLong.text);
    assert.equal((await write(2)).status, 200);
    assert.equal((await write(2)).status, 429);
    assert.equal((await write(1)).status, 200);
    const item = { collection_name: 'free', points: { points: { ids: [{ num: 1 }] } } };
    const { code, metadata } = await failure(grpc.call('Points/Delete', item));
    assert.deepEqual([code, metadata.get('troupe-limit')], [RESOURCE_EXHAUSTED, ['write_rate_limit']]);
    assert.match(String(metadata.get('retry-after')[0]), /^[12]?\d$/);
  });
});

test('what is stored counts as far as its points are there, also after a kill and a start', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  const limits = { enabled: true, max_collection_payload_size_bytes: 20 };
  await first.client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, strict_mode_config: limits });
  // `{"a":"four"}` has 12 bytes.
  const write = (client: RestClient, id: number) =>
    client.call('PUT', '/collections/c/points?wait=true', { points: [{ id, vector: [1, 1], payload: { a: 'four' } }] });
  assert.deepEqual([(await write(first.client, 1)).status, (await write(first.client, 2)).status], [200, 200]);
  await first.end('SIGKILL');
  const { client } = await nodeFor(t, { folder });
  await until(
    () => client.call('GET', '/readyz'),
    ({ status }) => status === 200,
  );
  const refused = await write(client, 3);
  assert.deepEqual([refused.status, refused.headers['troupe-limit']], [400, 'max_collection_payload_size_bytes'], refused.text);
  assert.equal((await client.call('POST', '/collections/c/points/delete?wait=true', { points: [1] })).status, 200);
  assert.equal((await write(client, 3)).status, 200, 'a deletion makes room');
});
