/**
 * The search kernels on a memory: `kernel-api.ts` implemented by the compiled WebAssembly module.
 *
 * A worker makes one instance per memory from one module. All state of an instance is its own (globals of the
 * instance), so workers share a memory as long as each keeps to its scratch slot.
 */

import { readFileSync } from 'node:fs';
import { type CodeQuery, fitsCodes, paddedDim, writeCodeQuery } from './code-query.js';
import {
  type Admission,
  type Element,
  type Graph,
  KernelExpired,
  type Kernels,
  type Matrix,
  type Metric,
  type Ranked,
} from './kernel-api.js';
import type { ScratchLayout } from './scratch.js';

const ELEMENTS: Record<Element, number> = { f32: 0, f16: 1, bf16: 2, u8: 3, i8: 4, code: 5 };
const ELEMENT_BYTES: Record<Element, number> = { f32: 4, f16: 2, bf16: 2, u8: 1, i8: 1, code: 1 };
const METRICS: Record<Metric, number> = { dot: 0, l2: 1, l1: 2 };

/** Kind of the kernel for L2 on codes with a query far outside their range: see `kernels/score.ts`. */
const CODE_L2_FAR = 18;

/** Part of the second cache that a block of vectors may take while all of a query's vectors are compared with it. */
const CACHED_BYTES = 1 << 18;

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
  scan(from: number, to: number, k: number, chunk: number, heap: number, out: number): number;
  gather(rows: number, count: number, k: number, chunk: number, heap: number, out: number): number;
  rescore(rows: number, count: number, k: number, chunk: number, heap: number, out: number): number;
  walk(rows: number, ef: number, k: number, narrow: number): number;
  maxSim(rows: number, count: number, offsets: number, chunk: number, sums: number): number;
  countAdmitted(rows: number): number;
  listAdmitted(rows: number, out: number): number;
  takeScored(): number;
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

/** The 16-bit query that a slot holds, and the matrix it was made for. */
interface SlotQuery {
  readonly matrix: Matrix;
  readonly codeQuery: CodeQuery | null;
}

class MemoryKernels implements Kernels {
  readonly #exports: Exports;
  readonly #scratch: ScratchLayout;
  readonly #floats: Float32Array;
  readonly #words: Uint32Array;
  readonly #shorts: Int16Array;
  readonly #queries = new Map<number, SlotQuery>();

  constructor(exports: Exports, memory: WebAssembly.Memory, scratch: ScratchLayout) {
    this.#exports = exports;
    this.#scratch = scratch;
    this.#floats = new Float32Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#shorts = new Int16Array(memory.buffer);
  }

  setQuery(slot: number, matrix: Matrix, query: Float32Array): void {
    if (query.length !== matrix.dim) throw new RangeError(`query of ${query.length} components for vectors of ${matrix.dim}`);
    const start = (slot + this.#scratch.query) >>> 2;
    if (!this.#holds(start, query)) {
      this.#floats.set(query, start);
      this.#floats.fill(0, start + matrix.dim, start + paddedDim(matrix.dim));
      this.#queries.delete(slot);
    }
    if (ELEMENT_BYTES[matrix.element] === 1) this.#slotQuery(slot, matrix);
  }

  scan(slot: number, matrix: Matrix, from: number, to: number, admission: Admission, k: number): Ranked {
    if (to <= from) return this.#ranked(slot, 0);
    const { candidates, results, neighbours } = this.#scratch;
    this.#setMatrix(slot, matrix);
    this.#setAdmission(admission);
    return this.#ranked(slot, this.#exports.scan(from, to, Math.min(k, to - from), slot + neighbours, slot + candidates, slot + results));
  }

  gather(slot: number, matrix: Matrix, count: number, admission: Admission, k: number): Ranked {
    if (count === 0) return this.#ranked(slot, 0);
    const { rows, candidates, results, neighbours } = this.#scratch;
    this.#setMatrix(slot, matrix);
    this.#setAdmission(admission);
    return this.#ranked(
      slot,
      this.#exports.gather(slot + rows, count, Math.min(k, count), slot + neighbours, slot + candidates, slot + results),
    );
  }

