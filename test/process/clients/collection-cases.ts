/** Settings of collections: bodies of creations, and of changes to what was created. */

import type { Args } from './doors.js';

export const CREATIONS: readonly Args[] = [
  { vectors: { size: 4, distance: 'Cosine' } },
  {},
  { vectors: {} },
  {
    vectors: {
      size: 8,
      distance: 'Dot',
      on_disk: true,
      datatype: 'float16',
      hnsw_config: { m: 8, ef_construct: 32, full_scan_threshold: 100, max_indexing_threads: 1, on_disk: true, payload_m: 4 },
      quantization_config: { scalar: { type: 'int8', quantile: 0.95, always_ram: true } },
      multivector_config: { comparator: 'max_sim' },
    },
    shard_number: 2,
    sharding_method: 'auto',
    replication_factor: 1,
    write_consistency_factor: 1,
    on_disk_payload: false,
    hnsw_config: { m: 12, ef_construct: 64, full_scan_threshold: 5000, max_indexing_threads: 2, on_disk: false, payload_m: 0 },
    wal_config: { wal_capacity_mb: 16, wal_segments_ahead: 1, wal_retain_closed: 2 },
    optimizers_config: {
      deleted_threshold: 0.35,
      vacuum_min_vector_number: 500,
      default_segment_number: 3,
      max_segment_size: 100_000,
      memmap_threshold: 20_000,
      indexing_threshold: 30_000,
      flush_interval_sec: 4,
      max_optimization_threads: 2,
      prevent_unoptimized: false,
    },
    quantization_config: { product: { compression: 'x16', always_ram: false } },
    strict_mode_config: {
      enabled: false,
      max_query_limit: 100,
      max_timeout: 30,
      unindexed_filtering_retrieve: true,
      unindexed_filtering_update: false,
      search_max_hnsw_ef: 256,
      search_allow_exact: true,
      search_max_oversampling: 4.5,
      upsert_max_batchsize: 100_000,
      search_max_batchsize: 10,
      max_collection_vector_size_bytes: 1_000_000_000,
      read_rate_limit: 1000,
      write_rate_limit: 1000,
      max_collection_payload_size_bytes: 1_000_000_000,
      filter_max_conditions: 20,
      condition_max_size: 30,
      max_points_count: 1_000_000,
      max_payload_index_count: 12,
    },
    sparse_vectors: {
      words: { modifier: 'idf', index: { full_scan_threshold: 1000, on_disk: true, datatype: 'float16' } },
      tags: {},
      plain: { modifier: 'none' },
    },
    metadata: { owner: 'me', nested: { list: [1, 2.5, null, { a: true }] } },
    timeout: 20,
  },
  {
    vectors: {
      a: { size: 4, distance: 'Euclid', quantization_config: { product: { compression: 'x64' } } },
      b: { size: 4, distance: 'Manhattan', datatype: 'uint8', on_disk: false, hnsw_config: { m: 0 } },
      c: { size: 4, distance: 'Cosine', datatype: 'float32', quantization_config: { binary: {} } },
      d: {
        size: 4,
        distance: 'Cosine',
        quantization_config: { binary: { always_ram: true, encoding: 'one_and_half_bits', query_encoding: 'scalar4bits' } },
      },
      e: { size: 4, distance: 'Cosine', quantization_config: { turbo: { always_ram: true, bits: 'bits1_5' } } },
    },
    quantization_config: { binary: { encoding: 'two_bits', query_encoding: 'default' } },
    optimizers_config: { max_optimization_threads: 'auto' },
    strict_mode_config: { enabled: false, multivector_config: { m: { max_vectors: 7 } }, sparse_config: { s: { max_length: 9 } } },
    sparse_vectors: {},
  },
  { vectors: { size: 4, distance: 'Cosine' }, quantization_config: { turbo: { bits: 'bits4' } } },
];

/** Changes of the collection made by the creation with the given index. */
export const CHANGES: readonly (readonly [creation: number, change: Args])[] = [
  [0, {}],
  [0, { optimizers_config: { indexing_threshold: 50, deleted_threshold: 0.5, max_optimization_threads: 'auto' } }],
  [
    0,
    {
      params: {
        replication_factor: 1,
        write_consistency_factor: 1,
        on_disk_payload: false,
        read_fan_out_factor: 1,
        read_fan_out_delay_ms: 5,
      },
    },
  ],
  [0, { hnsw_config: { m: 24, ef_construct: 80 }, metadata: { owner: 'you' } }],
  [0, { vectors: { '': { on_disk: true, hnsw_config: { m: 10 }, quantization_config: { scalar: { type: 'int8' } } } } }],
  [0, { vectors: { '': { quantization_config: 'Disabled' } }, timeout: 5 }],
  [0, { quantization_config: { binary: { always_ram: true } } }],
  [0, { quantization_config: 'Disabled', strict_mode_config: { enabled: false, max_query_limit: 5 } }],
  [3, { metadata: { owner: null, more: 1 }, strict_mode_config: { max_timeout: 10 } }],
  [3, { sparse_vectors: { words: { index: { on_disk: false, full_scan_threshold: 10 } } } }],
  [
    4,
    { vectors: { a: { on_disk: true, quantization_config: { turbo: { bits: 'bits2' } } }, b: { hnsw_config: { m: 8, on_disk: true } } } },
  ],
];
