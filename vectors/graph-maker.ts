/**
 * Graphs made of all pairs within small groups of near rows (`near-groups.ts`, `kernels/pairs.ts`), on 8-bit codes by squared Euclidean distance, in a memory of
 * its own. Of the nearest rows that a row has met, those become its links that HNSW chooses (Malkov and Yashunin, 2016), and it gets links back
 * (`kernels/join.ts`). The upper levels are a graph that was made by insertions: of pairs alone they led from one cluster to another too seldom.
 */

import { type BuiltGraph, NO_ROW } from './built-graph.js';
import { bridgeLevels, linkIslands } from './graph-bridges.js';
import { GraphJoiner, JOIN_M0_MAX, linksOf } from './graph-joiner.js';
import { kernelModule } from './kernels.js';
import { GROUP_ROWS_MAX, LEADERS_MAX, nearGroups, RANKED_ROWS, type RankLeaders } from './near-groups.js';
import { align16, align64, scratchLayout } from './scratch.js';
import { randomOf } from './seeded.js';

interface PairExports {
  setPairs(codes: number, stride: number, block: number, squares: number, bounds: number, query: number, near: number, k: number): void;
  keepNone(rows: number): void;
  nearestLeaders(leaders: number, leaderCount: number, rows: number, count: number, each: number, best: number, out: number): void;
  meetAll(rows: number, count: number): void;
}

export interface MakerOptions {
  readonly rows: number;
  readonly dim: number;
  readonly m: number;
  readonly efConstruct: number;
}

/** Squares of the distances of longer rows leave 32 bits. */
const DIM_MAX = 16_384;
/** Half of fewer would be too few links for the upper levels. */
const M_MIN = 8;
const MEMORY_BYTES_MAX = 2 ** 32;
/** Groups that a row is in at `EF_USUAL` results of an insertion, as many more as there are more results. */
const GROUPS_USUAL = 10;
const EF_USUAL = 100;
const GROUPS_MAX = 48;
/** Near rows that are kept for each link that a row has on upper levels; on level 0 it has twice as many. */
const NEAR_ROWS_OF_LINK = 3;
/** The row, and how near it is. */
const NEAR_ROW_BYTES = 8;
/** Of near groups, and of the rows of upper levels. */
const SEED = 0x3c6e_f372;
const PAUSE_ROWS = 1024;
/** Upper levels that a row of level 1 is on, on average, at most: 1.1 to 1.3 by chance. */
const UPPER_LEVELS = 2;

/** Whether such a graph can be made: it fits in a memory, and numbers in 32 bits. */
export function canMake(options: MakerOptions): boolean {
  return options.dim <= DIM_MAX && options.m >= M_MIN && 2 * options.m <= JOIN_M0_MAX && placesOf(options).bytes <= MEMORY_BYTES_MAX;
}

/** Links of rows in the graph of upper levels, so that its level 0 fits into a list of `m`. */
export function upperM(m: number): number {
  return m >>> 1;
}

/** The rows of level 1 and above: one of each `m`, wherever it is among them, so that with rows in an order by place all places have some. */
export function upperRows({ m, rows }: MakerOptions): Uint32Array {
  const random = randomOf(SEED);
  return Uint32Array.from({ length: Math.floor(rows / m) }, (_, part) => part * m + Math.floor(random() * m));
}

export class GraphMaker {
  private readonly memory: WebAssembly.Memory;
  /** Bytes of a code, with the zeros behind its end. */
  readonly stride: number;
  /** Codes of all rows, to be filled before the graph is made: u8 [rows, stride]. */
  readonly codes: Uint8Array;
  readonly #exports: PairExports;
  readonly #places: Places;
  readonly #random = randomOf(SEED);

