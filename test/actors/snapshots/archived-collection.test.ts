import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  archivedCollection,
  describeCollection,
  incompatibility,
  isSameKey,
  keysOfShards,
} from '../../../actors/snapshots/archived-collection.js';
import { parseJson, stringifyJson } from '../../../protocols/json.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { sampleConfig } from '../samples.js';

/** What comes back through the text of an archive. */
const back = (config: CollectionConfig) =>
  archivedCollection('a', parseJson(stringifyJson(describeCollection({ config, keys: [], times: new Map([[3, 1.5e12]]) }))));

test('a configuration comes back as it was, whatever is set', () => {
  const config: CollectionConfig = {
    ...sampleConfig({ indexing_threshold: null, max_segment_size: 5000, prevent_unoptimized: true }),
    params: {
      vectors: {
        a: {
          size: 3,
          distance: 'Cosine',
          on_disk: true,
          hnsw_config: { m: 8 },
          quantization_config: { scalar: { type: 'int8', quantile: 0.9 } },
        },
        b: { size: 2, distance: 'Manhattan', datatype: 'float16', multivector_config: { comparator: 'max_sim' } },
        ['__proto__']: { size: 1, distance: 'Dot' },
      },
      sparse_vectors: { sp: { modifier: 'idf', index: { on_disk: true } } },
      shard_number: 3,
      sharding_method: 'custom',
      replication_factor: 2,
      write_consistency_factor: 2,
      read_fan_out_factor: 1,
      on_disk_payload: false,
    },
    quantization_config: { binary: { always_ram: true } },
    strict_mode_config: { enabled: true, max_query_limit: 5 },
    metadata: { k: 'v' },
    wal_config: { wal_capacity_mb: 16, wal_segments_ahead: 1, wal_retain_closed: 2 },
  };
  assert.deepEqual(back(config).config, config);
});

test('a configuration that no request could make is refused with its place', () => {
  const config = sampleConfig();
  const odd = { ...config, params: { ...config.params, vectors: { size: 'many', distance: 'Dot' } } };
  assert.throws(() => archivedCollection('a', { config: odd as never, keys: [] }), { code: 'wrongInput', message: /collection a .*size/ });
  for (const wrong of [null, 5, {}, { config: {} }, { config: sampleConfig() as never, keys: [{}] }])
    assert.throws(() => archivedCollection('a', wrong as never), { code: 'wrongInput' });
});

test('keys are listed with their shards in the order in which they were made', () => {
  const shards = [
    [2, { key: 'b' }],
    [0, { key: 'a' }],
    [1, { key: 'b' }],
    [3, { key: null }],
  ] as const;
  assert.deepEqual(keysOfShards(shards), [
    { key: 'a', shards: [0] },
    { key: 'b', shards: [1, 2] },
  ]);
});

test('a key that is a number is another one than the text of its digits', () => {
  assert.equal(isSameKey(1, '1'), false);
  assert.equal(isSameKey(1, 1n), true);
  assert.equal(isSameKey(null, null), false);
});

test('a snapshot fits collections with the same vectors and shards, whatever else is set', () => {
  const own = sampleConfig();
  assert.equal(incompatibility(sampleConfig({ indexing_threshold: 1 }), own), null);
  const vectors = { ...own, params: { ...own.params, vectors: { size: 5, distance: 'Dot' } as const } };
  assert.match(incompatibility(vectors, own) ?? '', /unnamed: 5 float32 Dot.*unnamed: 4 float32 Dot/);
  const shards = { ...own, params: { ...own.params, shard_number: 2 } };
  assert.match(incompatibility(shards, own) ?? '', /2 shards, the collection 1/);
  const custom = { ...own, params: { ...own.params, sharding_method: 'custom' as const } };
  assert.match(incompatibility(custom, own) ?? '', /sharding method custom/);
});
