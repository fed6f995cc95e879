/** Joins graphs whose lists lie in one memory with the 8-bit codes of their rows: see `kernels/join.ts`. */

import type { Graph } from './kernel-api.js';
import { kernelModule } from './kernels.js';
import type { ScratchLayout } from './scratch.js';

interface JoinExports {
  setJoinCodes(codes: number, stride: number, dim: number, query: number, lengths: number, zero: number): void;
  setGraph(level0: number, m0: number, upperIndex: number, upper: number, m: number, entryRow: number, maxLevel: number): void;
  setWalkScratch(visited: number, candidates: number, results: number, neighbours: number): void;
  setJoinScratch(joined: number, touched: number): void;
  measureRows(from: number, to: number): void;
  joinRow(row: number, level: number, ef: number, most: number): void;
  chooseLinks(row: number, level: number, near: number, k: number): void;
  addLinks(row: number, level: number, incoming: number, count: number, most: number): void;
  healLinks(row: number, level: number, incoming: number, count: number, wanted: number): void;
}

/** Rows with a graph of their own. */
export interface JoinablePart {
  /** Near ones one after the other, so that a row finds what its neighbours have found. */
  readonly rows: Uint32Array;
  /** Highest level of each of them. */
  readonly levels: Int16Array;
  readonly entryRow: number;
  readonly maxLevel: number;
}

export interface JoinPlace {
  readonly memory: WebAssembly.Memory;
  /** Rows that the scratch has room for; where links are only chosen of those given, 0 with room for `JOIN_SCRATCH_ROWS`. */
  readonly rows: number;
  readonly lists: Omit<Graph, 'entryRow' | 'maxLevel'>;
  /** u8 [rows, stride], in bytes. zero: the code that stands for 0. */
  readonly codes: { readonly offset: number; readonly stride: number; readonly dim: number; readonly zero: number };
  /** Whether rows are near by angle, or by Euclidean distance. */
  readonly byAngle: boolean;
  /** A scratch slot that nobody else uses. */
  readonly slot: number;
  readonly scratch: ScratchLayout;
}

/** Rows that one call of the kernel scores at most. */
const BATCH_ROWS = 1980;
/** Links that come back to a row at a time, so that they are scored in one batch with those that it has. */
const INCOMING_MAX = 512;
const EF_MIN = 16;
/** Most links of a row that leave room for both. */
export const JOIN_M0_MAX = BATCH_ROWS - 2 * INCOMING_MAX;
/** Products of codes so far from what stands for 0 would leave 32 bits. */
export const JOIN_ZERO_MAX = 4096;
/** Bytes of the scratch for results that searches use at most: what is behind them has room for lengths where there are as many rows as this. */
const RESULTS_BYTES = 1 << 14;
export const JOIN_BY_ANGLE_ROWS_MIN = RESULTS_BYTES / 4;
const PAUSE_ROWS = 256;
/** Rows that scratch has room for where links are chosen of those given. */
export const JOIN_SCRATCH_ROWS = 2048;

/** Links to each of some rows, in shared memory: to a row those from `from[starts[row]]` on, below `from[starts[row + 1]]`. */
export interface IncomingLinks {
  readonly starts: Uint32Array;
  readonly from: Uint32Array;
}

/**
 * Results that a search for joining keeps: two fifths of what an insertion would. Of 160,000 × 128, most of them joined once or twice, walks with `ef` 16, 32, 64
 * found .964, .991, .997, and with half of the results .970, .984, .993: the same but for chance.
 */
export function joinEf(efConstruct: number): number {
  return Math.min(INCOMING_MAX, Math.max(EF_MIN, Math.ceil(0.4 * efConstruct)));
}

/** The word where the links of a row on a level that it has begin: their number, then they. */
export function linkList(words: Uint32Array, { level0, m, m0, upper, upperIndex }: JoinPlace['lists'], row: number, level: number): number {
  if (level === 0) return (level0 >>> 2) + row * (1 + m0);
  return (upper >>> 2) + (words[(upperIndex >>> 2) + row] as number) + (level - 1) * (1 + m);
}

/** The links of a row on a level that it has: a view. */
export function linksOf(words: Uint32Array, lists: JoinPlace['lists'], row: number, level: number): Uint32Array {
  const list = linkList(words, lists, row, level);
  return words.subarray(list + 1, list + 1 + (words[list] as number));
}

