/** Snapshots of a small collection for tests of reads: an appendable segment in memory, and sealed ones built from such. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TroupeError } from '../../../protocols/errors.js';
import { stringifyJson } from '../../../protocols/json.js';
import {
  type CollectionConfig,
  type CollectionParams,
  type Distance,
  type FieldSchema,
  sparseByName,
  type VectorsConfig,
  vectorsByName,
} from '../../../protocols/model/collection.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { compareIds, idKind, type PointId, writeIdWords } from '../../../protocols/model/point-id.js';
import type { GroupsRequest, MatrixQuery, QueryRequest, ScrollQuery } from '../../../protocols/model/query.js';
import { FilterCache } from '../../../query/filter/cache.js';
import type { DistanceMatrix } from '../../../storage/answers/read-answer.js';
import type { GroupView, PointView } from '../../../storage/answers/result.js';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { walkRows } from '../../../storage/reader/query/row-answers.js';
import type { ReadContext } from '../../../storage/reader/read-context.js';
import { type ReplicaSnapshot, SegmentReader, SegmentView } from '../../../storage/reader/snapshot/snapshot-view.js';
import type { ReplicaView } from '../../../storage/replica/reader-view.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { LIVE, residentOffset, segmentLayout, segmentMemory, type VectorLayout, type VectorPlan } from '../../../storage/segment/layout.js';
import { vectorPlans } from '../../../storage/segment/plans.js';
import { itemOffsets, raggedOf } from '../../../storage/segment/ragged.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { unkeyedShards } from '../../../storage/sharding/keys.js';
import { Deadline } from '../../../storage/threads/deadline.js';
import type { BuildJob } from '../../../storage/threads/messages.js';
import { ReplicaUses } from '../../../storage/threads/replica-uses.js';
import { ScratchTurns, scratchTurns } from '../../../storage/threads/scratch-turns.js';
import { groupsWalk } from '../../../storage/walk/groups.js';
import { matrixWalk } from '../../../storage/walk/matrix.js';
import { scrollWalk } from '../../../storage/walk/points.js';
import { queryWalk } from '../../../storage/walk/query.js';
import { encodeHalf } from '../../../vectors/half.js';
import { normalizeRows } from '../../../vectors/normalize.js';

/** Dense, multivector or sparse, as in a request. */
export type TestVector =
  | readonly number[]
  | readonly (readonly number[])[]
  | { readonly indices: readonly number[]; readonly values: readonly number[] };

export interface TestPoint {
  readonly id: PointId;
  /** By name; a missing one is left out. */
  readonly vectors: { readonly [name: string]: TestVector };
  readonly payload?: Payload;
  readonly version?: number;
  /** Commit that deleted it. */
  readonly deletedAt?: number;
}

export const SEQ = 10;

export function configOf(
  vectors: VectorsConfig,
  more: { fullScanThresholdKb?: number; indexingThresholdKb?: number; sparse?: CollectionParams['sparse_vectors'] } = {},
): CollectionConfig {
  return {
    params: {
      vectors,
      ...(more.sparse === undefined ? {} : { sparse_vectors: more.sparse }),
      shard_number: 1,
      replication_factor: 1,
      write_consistency_factor: 1,
      on_disk_payload: true,
    },
    hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: more.fullScanThresholdKb ?? 0 },
    optimizer_config: {
      deleted_threshold: 0.2,
      vacuum_min_vector_number: 1000,
      default_segment_number: 0,
      max_segment_size: null,
      memmap_threshold: null,
      indexing_threshold: more.indexingThresholdKb ?? 10000,
      flush_interval_sec: 5,
      max_optimization_threads: null,
    },
    wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0 },
    quantization_config: null,
  };
}

/** Marks rows as deleted by a commit, as a writer does. */
export function markDeleted(reader: SegmentReader, rows: Iterable<number>, seq: number): void {
  for (const row of rows) reader.deletedAt[row] = seq;
  noteDeletions(reader.handle);
}

/** Has readers look at the marks of deleted rows. */
export function noteDeletions({ layout, memory }: Pick<SegmentHandle, 'layout' | 'memory'>): void {
  new Uint32Array(memory.buffer, layout.deletions, 1)[0] = 1;
}

/** A collection whose segments hold the points of each list; one deadline and cache for all. */
export class CollectionFixture {
  readonly deadline = new Deadline();
  private readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-read-'));
  private readonly context = {
    index: 0,
    turns: new ScratchTurns(scratchTurns(1), 0),
    uses: new ReplicaUses(),
    deadline: this.deadline,
    filters: new FilterCache(1 << 20),
  };
  private readonly segments: SegmentView[] = [];
  private readonly views: ReplicaView[] = [];
  private nextSegment = 1;

