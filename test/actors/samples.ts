/** Configurations and figures that actor tests start from. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { NO_TAG } from '../../protocols/model/shard-log.js';
import type { ReplicaStats, SegmentStats } from '../../storage/threads/messages.js';

/** A collection of 4-dimensional vectors with the defaults of a node. */
export function sampleConfig(optimizer: Partial<CollectionConfig['optimizer_config']> = {}): CollectionConfig {
  return {
    params: {
      vectors: { size: 4, distance: 'Dot' },
      shard_number: 1,
      replication_factor: 1,
      write_consistency_factor: 1,
      on_disk_payload: true,
    },
    hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000, max_indexing_threads: 0, on_disk: false },
    optimizer_config: {
      deleted_threshold: 0.2,
      vacuum_min_vector_number: 1000,
      default_segment_number: 0,
      max_segment_size: null,
      memmap_threshold: null,
      indexing_threshold: 10,
      flush_interval_sec: 5,
      max_optimization_threads: null,
      ...optimizer,
    },
    wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0 },
    quantization_config: null,
  };
}

const GRAPH = { name: '', m: 16, efConstruct: 100 };

export function sampleSegment(segment: Partial<SegmentStats> = {}): SegmentStats {
  return {
    id: 1,
    kind: 'appendable',
    rows: 0,
    deleted: 0,
    vectorBytes: 0,
    payloadBytes: 0,
    frozen: false,
    deferred: false,
    building: false,
    indexedVectors: 0,
    missingFields: [],
    graphs: [],
    quantized: [],
    damagedFiles: [],
    ...segment,
  };
}

/** A sealed segment whose vectors all have a graph. */
export function indexedSegment(segment: Partial<SegmentStats> = {}): SegmentStats {
  return sampleSegment({
    kind: 'sealed',
    rows: 5000,
    vectorBytes: 80_000,
    frozen: true,
    deferred: false,
    graphs: [GRAPH],
    quantized: [],
    indexedVectors: 5000,
    ...segment,
  });
}

/** An appendable segment that is large enough for a graph with `sampleConfig`. */
export function dueSegment(segment: Partial<SegmentStats> = {}): SegmentStats {
  return sampleSegment({ rows: 5000, vectorBytes: 80_000, ...segment });
}

export function sampleStats(segments: readonly SegmentStats[] = [sampleSegment()], stats: Partial<ReplicaStats> = {}): ReplicaStats {
  return {
    key: 'pictures/0',
    deferredPoints: 0,
    defers: false,
    points: segments.reduce((total, segment) => total + segment.rows - segment.deleted, 0),
    segments,
    fields: new Map(),
    fieldPoints: new Map(),
    appliedOperation: 1,
    queuedOperations: 0,
    commits: 1,
    walBytes: 0,
    database: null,
    lastWriteMs: 0,
    position: { last: NO_TAG, base: NO_TAG },
    ...stats,
  };
}
