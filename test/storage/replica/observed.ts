/** A replica as its writer has it and as a reader sees it, and random operations on vectors of every kind. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type CollectionConfig, sparseByName, vectorsByName } from '../../../protocols/model/collection.js';
import type { BatchColumn, PointBatch, UpdateOperation } from '../../../protocols/model/update.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { addVector, type NewVector, removeVector } from '../../../protocols/rest/vector-names.js';
import { decodeUpdate, encodeUpdate } from '../../../protocols/update-codec.js';
import { FilterCache } from '../../../query/filter/cache.js';
import { buildSegments } from '../../../storage/builder/build-segment.js';
import { openPayloadSource } from '../../../storage/builder/payload-source.js';
import { ReplicaReader } from '../../../storage/reader/snapshot/snapshot-view.js';
import { ReplicaStore } from '../../../storage/replica/store.js';
import { Deadline } from '../../../storage/threads/deadline.js';
import type { BuildJob } from '../../../storage/threads/messages.js';
import { ReplicaUses } from '../../../storage/threads/replica-uses.js';
import { ScratchTurns, scratchTurns } from '../../../storage/threads/scratch-turns.js';
import { freeControl } from '../builder/fixture.js';
import { applyTo, byIds, logTo, publishBuild, specOf, temporaryFolder } from './support.js';

/** A replica as its writer has it and as a reader sees it. */
export class Observed {
  private reader: ReplicaReader;
  store!: ReplicaStore;
  readonly warnings: string[] = [];
  private openings = 0;

  private constructor(
    readonly folder: string,
    public config: CollectionConfig,
  ) {
    this.reader = this.newReader();
  }

  static async open(t: TestContext, config: CollectionConfig): Promise<Observed> {
    const observed = new Observed(temporaryFolder(t), config);
    await observed.openStore();
    t.after(() => observed.close());
    return observed;
  }

  /** Stops without a word and comes back. config: what the collection has become by then. */
  async reopen(config = this.config): Promise<void> {
    await this.close();
    this.config = config;
    this.reader = this.newReader();
    await this.openStore();
  }

  apply(operation: UpdateOperation): void {
    const [outcome] = applyTo(this.store, [{ operation, chained: false }]);
    assert.equal(outcome?.error, null);
  }

  log(operation: UpdateOperation): void {
    // What the log holds is what its bytes say.
    logTo(this.store, [decodeUpdate(encodeUpdate({ operation, chained: false }))]);
  }

  configure(config: CollectionConfig): void {
    this.config = config;
    this.store.configure(config);
  }

  get segments(): readonly { readonly id: number; readonly kind: string; readonly rows: number; readonly vectorBytes: number }[] {
    return this.store.stats().segments;
  }

  /** Builds one segment of those with these ids, letting `meanwhile` happen before it is published. */
  async build(ids: readonly number[], meanwhile: () => void): Promise<void> {
    const job: BuildJob = { ...this.store.builds.begin(ids), plan: 'segment', missingFields: [], withGraph: true, threads: 1, niceness: 0 };
    const result = await buildSegments(job, openPayloadSource, freeControl);
    meanwhile();
    publishBuild(this.store, result);
  }

  /** Vectors of all points by name, and of names that the collection does not have. */
  seen(show: (value: VectorValue) => unknown = plain): Map<number, Record<string, unknown>> {
    const snapshot = this.reader.snapshot();
    assert.ok(snapshot !== null);
    const names = [...snapshot.vectors.keys(), ...snapshot.sparse.keys()];
    const points = new Map<number, Record<string, unknown>>();
    for (const view of snapshot.segments) {
      for (const { name } of view.handle.layout.vectors) assert.ok(names.includes(name), `${name} is still there`);
      for (let row = 0; row < view.rows; row++) {
        if (!view.isLive(row)) continue;
        const vectors = names.flatMap((name) => {
          const value = view.vectorOf(name, row);
          return value === undefined ? [] : [[name, show(value)]];
        });
        points.set(view.id(row) as number, Object.fromEntries(vectors));
      }
    }
    snapshot.release();
    return points;
  }

  async close(): Promise<void> {
    await this.reader.close();
    await this.store.close();
  }

  private newReader(): ReplicaReader {
    return new ReplicaReader(specOf(this.folder, this.config), {
      index: 0,
      turns: new ScratchTurns(scratchTurns(1), 0),
      uses: new ReplicaUses(),
      deadline: new Deadline(),
      filters: new FilterCache(1000),
    });
  }

  private async openStore(): Promise<void> {
    this.openings++;
    this.store = await ReplicaStore.open(specOf(this.folder, this.config), null, {
      publish: (facts, fields, set) => this.reader.attach({ kind: 'attach', ...facts, place: 0, opening: this.openings, fields, set }),
      published: () => {},
      warn: (message) => this.warnings.push(message),
      now: () => 1,
      beginSlice: () => () => false,
      beginPortion: () => () => false,
      pause: async () => {},
    });
  }
}

export function plain(value: VectorValue): unknown {
  return value.kind === 'sparse' ? { indices: [...value.indices], values: [...value.values] } : [value.kind, ...value.values];
}

// ------------------------------------------------------------------ random histories

export type Random = (below: number) => number;
export type Model = Map<number, Record<string, unknown>>;