  constructor(
    readonly config: CollectionConfig,
    readonly fields: ReadonlyMap<string, FieldSchema> = new Map(),
    readonly shardId = 0,
    /** Shards with the key of this one; null: by the configuration. */
    private readonly ringShards: number | null = null,
  ) {}

  snapshot(): ReplicaSnapshot {
    return {
      shardId: this.shardId,
      shardKey: null,
      ringShards: this.ringShards ?? (unkeyedShards(this.config) || 1),
      appliedOperation: 0,
      config: this.config,
      vectors: vectorsByName(this.config.params.vectors),
      sparse: sparseByName(this.config.params),
      segments: this.segments,
      release: () => {},
    };
  }

  /** Snapshots from now on are without the point. */
  delete(id: PointId): void {
    const at = this.segments.findIndex((view) => view.findLive(id) !== undefined);
    const before = this.segments[at] as SegmentView;
    const { reader, rows, seq, fields } = before;
    markDeleted(reader, [before.findLive(id) as number], seq + 1);
    this.segments[at] = new SegmentView(reader, rows, seq + 1, this.views[at] as ReplicaView, fields);
  }

  addAppendable(points: readonly TestPoint[]): void {
    const { handle, view } = this.appendable(points);
    this.add(handle, points.length, view);
  }

  /** sumsFromBytes: as in `BuildControl`. */
  async addSealed(points: readonly TestPoint[], withGraph: boolean, sumsFromBytes?: number): Promise<void> {
    await initChecksum();
    const { handle, view } = this.appendable(points);
    const job: BuildJob = {
      spec: { key: 'c/0', folder: this.folder, config: this.config, readers: 1 },
      openCommit: 0,
      seq: SEQ,
      rows: [points.length],
      sources: [handle],
      fields: this.fields,
      segmentIds: [this.nextSegment++],
      plan: 'segment',
      missingFields: [],
      withGraph,
      threads: 1,
      niceness: 0,
    };
    const payloads = { text: (_: SegmentHandle, row: number) => view.payloadText(handle, row), texts: () => null, close: async () => {} };
    const result = await buildSegments(job, () => payloads, {
      checkpoint: async () => {},
      progress: () => {},
      now: () => performance.now(),
      ...(sumsFromBytes === undefined ? {} : { sumsFromBytes }),
    });
    for (const { handle: built } of result.built) this.add(built, built.rows, NO_VIEW);
  }

  /** As `reopen`; originals arrive later. */
  reopenArriving(): Promise<SegmentHandle> {
    return this.reopen(true);
  }

  /** Opens the first segment anew from its files. */
  async reopen(arrivesLater = false): Promise<SegmentHandle> {
    const { reader, rows, seq, fields } = this.segments[0] as SegmentView;
    const options = {
      readers: 1,
      onDiskPayload: true,
      fields: this.fields,
      later: () => arrivesLater,
      onDisk: (plan: VectorPlan) => plan.lists !== undefined,
    };
    const { handle } = await loadSealed(reader.handle.folder as string, options);
    const again = new SegmentReader(handle, `c/0/${handle.id}`, this.context);
    again.deletedAt.set(reader.deletedAt);
    noteDeletions(handle);
    reader.close();
    this.segments[0] = new SegmentView(again, rows, seq, this.views[0] as ReplicaView, fields);
    return handle;
  }

