/** A replica in a folder of its own, and eyes to see it with as a reader does. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { parseJson } from '../../../protocols/json.js';
import type { CollectionConfig, FieldSchema, VectorsConfig } from '../../../protocols/model/collection.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { type PointId, readIdWords } from '../../../protocols/model/point-id.js';
import type { PointBatch, UpdateOperation } from '../../../protocols/model/update.js';
import type { LoggedOperation } from '../../../protocols/update-codec.js';
import { hasBit } from '../../../query/filter/bits.js';
import type { AppliedUpdate, NumberedOperation } from '../../../storage/replica/operations.js';
import { openReplicaView, type ReplicaView } from '../../../storage/replica/reader-view.js';
import { type ReplicaHooks, ReplicaStore } from '../../../storage/replica/store.js';
import type { SegmentSet } from '../../../storage/segment/handle.js';
import { residentOffset } from '../../../storage/segment/layout.js';
import { decodeRows } from '../../../storage/segment/originals.js';
import { readPayloadText } from '../../../storage/segment/payload-file.js';
import type { BuildResult, ReplicaSpec } from '../../../storage/threads/messages.js';
import { NO_LEADER } from '../../../storage/wal/log-tags.js';

export const DIM = 4;

export function configOf(vectors: VectorsConfig = { size: DIM, distance: 'Dot' }, walMegabytes = 32): CollectionConfig {
  return {
    params: { vectors, shard_number: 1, replication_factor: 1, write_consistency_factor: 1, on_disk_payload: true },
    hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000 },
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
    wal_config: { wal_capacity_mb: walMegabytes, wal_segments_ahead: 0 },
    quantization_config: null,
  };
}

export function specOf(folder: string, config = configOf()): ReplicaSpec {
  return { key: 'test/0', folder, config, readers: 1 };
}

export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-replica-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Operations of a node without a cluster, after all that the replica has. */
function numbered(store: ReplicaStore, operations: readonly LoggedOperation[]): NumberedOperation[] {
  const { index } = store.log.position.last;
  return operations.map((logged, at) => ({ operation: index + 1 + at, by: NO_LEADER, logged }));
}

/** Logs and applies operations. Returns their results. */
export function applyTo(store: ReplicaStore, operations: readonly LoggedOperation[]): AppliedUpdate[] {
  const outcomes = store.operations.apply(numbered(store, operations).map((each) => ({ ...each, isLeaders: true })));
  return outcomes.slice(outcomes.length - operations.length);
}

/** Logs operations, and does not apply them. Returns their numbers. */
export function logTo(store: ReplicaStore, operations: readonly LoggedOperation[]): number[] {
  const logged = numbered(store, operations);
  store.operations.log(logged);
  return logged.map(({ operation }) => operation);
}

/** Publishes a build without doing anything else at its pauses. Returns how many there were. */
export function publishBuild(store: ReplicaStore, result: BuildResult): number {
  return [...store.builds.publishing(result)].length;
}

/** What a point looks like to a reader. */
export interface SeenPoint {
  readonly vectors: { readonly [name: string]: readonly number[] };
  readonly payload: Payload;
  readonly version: number;
}

/** A store and everything it published. */
export class Replica {
  readonly sets = new Map<number, SegmentSet>();
  readonly published: number[] = [];
  readonly warnings: string[] = [];
  fields: ReadonlyMap<string, FieldSchema> = new Map();
  store!: ReplicaStore;
  private openView: ReplicaView | null = null;

  private constructor(readonly spec: ReplicaSpec) {}

  /** beginSlice: see `ReplicaHooks`; without it slices end by their size alone. portion: as `beginPortion`; without it each slice is one portion. */
  static async open(
    spec: ReplicaSpec,
    damaged: string | null = null,
    beginSlice = () => () => false,
    portion?: () => () => boolean,
  ): Promise<Replica> {
    const replica = new Replica(spec);
    const hooks: ReplicaHooks = {
      publish: (_facts, fields, set) => {
        replica.sets.set(set.generation, set);
        replica.fields = fields;
      },
      published: (generation) => replica.published.push(generation),
      warn: (message) => replica.warnings.push(message),
      now: () => 1_000,
      beginSlice,
      beginPortion: portion ?? (() => () => false),
      pause: async () => {},
    };
    replica.store = await ReplicaStore.open(spec, damaged, hooks);
    return replica;
  }

  /** Opens a replica that is closed at the end of the test. */
  static async within(t: TestContext, spec: ReplicaSpec): Promise<Replica> {
    const replica = await Replica.open(spec);
    t.after(() => replica.close());
    return replica;
  }

