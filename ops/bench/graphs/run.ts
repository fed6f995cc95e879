/** Graphs of pairs next to those that usearch inserts, on the same 8-bit codes, one thread each: what they cost, and what walks find in them. */

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GraphBuilder } from '../../../storage/builder/graph.js';
import { insertionOrder } from '../../../storage/builder/insertion-order.js';
import { readSignedCodes } from '../../../storage/builder/matrix.js';
import { sharedMemory } from '../../../storage/segment/shared-memory.js';
import { type BuiltGraph, graphPlan, writeGraph } from '../../../vectors/built-graph.js';
import { GraphMaker, upperM, upperRows } from '../../../vectors/graph-maker.js';
import type { Admission, Graph, Kernels, Matrix } from '../../../vectors/kernel-api.js';
import { instantiateKernels } from '../../../vectors/kernels.js';
import { normalizeRows } from '../../../vectors/normalize.js';
import { chooseCodes, encodeCodes } from '../../../vectors/quantize.js';
import { align16, align64, scratchLayout } from '../../../vectors/scratch.js';
import { type RandomNumbers, seededRandom } from '../../random.js';
import type { Dataset } from '../common/dataset.js';

export interface GraphSet {
  readonly description: string;
  readonly dim: number;
  /** Float32Array [count, dim]; as long as each other for cosine. */
  readonly vectors: Float32Array;
  readonly queries: Float32Array;
}

export interface GraphsRow {
  readonly set: string;
  readonly way: 'pairs' | 'insertions';
  /** CPU of the process for each row. */
  readonly microsecondsEach: number;
  readonly linksEach: number;
  readonly walks: readonly { readonly ef: number; readonly recall: number; readonly scored: number }[];
}

const M = 16;
const EF_CONSTRUCT = 100;
const EFS = [16, 32, 64, 128];
const K = 10;
const QUERIES = 600;
const SLICE_ROWS = 2048;
const LIVE = 0xffff_ffff;
const APART_SPREAD = 0.12;

/** Clusters of so many rows that lie apart from each other: each component of a centre is anywhere in 0..1, and rows lie around it. */
export function setApart(count: number, dim: number, clusters: number, seed: number): GraphSet {
  const random = seededRandom(seed);
  const centres = Float32Array.from({ length: clusters * dim }, () => random.unit());
  return {
    description: `${count.toLocaleString('en')} × ${dim} in ${clusters} clusters apart`,
    dim,
    vectors: around(centres, count, dim, random),
    queries: around(centres, QUERIES, dim, random),
  };
}

function around(centres: Float32Array, count: number, dim: number, random: RandomNumbers): Float32Array {
  const rows = new Float32Array(count * dim);
  for (let row = 0; row < count; row++) {
    const centre = random.integer(centres.length / dim) * dim;
    for (let i = 0; i < dim; i++) rows[row * dim + i] = (centres[centre + i] as number) + APART_SPREAD * random.normal();
  }
  return rows;
}

export function setOf({ description, dim, distance, queries, vectors }: Dataset): GraphSet {
  const prepare = (rows: Float32Array) => {
    const own = rows.slice();
    if (distance === 'Cosine') normalizeRows(own, dim);
    return own;
  };
  return { description, dim, vectors: prepare(vectors), queries: prepare(queries.subarray(0, QUERIES * dim)) };
}

export async function measureGraphs(sets: readonly GraphSet[]): Promise<GraphsRow[]> {
  const rows: GraphsRow[] = [];
  for (const set of sets) {
    const place = new Place(set);
    const order = await insertionOrder(place.rows, set.dim, (some) => place.signed(some), nothing);
    for (const [way, link] of [
      ['insertions', () => inserted(place, order, order, M)],
      ['pairs', () => paired(place, order)],
    ] as const) {
      const before = process.cpuUsage();
      const graph = await link();
      const { system, user } = process.cpuUsage(before);
      rows.push({ set: set.description, way, microsecondsEach: (system + user) / place.rows.length, ...place.walksOf(graph) });
    }
  }
  return rows;
}

const nothing = async (): Promise<void> => {};

/** keys: of the rows. */
function inserted(place: Place, rows: Uint32Array, keys: Uint32Array, m: number): BuiltGraph {
  const options = { dim: place.set.dim, metric: 'l2sq', element: 'i8', efConstruct: EF_CONSTRUCT, threads: 1 } as const;
  const builder = new GraphBuilder({ ...options, m });
  for (let at = 0; at < rows.length; at += SLICE_ROWS)
    builder.add(keys.slice(at, at + SLICE_ROWS), place.signed(rows.subarray(at, at + SLICE_ROWS)));
  return builder.finish(join(tmpdir(), `troupe-bench-graph-${process.pid}`));
}

