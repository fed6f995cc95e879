/**
 * The search kernels on a memory: `kernel-api.ts` implemented by the compiled WebAssembly module.
 *
 * A worker makes one instance per memory from one module. All state of an instance is its own (globals of the
 * instance), so workers share a memory as long as each keeps to its scratch slot.
 */

import { readFileSync } from 'node:fs';
import { fitsCodes, paddedDim, writeCodeQuery } from './code-query.js';
import {
  type Admission,
  type Element,
  type ExampleWalk,
  type Graph,
  KernelExpired,
  type Kernels,
  type Matrix,
  type Metric,
  type ProductCodes,
  type Ranked,
  type RowCodes,
  type TokenLists,
  type WalkEnd,
} from './kernel-api.js';
import { codeShape, MAX_SIM_LANES, maxSimTableBytes } from './quantizer-spec.js';
import type { LevelCoder } from './quantizers/levels.js';
import { mostByRowCodes, ROW_CODES_ROWS_MIN } from './row-codes.js';
import { align16, type ScratchLayout } from './scratch.js';

type PlainElement = Exclude<Element, 'levels' | 'product'>;
const ELEMENTS: Record<PlainElement, number> = { f32: 0, f16: 1, bf16: 2, u8: 3, i8: 4, code: 5, decoded: 6 };
const ELEMENT_BYTES: Record<PlainElement, number> = { f32: 4, f16: 2, bf16: 2, u8: 1, i8: 1, code: 1, decoded: 1 };
/** Elements that a query is coded for. */
const CODED: Record<Element, boolean> = {
  ...{ f32: false, f16: false, bf16: false, decoded: false },
  ...{ u8: true, i8: true, code: true, levels: true, product: true },
};
const METRICS: Record<Metric, number> = { dot: 0, l2: 1, l1: 2 };

/** Kind of the kernel for L2 on codes with a query far outside their range: see `kernels/score.ts`. */
const CODE_L2_FAR = 21;
/** Kinds of the kernels for quantized rows. */
const LEVEL_KINDS = { bits2: 22, bits4: 23, bits8: 24, halfBytesDot: 25, halfBytesL1: 26 };
const PRODUCT_KIND = 27;

/** Part of the second cache that a block of vectors may take while all of a query's vectors are compared with it. */
const CACHED_BYTES = 1 << 18;

/** Lists that `byTokens` looks at for each vector of a query at most, and where their bounds lie behind a chunk of vectors and scores. */
const PROBES_MAX = 1024;
const RANGES_AT = 4096;

/** What is looked at for one vector of a query. */
interface ChosenLists {
  readonly numbers: Uint32Array;
  readonly floor: number;
}

/** Forms of walks by examples, rows near each start from which such a walk begins, and bytes before a query that is kept for it: see `kernels/examples.ts`. */
const EXAMPLE_FORMS: Record<ExampleWalk['form'], number> = { bestScore: 0, discover: 1, context: 2 };
const START_ROWS = 8;
const QUERY_HEAD = 16;