export const SHAPES: readonly NewVector[] = [
  { kind: 'dense', name: 'd', params: { size: 3, distance: 'Dot' } },
  { kind: 'dense', name: 'd', params: { size: 5, distance: 'Euclid' } },
  { kind: 'dense', name: 'd', params: { size: 3, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } },
  { kind: 'dense', name: 'h', params: { size: 2, distance: 'Dot', datatype: 'float16' } },
  { kind: 'dense', name: 'm', params: { size: 2, distance: 'Euclid', multivector_config: { comparator: 'max_sim' } } },
  { kind: 'dense', name: 'b', params: { size: 7, distance: 'Dot', datatype: 'uint8', multivector_config: { comparator: 'max_sim' } } },
  { kind: 'dense', name: 'f', params: { size: 1, distance: 'Dot', datatype: 'float16', multivector_config: { comparator: 'max_sim' } } },
  { kind: 'sparse', name: 's', params: {} },
  { kind: 'sparse', name: 'd', params: { modifier: 'idf' } },
];

export const kindsOf = ({ params }: CollectionConfig): NewVector[] => [
  ...[...vectorsByName(params.vectors)].map(([name, of]): NewVector => ({ kind: 'dense', name, params: of })),
  ...[...sparseByName(params)].map(([name, of]): NewVector => ({ kind: 'sparse', name, params: of })),
];

/** Whole numbers below 256, which every element type holds. */
export const numbers = (random: Random, count: number): Float32Array => Float32Array.from({ length: count }, () => random(256));

export function randomValue(vector: NewVector, random: Random): VectorValue {
  if (vector.kind === 'sparse') {
    const indices = Uint32Array.from(new Set(Array.from({ length: random(5) }, () => random(50)))).sort();
    return { kind: 'sparse', indices, values: numbers(random, indices.length) };
  }
  const { size, multivector_config } = vector.params;
  if (multivector_config === undefined) return { kind: 'dense', values: numbers(random, size) };
  return { kind: 'multi', dim: size, values: numbers(random, size * (1 + random(4))) };
}

export function columnOf(name: string, values: readonly (VectorValue | undefined)[]): BatchColumn[] {
  const present = [...values.keys()].filter((at) => values[at] !== undefined);
  const given = present.map((at) => values[at] as VectorValue);
  const [first] = given;
  if (first === undefined) return [];
  const points = present.length === values.length ? null : Uint32Array.from(present);
  const all = Float32Array.from(given.flatMap((value) => [...value.values]));
  if (first.kind === 'dense') return [{ kind: 'dense', name, dim: first.values.length, points, values: all }];
  if (first.kind === 'multi') {
    const counts = Uint32Array.from(given, (value) => value.values.length / first.dim);
    return [{ kind: 'multi', name, dim: first.dim, points, counts, values: all }];
  }
  const indices = Uint32Array.from(given.flatMap((value) => (value.kind === 'sparse' ? [...value.indices] : [])));
  return [{ kind: 'sparse', name, points, counts: Uint32Array.from(given, (value) => value.values.length), indices, values: all }];
}

/** Points with some vectors each; what the model makes of them. */
export function randomBatch(
  ids: readonly number[],
  config: CollectionConfig,
  random: Random,
): { batch: PointBatch; given: Record<string, unknown>[] } {
  const given: Record<string, unknown>[] = ids.map(() => ({}));
  const vectors = kindsOf(config).flatMap((vector) => {
    const values = ids.map(() => (random(3) === 0 ? undefined : randomValue(vector, random)));
    values.forEach((value, at) => {
      if (value !== undefined) (given[at] as Record<string, unknown>)[vector.name] = plain(value);
    });
    return columnOf(vector.name, values);
  });
  return { batch: { ids, vectors, payloads: ids.map((id) => ({ id })) }, given };
}

export function randomUpdate(model: Model, config: CollectionConfig, random: Random): UpdateOperation {
  const ids = [...new Set(Array.from({ length: 1 + random(6) }, () => random(40)))];
  const known = ids.filter((id) => model.has(id));
  const kind = known.length === 0 ? 0 : random(8);
  if (kind < 4) {
    const { batch, given } = randomBatch(ids, config, random);
    ids.forEach((id, at) => {
      model.set(id, given[at] as Record<string, unknown>);
    });
    return { kind: 'upsert', batch };
  }
  if (kind === 4) {
    const { batch, given } = randomBatch(known, config, random);
    known.forEach((id, at) => {
      model.set(id, { ...model.get(id), ...given[at] });
    });
    return { kind: 'updateVectors', batch };
  }
  if (kind === 5) {
    const names = kindsOf(config).flatMap(({ name }) => (random(2) === 0 ? [name] : []));
    for (const id of known) for (const name of names) delete (model.get(id) as Record<string, unknown>)[name];
    return { kind: 'deleteVectors', selector: byIds(...known), names };
  }
  if (kind === 6) return { kind: 'setPayload', selector: byIds(...known), payload: { touched: true }, key: null };
  for (const id of ids) model.delete(id);
  return { kind: 'deletePoints', selector: byIds(...ids) };
}

/** The collection gets a vector, or loses one and what points have of it. */
export function randomNames(model: Model, config: CollectionConfig, random: Random): CollectionConfig {
  const shape = SHAPES[random(SHAPES.length)] as NewVector;
  if (!kindsOf(config).some(({ name }) => name === shape.name)) return addVector(config, shape);
  for (const vectors of model.values()) delete vectors[shape.name];
  return removeVector(config, shape.name);
}
