/**
 * What the search kernels offer, in TypeScript's words. `vectors/kernels.ts` implements it on the compiled
 * WebAssembly (`vectors/kernels/*.ts`, AssemblyScript); `vectors/reference.ts` says the same in plain TypeScript for tests.
 *
 * Scores: higher is better for every metric: dot product; minus squared Euclidean distance; minus Manhattan distance.
 * Ties go to the smaller row. Rows are zero-padded to 16 bytes, so kernels work on whole 128-bit lanes.
 */

import type { LevelCoder } from './quantizers/levels.js';

export type Metric = 'dot' | 'l2' | 'l1';

/**
 * Types of stored components. `code`: 8-bit codes, scored with the 16-bit query; `decoded`: the floats that 8-bit codes stand for, scored with the
 * float query, in the order of `f32` and so with its scores, to the bit; `levels`, `product`: see `quantizers/`.
 */
export type Element = 'f32' | 'f16' | 'bf16' | 'u8' | 'i8' | 'code' | 'decoded' | 'levels' | 'product';

/** One matrix of rows in the memory. Offsets and strides in bytes. */
export interface Matrix {
  readonly element: Element;
  readonly metric: Metric;
  readonly offset: number;
  readonly stride: number;
  readonly dim: number;
  /** `code` and `decoded`: component = scale * code + origin. */
  readonly scale?: number;
  readonly origin?: number;
  /** `element === 'levels'`: what codes the query. */
  readonly levels?: LevelCoder;
  /** `element === 'product'`. */
  readonly product?: ProductCodes;
  /** By which scans of `f32` rows leave out those that cannot be among the best; not with `l1`. */
  readonly rowCodes?: RowCodes;
}

/** Codes of rows that come one by one, each with a scale of its own: see `kernels/row-codes.ts`. Offsets in bytes; all zeros at first. */
export interface RowCodes {
  /** i8 [rows, stride], stride a multiple of 16. */
  readonly codes: number;
  readonly stride: number;
  /** f32 [rows, 4]. */
  readonly facts: number;
  /** u32 [2]: rows from 0 that have codes, and rows that a scan has met, which get theirs with the next one. */
  readonly counts: number;
}

/** Centroids of product quantization: f32 [parts, partDim, 256] at byte `codebook` of the memory. */
export interface ProductCodes {
  readonly codebook: number;
  readonly partDim: number;
}

/** Adjacency of a graph: see `GraphLayout` in `storage/segment/layout.ts` (same fields). */
export interface Graph {
  readonly level0: number;
  readonly m0: number;
  readonly upperIndex: number;
  readonly upper: number;
  readonly m: number;
  readonly entryRow: number;
  readonly maxLevel: number;
}

/** In place of the offset of `deletedAt`: there is none to look at. */
export const NO_DELETIONS = 0;

/** Which rows count. */
export interface Admission {
  /** Byte offset of u32 deletedAt [rows]; a row counts while deletedAt > seq. `NO_DELETIONS`: all do. */
  readonly deletedAt: number;
  readonly seq: number;
  /** Byte offset of a bitset (one bit per row) that must be set too; 0: no bitset. */
  readonly bits: number;
}

/** Best first; views on scratch, valid until the next call with the same slot. */
export interface Ranked {
  readonly count: number;
  readonly rows: Uint32Array;
  readonly scores: Float32Array;
}

/** Vectors of a multivector's rows in lists of near ones. Offsets in bytes. */
export interface TokenLists {
  readonly count: number;
  /** Of each list, codes in the scale of the vectors' own. */
  readonly centroids: Matrix;
  /** List l has the entries from starts[l] up to starts[l + 1]: a view on the memory. */
  readonly starts: Uint32Array;
  /** u32 for each entry: the vector, and its row. */
  readonly items: number;
  readonly rows: number;
}

/**
 * When a walk ends before, or after, `ef` rows are found: when the row whose neighbours are to be looked at is `spread` times as far away as the last
 * of the best `wanted`; with 2 * ef results at the latest, 1.25 * ef in a wide walk with a filter.
 */
export interface WalkEnd {
  /** 1 to 64. */
  readonly wanted: number;
  /** More than 1. Of distances, for `dot` and `l2` of their squares. */
  readonly spread: number;
}

/** What a walk by several examples goes by: the order of the scores in `query/recommend.ts` and `query/discover.ts`. */
export interface ExampleWalk {
  readonly form: 'bestScore' | 'discover' | 'context';
  /** As the form's scorer takes them. Float32Array [dim] each. */
  readonly examples: readonly Float32Array[];
  /** Of `bestScore`: so many are positive, the others negative. */
  readonly positives: number;
  /** Vectors near which the walk begins. */
  readonly starts: readonly Float32Array[];
}