interface Exports {
  setMatrix(
    kind: number,
    offset: number,
    stride: number,
    bytes: number,
    query: number,
    factor: number,
    cross: number,
    constant: number,
  ): void;
  setAdmission(deletedAt: number, seq: number, bits: number): void;
  setGraph(level0: number, m0: number, upperIndex: number, upper: number, m: number, entryRow: number, maxLevel: number): void;
  setWalkScratch(visited: number, candidates: number, results: number, neighbours: number): void;
  setRowCodes(
    codes: number,
    stride: number,
    facts: number,
    coded: number,
    query: number,
    unit: number,
    reach: number,
    slack: number,
    gain: number,
    weight: number,
    constant: number,
  ): void;
  encodeRows(from: number, to: number, originals: number, rowStride: number, out: number, outStride: number, outFacts: number): number;
  scan(from: number, to: number, k: number, chunk: number, heap: number, out: number): number;
  gather(rows: number, count: number, k: number, chunk: number, heap: number, out: number): number;
  scanAll(count: number, k: number, chunk: number, heap: number, out: number): number;
  rescore(rows: number, count: number, k: number, chunk: number, heap: number, out: number): number;
  setWalkEnd(wanted: number, spread: number, lead: number): void;
  walk(rows: number, ef: number, k: number, narrow: number): number;
  keepQuery(at: number, bytes: number): void;
  setExamples(form: number, count: number, positives: number, queries: number, step: number): void;
  walkByExamples(rows: number, seeds: number, count: number, ef: number, k: number, narrow: number): number;
  scoreEach(rows: number, count: number, chunk: number, out: number): number;
  maxSim(rows: number, count: number, offsets: number, chunk: number, sums: number): number;
  maxSimCodes(
    metric: number,
    rows: number,
    count: number,
    offsets: number,
    codes: number,
    stride: number,
    queries: number,
    scales: number,
    vectors: number,
    sums: number,
  ): number;
  packTables(tables: number, parts: number, lane: number, packed: number, scales: number): void;
  maxSimTables(
    rows: number,
    count: number,
    offsets: number,
    codes: number,
    stride: number,
    packed: number,
    scales: number,
    vectors: number,
    sums: number,
  ): number;
  beginTokens(visited: number, bytes: number): void;
  addTokens(
    ranges: number,
    count: number,
    items: number,
    rowsOf: number,
    floor: number,
    chunk: number,
    visited: number,
    sums: number,
    rows: number,
    raised: number,
  ): number;
  bestByTokens(k: number, sums: number, rows: number, heap: number, out: number): number;
  countAdmitted(rows: number): number;
  countPassing(rows: number): number;
  listAdmitted(rows: number, out: number): number;
  takeScored(): number;
  takeScoredBytes(): number;
  takeHops(): number;
  fillTables(codebook: number, query: number, parts: number, partDim: number, metric: number, out: number): void;
}

let compiled: WebAssembly.Module | undefined;

/** The compiled kernels: read from `kernels.wasm` beside this file and compiled once per thread. May be posted to workers. */
export function kernelModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./kernels.wasm', import.meta.url)));
  return compiled;
}

/**
 * Kernels on `memory`, which must be shared and must not grow.
 *
 * expired: asked every some ten microseconds of work; true ends the call with `KernelExpired`.
 * scratch: the layout of every scratch slot in this memory (`SegmentLayout.scratch`).
 */
export function instantiateKernels(
  memory: WebAssembly.Memory,
  expired: () => boolean,
  scratch: ScratchLayout,
  module: WebAssembly.Module = kernelModule(),
): Kernels {
  const instance = new WebAssembly.Instance(module, { env: { memory, expired: () => (expired() ? 1 : 0) } });
  return new MemoryKernels(instance.exports as unknown as Exports, memory, scratch);
}

/** How a matrix is scored with a coded query. */
interface Scoring {
  readonly kind: number;
  /** Bytes of a row that are read. */
  readonly bytes: number;
  readonly factor: number;
  readonly cross: number;
  readonly constant: number;
}

/** The coded query that a slot holds, and the matrix it was made for. */
interface SlotQuery {
  readonly matrix: Matrix;
  /** Null: the matrix is scored with the f32 query. */
  readonly scoring: Scoring | null;
}

class MemoryKernels implements Kernels {
  readonly #exports: Exports;
  readonly #scratch: ScratchLayout;
  readonly #floats: Float32Array;
  readonly #words: Uint32Array;
  readonly #shorts: Int16Array;
  readonly #bytes: Uint8Array;
  readonly #queries = new Map<number, SlotQuery>();

  constructor(exports: Exports, memory: WebAssembly.Memory, scratch: ScratchLayout) {
    this.#exports = exports;
    this.#scratch = scratch;
    this.#floats = new Float32Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#shorts = new Int16Array(memory.buffer);
    this.#bytes = new Uint8Array(memory.buffer);
  }

  setQuery(slot: number, matrix: Matrix, query: Float32Array): void {
    if (query.length !== matrix.dim) throw new RangeError(`query of ${query.length} components for vectors of ${matrix.dim}`);
    const start = (slot + this.#scratch.query) >>> 2;
    if (!this.#holds(start, query)) {
      this.#floats.set(query, start);
      this.#floats.fill(0, start + matrix.dim, start + paddedDim(matrix.dim));
      this.#queries.delete(slot);
    }
    if (CODED[matrix.element]) this.#slotQuery(slot, matrix);
  }

  scan(slot: number, matrix: Matrix, from: number, to: number, admission: Admission, k: number): Ranked {
    if (to <= from) return this.#ranked(slot, 0);
    const { candidates, results, neighbours } = this.#scratch;
    this.#setMatrix(slot, matrix);
    // A filter lets a part of the rows through: the others need no codes for it.
    this.#setRowCodes(slot, matrix, admission.bits === 0 && from === 0 ? to : 0);
    this.#setAdmission(admission);
    return this.#ranked(slot, this.#exports.scan(from, to, Math.min(k, to - from), slot + neighbours, slot + candidates, slot + results));
  }

  gather(slot: number, matrix: Matrix, count: number, admission: Admission, k: number): Ranked {
    if (count === 0) return this.#ranked(slot, 0);
    const { rows, candidates, results, neighbours } = this.#scratch;
    this.#setMatrix(slot, matrix);
    this.#setRowCodes(slot, matrix, 0);
    this.#setAdmission(admission);
    return this.#ranked(
      slot,
      this.#exports.gather(slot + rows, count, Math.min(k, count), slot + neighbours, slot + candidates, slot + results),
    );
  }

