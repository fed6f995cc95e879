/** Collection configuration, in the words and the shape of the API (`GET /collections/{name}`). */

import type { Payload } from './payload.js';

export type Distance = 'Cosine' | 'Euclid' | 'Dot' | 'Manhattan';

export interface HnswConfig {
  m: number;
  ef_construct: number;
  /** Kilobytes of vectors below which a filtered search scans. */
  full_scan_threshold: number;
  max_indexing_threads?: number;
  on_disk?: boolean | null;
  payload_m?: number | null;
  inline_storage?: boolean;
}

/** How stored components are kept. */
export type Datatype = 'float32' | 'float16' | 'uint8' | 'turbo4';

export interface VectorParams {
  size: number;
  distance: Distance;
  hnsw_config?: Partial<HnswConfig>;
  /** Takes the place of the collection's. */
  quantization_config?: QuantizationConfig;
  on_disk?: boolean;
  datatype?: Datatype;
  /** Points have a list of vectors here, compared by the sum over the query's of the best similarity (MaxSim). */
  multivector_config?: { comparator: 'max_sim' };
}

export interface SparseVectorParams {
  index?: { full_scan_threshold?: number | null; on_disk?: boolean | null; datatype?: Datatype | null };
  /** `idf`: terms weigh by how rare they are among the collection's points. */
  modifier?: 'none' | 'idf';
}

export type QuantizationConfig =
  | { scalar: { type: 'int8'; quantile?: number | null; always_ram?: boolean | null } }
  | { product: { compression: 'x4' | 'x8' | 'x16' | 'x32' | 'x64'; always_ram?: boolean | null } }
  | {
      binary: {
        always_ram?: boolean | null;
        encoding?: 'one_bit' | 'two_bits' | 'one_and_half_bits' | null;
        query_encoding?: 'default' | 'binary' | 'scalar4bits' | 'scalar8bits' | null;
      };
    }
  | { turbo: { always_ram?: boolean | null; bits?: 'bits1' | 'bits1_5' | 'bits2' | 'bits4' | null } };

export interface OptimizersConfig {
  deleted_threshold: number;
  vacuum_min_vector_number: number;
  /** 0: as few as there can be. */
  default_segment_number: number;
  /** Kilobytes of vectors; null: chosen by the node. */
  max_segment_size: number | null;
  /** Kilobytes; null or 0: off. */
  memmap_threshold: number | null;
  /** Kilobytes of vectors above which a segment gets an index; 0: never. */
  indexing_threshold: number | null;
  flush_interval_sec: number;
  max_optimization_threads: number | null;
  prevent_unoptimized?: boolean | null;
}

export interface WalConfig {
  wal_capacity_mb: number;
  wal_segments_ahead: number;
  wal_retain_closed?: number;
}

/** Limits of requests, which hold while `enabled`; a field that is absent limits nothing. Source: API reference, StrictModeConfig. */
export interface StrictModeConfig {
  readonly enabled?: boolean;
  readonly max_query_limit?: number;
  /** Seconds. */
  readonly max_timeout?: number;
  readonly unindexed_filtering_retrieve?: boolean;
  readonly unindexed_filtering_update?: boolean;
  readonly search_max_hnsw_ef?: number;
  readonly search_allow_exact?: boolean;
  readonly search_max_oversampling?: number;
  /** Bytes. */
  readonly upsert_max_batchsize?: number;
  readonly search_max_batchsize?: number;
  readonly max_collection_vector_size_bytes?: number;
  readonly max_collection_payload_size_bytes?: number;
  /** Of a minute, for each replica. */
  readonly read_rate_limit?: number;
  readonly write_rate_limit?: number;
  readonly max_points_count?: number;
  readonly filter_max_conditions?: number;
  readonly condition_max_size?: number;
  readonly max_payload_index_count?: number;
  readonly max_resident_memory_percent?: number;
  readonly max_disk_usage_percent?: number;
  /** By vector name. */
  readonly multivector_config?: { readonly [name: string]: { readonly max_vectors?: number } };
  readonly sparse_config?: { readonly [name: string]: { readonly max_length?: number } };
}

/** Single vector parameters (their name is ''), or parameters by name. */
export type VectorsConfig = VectorParams | { [name: string]: VectorParams };

export interface CollectionParams {
  vectors: VectorsConfig;
  sparse_vectors?: { [name: string]: SparseVectorParams };
  shard_number: number;
  sharding_method?: 'auto' | 'custom';
  replication_factor: number;
  write_consistency_factor: number;
  read_fan_out_factor?: number;
  read_fan_out_delay_ms?: number;
  on_disk_payload: boolean;
}

export interface CollectionConfig {
  params: CollectionParams;
  hnsw_config: HnswConfig;
  optimizer_config: OptimizersConfig;
  wal_config: WalConfig;
  quantization_config: QuantizationConfig | null;
  strict_mode_config?: StrictModeConfig;
  metadata?: Payload;
}

/** The unnamed vector's name. */
export const DEFAULT_VECTOR = '';

/** Vector parameters by name, in the order of the configuration; a single vector has the name ''. */
export function vectorsByName(vectors: VectorsConfig): Map<string, VectorParams> {
  if (isSingleVector(vectors)) return new Map([[DEFAULT_VECTOR, vectors]]);
  return new Map(Object.entries(vectors));
}

/**
 * The vector whose rows lie in lists on disk instead of in a graph in memory: the first one with `on_disk` and `hnsw_config.on_disk`, for which a graph
 * is wanted and codes are made. Just one, as rows can lie in one order only. Null: none.
 */
export function listedVector({ hnsw_config, params }: Pick<CollectionConfig, 'hnsw_config' | 'params'>): string | null {
  for (const [name, { datatype, hnsw_config: own, multivector_config, on_disk }] of vectorsByName(params.vectors)) {
    const hnsw = { ...hnsw_config, ...own };
    if (on_disk === true && hnsw.on_disk === true && hnsw.m > 0 && datatype !== 'uint8' && multivector_config === undefined) return name;
  }
  return null;
}

/** Sparse vector parameters by name, in the order of the configuration. */
export function sparseByName(params: Pick<CollectionParams, 'sparse_vectors'>): Map<string, SparseVectorParams> {
  return new Map(Object.entries(params.sparse_vectors ?? {}));
}

/** Names of all vectors, dense and sparse, in the order of the configuration; a single vector has the name ''. */
export function vectorNamesOf(params: Pick<CollectionParams, 'sparse_vectors' | 'vectors'>): string[] {
  return [...vectorsByName(params.vectors).keys(), ...sparseByName(params).keys()];
}

/** Whether the configuration is the single, unnamed form. */
export function isSingleVector(vectors: VectorsConfig): vectors is VectorParams {
  return typeof (vectors as { size?: unknown }).size === 'number';
}

/** Payload index types. */
export type FieldType = 'keyword' | 'integer' | 'float' | 'bool' | 'datetime' | 'uuid' | 'text' | 'geo';

/** A payload index as created: its type and, where given, its parameters as shown in `payload_schema`. */
export interface FieldSchema {
  readonly type: FieldType;
  /** `params` of the request as it is shown back, undefined when the short form was used. */
  readonly params?: { readonly [key: string]: unknown };
}

/** Whether two schemas make the same index. */
export function sameSchema(a: FieldSchema, b: FieldSchema): boolean {
  return a.type === b.type && JSON.stringify(a.params) === JSON.stringify(b.params);
}