  /** makeMemory: a shared memory with room for so many bytes, all zero. */
  constructor(
    private readonly options: MakerOptions,
    makeMemory: (bytes: number) => WebAssembly.Memory,
  ) {
    const { dim, rows } = options;
    this.#places = placesOf(options);
    this.memory = makeMemory(this.#places.bytes);
    this.stride = align16(dim);
    this.codes = new Uint8Array(this.memory.buffer, this.#places.codes, rows * this.stride);
    const { exports } = new WebAssembly.Instance(kernelModule(), { env: { memory: this.memory, expired: () => 0 } });
    this.#exports = exports as unknown as PairExports;
  }

  /**
   * The graph; slots are rows. keys: u32 [rows]. upper: over `upperRows`, its keys are these; null where there are none.
   * pause: is awaited now and then, and hears how many rows are done.
   */
  async make(keys: Uint32Array, upper: BuiltGraph | null, pause: (done: number) => Promise<void>): Promise<BuiltGraph> {
    const { dim, m, rows } = this.options;
    const { codes, near, scratch, slot, upper: upperAt, upperIndex } = this.#places;
    // Lists of level 0 lie where the near rows are: a row's list ends before the near rows of the next one begin.
    const lists = { level0: near, m0: 2 * m, upperIndex, upper: upperAt, m };
    const words = new Uint32Array(this.memory.buffer);
    const levels = this.#writeUpper(upper);
    const maxLevel = upper === null ? 0 : upper.maxLevel + 1;
    const entryRow = upper === null ? 0 : (upper.keys[upper.entry] as number);
    const joiner = new GraphJoiner({
      ...{ memory: this.memory, rows, lists, slot, scratch, byAngle: false },
      codes: { offset: codes, stride: this.stride, dim, zero: 0 },
    });
    const pauseLast = () => pause(rows);
    await this.#meet(pause);
    await this.#choose(joiner, pauseLast);
    const everyRow = all(rows);
    await joiner.linkBack(everyRow, 0, pauseLast);
    const above = everyRow.filter((row) => (levels[row] as number) > 0);
    const bridged = { words, lists, rows: everyRow, above, entryRow, maxLevel };
    bridgeLevels(bridged);
    await linkIslands(bridged, joiner, pauseLast);
    return {
      ...{ size: rows, m, m0: 2 * m, maxLevel, keys, levels, memory: this.memory },
      entry: rows === 0 ? NO_ROW : entryRow,
      neighbours: (row, level) => linksOf(words, lists, row, level),
    };
  }

  /** Copies the lists of the upper levels, each one level higher. Returns the highest level of each row. */
  #writeUpper(upper: BuiltGraph | null): Int16Array {
    const { m, rows } = this.options;
    const { upper: upperAt, upperIndex } = this.#places;
    const levels = new Int16Array(rows);
    const starts = new Uint32Array(this.memory.buffer, upperIndex, rows).fill(NO_ROW);
    if (upper === null) return levels;
    const words = new Uint32Array(this.memory.buffer, upperAt, upper.levels.reduce((sum, level) => sum + level + 1, 0) * (1 + m));
    let next = 0;
    for (const [slot, row] of upper.keys.entries()) {
      levels[row] = (upper.levels[slot] as number) + 1;
      starts[row] = next;
      for (let level = 0; level < (levels[row] as number); level++, next += 1 + m) {
        const links = upper.neighbours(slot, level).map((link) => upper.keys[link] as number);
        words[next] = links.length;
        words.set(links, next + 1);
      }
    }
    return levels;
  }

  /** Finds near rows of each row. */
  async #meet(pause: (done: number) => Promise<void>): Promise<void> {
    const { efConstruct, m, rows } = this.options;
    const { buffer } = this.memory;
    const { bounds, block, codes, group, near, queries, squares } = this.#places;
    this.#exports.setPairs(codes, this.stride, block, squares, bounds, queries, near, nearRows(m));
    this.#exports.keepNone(rows);
    const groupsEach = Math.min(GROUPS_MAX, Math.ceil((GROUPS_USUAL * efConstruct) / EF_USUAL));
    let met = 0;
    const progress = () => pause(Math.min(rows, Math.floor(met / groupsEach)));
    const tools = { pause: progress, random: this.#random, rank: (...asked: Parameters<RankLeaders>) => this.#rank(...asked) };
    for await (const some of nearGroups(all(rows), groupsEach, tools)) {
      await progress();
      new Uint32Array(buffer, group, some.length).set(some);
      this.#exports.meetAll(group, some.length);
      met += some.length;
    }
  }

  #rank(leaders: Uint32Array, rows: Uint32Array, each: number): Uint32Array {
    const { buffer } = this.memory;
    const { best, group, ranked, ranking } = this.#places;
    new Uint32Array(buffer, group, leaders.length).set(leaders);
    new Uint32Array(buffer, ranking, rows.length).set(rows);
    this.#exports.nearestLeaders(group, leaders.length, ranking, rows.length, each, best, ranked);
    return new Uint32Array(buffer, ranked, rows.length * each).slice();
  }

  /** Ascending: see where the lists lie. */
  async #choose(joiner: GraphJoiner, pause: () => Promise<void>): Promise<void> {
    const { m, rows } = this.options;
    const { near } = this.#places;
    const k = nearRows(m);
    for (let row = 0; row < rows; row++) {
      if (row % PAUSE_ROWS === 0) await pause();
      joiner.choose(row, 0, near + row * nearRowsBytes(m), k);
    }
  }
}

function all(rows: number): Uint32Array {
  return Uint32Array.from({ length: rows }, (_, row) => row);
}

/** Near rows that are kept of each row: more than it has links at most, as not all are chosen. A multiple of 4. */
function nearRows(m: number): number {
  return (NEAR_ROWS_OF_LINK * m + 3) & ~3;
}

/** Bytes that near rows of a row take while its graph is made. */
export function nearRowsBytes(m: number): number {
  return NEAR_ROW_BYTES * nearRows(m);
}

type Places = ReturnType<typeof placesOf>;

/** Where everything is in the memory, in bytes. */
function placesOf({ dim, m, rows }: MakerOptions) {
  let bytes = 1024;
  const take = (more: number): number => {
    const offset = bytes;
    bytes += align64(more);
    return offset;
  };
  const stride = align16(dim);
  const blockRows = Math.max(GROUP_ROWS_MAX, LEADERS_MAX) + 4;
  const scratch = scratchLayout(Math.max(rows, 2048), dim);
  const places = {
    scratch,
    codes: take(rows * stride + 64),
    near: take(rows * nearRowsBytes(m)),
    upperIndex: take(rows * 4),
    upper: take((rows / m) * UPPER_LEVELS * (1 + m) * 4),
    slot: take(scratch.bytes),
    block: take(blockRows * stride + 64),
    squares: take(blockRows * 4),
    bounds: take(blockRows * 4),
    queries: take(2 * stride * 2 + 32),
    group: take(blockRows * 4),
    ranking: take(RANKED_ROWS * 4),
    best: take(2 * GROUPS_MAX * 4),
    ranked: take(RANKED_ROWS * GROUPS_MAX * 4),
  };
  return { ...places, bytes };
}
