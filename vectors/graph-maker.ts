/**
 * Graphs made of all pairs within small groups of near rows (`near-groups.ts`, `kernels/pairs.ts`), on 8-bit codes by squared Euclidean distance, in a memory of
 * its own. Of the nearest rows that a row has met, those become its links that HNSW chooses (Malkov and Yashunin, 2016), and it gets links back
 * (`kernels/join.ts`). The upper levels are a graph that was made by insertions: of pairs alone they led from one cluster to another too seldom.
 */

import { type BuiltGraph, NO_ROW } from './built-graph.js';
import { bridgeLevels, linkIslands } from './graph-bridges.js';
import { GraphJoiner, linksOf } from './graph-joiner.js';
import { GROUPS_MAX, listBytes, type MakerOptions, type MakerPlaces, nearRowsBytes, placesOf } from './maker-places.js';
import { MAKER_SEED, type MakerCrew, type MakerStep, MakerThread, rowsDone, stepCounts } from './maker-thread.js';
import { nearParts } from './near-groups.js';
import { align16 } from './scratch.js';
import { randomOf } from './seeded.js';

/** Groups that a row is in at `EF_USUAL` results of an insertion, as many more as there are more results. */
const GROUPS_USUAL = 10;
const EF_USUAL = 100;
/** So many rows choose their links before several threads do: see `#choose`. */
const FIRST_ROWS = 4096;

/** Links of rows in the graph of upper levels, so that its level 0 fits into a list of `m`. */
export function upperM(m: number): number {
  return m >>> 1;
}

/** The rows of level 1 and above: one of each `m`, wherever it is among them, so that with rows in an order by place all places have some. */
export function upperRows({ m, rows }: Pick<MakerOptions, 'm' | 'rows'>): Uint32Array {
  const random = randomOf(MAKER_SEED);
  return Uint32Array.from({ length: Math.floor(rows / m) }, (_, part) => part * m + Math.floor(random() * m));
}

export class GraphMaker {
  private readonly memory: WebAssembly.Memory;
  /** Bytes of a code, with the zeros behind its end. */
  readonly stride: number;
  /** Codes of all rows, to be filled before the graph is made: u8 [rows, stride]. */
  readonly codes: Uint8Array;
  readonly #places: MakerPlaces;
  readonly #thread: MakerThread;

  /**
   * makeMemory: a shared memory with room for so many bytes, all zero. crew: makes the graph, too; with this thread as many as the options say at most.
   */
  constructor(
    private readonly options: MakerOptions,
    makeMemory: (bytes: number) => WebAssembly.Memory,
    private readonly crew: MakerCrew | null = null,
  ) {
    const { dim, rows } = options;
    this.#places = placesOf(options);
    this.memory = makeMemory(this.#places.bytes);
    this.stride = align16(dim);
    this.codes = new Uint8Array(this.memory.buffer, this.#places.codes, rows * this.stride);
    const making = { memory: this.memory, options };
    this.#thread = new MakerThread(making, 0);
    crew?.begin(making);
  }

  /**
   * The graph; slots are rows. keys: u32 [rows]. upper: over `upperRows`, its keys are these; null where there are none.
   * pause: is awaited now and then, and hears how many rows are done. letGo: hears which bytes of the memory nobody needs any more.
   */
  async make(
    keys: Uint32Array,
    upper: BuiltGraph | null,
    pause: (done: number) => Promise<void>,
    letGo: (memory: WebAssembly.Memory, offset: number, bytes: number) => void = () => {},
  ): Promise<BuiltGraph> {
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
    await this.#choose(pauseLast);
    letGo(this.memory, near + rows * listBytes(m), rows * (nearRowsBytes(m) - listBytes(m)));
    const everyRow = all(rows);
    await this.#together({ kind: 'linkBack', incoming: joiner.incomingOf(everyRow, 0) }, pauseLast);
    const above = everyRow.filter((row) => (levels[row] as number) > 0);
    const bridged = { words, lists, rows: everyRow, above, entryRow, maxLevel };
    bridgeLevels(bridged);
    await linkIslands(bridged, joiner, pauseLast);
    letGo(this.memory, codes, this.codes.length);
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
    const { efConstruct, rows } = this.options;
    const begin = () => pause(0);
    await this.#together({ kind: 'begin' }, begin);
    const groupsEach = Math.min(GROUPS_MAX, Math.ceil((GROUPS_USUAL * efConstruct) / EF_USUAL));
    const parts = await nearParts(all(rows), {
      pause: begin,
      random: randomOf(MAKER_SEED),
      rank: (leaders, some, each) => this.#thread.rank(leaders, some, each),
    });
    await this.#together({ kind: 'meet', parts, groupsEach }, (done) => pause(Math.min(rows, Math.floor(done / groupsEach))));
  }

  /**
   * A row's list is written where near rows of earlier rows were, of about a third of its number. So rows choose in rounds: those rows have all chosen
   * in the rounds before.
   */
  async #choose(pause: () => Promise<void>): Promise<void> {
    const { m, rows } = this.options;
    const growth = nearRowsBytes(m) / listBytes(m);
    for (let from = 0, to = FIRST_ROWS; from < rows; from = to, to = Math.floor(from * growth))
      await this.#together({ kind: 'choose', from, to: Math.min(rows, to) }, pause, from > 0);
  }

  /** Does a step with the crew. It hears how many rows are done. isShared: several threads may do it. */
  async #together(step: MakerStep, pause: (done: number) => Promise<void>, isShared = true): Promise<void> {
    const counts = stepCounts();
    const others = (isShared ? this.crew?.work(step, counts) : null) ?? Promise.resolve();
    // Where this thread gives up, nobody waits for them.
    others.catch(() => {});
    await this.#thread.work(step, counts, () => pause(rowsDone(counts)));
    await others;
  }
}

function all(rows: number): Uint32Array {
  return Uint32Array.from({ length: rows }, (_, row) => row);
}