export class GraphJoiner {
  readonly #exports: JoinExports;
  readonly #words: Uint32Array;
  #entryRow = 0;
  #maxLevel = 0;

  constructor(private readonly place: JoinPlace) {
    const { byAngle, codes, memory, rows, scratch, slot } = place;
    const { exports } = new WebAssembly.Instance(kernelModule(), { env: { memory, expired: () => 0 } });
    this.#exports = exports as unknown as JoinExports;
    this.#words = new Uint32Array(memory.buffer);
    const words = Math.ceil(rows / 32);
    for (const bits of [scratch.bits, scratch.visited]) new Uint32Array(memory.buffer, slot + bits, words).fill(0);
    const { bits, candidates, codeQuery, neighbours, results, rows: touched, visited } = scratch;
    const lengths = byAngle ? slot + results + RESULTS_BYTES : 0;
    this.#exports.setJoinCodes(codes.offset, codes.stride, codes.dim, slot + codeQuery, lengths, codes.zero);
    if (byAngle) this.#exports.measureRows(0, rows);
    this.#setEntry(0, 0);
    this.#exports.setWalkScratch(slot + visited, slot + candidates, slot + results, slot + neighbours);
    this.#exports.setJoinScratch(slot + bits, slot + touched);
  }

  get entryRow(): number {
    return this.#entryRow;
  }

  get maxLevel(): number {
    return this.#maxLevel;
  }

  /** Begins with the part that others are joined to. Its lists are in their places, as those of the others are when they are joined. */
  begin({ entryRow, maxLevel, rows }: JoinablePart): void {
    this.#setEntry(entryRow, maxLevel);
    this.mark(rows);
  }

  /** Joins a smaller part. pause: is awaited now and then, and hears how many of its rows are done. */
  async join(part: JoinablePart, ef: number, pause: (done: number) => Promise<void>): Promise<void> {
    const { levels, rows } = part;
    const reaches = Array.from({ length: Math.min(this.#maxLevel, part.maxLevel) + 1 }, (_, level) =>
      level === 0 ? rows : rows.filter((_, at) => (levels[at] as number) >= level),
    );
    for (const [level, reach] of reaches.entries())
      for (let at = 0; at < reach.length; at++) {
        if (at % PAUSE_ROWS === 0) await pause(level === 0 ? at : rows.length);
        this.#exports.joinRow(reach[at] as number, level, ef, this.#roomy(level));
      }
    // Only now: what searches go through must lead to rows of the larger graph alone.
    const all = this.place.rows;
    const linkedBy = new Uint32Array(all);
    for (const [level, reach] of reaches.entries()) {
      const incoming = this.incomingOf(reach, level, (target) => this.isMarked(target));
      linkedBy.fill(0);
      for (let from = 0; from < all; from += PAUSE_ROWS) {
        await pause(rows.length);
        this.linkBackTo(from, Math.min(all, from + PAUSE_ROWS), incoming, linkedBy, level, this.#roomy(level));
      }
    }
    this.mark(rows);
    if (part.maxLevel > this.#maxLevel) this.#setEntry(part.entryRow, part.maxLevel);
  }

  /** Joins a single row on one level: its links are chosen anew from those it has and what it finds of the larger graph. There are none back. */
  seek(row: number, level: number, ef: number): void {
    this.#exports.joinRow(row, level, ef, this.#roomy(level));
  }

  /** Forgets which rows are of the larger graph. */
  unmark(): void {
    this.#words.fill(0, this.#bitsAt, this.#bitsAt + Math.ceil(this.place.rows / 32));
  }

  /** Links a row anew to those chosen of the `k` rows that `kernels/pairs.ts` keeps at byte `near` of the memory. */
  choose(row: number, level: number, near: number, k: number): void {
    this.#exports.chooseLinks(row, level, near, k);
  }

  /** Of all rows. */
  incomingOf(rows: Uint32Array, level: number, isWanted: (target: number) => boolean = () => true): IncomingLinks {
    const { rows: all } = this.place;
    const starts = new Uint32Array(new SharedArrayBuffer(4 * (all + 1)));
    this.#eachLink(rows, level, (target) => {
      if (isWanted(target)) starts[target + 1] = (starts[target + 1] as number) + 1;
    });
    for (let row = 0; row < all; row++) starts[row + 1] = (starts[row + 1] as number) + (starts[row] as number);
    const next = starts.slice();
    const from = new Uint32Array(new SharedArrayBuffer(4 * (starts[all] as number)));
    this.#eachLink(rows, level, (target, row) => {
      if (!isWanted(target)) return;
      const at = next[target] as number;
      from[at] = row;
      next[target] = at + 1;
    });
    return { starts, from };
  }