  get view(): ReplicaView {
    this.openView ??= openReplicaView(this.spec.folder);
    return this.openView;
  }

  apply(...operations: UpdateOperation[]): AppliedUpdate[] {
    return applyTo(
      this.store,
      operations.map((operation) => ({ operation, chained: false })),
    );
  }

  /** Logs operations in a commit of their own, then applies them: these have records. */
  logThenApply(...operations: UpdateOperation[]): void {
    logTo(
      this.store,
      operations.map((operation) => ({ operation, chained: false })),
    );
    this.store.operations.apply();
  }

  /** All points as a reader sees them in the newest commit, by id as text. */
  points(): Map<string, SeenPoint> {
    const seen = this.seen();
    this.view.release();
    return seen;
  }

  /** As `points`, keeping the snapshot. */
  seen(refresh = true): Map<string, SeenPoint> {
    if (refresh) this.state = this.view.refresh();
    const state = this.state as NonNullable<typeof this.state>;
    const set = this.sets.get(state.generation);
    if (set === undefined) throw new Error(`set ${state.generation} was not published`);
    const seq = state.commit - this.store.openCommit;
    const points = new Map<string, SeenPoint>();
    for (const { id: segment, kind, layout, memory, rows: sealedRows, ...handle } of set.segments) {
      const rows = kind === 'sealed' ? sealedRows : (state.appendable.get(segment) ?? 0);
      const deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity);
      const kinds = new Uint8Array(memory.buffer, layout.kinds, layout.capacity);
      const words = new Uint32Array(memory.buffer, layout.ids, layout.capacity * 4);
      const versions = new Float64Array(memory.buffer, layout.versions, layout.capacity);
      for (let row = 0; row < rows; row++) {
        if ((deletedAt[row] as number) <= seq) continue;
        const id = readIdWords(kinds[row] as number, words, row * 4);
        if (points.has(String(id))) throw new Error(`point ${id} is there twice`);
        if (kind === 'appendable' && this.view.findRow(segment, id) !== row) throw new Error(`point ${id} is not found by its id`);
        const vectors: { [name: string]: number[] } = {};
        for (const vector of layout.vectors) {
          if (!hasBit(new Uint32Array(memory.buffer, vector.presence, Math.ceil(layout.capacity / 32)), row)) continue;
          if (vector.decoded) {
            const bytes = new Uint8Array(vector.stride);
            decodeRows(memory, vector, row, bytes);
            vectors[vector.name] = [...new Float32Array(bytes.buffer, 0, vector.dim)];
            continue;
          }
          const at = residentOffset(vector) + row * vector.stride;
          vectors[vector.name] = [
            ...(vector.element === 'u8' ? new Uint8Array(memory.buffer, at, vector.dim) : new Float32Array(memory.buffer, at, vector.dim)),
          ];
        }
        const sealed = { id: segment, kind, layout, memory, rows: sealedRows, ...handle };
        const text = kind === 'sealed' ? readPayloadText(sealed, row) : this.view.payloadText(sealed, row);
        points.set(String(id), { vectors, payload: parseJson(text) as Payload, version: versions[row] as number });
      }
    }
    return points;
  }

  async close(): Promise<void> {
    await this.openView?.close();
    this.openView = null;
    await this.store.close();
  }

  private state: ReturnType<ReplicaView['refresh']> | null = null;
}

export function vectorOf(seed: number): number[] {
  return Array.from({ length: DIM }, (_, i) => seed + i / 8);
}

/** An upsert of points with the unnamed vector `vectorOf(seed)`. */
export function upsert(points: readonly { id: PointId; seed: number; payload?: Payload }[]): UpdateOperation {
  const batch: PointBatch = {
    ids: points.map(({ id }) => id),
    vectors: [{ kind: 'dense', name: '', dim: DIM, points: null, values: Float32Array.from(points.flatMap(({ seed }) => vectorOf(seed))) }],
    payloads: points.map(({ payload }) => payload),
  };
  return { kind: 'upsert', batch };
}

export function byIds(...ids: PointId[]): { kind: 'ids'; ids: PointId[] } {
  return { kind: 'ids', ids };
}

export function filterOn(
  key: string,
  value: string | number | boolean,
): { kind: 'filter'; filter: import('../../../protocols/model/filter.js').Filter } {
  return {
    kind: 'filter',
    filter: { must: [{ kind: 'match', key, match: { kind: 'value', value } }], should: [], mustNot: [], minShould: null },
  };
}
