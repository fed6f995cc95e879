/** Schemas of collections, their settings, aliases and payload indexes. */

import { STEMMER_LANGUAGES, STOPWORD_LANGUAGES } from '../model/text.js';
import { SHARDS_MAX } from '../rest/collections.js';
import { any, COUNT, described, FLAG, fields, integer, leaf, list, map, NUMBER, numberWithin, ref, TEXT, words } from './schema.js';

const DISTANCE = words('Cosine', 'Euclid', 'Dot', 'Manhattan');
const DATATYPE = words('float32', 'float16', 'uint8', 'turbo4');
const MULTIVECTOR = fields({ comparator: words('max_sim') });
const SIZE = integer(1, 65536);
/** `Disabled` takes a quantization away. */
const QUANTIZATION_CHANGE = any(ref('Quantization'), words('Disabled'));
const SPARSE_VECTORS = map(ref('SparseVectorParams'));

const INDEX_TYPES = ['keyword', 'integer', 'float', 'bool', 'geo', 'datetime', 'uuid', 'text'] as const;
const STOPWORDS = words(...STOPWORD_LANGUAGES);

export const COLLECTION_SCHEMAS = {
  HnswChange: described(
    'The graph of neighbours that searches walk.',
    fields(
      {},
      {
        m: described('Links per point; 0 for no graph.', COUNT),
        ef_construct: described('Candidates looked at while building.', integer(4)),
        full_scan_threshold: described('Kilobytes of vectors below which a filtered search scans.', integer(10)),
        max_indexing_threads: described('0: chosen by the node.', COUNT),
        on_disk: FLAG,
        payload_m: described('Links per point among those of one tenant.', COUNT),
        inline_storage: FLAG,
      },
    ),
  ),
  Quantization: described(
    'A smaller form of vectors to search with.',
    any(
      fields({ scalar: fields({ type: words('int8') }, { quantile: numberWithin(0.5, 1), always_ram: FLAG }) }),
      fields({ product: fields({ compression: words('x4', 'x8', 'x16', 'x32', 'x64') }, { always_ram: FLAG }) }),
      fields({
        binary: fields(
          {},
          {
            always_ram: FLAG,
            encoding: words('one_bit', 'two_bits', 'one_and_half_bits'),
            query_encoding: words('default', 'binary', 'scalar4bits', 'scalar8bits'),
          },
        ),
      }),
      fields({ turbo: fields({}, { always_ram: FLAG, bits: words('bits1', 'bits1_5', 'bits2', 'bits4') }) }),
    ),
  ),
  VectorParams: fields(
    { size: SIZE, distance: DISTANCE },
    {
      hnsw_config: ref('HnswChange'),
      quantization_config: ref('Quantization'),
      on_disk: FLAG,
      datatype: DATATYPE,
      multivector_config: MULTIVECTOR,
    },
  ),
  SparseVectorParams: fields(
    {},
    {
      index: fields({}, { full_scan_threshold: COUNT, on_disk: FLAG, datatype: words('float32', 'float16', 'uint8') }),
      modifier: words('none', 'idf'),
    },
  ),
  VectorsConfig: described('One unnamed vector, or vectors by name.', any(ref('VectorParams'), map(ref('VectorParams')))),
  OptimizersChange: fields(
    {},
    {
      deleted_threshold: described('Share of deleted points from which a segment is cleaned.', numberWithin(0, 1)),
      vacuum_min_vector_number: integer(100),
      default_segment_number: described('0: as few as `max_segment_size` allows, once writes pause.', COUNT),
      max_segment_size: described('Kilobytes.', integer(1)),
      memmap_threshold: described('Kilobytes; 0 for never.', COUNT),
      indexing_threshold: described('Kilobytes of vectors above which a segment gets an index; 0 for never.', COUNT),
      flush_interval_sec: COUNT,
      max_optimization_threads: any(words('auto'), COUNT),
      prevent_unoptimized: FLAG,
    },
  ),
  WalChange: fields({}, { wal_capacity_mb: integer(1), wal_segments_ahead: COUNT, wal_retain_closed: COUNT }),
  StrictMode: described(
    'Limits on what requests about points may ask for. An error names the field that it is about in the header `troupe-limit`.',
    fields(
      {},
      {
        enabled: described('Whether the limits hold.', FLAG),
        max_query_limit: described('Largest `limit`; of groups `limit` × `group_size`, of a matrix `sample` × `limit`.', integer(1)),
        max_timeout: described('Largest `timeout`, in seconds.', integer(1)),
        unindexed_filtering_retrieve: described('False: reads filter by indexed payload keys only.', FLAG),
        unindexed_filtering_update: described('False: updates by filter filter by indexed payload keys only.', FLAG),
        search_max_hnsw_ef: COUNT,
        search_allow_exact: described('False: no exact searches, facets and counts.', FLAG),
        search_max_oversampling: NUMBER,
        upsert_max_batchsize: described('Most bytes of the points of an upsert.', COUNT),
        search_max_batchsize: described('Most searches of a batch.', COUNT),
        max_collection_vector_size_bytes: described('Writes of vectors are refused once there are so many bytes.', COUNT),
        max_collection_payload_size_bytes: described('Writes of payloads are refused once there are so many bytes.', COUNT),
        read_rate_limit: described('Reads of a minute on each replica; beyond it 429 with `retry-after`.', integer(1)),
        write_rate_limit: described('Writes of a minute on each replica; beyond it 429 with `retry-after`.', integer(1)),
        max_points_count: described('Upserts are refused once there are so many points.', integer(1)),
        filter_max_conditions: described('Most conditions of a filter.', COUNT),
        condition_max_size: described('Most values, ids or corners of a condition.', COUNT),
        multivector_config: described('By vector name.', map(fields({}, { max_vectors: integer(1) }))),
        sparse_config: described('By vector name.', map(fields({}, { max_length: integer(1) }))),
        max_payload_index_count: COUNT,
        max_resident_memory_percent: described('Writes are refused while the node uses so much of its memory.', integer(1, 100)),
        max_disk_usage_percent: described('Writes are refused while so much of the disk is used.', integer(1, 100)),
      },
    ),
  ),
  CreateCollection: fields(
    {},
    {
      vectors: ref('VectorsConfig'),
      sparse_vectors: SPARSE_VECTORS,
      shard_number: integer(1, SHARDS_MAX),
      sharding_method: words('auto', 'custom'),
      replication_factor: integer(1),
      write_consistency_factor: integer(1),
      on_disk_payload: FLAG,
      hnsw_config: ref('HnswChange'),
      wal_config: ref('WalChange'),
      optimizers_config: ref('OptimizersChange'),
      quantization_config: ref('Quantization'),
      strict_mode_config: ref('StrictMode'),
      metadata: ref('Payload'),
    },
  ),
  UpdateCollection: fields(
    {},
    {
      vectors: map(fields({}, { hnsw_config: ref('HnswChange'), quantization_config: QUANTIZATION_CHANGE, on_disk: FLAG })),
      sparse_vectors: SPARSE_VECTORS,
      optimizers_config: ref('OptimizersChange'),
      params: fields(
        {},
        {
          replication_factor: integer(1),
          write_consistency_factor: integer(1),
          read_fan_out_factor: COUNT,
          read_fan_out_delay_ms: COUNT,
          on_disk_payload: FLAG,
        },
      ),
      hnsw_config: ref('HnswChange'),
      quantization_config: QUANTIZATION_CHANGE,
      strict_mode_config: ref('StrictMode'),
      metadata: described('Keys to set; null removes one.', ref('Payload')),
    },
  ),
  CreateVectorName: any(
    fields({
      dense: fields(
        { size: SIZE, distance: DISTANCE },
        { multivector_config: MULTIVECTOR, datatype: words('float32', 'float16', 'uint8') },
      ),
    }),
    fields({ sparse: fields({}, { modifier: words('none', 'idf'), datatype: words('float32', 'float16', 'uint8') }) }),
  ),
  ChangeAliases: described(
    'All actions together, or none.',
    fields({
      actions: list(
        any(
          fields({ create_alias: fields({ alias_name: TEXT, collection_name: TEXT }) }),
          fields({ delete_alias: fields({ alias_name: TEXT }) }),
          fields({ rename_alias: fields({ old_alias_name: TEXT, new_alias_name: TEXT }) }),
        ),
      ),
    }),
  ),
  CreateFieldIndex: fields({ field_name: ref('Key'), field_schema: any(words(...INDEX_TYPES), ref('IndexParams')) }),
  IntegerIndexParams: described(
    'At least one of `lookup` and `range` is on, as both are by default.',
    fields({ type: words('integer') }, { lookup: FLAG, range: FLAG, is_principal: FLAG, on_disk: FLAG, enable_hnsw: FLAG }),
  ),
  IndexParams: described(
    'A type of payload index with its parameters.',
    any(
      fields({ type: words('keyword', 'uuid') }, { is_tenant: FLAG, on_disk: FLAG, enable_hnsw: FLAG }),
      ref('IntegerIndexParams'),
      fields({ type: words('float', 'datetime') }, { is_principal: FLAG, on_disk: FLAG, enable_hnsw: FLAG }),
      fields({ type: words('bool', 'geo') }, { on_disk: FLAG, enable_hnsw: FLAG }),
      fields(
        { type: words('text') },
        {
          tokenizer: words('prefix', 'whitespace', 'word', 'multilingual'),
          min_token_len: COUNT,
          max_token_len: COUNT,
          lowercase: FLAG,
          ascii_folding: FLAG,
          phrase_matching: FLAG,
          stopwords: any(STOPWORDS, fields({}, { languages: list(STOPWORDS), custom: list(TEXT) })),
          stemmer: fields({ type: words('snowball'), language: words(...STEMMER_LANGUAGES) }),
          on_disk: FLAG,
          enable_hnsw: FLAG,
        },
      ),
    ),
  ),

  Collections: fields({ collections: list(fields({ name: TEXT })) }),
  Existence: fields({ exists: FLAG }),
  Aliases: fields({ aliases: list(fields({ alias_name: TEXT, collection_name: TEXT })) }),
  CollectionInfo: fields(
    {
      status: words('green', 'yellow', 'grey', 'red'),
      optimizer_status: any(words('ok'), fields({ error: TEXT })),
      indexed_vectors_count: COUNT,
      points_count: COUNT,
      segments_count: COUNT,
      config: ref('CollectionConfig'),
      payload_schema: map(fields({ data_type: words(...INDEX_TYPES), points: COUNT }, { params: leaf<object>({ type: 'object' }) })),
      update_queue: fields({ length: COUNT }, { deferred_points: COUNT }),
    },
    { warnings: list(fields({ message: TEXT })) },
  ),
  CollectionConfig: fields(
    {
      params: fields(
        {
          vectors: ref('VectorsConfig'),
          shard_number: COUNT,
          replication_factor: COUNT,
          write_consistency_factor: COUNT,
          on_disk_payload: FLAG,
        },
        {
          sparse_vectors: SPARSE_VECTORS,
          sharding_method: words('auto', 'custom'),
          read_fan_out_factor: COUNT,
          read_fan_out_delay_ms: COUNT,
        },
      ),
      hnsw_config: ref('HnswChange'),
      optimizer_config: ref('OptimizersChange'),
      wal_config: ref('WalChange'),
    },
    { quantization_config: ref('Quantization'), strict_mode_config: ref('StrictMode'), metadata: ref('Payload') },
  ),
  Optimizations: fields(
    {
      summary: fields({ queued_optimizations: COUNT, queued_segments: COUNT, queued_points: COUNT, idle_segments: COUNT }),
      running: list(leaf<object>({ type: 'object' })),
    },
    {
      queued: list(leaf<object>({ type: 'object' })),
      completed: list(leaf<object>({ type: 'object' })),
      idle_segments: list(fields({ uuid: TEXT, points_count: COUNT })),
    },
  ),
};