  rescore(slot: number, matrix: Matrix, ranked: Ranked, k: number): Ranked {
    if (ranked.count === 0) return this.#ranked(slot, 0);
    const { rows, candidates, results, neighbours } = this.#scratch;
    this.#words.set(ranked.rows.length === ranked.count ? ranked.rows : ranked.rows.subarray(0, ranked.count), (slot + rows) >>> 2);
    this.#setMatrix(slot, matrix);
    return this.#ranked(
      slot,
      this.#exports.rescore(slot + rows, ranked.count, Math.min(k, ranked.count), slot + neighbours, slot + candidates, slot + results),
    );
  }

  walk(
    slot: number,
    matrix: Matrix,
    graph: Graph,
    admission: Admission,
    options: { ef: number; k: number; rows: number; narrow: boolean },
  ): Ranked {
    const { rows } = options;
    if (rows === 0) return this.#ranked(slot, 0);
    const { visited, candidates, results, neighbours } = this.#scratch;
    const k = Math.min(options.k, rows);
    const ef = Math.min(Math.max(options.ef, k), rows);
    this.#setMatrix(slot, matrix);
    this.#setAdmission(admission);
    this.#exports.setGraph(graph.level0, graph.m0, graph.upperIndex, graph.upper, graph.m, graph.entryRow, graph.maxLevel);
    this.#exports.setWalkScratch(slot + visited, slot + candidates, slot + results, slot + neighbours);
    return this.#ranked(slot, this.#exports.walk(rows, ef, k, options.narrow ? 1 : 0));
  }

  maxSim(slot: number, matrix: Matrix, offsets: number, count: number, query: Float32Array): Float32Array {
    const { rows, candidates, neighbours } = this.#scratch;
    const first = (slot + candidates) >>> 2;
    const sums = this.#floats.subarray(first, first + count).fill(0);
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

  countAdmitted(rows: number, admission: Admission): number {
    this.#setAdmission(admission);
    return this.#exports.countAdmitted(rows) >>> 0;
  }

  listAdmitted(slot: number, rows: number, admission: Admission): number {
    this.#setAdmission(admission);
    return this.#exports.listAdmitted(rows, slot + this.#scratch.rows) >>> 0;
  }

  takeScored(): number {
    return this.#exports.takeScored() >>> 0;
  }

  #setAdmission({ deletedAt, seq, bits }: Admission): void {
    this.#exports.setAdmission(deletedAt, seq, bits);
  }

  #setMatrix(slot: number, matrix: Matrix): void {
    const { element, metric, offset, stride, dim } = matrix;
    const bytes = (dim * ELEMENT_BYTES[element] + 15) & ~15;
    const codeQuery = ELEMENT_BYTES[element] === 1 ? this.#slotQuery(slot, matrix).codeQuery : null;
    if (codeQuery) {
      const kind = codeQuery.far ? CODE_L2_FAR : ELEMENTS.code * 3 + METRICS[metric];
      const { factor, cross, constant } = codeQuery;
      this.#exports.setMatrix(kind, offset, stride, bytes, slot + this.#scratch.codeQuery, factor, cross, constant);
    } else {
      this.#exports.setMatrix(ELEMENTS[element] * 3 + METRICS[metric], offset, stride, bytes, slot + this.#scratch.query, 1, 0, 0);
    }
  }

  /**
   * The slot's query as one-byte components are scored with it. A slot has room for one 16-bit query, and the f32 query
   * is still there: so it is made anew when another matrix comes in between.
   */
  #slotQuery(slot: number, matrix: Matrix): SlotQuery {
    const known = this.#queries.get(slot);
    if (known && sameCodes(known.matrix, matrix)) return known;
    const start = (slot + this.#scratch.query) >>> 2;
    const query = this.#floats.subarray(start, start + matrix.dim);
    const made = { matrix, codeQuery: this.#codeQuery(slot, matrix, query) };
    this.#queries.set(slot, made);
    return made;
  }

  #codeQuery(slot: number, matrix: Matrix, query: Float32Array): CodeQuery | null {
    const codes = { scale: matrix.scale ?? 1, origin: matrix.origin ?? 0 };
    const integers = matrix.element === 'code' || (matrix.element === 'u8' && fitsCodes(matrix.metric, codes, query));
    if (!integers) return null;
    const start = (slot + this.#scratch.codeQuery) >>> 1;
    return writeCodeQuery(matrix.metric, codes, query, this.#shorts.subarray(start, start + paddedDim(matrix.dim)));
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

function sameCodes(one: Matrix, other: Matrix): boolean {
  return (
    one.element === other.element &&
    one.metric === other.metric &&
    one.dim === other.dim &&
    one.scale === other.scale &&
    one.origin === other.origin
  );
}
