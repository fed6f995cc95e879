/** Sources and jobs for tests of builds. */

import assert from 'node:assert/strict';
import type { CollectionConfig, Distance, FieldSchema, HnswConfig, VectorParams } from '../../../protocols/model/collection.js';
import { idKind, type PointId, writeIdWords } from '../../../protocols/model/point-id.js';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import type { BuildControl } from '../../../storage/builder/control.js';
import type { PayloadSource } from '../../../storage/builder/payload-source.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { type ElementType, LIVE, residentOffset, segmentLayout, segmentMemory } from '../../../storage/segment/layout.js';
import type { BuildJob, BuildResult, BuiltSegment } from '../../../storage/threads/messages.js';
import { encodeHalf } from '../../../vectors/half.js';

export interface SourceVector {
  readonly params: VectorParams;
  readonly element?: ElementType;
  /** The row's vector, or undefined when it has none. */
  readonly of: (row: number) => ArrayLike<number> | undefined;
}

export interface SourceShape {
  readonly id: number;
  readonly rows: number;
  readonly vectors: Readonly<Record<string, SourceVector>>;
  readonly idOf: (row: number) => PointId;
  readonly deletedAt?: (row: number) => number;
  readonly versionOf?: (row: number) => number;
}

/** An appendable segment with the rows given. */
export function makeSource(shape: SourceShape): SegmentHandle {
  const plans = Object.entries(shape.vectors).map(([name, { params, element }]) => ({
    kind: 'dense' as const,
    itemCapacity: 0,
    name,
    dim: params.size,
    distance: params.distance,
    element: element ?? ('f32' as const),
    codes: null,
    graph: null,
  }));
  const layout = segmentLayout(shape.rows + 10, plans, { ordered: false, readers: 1 });
  const memory = segmentMemory(layout);
  const kinds = new Uint8Array(memory.buffer, layout.kinds, shape.rows);
  const words = new Uint32Array(memory.buffer, layout.ids, shape.rows * 4);
  const versions = new Float64Array(memory.buffer, layout.versions, shape.rows);
  const deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity).fill(LIVE);
  for (let row = 0; row < shape.rows; row++) {
    const id = shape.idOf(row);
    kinds[row] = idKind(id);
    writeIdWords(id, words, row * 4);
    versions[row] = shape.versionOf?.(row) ?? row + 1;
    deletedAt[row] = shape.deletedAt?.(row) ?? LIVE;
  }
  for (const vector of layout.vectors) {
    const presence = new Uint32Array(memory.buffer, vector.presence, Math.ceil(shape.rows / 32));
    for (let row = 0; row < shape.rows; row++) {
      const values = shape.vectors[vector.name]?.of(row);
      if (values === undefined) continue;
      presence[row >>> 5] = (presence[row >>> 5] as number) | (1 << (row & 31));
      const offset = residentOffset(vector) + row * vector.stride;
      if (vector.element === 'f32') new Float32Array(memory.buffer, offset, vector.dim).set(values);
      else if (vector.element === 'u8') new Uint8Array(memory.buffer, offset, vector.dim).set(values);
      else encodeHalf(Float32Array.from(values), new Uint16Array(memory.buffer, offset, vector.dim));
    }
  }
  return {
    id: shape.id,
    kind: 'appendable',
    layout,
    memory,
    rows: 0,
    folder: null,
    payloadOffsets: null,
    payloadBytes: null,
    fieldIndexes: [],
    sparseIndexes: [],
  };
}

export function makeConfig(vectors: CollectionConfig['params']['vectors'], hnsw: Partial<HnswConfig> = {}): CollectionConfig {
  return {
    params: { vectors, shard_number: 1, replication_factor: 1, write_consistency_factor: 1, on_disk_payload: true },
    hnsw_config: { m: 8, ef_construct: 64, full_scan_threshold: 10_000, ...hnsw },
    optimizer_config: {
      deleted_threshold: 0.2,
      vacuum_min_vector_number: 1000,
      default_segment_number: 0,
      max_segment_size: null,
      memmap_threshold: null,
      indexing_threshold: 10_000,
      flush_interval_sec: 5,
      max_optimization_threads: null,
    },
    wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0 },
    quantization_config: null,
  };
}

export interface JobShape {
  readonly folder: string;
  readonly config: CollectionConfig;
  readonly sources: readonly SegmentHandle[];
  readonly rows: readonly number[];
  readonly seq?: number;
  readonly segmentId?: number;
  readonly fields?: ReadonlyMap<string, FieldSchema>;
  readonly withGraph?: boolean;
}

export function makeJob(shape: JobShape): BuildJob {
  return {
    spec: { key: 'c/0', folder: shape.folder, config: shape.config, readers: 1 },
    openCommit: 0,
    seq: shape.seq ?? 100,
    rows: shape.rows,
    sources: shape.sources,
    fields: shape.fields ?? new Map(),
    segmentIds: [shape.segmentId ?? 50],
    plan: 'segment',
    missingFields: [],
    withGraph: shape.withGraph ?? true,
    threads: 1,
    niceness: 5,
  };
}

/** The one segment that was built. */
export function onlyBuilt({ built }: BuildResult): BuiltSegment {
  assert.equal(built.length, 1);
  return built[0] as BuiltSegment;
}

/** As `buildSegments`, of a job that makes one. */
export async function buildSegment(...args: Parameters<typeof buildSegments>): Promise<BuiltSegment & Omit<BuildResult, 'built'>> {
  const result = await buildSegments(...args);
  return { ...result, ...onlyBuilt(result) };
}

/** A control that never stops the build and whose clock stands still. */
export const freeControl: BuildControl = { checkpoint: async () => {}, progress: () => {}, now: () => 0 };

/** Payloads by source and row, made up on the spot. */
export function payloadsFrom(textOf: (source: number, row: number) => string): PayloadSource {
  return { text: (source, row) => new TextEncoder().encode(textOf(source.id, row)), texts: () => null, close: async () => {} };
}

/** Pseudo-random numbers in [0, 1), the same ones for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Rows around `clusters` centres within ±range, each `spread` around its centre. */
export function clusteredRows(
  rows: number,
  dim: number,
  shape: { clusters: number; range: number; spread: number; seed: number },
): Float32Array[] {
  const random = randomFrom(shape.seed);
  const signed = () => random() * 2 - 1;
  const centres = Array.from({ length: shape.clusters }, () => Float32Array.from({ length: dim }, () => signed() * shape.range));
  return Array.from({ length: rows }, (_, row) => {
    const centre = centres[row % shape.clusters] as Float32Array;
    return centre.map((value) => value + (signed() + signed() + signed()) * shape.spread);
  });
}

export const DISTANCES: readonly Distance[] = ['Cosine', 'Euclid', 'Dot', 'Manhattan'];