  rescore(slot: number, matrix: Matrix, rows: ArrayLike<number>, k: number): Ranked {
    const { length } = rows;
    if (length === 0) return this.#ranked(slot, 0);
    const { rows: list, candidates, results, neighbours } = this.#scratch;
    this.#words.set(rows, (slot + list) >>> 2);
    this.#setMatrix(slot, matrix);
    return this.#ranked(
      slot,
      this.#exports.rescore(slot + list, length, Math.min(k, length), slot + neighbours, slot + candidates, slot + results),
    );
  }

  walk(
    slot: number,
    matrix: Matrix,
    graph: Graph,
    admission: Admission,
    options: { ef: number; k: number; rows: number; narrow: boolean; end?: WalkEnd | undefined },
  ): Ranked {
    const { rows } = options;
    if (rows === 0) return this.#ranked(slot, 0);
    const k = Math.min(options.k, rows);
    const ef = Math.min(Math.max(options.ef, k), rows);
    this.#setMatrix(slot, matrix);
    this.#setAdmission(admission);
    this.#setGraph(slot, graph);
    this.#exports.setWalkEnd(options.end?.wanted ?? 1, options.end?.spread ?? 0, matrix.metric === 'dot' ? 1 : 0);
    return this.#ranked(slot, this.#exports.walk(rows, ef, k, options.narrow ? 1 : 0));
  }

  examplesMax(matrix: Matrix): number {
    const { rows, candidates } = this.#scratch;
    return Math.floor((candidates - rows) / (keptBytes(matrix) + START_ROWS * 4));
  }

  walkByExamples(
    slot: number,
    matrix: Matrix,
    graph: Graph,
    admission: Admission,
    { examples, form, positives, starts }: ExampleWalk,
    { ef, narrow, rows }: { ef: number; rows: number; narrow: boolean },
  ): Ranked {
    if (Math.max(examples.length, starts.length) > this.examplesMax(matrix)) throw new RangeError('no room for so many examples');
    if (rows === 0) return this.#ranked(slot, 0);
    const seeds = this.#rowsNear(slot, matrix, graph, admission, starts, rows);
    const step = keptBytes(matrix);
    const queries = slot + this.#scratch.rows;
    examples.forEach((example, at) => {
      this.setQuery(slot, matrix, example);
      this.#setMatrix(slot, matrix);
      this.#exports.keepQuery(queries + at * step, step - QUERY_HEAD);
    });
    const list = queries + examples.length * step;
    this.#words.set(seeds, list >>> 2);
    this.#setAdmission(admission);
    this.#setGraph(slot, graph);
    this.#exports.setWalkEnd(1, 0, 0);
    this.#exports.setExamples(EXAMPLE_FORMS[form], examples.length, positives, queries, step);
    const found = Math.min(ef, rows);
    return this.#ranked(slot, this.#exports.walkByExamples(rows, list, seeds.length, found, found, narrow ? 1 : 0));
  }

  /** Rows near each of some vectors, whether a filter lets them through or not. */
  #rowsNear(slot: number, matrix: Matrix, graph: Graph, admission: Admission, vectors: readonly Float32Array[], rows: number): Uint32Array {
    const near = new Set<number>();
    for (const vector of vectors) {
      this.setQuery(slot, matrix, vector);
      const options = { ef: START_ROWS, k: START_ROWS, rows, narrow: false };
      for (const row of this.walk(slot, matrix, graph, { ...admission, bits: 0 }, options).rows) near.add(row);
    }
    return Uint32Array.from(near);
  }

  #setGraph(slot: number, { entryRow, level0, m, m0, maxLevel, upper, upperIndex }: Graph): void {
    const { visited, candidates, results, neighbours } = this.#scratch;
    this.#exports.setGraph(level0, m0, upperIndex, upper, m, entryRow, maxLevel);
    this.#exports.setWalkScratch(slot + visited, slot + candidates, slot + results, slot + neighbours);
  }

  scoreEach(slot: number, matrix: Matrix, rows: Uint32Array): Float32Array {
    const { rows: list, candidates, neighbours } = this.#scratch;
    this.#words.set(rows, (slot + list) >>> 2);
    this.#setMatrix(slot, matrix);
    if (this.#exports.scoreEach(slot + list, rows.length, slot + neighbours, slot + candidates) < 0) throw new KernelExpired();
    const first = (slot + candidates) >>> 2;
    return this.#floats.subarray(first, first + rows.length);
  }

  maxSim(slot: number, matrix: Matrix, offsets: number, count: number, query: Float32Array): Float32Array {
    const { rows, candidates, neighbours } = this.#scratch;
    const first = (slot + candidates) >>> 2;
    const sums = this.#floats.subarray(first, first + count).fill(0);
    if (matrix.element === 'code') {
      if (this.#maxSimCodes(slot, matrix, offsets, count, query)) return sums;
      // Vectors of the query before the one that it could not take have been added.
      sums.fill(0);
    }
    if (matrix.product !== undefined && this.#maxSimProduct(slot, matrix, matrix.product, offsets, count, query)) return sums;
    for (let from = 0; from < count; ) {
      const list = slot + rows + from * 4;
      const block = this.#cachedRows(list, count - from, offsets, matrix.stride);
      for (let vector = 0; vector < query.length; vector += matrix.dim) {
        this.setQuery(slot, matrix, query.subarray(vector, vector + matrix.dim));
        this.#setMatrix(slot, matrix);
        if (this.#exports.maxSim(list, block, offsets, slot + neighbours, slot + candidates + from * 4) < 0) throw new KernelExpired();
      }
      from += block;
    }
    return sums;
  }

  /** As `maxSim` by 8-bit codes, adding to the sums, with as many vectors of the query at once as there is room for. False: it takes each by itself. */
  #maxSimCodes(slot: number, matrix: Matrix, offsets: number, count: number, query: Float32Array): boolean {
    const { rows, candidates, neighbours, neighboursBytes } = this.#scratch;
    const { dim, metric, offset, stride } = matrix;
    const codes = { scale: matrix.scale ?? 1, origin: matrix.origin ?? 0 };
    const padded = paddedDim(dim);
    const pairs = Math.floor(neighboursBytes / (padded * 4 + 16));
    if (pairs === 0) return false;
    const queries = slot + neighbours;
    const scales = queries + pairs * padded * 4;
    for (let from = 0; from < query.length; from += pairs * 2 * dim) {
      const group = query.subarray(from, from + pairs * 2 * dim);
      const vectors = group.length / dim;
      const scaled = this.#floats.subarray(scales >>> 2, (scales >>> 2) + pairs * 4).fill(0);
      for (let vector = 0; vector < vectors; vector++) {
        const start = (queries >>> 1) + vector * padded;
        const written = writeCodeQuery(
          metric,
          codes,
          group.subarray(vector * dim, (vector + 1) * dim),
          this.#shorts.subarray(start, start + padded),
        );
        if (written.far) return false;
        const place = (vector >>> 1) * 4 + (vector & 1);
        scaled[place] = written.factor;
        scaled[place + 2] = written.constant;
      }
      // The other of the last pair counts for nothing.
      const even = (vectors + 1) & ~1;
      if (even > vectors) this.#shorts.fill(0, (queries >>> 1) + vectors * padded, (queries >>> 1) + even * padded);
      this.#exports.setMatrix(ELEMENTS.code * 3 + METRICS[metric], offset, stride, padded, queries, 1, 0, 0);
      const list = slot + rows;
      const done = this.#exports.maxSimCodes(
        METRICS[metric],
        list,
        count,
        offsets,
        offset,
        stride,
        queries,
        scales,
        even,
        slot + candidates,
      );
      if (done < 0) throw new KernelExpired();
    }
    return true;
  }

  /** As `maxSim` by product codes, adding to the sums, eight vectors of the query at once. False: their tables find no room. */
  #maxSimProduct(slot: number, matrix: Matrix, { partDim }: ProductCodes, offsets: number, count: number, query: Float32Array): boolean {
    const { rows, candidates, codeQuery, bits } = this.#scratch;
    const { dim, offset, stride } = matrix;
    const spec = { kind: 'product', partDim } as const;
    const { codeBytes: parts, queryBytes } = codeShape(spec, dim);
    const tableBytes = maxSimTableBytes(spec, dim);
    if (tableBytes === 0 || bits - codeQuery < queryBytes + tableBytes) return false;
    // Behind the tables of a single vector, which `setQuery` writes.
    const scales = slot + codeQuery + queryBytes;
    const packed = scales + MAX_SIM_LANES * 8;
    const tables = this.#bytes.subarray(scales, scales + tableBytes);
    for (let from = 0; from < query.length; from += MAX_SIM_LANES * dim) {
      const vectors = Math.min(MAX_SIM_LANES, (query.length - from) / dim);
      // Where nothing is written below, nothing counts.
      tables.fill(0);
      for (let lane = 0; lane < vectors; lane++) {
        const start = from + lane * dim;
        this.setQuery(slot, matrix, query.subarray(start, start + dim));
        this.#exports.packTables(slot + codeQuery, parts, lane, packed, scales);
      }
      this.#setMatrix(slot, matrix);
      const done = this.#exports.maxSimTables(slot + rows, count, offsets, offset, stride, packed, scales, vectors, slot + candidates);
      if (done < 0) throw new KernelExpired();
    }
    return true;
  }

  /** How many of the `count` rows at `list` have vectors that fit in the cache together, so that all of the query's meet them there; 1 at least. */
  #cachedRows(list: number, count: number, offsets: number, stride: number): number {
    const words = this.#words;
    let bytes = 0;
    for (let index = 0; index < count; index++) {
      const offset = (offsets >>> 2) + (words[(list >>> 2) + index] as number);
      bytes += ((words[offset + 1] as number) - (words[offset] as number)) * stride;
      if (bytes > CACHED_BYTES) return Math.max(1, index);
    }
    return count;
  }

  byTokens(
    slot: number,
    matrix: Matrix,
    lists: TokenLists,
    query: Float32Array,
    admission: Admission,
    { keep, probes, rows }: { probes: number; keep: number; rows: number },
  ): Ranked {
    const { candidates, neighbours, results, rows: heap, visited } = this.#scratch;
    const chosen = this.#chosenLists(slot, lists, query, Math.min(probes, PROBES_MAX));
    const ranges = slot + neighbours + RANGES_AT;
    const raised = slot + results + rows * 4;
    this.#setAdmission(admission);
    this.#exports.beginTokens(slot + visited, Math.ceil(rows / 32) * 4);
    for (const [at, { floor, numbers }] of chosen.entries()) {
      this.setQuery(slot, matrix, query.subarray(at * matrix.dim, (at + 1) * matrix.dim));
      this.#setMatrix(slot, matrix);
      numbers.forEach((list, i) => {
        this.#words.set(lists.starts.subarray(list, list + 2), (ranges >>> 2) + 2 * i);
      });
      const done = this.#exports.addTokens(
        ranges,
        numbers.length,
        lists.items,
        lists.rows,
        floor,
        slot + neighbours,
        slot + visited,
        slot + candidates,
        slot + results,
        raised,
      );
      if (done < 0) throw new KernelExpired();
    }
    // Heap and sums do not overlap; the answer takes the place of the rows found, which is free by then.
    const k = Math.min(keep, rows >>> 1);
    return this.#ranked(slot, this.#exports.bestByTokens(k, slot + candidates, slot + results, slot + heap, slot + results));
  }

  /** For each vector of the query the lists with the best centroids, and what a row has at least that is in none of them, as the next centroid tells. */
  #chosenLists(slot: number, { centroids, count }: TokenLists, query: Float32Array, probes: number): ChosenLists[] {
    const { dim } = centroids;
    const { candidates, neighbours, results } = this.#scratch;
    return Array.from({ length: query.length / dim }, (_, vector) => {
      this.setQuery(slot, centroids, query.subarray(vector * dim, (vector + 1) * dim));
      this.#setMatrix(slot, centroids);
      const wanted = Math.min(count, probes + 1);
      const ranked = this.#ranked(slot, this.#exports.scanAll(count, wanted, slot + neighbours, slot + candidates, slot + results));
      return { numbers: ranked.rows.slice(0, probes), floor: ranked.scores[ranked.count - 1] as number };
    });
  }

  countAdmitted(rows: number, admission: Admission): number {
    this.#setAdmission(admission);
    return this.#exports.countAdmitted(rows) >>> 0;
  }

  countPassing(rows: number, admission: Admission): number {
    this.#setAdmission(admission);
    return this.#exports.countPassing(rows) >>> 0;
  }

  listAdmitted(slot: number, rows: number, admission: Admission): number {
    this.#setAdmission(admission);
    return this.#exports.listAdmitted(rows, slot + this.#scratch.rows) >>> 0;
  }

  takeScored(): number {
    return this.#exports.takeScored() >>> 0;
  }

  takeScoredBytes(): number {
    return this.#exports.takeScoredBytes();
  }

  takeHops(): number {
    return this.#exports.takeHops() >>> 0;
  }

  #setAdmission({ deletedAt, seq, bits }: Admission): void {
    this.#exports.setAdmission(deletedAt, seq, bits);
  }

  #setMatrix(slot: number, matrix: Matrix): void {
    const { element, metric, offset, stride, dim } = matrix;
    const scoring = CODED[element] ? this.#slotQuery(slot, matrix).scoring : null;
    if (scoring) {
      const { kind, bytes, factor, cross, constant } = scoring;
      this.#exports.setMatrix(kind, offset, stride, bytes, slot + this.#scratch.codeQuery, factor, cross, constant);
    } else {
      const plain = element as PlainElement;
      const bytes = (dim * ELEMENT_BYTES[plain] + 15) & ~15;
      const [factor, constant] = plain === 'decoded' ? this.#decoding(slot, matrix) : [1, 0];
      const kind = ELEMENTS[plain] * 3 + METRICS[metric];
      this.#exports.setMatrix(kind, offset, stride, bytes, slot + this.#scratch.query, factor, 0, constant);
    }
  }

  /** Has the next scan use the codes of rows where there are some. scanned: rows from 0 that it goes over; 0 where that is not all. */
  #setRowCodes(slot: number, matrix: Matrix, scanned: number): void {
    const { dim, metric, rowCodes } = matrix;
    if (rowCodes === undefined || metric === 'l1') return;
    const coded = this.#codedRows(matrix, rowCodes, scanned);
    if (coded < ROW_CODES_ROWS_MIN) return;
    const { codes, facts, stride } = rowCodes;
    const { query, codeQuery } = this.#scratch;
    const floats = this.#floats.subarray((slot + query) >>> 2, ((slot + query) >>> 2) + dim);
    const shorts = this.#shorts.subarray((slot + codeQuery) >>> 1, ((slot + codeQuery) >>> 1) + stride);
    this.#queries.delete(slot);
    const { factor: unit } = writeCodeQuery('dot', { scale: 1, origin: 0 }, floats, shorts);
    const most = mostByRowCodes(metric, floats, shorts, unit);
    if (most === null) return;
    const { constant, gain, reach, slack, weight } = most;
    this.#exports.setRowCodes(codes, stride, facts, coded, slot + codeQuery, unit, reach, slack, gain, weight, constant);
  }

  /**
   * Rows from 0 that have codes. Those that an earlier scan has met get theirs now: what is scanned once only needs none. Other threads may code the same rows meanwhile,
   * to the same codes.
   */
  #codedRows({ offset, stride }: Matrix, { codes, counts, facts, stride: codeStride }: RowCodes, scanned: number): number {
    const at = counts >>> 2;
    const coded = Atomics.load(this.#words, at);
    if (scanned < ROW_CODES_ROWS_MIN) return coded;
    const met = Atomics.load(this.#words, at + 1);
    raiseTo(this.#words, at + 1, scanned);
    if (met <= coded) return coded;
    if (this.#exports.encodeRows(coded, met, offset, stride, codes, codeStride, facts) < 0) throw new KernelExpired();
    raiseTo(this.#words, at, met);
    return met;
  }

  /**
   * Scale and origin of decoded rows. The codes that pad a row stand for the origin: so does the query behind its end, which takes them out of
   * distances; of products 0 does.
   */
  #decoding(slot: number, { dim, metric, scale = 1, origin = 0 }: Matrix): [number, number] {
    const start = (slot + this.#scratch.query) >>> 2;
    this.#floats.fill(metric === 'dot' ? 0 : origin, start + dim, start + paddedDim(dim));
    return [scale, origin];
  }

  /**
   * The slot's query as codes are scored with it. A slot has room for one coded query, and the f32 query
   * is still there: so it is made anew when another matrix comes in between.
   */
  #slotQuery(slot: number, matrix: Matrix): SlotQuery {
    const known = this.#queries.get(slot);
    if (known && sameCodes(known.matrix, matrix)) return known;
    const start = (slot + this.#scratch.query) >>> 2;
    const query = this.#floats.subarray(start, start + matrix.dim);
    const made = { matrix, scoring: this.#scoring(slot, matrix, query) };
    this.#queries.set(slot, made);
    return made;
  }

  #scoring(slot: number, matrix: Matrix, query: Float32Array): Scoring | null {
    if (matrix.levels !== undefined) return this.#levelScoring(slot, matrix, matrix.levels, query);
    if (matrix.product !== undefined) return this.#productScoring(slot, matrix, matrix.product);
    const codes = { scale: matrix.scale ?? 1, origin: matrix.origin ?? 0 };
    const integers = matrix.element === 'code' || (matrix.element === 'u8' && fitsCodes(matrix.metric, codes, query));
    if (!integers) return null;
    const start = (slot + this.#scratch.codeQuery) >>> 1;
    const bytes = paddedDim(matrix.dim);
    const { constant, cross, factor, far } = writeCodeQuery(matrix.metric, codes, query, this.#shorts.subarray(start, start + bytes));
    return { kind: far ? CODE_L2_FAR : ELEMENTS.code * 3 + METRICS[matrix.metric], bytes, factor, cross, constant };
  }

  #levelScoring(slot: number, { dim }: Matrix, levels: LevelCoder, query: Float32Array): Scoring {
    const { codeBytes, queryBytes } = codeShape(levels.spec, dim);
    const start = slot + this.#scratch.codeQuery;
    const { kernel, ...scale } = levels.writeQuery(query, this.#bytes.subarray(start, start + queryBytes));
    return { kind: LEVEL_KINDS[kernel], bytes: codeBytes, ...scale };
  }

  #productScoring(slot: number, { dim, metric }: Matrix, { codebook, partDim }: ProductCodes): Scoring {
    const parts = Math.ceil(dim / partDim);
    const { query, codeQuery } = this.#scratch;
    this.#exports.fillTables(codebook, slot + query, parts, partDim, METRICS[metric], slot + codeQuery);
    return { kind: PRODUCT_KIND, bytes: parts, factor: 1, cross: 0, constant: 0 };
  }

  /** Whether the words from `start` are already this query: with codes, a query is set twice, for them and for the originals. */
  #holds(start: number, query: Float32Array): boolean {
    const floats = this.#floats;
    for (let index = 0; index < query.length; index++) {
      if (floats[start + index] !== query[index]) return false;
    }
    for (let index = query.length; index < paddedDim(query.length); index++) {
      if (floats[start + index] !== 0) return false;
    }
    return true;
  }

  #ranked(slot: number, count: number): Ranked {
    if (count < 0) throw new KernelExpired();
    const start = (slot + this.#scratch.results) >>> 2;
    return {
      count,
      rows: this.#words.subarray(start, start + count),
      scores: this.#floats.subarray(start + count, start + 2 * count),
    };
  }
}

/** Raises a shared number, unless it is as high. */
function raiseTo(words: Uint32Array, at: number, value: number): void {
  for (let known = Atomics.load(words, at); known < value; ) {
    const before = Atomics.compareExchange(words, at, known, value);
    if (before === known) return;
    known = before;
  }
}

/** Bytes that an example's query takes, with its head. */
function keptBytes({ dim, element, levels, product }: Matrix): number {
  const spec = levels?.spec ?? (product && ({ kind: 'product', partDim: product.partDim } as const));
  const bytes = spec === undefined ? paddedDim(dim) * (element === 'code' ? 2 : 4) : codeShape(spec, dim).queryBytes;
  return QUERY_HEAD + align16(bytes);
}

function sameCodes(one: Matrix, other: Matrix): boolean {
  return (
    one.element === other.element &&
    one.metric === other.metric &&
    one.dim === other.dim &&
    one.scale === other.scale &&
    one.origin === other.origin &&
    one.levels === other.levels &&
    one.product?.codebook === other.product?.codebook
  );
}
