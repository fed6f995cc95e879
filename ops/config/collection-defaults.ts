/** What new collections get from the node's settings. */

import type { OptimizersConfig, QuantizationConfig } from '../../protocols/model/collection.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { type CollectionDefaults, decodeStrictDefaults, type StrictMode } from '../../protocols/rest/collections.js';
import { Fields, type JsonObject } from '../../protocols/rest/fields.js';
import { decodeQuantization } from '../../protocols/rest/quantization.js';
import type { NodeSettings } from './settings.js';

/** Defaults of new collections. */
export function collectionDefaults(settings: NodeSettings): CollectionDefaults {
  const { storage } = settings;
  const { hnsw_index: hnsw, wal, optimizers } = storage;
  return {
    hnsw: {
      m: hnsw.m,
      ef_construct: hnsw.ef_construct,
      full_scan_threshold: hnsw.full_scan_threshold_kb,
      max_indexing_threads: hnsw.max_indexing_threads,
      on_disk: hnsw.on_disk,
      ...(hnsw.payload_m === null ? {} : { payload_m: hnsw.payload_m }),
    },
    optimizers: {
      deleted_threshold: optimizers.deleted_threshold,
      vacuum_min_vector_number: optimizers.vacuum_min_vector_number,
      default_segment_number: optimizers.default_segment_number,
      max_segment_size: optimizers.max_segment_size_kb,
      memmap_threshold: optimizers.memmap_threshold,
      indexing_threshold: optimizers.indexing_threshold_kb,
      flush_interval_sec: optimizers.flush_interval_sec,
      max_optimization_threads: optimizers.max_optimization_threads,
      prevent_unoptimized: null,
    },
    wal: { wal_capacity_mb: wal.wal_capacity_mb, wal_segments_ahead: wal.wal_segments_ahead, wal_retain_closed: wal.wal_retain_closed },
    shardNumber: storage.collection.shard_number_per_node ?? 1,
    replicationFactor: storage.collection.replication_factor,
    writeConsistencyFactor: storage.collection.write_consistency_factor,
    onDiskPayload: storage.on_disk_payload,
    quantization: defaultQuantization(settings),
    vectorsOnDisk: storage.collection.vectors.on_disk,
    strictMode: defaultStrictMode(settings),
  };
}

/** Strict mode of new collections, beside what these say themselves; null: none. Errors: malformedBody, invalidValue. */
export function defaultStrictMode({ storage }: NodeSettings): StrictMode | null {
  const limits = storage.collection.strict_mode as JsonObject | null;
  return limits === null ? null : decodeStrictDefaults(limits, 'storage.collection.strict_mode');
}

/** Optimizer settings of this node that go before those of collections (`storage.optimizers_overwrite`). */
export function optimizersOverwrite({ storage }: NodeSettings): Partial<OptimizersConfig> {
  const { max_segment_size_kb, indexing_threshold_kb, ...others } = storage.optimizers_overwrite;
  const named = { ...others, max_segment_size: max_segment_size_kb, indexing_threshold: indexing_threshold_kb };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== null));
}

/** Quantization of new collections that name none; null: none. Errors: malformedBody, invalidValue. */
export function defaultQuantization({ storage }: NodeSettings): QuantizationConfig | null {
  const { quantization } = storage.collection;
  if (quantization === null) return null;
  const setting = { quantization_config: quantization as Readonly<Record<string, JsonValue>> };
  return decodeQuantization(Fields.of(setting, 'storage.collection')) ?? null;
}
