/** `GET /telemetry` of a real node, compared with what strict clients of the API expect of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeFor, temporaryFolder, until } from '../../process/support.js';

/** What a value must be. A name ending with `?` may be absent; `{}` is an object of anything; `*` is any key. */
type Shape = 'text' | 'count' | 'number' | 'flag' | 'time' | readonly [Shape] | { readonly [name: string]: Shape };

const STATISTICS: Shape = {
  count: 'count',
  'avg_duration_micros?': 'number',
  'min_duration_micros?': 'number',
  'max_duration_micros?': 'number',
  'total_duration_micros?': 'count',
  'last_responded?': 'time',
};
const RESPONSES: Shape = { responses: { '*': { '*': STATISTICS } }, 'per_collection_responses?': { '*': { '*': { '*': STATISTICS } } } };
const VECTORS: Shape = { '*': { num_vectors: 'count', num_indexed_vectors: 'count', num_deleted_vectors: 'count' } };
const SEGMENT: Shape = {
  info: {
    uuid: 'text',
    segment_type: 'text',
    num_vectors: 'count',
    num_points: 'count',
    num_indexed_vectors: 'count',
    num_deleted_vectors: 'count',
    vectors_size_bytes: 'count',
    payloads_size_bytes: 'count',
    ram_usage_bytes: 'count',
    disk_usage_bytes: 'count',
    is_appendable: 'flag',
    index_schema: { '*': { data_type: 'text', points: 'count' } },
    vector_data: VECTORS,
  },
  config: {
    vector_data: { '*': { size: 'count', distance: 'text', storage_type: 'text', index: { type: 'text', options: {} } } },
    sparse_vector_data: { '*': { index: { index_type: 'text' } } },
    payload_storage_type: { type: 'text' },
  },
  vector_index_searches: [{}],
  payload_field_indices: [{ field_name: 'text', index_type: 'text', points_values_count: 'count', points_count: 'count' }],
};
const LOCAL: Shape = {
  variant_name: 'text',
  status: 'text',
  total_optimized_points: 'count',
  vectors_size_bytes: 'count',
  payloads_size_bytes: 'count',
  num_points: 'count',
  num_vectors: 'count',
  num_vectors_by_name: { '*': 'count' },
  optimizations: {
    optimizations: STATISTICS,
    log: [{ name: 'text', uuid: 'text', segment_ids: ['count'], segment_uuids: ['text'], start_at: 'time', 'end_at?': 'time' }],
  },
  'segments?': [SEGMENT],
  async_scorer: 'flag',
  update_queue: { length: 'count', op_num: 'count' },
};
const SHARD: Shape = {
  id: 'count',
  'local?': LOCAL,
  remote: [{ shard_id: 'count', peer_id: 'count' }],
  replicate_states: { '*': 'text' },
  'partial_snapshot?': { ongoing_create_snapshot_requests: 'count', is_recovering: 'flag', recovery_timestamp: 'count' },
};
const APP: Shape = {
  runtime_features: { '*': 'flag' },
  low_memory_mode: 'text',
  jwt_rbac: 'flag',
  hide_jwt_dashboard: 'flag',
};
const CONFIG: Shape = {
  params: {},
  hnsw_config: { m: 'count', ef_construct: 'count', full_scan_threshold: 'count' },
  optimizer_config: { default_segment_number: 'count', flush_interval_sec: 'count' },
  wal_config: { wal_capacity_mb: 'count', wal_segments_ahead: 'count' },
};
const USAGE: Shape = {
  cpu: 'count',
  payload_io_read: 'count',
  payload_io_write: 'count',
  payload_index_io_read: 'count',
  payload_index_io_write: 'count',
  vector_io_read: 'count',
  vector_io_write: 'count',
};
const FEATURES: Shape = {
  debug: 'flag',
  service_debug_feature: 'flag',
  recovery_mode: 'flag',
  gpu: 'flag',
  rocksdb: 'flag',
  staging: 'flag',
};
const SNAPSHOTS: Shape = {
  id: 'text',
  'running_snapshots?': 'count',
  'running_snapshot_recovery?': 'count',
  'total_snapshot_creations?': 'count',
};
/** Source: schema TelemetryData of the API. */
const REPORT: Shape = {
  id: 'text',
  app: {
    name: 'text',
    version: 'text',
    startup: 'time',
    'features?': FEATURES,
    'collection_sizes?': [
      { id: 'text', disk_bytes: 'count', memory_bytes: 'count', filter_cache: { bytes: 'count', hits: 'count', misses: 'count' } },
    ],
    'system?': { is_docker: 'flag', cpu_flags: 'text', 'cores?': 'count', 'ram_size?': 'count', 'distribution?': 'text' },
  },
  collections: {
    number_of_collections: 'count',
    'max_collections?': 'count',
    'collections?': [{ id: 'text', 'config?': CONFIG, 'init_time_ms?': 'count', 'shards?': [SHARD] }],
    'snapshots?': [SNAPSHOTS],
  },
  cluster: { enabled: 'flag' },
  requests: { rest: RESPONSES, grpc: RESPONSES },
  'memory?': {
    active_bytes: 'count',
    allocated_bytes: 'count',
    metadata_bytes: 'count',
    resident_bytes: 'count',
    retained_bytes: 'count',
  },
  'search_pool?': { mode: 'text', high_cpu_threads: 'count', high_io_threads: 'count' },
  'hardware?': { collection_data: { '*': USAGE } },
};
const TOP_LEVEL = Object.keys(REPORT).map((name) => name.replace('?', ''));