  /**
   * Join-J3: links from the rows from `first` below `end` to those that link to them, unless they have them. most: links that are chosen where they do not fit.
   * linkedBy: u32 [rows], of this thread alone: of each row the last that had a link to it, and 1. The rows' own incoming links are used up.
   */
  linkBackTo(
    first: number,
    end: number,
    { from, starts }: IncomingLinks,
    linkedBy: Uint32Array,
    level = 0,
    most = this.#room(level),
  ): void {
    const words = this.#words;
    for (let target = first; target < end; target++) {
      const [at, to] = [starts[target] as number, starts[target + 1] as number];
      if (at === to) continue;
      const list = linkList(words, this.place.lists, target, level);
      for (let link = list + 1, last = list + (words[list] as number); link <= last; link++) linkedBy[words[link] as number] = target + 1;
      let fresh = at;
      for (let link = at; link < to; link++) {
        const row = from[link] as number;
        if (linkedBy[row] !== target + 1) from[fresh++] = row;
      }
      if (fresh > at) this.addLinks(target, level, from.subarray(at, fresh), most);
    }
  }

  /** Adds rows, none of which is there, to the links of a row; where they do not fit, `most` are chosen. */
  addLinks(row: number, level: number, rows: Uint32Array, most: number): void {
    const { scratch, slot } = this.place;
    for (let from = 0; from < rows.length; from += INCOMING_MAX) {
      const some = rows.subarray(from, from + INCOMING_MAX);
      this.#words.set(some, (slot + scratch.results) >>> 2);
      this.#exports.addLinks(row, level, slot + scratch.results, some.length, most);
    }
  }

  /** Join-J4. rows: what the `lost` links led to, none of them linked. */
  heal(row: number, level: number, rows: Uint32Array, lost: number): void {
    const { scratch, slot } = this.place;
    const some = rows.subarray(0, INCOMING_MAX);
    this.#words.set(some, (slot + scratch.results) >>> 2);
    this.#exports.healLinks(row, level, slot + scratch.results, some.length, lost);
  }

  /** Calls back with each link from one of the rows. */
  #eachLink(rows: Uint32Array, level: number, take: (target: number, row: number) => void): void {
    const words = this.#words;
    for (const row of rows) {
      const list = linkList(words, this.place.lists, row, level);
      for (let at = list + 1, end = list + (words[list] as number); at <= end; at++) take(words[at] as number, row);
    }
  }

  /** Most links of a row. */
  #room(level: number): number {
    const { m, m0 } = this.place.lists;
    return level === 0 ? m0 : m;
  }

  /** Links that are chosen of more than fit where graphs are joined: room is left for the next join, and walks score fewer rows. */
  #roomy(level: number): number {
    const room = this.#room(level);
    return room - (room >>> 2);
  }

  isMarked(row: number): boolean {
    return (((this.#words[this.#bitsAt + (row >>> 5)] as number) >>> (row & 31)) & 1) === 1;
  }

  /** Makes rows part of the larger graph. */
  mark(rows: Uint32Array): void {
    for (const row of rows) {
      const at = this.#bitsAt + (row >>> 5);
      this.#words[at] = (this.#words[at] as number) | (1 << (row & 31));
    }
  }

  get #bitsAt(): number {
    return (this.place.slot + this.place.scratch.bits) >>> 2;
  }

  #setEntry(entryRow: number, maxLevel: number): void {
    const { level0, m, m0, upper, upperIndex } = this.place.lists;
    this.#exports.setGraph(level0, m0, upperIndex, upper, m, entryRow, maxLevel);
    this.#entryRow = entryRow;
    this.#maxLevel = maxLevel;
  }
}
