/** One of the threads that make a graph of pairs together (`graph-maker.ts`), in one memory. Each takes pieces of a step, one after the other. */

import { GraphJoiner, type IncomingLinks } from './graph-joiner.js';
import { kernelModule } from './kernels.js';
import { type MakerOptions, nearRows, nearRowsBytes, placesOf, type ThreadPlaces } from './maker-places.js';
import { groupsOf, type RankLeaders } from './near-groups.js';
import { align16 } from './scratch.js';
import { randomOf } from './seeded.js';

interface PairExports {
  setPairs(
    codes: number,
    stride: number,
    block: number,
    squares: number,
    bounds: number,
    query: number,
    near: number,
    k: number,
    locks: number,
  ): void;
  keepNone(from: number, to: number): void;
  nearestLeaders(leaders: number, leaderCount: number, rows: number, count: number, each: number, best: number, out: number): void;
  meetAll(rows: number, count: number): void;
}

/** What all threads know of the graph that they make. */
export interface SharedMaking {
  readonly memory: WebAssembly.Memory;
  readonly options: MakerOptions;
}

/** What threads do together before they go on. */
export type MakerStep =
  /** Rows keep none yet. */
  | { readonly kind: 'begin' }
  /** Rows of each part meet within groups, of which a row is in about `groupsEach`. parts: in shared memory. */
  | { readonly kind: 'meet'; readonly parts: readonly Uint32Array[]; readonly groupsEach: number }
  /** Rows from `from` below `to` choose their links among the near ones. */
  | { readonly kind: 'choose'; readonly from: number; readonly to: number }
  /** Rows are linked to those that link to them. */
  | { readonly kind: 'linkBack'; readonly incoming: IncomingLinks };

/** Of a step, shared: pieces that were taken, and rows that are done, each once for each group that it was in. */
export type StepCounts = Int32Array;

/** Further threads that make graphs together with one that leads. */
export interface MakerCrew {
  readonly size: number;
  /** Has each make the next graph with the others. */
  begin(making: SharedMaking): void;
  /** Resolves when each has done what it has taken of a step, and none is left. Rejects when one of them has ended. */
  work(step: MakerStep, counts: StepCounts): Promise<void>;
}

/** Of leaders, and of the rows of upper levels. */
export const MAKER_SEED = 0x3c6e_f372;
const PIECE_ROWS = 1024;

export function stepCounts(): StepCounts {
  return new Int32Array(new SharedArrayBuffer(8));
}

/** Rows that are done of a step. */
export function rowsDone(counts: StepCounts): number {
  return Atomics.load(counts, 1);
}

export class MakerThread {
  readonly #exports: PairExports;
  readonly #joiner: GraphJoiner;
  readonly #near: number;
  readonly #own: ThreadPlaces;

  /** number: which of the threads; the one that leads is 0. */
  constructor(
    private readonly making: SharedMaking,
    number: number,
  ) {
    const { memory, options } = making;
    const { dim, m, threads } = options;
    const { codes, locks, near, own, upper, upperIndex } = placesOf(options);
    const stride = align16(dim);
    this.#near = near;
    this.#own = own[number] as ThreadPlaces;
    const { exports } = new WebAssembly.Instance(kernelModule(), { env: { memory, expired: () => 0 } });
    this.#exports = exports as unknown as PairExports;
    const { block, bounds, queries, scratch, slot, squares } = this.#own;
    this.#exports.setPairs(codes, stride, block, squares, bounds, queries, near, nearRows(m), threads === 1 ? 0 : locks);
    this.#joiner = new GraphJoiner({
      ...{ memory, rows: 0, slot, scratch, byAngle: false },
      lists: { level0: near, m0: 2 * m, upperIndex, upper, m },
      codes: { offset: codes, stride, dim, zero: 0 },
    });
  }

  /** Leaders of each of some rows, the nearest first, by their numbers: u32 [rows, each]. */
  rank(...[leaders, rows, each]: Parameters<RankLeaders>): Uint32Array {
    const { buffer } = this.making.memory;
    const { best, group, ranked, ranking } = this.#own;
    new Uint32Array(buffer, group, leaders.length).set(leaders);
    new Uint32Array(buffer, ranking, rows.length).set(rows);
    this.#exports.nearestLeaders(group, leaders.length, ranking, rows.length, each, best, ranked);
    return new Uint32Array(buffer, ranked, rows.length * each).slice();
  }

  /** Takes pieces of a step until none is left. pause: is awaited between them, and within large ones. */
  async work(step: MakerStep, counts: StepCounts, pause: () => Promise<void>): Promise<void> {
    const { rows } = this.making.options;
    switch (step.kind) {
      case 'begin':
        return this.#eachPiece(0, rows, counts, pause, (from, to) => this.#exports.keepNone(from, to));
      case 'meet':
        for (let part = Atomics.add(counts, 0, 1); part < step.parts.length; part = Atomics.add(counts, 0, 1))
          await this.#meet(step, part, counts, pause);
        return;
      case 'choose':
        return this.#eachPiece(step.from, step.to, counts, pause, (from, to) => this.#choose(from, to));
      case 'linkBack': {
        const linkedBy = new Uint32Array(rows);
        return this.#eachPiece(0, rows, counts, pause, (from, to) => this.#joiner.linkBackTo(from, to, step.incoming, linkedBy));
      }
      default:
        throw new Error(`unknown step ${JSON.stringify(step satisfies never)}`);
    }
  }

  async #eachPiece(
    first: number,
    end: number,
    counts: StepCounts,
    pause: () => Promise<void>,
    work: (from: number, to: number) => void,
  ): Promise<void> {
    for (;;) {
      await pause();
      const from = first + PIECE_ROWS * Atomics.add(counts, 0, 1);
      if (from >= end) return;
      work(from, Math.min(end, from + PIECE_ROWS));
    }
  }

  async #meet(
    { groupsEach, parts }: Extract<MakerStep, { kind: 'meet' }>,
    number: number,
    counts: StepCounts,
    pause: () => Promise<void>,
  ): Promise<void> {
    const { buffer } = this.making.memory;
    const { group } = this.#own;
    // Each part has numbers of its own, whichever thread takes it.
    const tools = { pause, random: randomOf(MAKER_SEED + number), rank: (...asked: Parameters<RankLeaders>) => this.rank(...asked) };
    for await (const some of groupsOf(parts[number] as Uint32Array, parts.length, groupsEach, tools)) {
      await pause();
      new Uint32Array(buffer, group, some.length).set(some);
      this.#exports.meetAll(group, some.length);
      Atomics.add(counts, 1, some.length);
    }
  }

  #choose(from: number, to: number): void {
    const { m } = this.making.options;
    for (let row = from; row < to; row++) this.#joiner.choose(row, 0, this.#near + row * nearRowsBytes(m), nearRows(m));
  }
}