function check(value: unknown, shape: Shape, path: string): void {
  if (typeof shape === 'string') {
    const isRight = {
      text: typeof value === 'string',
      flag: typeof value === 'boolean',
      number: typeof value === 'number',
      count: Number.isInteger(value) && (value as number) >= 0,
      time: typeof value === 'string' && !Number.isNaN(Date.parse(value)),
    }[shape];
    assert.ok(isRight, `${path} is ${JSON.stringify(value)}, not a ${shape}`);
  } else if (Array.isArray(shape)) {
    assert.ok(Array.isArray(value), `${path} is no list`);
    for (const [at, item] of value.entries()) check(item, shape[0] as Shape, `${path}[${at}]`);
  } else {
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${path} is ${JSON.stringify(value)}, not an object`);
    const members = value as Record<string, unknown>;
    for (const [name, of] of Object.entries(shape)) {
      const key = name.replace('?', '');
      if (name === '*') for (const [one, member] of Object.entries(members)) check(member, of, `${path}.${one}`);
      else if (key in members || key === name) check(members[key], of, `${path}.${key}`);
    }
  }
}

const QUERIES = [
  '',
  'per_collection=true',
  ...[0, 1, 2, 3, 4, 10].map((level) => `details_level=${level}`),
  'details_level=10&anonymize=true&per_collection=true',
];

test('the report has the types of the API at each level, and no other names at its top', async (t) => {
  const { client } = await nodeFor(t, {
    folder: await temporaryFolder(t),
    environment: { SERVICE__SERVICE__HARDWARE_REPORTING: 'true' },
  });
  await client.result('PUT', '/collections/secret', { vectors: { size: 2, distance: 'Dot' }, sparse_vectors: { words: {} } });
  await client.result('PUT', '/collections/secret/index?wait=true', { field_name: 'secret field', field_schema: 'integer' });
  await client.result('PUT', '/collections/secret/points?wait=true', {
    points: [{ id: 1, vector: [1, 2], payload: { a: 1, 'secret field': 3 } }],
  });
  await client.result('POST', '/collections/secret/points/query', { query: [1, 0] });
  await client.result('POST', '/collections/secret/snapshots');
  for (const query of QUERIES) {
    const report = await client.result<Record<string, Record<string, unknown>>>('GET', `/telemetry?${query}`);
    check(report, REPORT, `telemetry?${query}`);
    assert.deepEqual(
      Object.keys(report).filter((name) => !TOP_LEVEL.includes(name)),
      [],
    );
    const isDetailed = /level=[1-9]/.test(query);
    for (const name of ['memory', 'hardware']) assert.equal(name in report, isDetailed, name);
    for (const name of ['collections', 'snapshots']) assert.equal(name in (report.collections ?? {}), isDetailed, name);
    for (const name of ['features', 'system']) assert.equal(name in (report.app ?? {}), isDetailed, name);
    const collections = (report.collections?.collections ?? []) as Record<string, unknown>[];
    assert.equal(collections.length, isDetailed ? 1 : 0);
    if (isDetailed) check(report.app, APP, 'app');
    // Shards are told from level 2 on.
    const shards = collections.flatMap(({ shards }) => (shards ?? []) as Record<string, Record<string, unknown>>[]);
    assert.equal(shards.length, /[2-9]|10/.test(query) ? 1 : 0, query);
    for (const { local, replicate_states } of shards) assert.deepEqual([local?.num_points, replicate_states], [1, { 0: 'Active' }]);
    const segments = shards.flatMap(({ local }) => (local?.segments ?? []) as { info: { num_points: number; index_schema: object } }[]);
    assert.equal(segments.length > 0, /[3-9]|10/.test(query), query);
    if (segments.length > 0) {
      assert.equal(
        segments.reduce((sum, { info }) => sum + info.num_points, 0),
        1,
      );
      assert.equal(Object.keys(segments[0]?.info.index_schema ?? {}).length, 1);
    }
    const counted = Object.keys(
      (report.requests?.rest as { per_collection_responses?: object } | undefined)?.per_collection_responses ?? {},
    );
    assert.equal(counted.length, query.includes('per_collection') ? 1 : 0, query);
    if (query.includes('anonymize')) assert.doesNotMatch(JSON.stringify(report), /secret/);
  }
  const filter = { must: [{ key: 'a', match: { value: 1 } }] };
  for (let round = 0; round < 2; round++) await client.result('POST', '/collections/secret/points/count', { filter });
  interface Sizes {
    readonly app: {
      readonly collection_sizes: readonly { readonly filter_cache: Readonly<Record<'bytes' | 'hits' | 'misses', number>> }[];
    };
  }
  const { app } = await until(
    () => client.result<Sizes>('GET', '/telemetry?details_level=1'),
    ({ app }) => (app.collection_sizes[0]?.filter_cache.misses ?? 0) > 0,
  );
  const { bytes, hits, misses } = app.collection_sizes[0]?.filter_cache ?? { bytes: 0, hits: 0, misses: 0 };
  // Each of the readers begins with an empty cache.
  assert.ok(bytes > 0 && hits + misses === 2, `${bytes} bytes, ${hits} hits, ${misses} misses`);
  const metrics = (await client.call('GET', '/metrics')).text;
  assert.match(metrics, /collection_filter_cache_bytes\{id="secret"\} [1-9]/);
});