  remove(): void {
    for (const { reader } of this.segments) reader.close();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  private add(handle: SegmentHandle, rows: number, view: ReplicaView): void {
    this.views.push(view);
    this.segments.push(new SegmentView(new SegmentReader(handle, `c/0/${handle.id}`, this.context), rows, SEQ, view, this.fields));
  }

  private appendable(points: readonly TestPoint[]): { handle: SegmentHandle; view: ReplicaView } {
    const plans = vectorPlans(this.config.params).map((plan) => ({
      ...plan,
      itemCapacity: plan.kind === 'dense' ? 0 : points.reduce((sum, point) => sum + itemsOf(point.vectors[plan.name]), 3),
    }));
    const layout = segmentLayout(points.length + 5, plans, { ordered: false, readers: 3 });
    const memory = segmentMemory(layout);
    const { buffer } = memory;
    const ids = new Uint32Array(buffer, layout.ids, layout.capacity * 4);
    points.forEach((point, row) => {
      new Uint8Array(buffer, layout.kinds)[row] = idKind(point.id);
      writeIdWords(point.id, ids, row * 4);
      new Float64Array(buffer, layout.versions, layout.capacity)[row] = point.version ?? 1;
      new Uint32Array(buffer, layout.deletedAt, layout.capacity)[row] = point.deletedAt ?? LIVE;
      if (point.deletedAt !== undefined) noteDeletions({ layout, memory });
      layout.vectors.forEach((vector, at) => {
        const given = point.vectors[vector.name];
        if (vector.kind !== 'dense') {
          const offsets = itemOffsets(memory, vector, row + 1);
          offsets[row + 1] = (offsets[row] as number) + itemsOf(given);
        }
        if (given === undefined) return;
        (new Uint32Array(buffer, vector.presence, Math.ceil(layout.capacity / 32))[row >>> 5] as number) |= 1 << (row & 31);
        storeVector(memory, vector, (plans[at] as VectorPlan).distance, row, given);
      });
    });
    const handle: SegmentHandle = {
      id: this.nextSegment++,
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
    return { handle, view: viewOf(points) };
  }
}

function itemsOf(vector: TestVector | undefined): number {
  if (vector === undefined) return 0;
  return 'indices' in vector ? vector.indices.length : vector.length;
}

function storeVector(memory: WebAssembly.Memory, vector: VectorLayout, distance: Distance, row: number, given: TestVector): void {
  const { buffer } = memory;
  const start = residentOffset(vector);
  const first = vector.kind === 'dense' ? row : (itemOffsets(memory, vector, row)[row] as number);
  if ('indices' in given) {
    new Uint32Array(buffer, start, first + given.indices.length).set(given.indices, first);
    new Float32Array(buffer, raggedOf(vector).values, first + given.values.length).set(given.values, first);
    return;
  }
  const lists = vector.kind === 'multi' ? (given as readonly (readonly number[])[]) : [given as readonly number[]];
  lists.forEach((list, i) => {
    const values = Float32Array.from(list);
    if (distance === 'Cosine' && vector.element !== 'u8') normalizeRows(values, values.length);
    const at = start + (first + i) * vector.stride;
    if (vector.element === 'f32') new Float32Array(buffer, at, vector.dim).set(values);
    else if (vector.element === 'f16') encodeHalf(values, new Uint16Array(buffer, at, vector.dim));
    else new Uint8Array(buffer, at, vector.dim).set(values);
  });
}

/** What LMDB would hold of an appendable segment. */
function viewOf(points: readonly TestPoint[]): ReplicaView {
  const rowsById = new Map(points.map((point, row) => [point.id, row]));
  const inOrder = [...rowsById].sort(([a], [b]) => compareIds(a, b));
  return {
    ...NO_VIEW,
    payloadText: (_, row) => Buffer.from(stringifyJson(points[row]?.payload ?? {})),
    findRow: (_, id) => rowsById.get(id),
    *scanIds(_, from) {
      for (const [id, row] of inOrder) if (from === null || compareIds(id, from) >= 0) yield row;
    },
    fieldIndex: () => undefined,
  };
}

const unexpected = (): never => {
  throw new Error('not in this test');
};

const NO_VIEW: ReplicaView = {
  refresh: unexpected,
  release: unexpected,
  payloadText: unexpected,
  findRow: unexpected,
  scanIds: unexpected,
  fieldIndex: unexpected,
  leaveReplaced: unexpected,
  close: unexpected,
};

/** Numbers 0 <= n < 1, the same for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What a read works on: the fixture's one replica, and no other collection. */
export function contextOf(fixture: CollectionFixture): ReadContext {
  return {
    snapshots: [fixture.snapshot()],
    lookup: (collection) => {
      throw new TroupeError('notFound', `Collection \`${collection}\` doesn't exist!`);
    },
    random: randomOf(1),
  };
}

/** Walks over the rows of one context, as a reader runs them. */
export const runQuery = (context: ReadContext, request: QueryRequest): PointView[] =>
  walkRows(context, (scope) => queryWalk(scope, request));
export const queryGroups = (context: ReadContext, request: GroupsRequest): GroupView[] =>
  walkRows(context, (scope) => groupsWalk(scope, request));
export const scroll = (snapshots: readonly ReplicaSnapshot[], query: ScrollQuery) =>
  walkRows(alone(snapshots), (scope) => scrollWalk(scope, query));
export const distanceMatrix = (snapshots: readonly ReplicaSnapshot[], query: MatrixQuery, random: () => number): DistanceMatrix =>
  walkRows({ ...alone(snapshots), random }, (scope) => matrixWalk(scope, query));

function alone(snapshots: readonly ReplicaSnapshot[]): ReadContext {
  return { snapshots, lookup: () => assert.fail('nothing is looked up'), random: randomOf(1) };
}