async function paired(place: Place, order: Uint32Array): Promise<BuiltGraph> {
  const { dim } = place.set;
  const options = { rows: order.length, dim, m: M, efConstruct: EF_CONSTRUCT, threads: 1 };
  const above = upperRows(options);
  const upper = inserted(
    place,
    above.map((slot) => order[slot] as number),
    above,
    upperM(M),
  );
  const maker = new GraphMaker(options, sharedMemory);
  for (const [slot, row] of order.entries()) maker.codes.set(place.codesOf(row), slot * maker.stride);
  return maker.make(order, upper, nothing);
}

/** Codes of a set in a memory, with room for a graph and for walks. */
class Place {
  readonly rows: Uint32Array;
  readonly #kernels: Kernels;
  readonly #memory: WebAssembly.Memory;
  readonly #matrix: Matrix;
  readonly #admission: Admission;
  readonly #slot: number;
  readonly #lists: Omit<Graph, 'entryRow' | 'maxLevel'>;
  readonly #nearest: readonly ReadonlySet<number>[];

  constructor(readonly set: GraphSet) {
    const { dim, vectors } = set;
    const count = vectors.length / dim;
    this.rows = Uint32Array.from({ length: count }, (_, row) => row);
    const stride = align16(dim);
    const scratch = scratchLayout(count, dim);
    let at = 1024;
    const take = (bytes: number): number => {
      const offset = at;
      at += align64(bytes);
      return offset;
    };
    const [offset, deletedAt] = [take(count * stride + 64), take(count * 4)];
    this.#slot = take(scratch.bytes);
    this.#lists = { level0: take(count * (1 + 2 * M) * 4), m0: 2 * M, upperIndex: take(count * 4), upper: take(count * (1 + M)), m: M };
    const pages = Math.ceil(at / 65536);
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    new Uint32Array(this.#memory.buffer, deletedAt, count).fill(LIVE);
    const codes = chooseCodes(vectors);
    encodeCodes(vectors, dim, stride, codes, new Uint8Array(this.#memory.buffer), offset);
    this.#matrix = { element: 'code', metric: 'l2', offset, stride, dim, ...codes };
    this.#admission = { deletedAt, seq: 1, bits: 0 };
    this.#kernels = instantiateKernels(this.#memory, () => false, scratch);
    this.#nearest = this.#eachQuery(() => this.#kernels.scan(this.#slot, this.#matrix, 0, count, this.#admission, K)).map(
      (rows) => new Set(rows),
    );
  }

  codesOf(row: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, this.#matrix.offset + row * this.#matrix.stride, this.set.dim);
  }

  /** As usearch takes them. */
  signed(rows: Uint32Array): Int8Array {
    const { offset, stride } = this.#matrix;
    return readSignedCodes(this.#memory, offset, stride, this.set.dim, rows);
  }

  walksOf(graph: BuiltGraph): Pick<GraphsRow, 'linksEach' | 'walks'> {
    const entered: Graph = { ...this.#lists, ...graphPlan(graph) };
    writeGraph(graph, undefined, this.#memory, entered, this.rows.length);
    const links = this.rows.reduce((sum, slot) => sum + graph.neighbours(slot, 0).length, 0);
    const walks = EFS.map((ef) => {
      this.#kernels.takeScored();
      const options = { ef, k: K, rows: this.rows.length, narrow: false };
      const found = this.#eachQuery(() => this.#kernels.walk(this.#slot, this.#matrix, entered, this.#admission, options));
      const hits = found.reduce((sum, rows, query) => sum + rows.filter((row) => this.#nearest[query]?.has(row)).length, 0);
      return { ef, recall: hits / (found.length * K), scored: this.#kernels.takeScored() / found.length };
    });
    return { linksEach: links / this.rows.length, walks };
  }

  #eachQuery(search: () => { readonly count: number; readonly rows: Uint32Array }): number[][] {
    const { dim, queries } = this.set;
    return Array.from({ length: queries.length / dim }, (_, query) => {
      this.#kernels.setQuery(this.#slot, this.#matrix, queries.slice(query * dim, (query + 1) * dim));
      const { count, rows } = search();
      return Array.from(rows.subarray(0, count));
    });
  }
}