export interface Kernels {
  /**
   * Writes the query into the slot, as f32 and, for a matrix of codes, as these are scored with it.
   * slot: byte offset of the scratch slot. query: Float32Array [dim] (normalized by the caller for cosine).
   */
  setQuery(slot: number, matrix: Matrix, query: Float32Array): void;
  /** Scans rows [from, to) and keeps the best k. k in 1..rows of the segment. */
  scan(slot: number, matrix: Matrix, from: number, to: number, admission: Admission, k: number): Ranked;
  /** As `scan` over the `count` row numbers at scratch `rows`. */
  gather(slot: number, matrix: Matrix, count: number, admission: Admission, k: number): Ranked;
  /**
   * Scores rows anew with another matrix of the same query (rescoring) and keeps the best k, sorted.
   * The query must have been set for this matrix.
   */
  rescore(slot: number, matrix: Matrix, rows: ArrayLike<number>, k: number): Ranked;
  /**
   * The score of each of `rows`, in their order, whether they count or not. The query must have been set for this matrix.
   * Float32Array [rows.length]; a view on scratch.
   */
  scoreEach(slot: number, matrix: Matrix, rows: Uint32Array): Float32Array;
  /**
   * HNSW search: greedy descent, then the ef best of level 0 (ef >= 1, any size), best k of them.
   * Rows that don't count are walked through but not returned. `narrow`: the filter lets few rows through, so the
   * walk scores only rows that count and reaches them over two hops (ACORN-1). `end`: left out, only ef ends the walk; with `dot`
   * for vectors of length 1 only, whose distances scores tell.
   */
  walk(
    slot: number,
    matrix: Matrix,
    graph: Graph,
    admission: Admission,
    options: { ef: number; k: number; rows: number; narrow: boolean; end?: WalkEnd | undefined },
  ): Ranked;
  /** How many examples and starts of `walkByExamples` there is room for. */
  examplesMax(matrix: Matrix): number;
  /**
   * As `walk`, the `ef` best by how near they are to several examples. Each row counts as scored once for every example. Ranks are in the order of
   * the form's scores, and of use for nothing else.
   */
  walkByExamples(
    slot: number,
    matrix: Matrix,
    graph: Graph,
    admission: Admission,
    walk: ExampleWalk,
    options: { ef: number; rows: number; narrow: boolean },
  ): Ranked;
  /**
   * MaxSim of the `count` rows at scratch `rows`, each with one vector at least: over the query's vectors the sum of the
   * best score that one of the row's has. offsets: byte offset of u32; row r has the vectors offsets[r] up to offsets[r + 1]
   * of the matrix. query: Float32Array [vectors, dim]. Float32Array [count], in the order of the rows; a view on scratch.
   */
  maxSim(slot: number, matrix: Matrix, offsets: number, count: number, query: Float32Array): Float32Array;
  /**
   * Rows that may be the best by MaxSim, the `keep` likeliest first (at most half of `rows`, those of the segment): for each vector of the query, the vectors in
   * the `probes` lists with the best centroids are scored, and those of a row in none of them are taken for as good as the next centroid. matrix: codes of
   * 8 bits. query: as of `maxSim`. Scores are sums of what is above that, of use for the order alone.
   */
  byTokens(
    slot: number,
    matrix: Matrix,
    lists: TokenLists,
    query: Float32Array,
    admission: Admission,
    options: { probes: number; keep: number; rows: number },
  ): Ranked;
  /** Rows below `rows` that the bitset lets through, deleted or not. */
  countPassing(rows: number, admission: Admission): number;
  /** Rows below `rows` that count. */
  countAdmitted(rows: number, admission: Admission): number;
  /** Writes the row numbers below `rows` that count to scratch `rows` (for `gather`); returns how many. */
  listAdmitted(slot: number, rows: number, admission: Admission): number;
  /** Rows that kernels scored since the last call: for reports of cost. */
  takeScored(): number;
  /** Bytes of these rows since the last call of this one, each row in whole lanes of 16 bytes. */
  takeScoredBytes(): number;
  /** Rows of level 0 whose neighbours walks looked at since the last call. */
  takeHops(): number;
}

/** Thrown out of a kernel call when `expired()` answered true: the time limit stops the work. */
export class KernelExpired extends Error {
  constructor() {
    super('time limit reached during search');
    this.name = 'KernelExpired';
  }
}
