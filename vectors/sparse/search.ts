/**
 * The k rows with the largest dot product with a sparse query, exactly. A row with a score of 0 is no result, as rows
 * without a common index have it.
 *
 * `searchPostings` goes over the rows in windows. In each it adds up the postings of the query's terms, row by row, in
 * an array of the window. Once k rows are found, terms whose largest products together stay below the k-th score can't
 * bring a row among the best by themselves (MaxScore, Turtle and Flood 1995): the other terms name the candidates, and
 * only these are scored in full, from their vectors. Largest products come from blocks of postings, so that a window, or
 * the whole rest, may need nothing at all.
 */

import type { Ranked } from '../kernel-api.js';
import { TopRows } from '../top-rows.js';
import type { RowScorer, SparseQuery } from './dot.js';
import { BLOCK_POSTINGS, findTerm, type SparseIndex } from './index.js';

/** The index of some of the rows, one after the other: row 0 of the index is row `from`. */
export interface IndexedRange {
  readonly from: number;
  readonly index: SparseIndex;
}

/** Which rows count, and when to stop. */
export interface SparseRun {
  /** Rows that may count. */
  readonly rows: number;
  readonly counts: (row: number) => boolean;
  /** Called every now and then; throws when the time is up. */
  readonly check: () => void;
  readonly k: number;
}

/** Rows of a window: its sums stay in the first cache. */
const WINDOW_ROWS = 4096;
const ROWS_PER_CHECK = 512;
/** Products are summed in doubles, results are compared as single floats: bounds give way by this much. */
const SLACK = 1e-6;
/** Scoring a candidate from its vector costs about as much as this many postings (35 items: 200 ns and 1.3 ns). */
const CANDIDATE_COST = 150;

/** Scores all rows that count, one by one. */
export function scanSparse(scorer: RowScorer, run: SparseRun): Ranked {
  const top = new TopRows(run.k);
  scanFrom(0, scorer, run, top);
  return top.ranked();
}

function scanFrom(first: number, scorer: RowScorer, run: SparseRun, top: TopRows): void {
  for (let row = first; row < run.rows; row++) {
    if (row % ROWS_PER_CHECK === 0) run.check();
    if (!run.counts(row)) continue;
    const score = scorer.score(row);
    if (isResult(score)) top.add(row, Math.fround(score));
  }
}

/** As `scanSparse` over the rows listed, each of which counts. */
export function scanSparseRows(scorer: RowScorer, rows: Uint32Array, run: SparseRun): Ranked {
  const top = new TopRows(run.k);
  for (let at = 0; at < rows.length; at++) {
    if (at % ROWS_PER_CHECK === 0) run.check();
    const row = rows[at] as number;
    const score = scorer.score(row);
    if (isResult(score)) top.add(row, Math.fround(score));
  }
  return top.ranked();
}

/** Whether a row with this score is found at all: neither 0 nor NaN. */
function isResult(score: number): boolean {
  return Math.abs(score) > 0;
}

/** Postings that the query's terms have together. */
export function postingsOf(index: SparseIndex, query: SparseQuery): number {
  let count = 0;
  for (const wanted of query.indices) {
    const term = findTerm(index, wanted);
    if (term !== undefined) count += (index.starts[term + 1] as number) - (index.starts[term] as number);
  }
  return count;
}

/**
 * As `scanSparse`, with the help of indexes. indexed: of rows from 0 on without a gap; those behind are scored one by one.
 * scorer: of the same query, on the same rows.
 */
export function searchPostings(indexed: readonly IndexedRange[], query: SparseQuery, scorer: RowScorer, run: SparseRun): Ranked {
  const room = new WindowRoom();
  const top = new TopRows(run.k);
  let rows = 0;
  for (const { from, index } of indexed) {
    new PostingSearch(index, from, query, scorer, run, top, room).search();
    rows = from + index.rowCount;
  }
  scanFrom(rows, scorer, run, top);
  return top.ranked();
}

/** A term of the query, on its way through its postings. */
interface List {
  readonly weight: number;
  readonly from: number;
  readonly to: number;
  readonly firstBlock: number;
  /** Largest product of all postings; 0 where all are negative, as a row may be without the term. */
  readonly most: number;
  /** Smallest one, 0 at most. */
  readonly least: number;
  /** First posting that was not passed yet. */
  at: number;
  /** First posting behind the window. */
  end: number;
  /** Largest product within the window. */
  windowMost: number;
}

/** What a query works in, window after window. */
class WindowRoom {
  /** Of the rows of the window. All 0 between windows. */
  readonly sums = new Float64Array(WINDOW_ROWS);
  /** Rows of the window that are scored in full, from its first row. */
  readonly candidates = new Uint32Array(WINDOW_ROWS);
  /** The last window in which a place was noted as a candidate. */
  readonly notedIn = new Uint32Array(WINDOW_ROWS);
  windows = 0;
}

/** Adds the best rows of one index to `top`. Rows are those of the index until they are asked about or found. */
class PostingSearch {
  /** In the order of the indices. */
  private readonly lists: List[] = [];
  /** Largest product last. */
  private readonly byProduct: readonly List[];
  /** More than the sums in another order may be off. */
  private readonly rounding: number;

  constructor(
    private readonly index: SparseIndex,
    private readonly from: number,
    query: SparseQuery,
    private readonly scorer: RowScorer,
    private readonly run: SparseRun,
    private readonly top: TopRows,
    private readonly room: WindowRoom,
  ) {
    query.indices.forEach((wanted, i) => {
      const term = findTerm(index, wanted);
      if (term !== undefined) this.lists.push(listOf(index, term, query.weights[i] as number));
    });
    this.byProduct = [...this.lists].sort((a, b) => a.most - b.most);
    this.rounding = 1e-12 * this.lists.reduce((sum, { most, least }) => sum + most - least, 0);
  }

  search(): void {
    const { run, top } = this;
    const rows = run.rows - this.from;
    for (let base = this.nextRow(); base < rows; base = this.nextRow()) {
      run.check();
      if (top.bound > 0 && this.mostLeft() < this.needed()) break;
      this.room.windows++;
      for (const list of this.lists) this.enter(list, Math.min(rows, base + WINDOW_ROWS));
      if (top.bound > 0) this.prunedWindow(base);
      else this.wholeWindow(base);
      for (const list of this.lists) list.at = list.end;
    }
  }

  /** A row with a smaller sum is not among the best. */
  private needed(): number {
    return this.top.bound * (1 - SLACK) - this.rounding;
  }

  /** What a row may score that was not looked at. */
  private mostLeft(): number {
    let sum = 0;
    for (const { at, to, most } of this.lists) if (at < to) sum += most;
    return sum;
  }

  /** The first row that a list has and that was not looked at. */
  private nextRow(): number {
    const { rows } = this.index;
    let next = Number.POSITIVE_INFINITY;
    for (const { at, to } of this.lists) if (at < to) next = Math.min(next, rows[at] as number);
    return next;
  }

  /** Finds the end of the window in a list, and the largest product up to there. */
  private enter(list: List, end: number): void {
    const { rows, blockMax, blockMin } = this.index;
    const { from, to, firstBlock, weight } = list;
    const extremes = weight > 0 ? blockMax : blockMin;
    let most = 0;
    let at = list.at;
    while (at < to && (rows[at] as number) < end) {
      const block = Math.floor((at - from) / BLOCK_POSTINGS);
      most = Math.max(most, weight * (extremes[firstBlock + block] as number));
      const next = Math.min(to, from + (block + 1) * BLOCK_POSTINGS);
      at = (rows[next - 1] as number) < end ? next : firstFrom(rows, at, next, end);
    }
    list.end = at;
    list.windowMost = most;
  }

  /** Every row with one of the terms. Terms are added in the order of their indices, so the sums are the scores. */
  private wholeWindow(base: number): void {
    for (const list of this.lists) this.accumulate(list, base);
    const { from, run, top } = this;
    const { sums } = this.room;
    const { rows } = this.index;
    for (const { at, end } of this.lists) {
      for (let posting = at; posting < end; posting++) {
        const row = rows[posting] as number;
        const score = sums[row - base] as number;
        if (score === 0) continue;
        sums[row - base] = 0;
        const rounded = Math.fround(score);
        if (rounded >= top.bound && run.counts(from + row)) top.add(from + row, rounded);
      }
    }
  }

  private prunedWindow(base: number): void {
    const { byProduct } = this;
    const needed = this.needed();
    let rest = 0;
    let passed = 0;
    let postings = 0;
    for (const { windowMost, at, end } of byProduct) {
      if (rest + windowMost >= needed) break;
      rest += windowMost;
      postings += end - at;
      passed++;
    }
    const leading = byProduct.slice(passed);
    if (leading.length === 0) return;
    for (const list of leading) this.accumulate(list, base);
    let count = this.noteCandidates(leading, base, needed - rest);
    if (passed > 0 && count * CANDIDATE_COST > postings) {
      for (let i = 0; i < passed; i++) this.accumulate(byProduct[i] as List, base);
      count = this.keepCandidates(count, needed);
      for (let i = 0; i < passed; i++) this.clear(byProduct[i] as List, base);
    }
    for (const list of leading) this.clear(list, base);
    this.scoreCandidates(count, base);
  }

  /** Notes each row of these lists whose sum is large enough; how many there are. */
  private noteCandidates(lists: readonly List[], base: number, least: number): number {
    const { sums, candidates, notedIn, windows } = this.room;
    const { rows } = this.index;
    let count = 0;
    for (const { at, end } of lists) {
      for (let posting = at; posting < end; posting++) {
        const place = (rows[posting] as number) - base;
        if ((sums[place] as number) < least || notedIn[place] === windows) continue;
        notedIn[place] = windows;
        candidates[count++] = place;
      }
    }
    return count;
  }

  /** Of the first `count` candidates those whose sum is large enough; how many there are. */
  private keepCandidates(count: number, least: number): number {
    const { sums, candidates } = this.room;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const place = candidates[i] as number;
      if ((sums[place] as number) >= least) candidates[kept++] = place;
    }
    return kept;
  }

  private scoreCandidates(count: number, base: number): void {
    const { from, run, scorer, top } = this;
    const { candidates } = this.room;
    for (let i = 0; i < count; i++) {
      const row = from + base + (candidates[i] as number);
      if (!run.counts(row)) continue;
      const score = scorer.score(row);
      if (isResult(score)) top.add(row, Math.fround(score));
    }
  }

  private accumulate({ weight, at, end }: List, base: number): void {
    const { sums } = this.room;
    const { rows, values } = this.index;
    for (let posting = at; posting < end; posting++) {
      const place = (rows[posting] as number) - base;
      sums[place] = (sums[place] as number) + weight * (values[posting] as number);
    }
  }

  private clear({ at, end }: List, base: number): void {
    const { sums } = this.room;
    const { rows } = this.index;
    for (let posting = at; posting < end; posting++) sums[(rows[posting] as number) - base] = 0;
  }
}

function listOf({ starts, blockStarts, termMax, termMin }: SparseIndex, term: number, weight: number): List {
  const from = starts[term] as number;
  const products = [weight * (termMax[term] as number), weight * (termMin[term] as number)];
  return {
    weight,
    from,
    to: starts[term + 1] as number,
    firstBlock: blockStarts[term] as number,
    most: Math.max(0, ...products),
    least: Math.min(0, ...products),
    at: from,
    end: from,
    windowMost: 0,
  };
}

/** First place from <= place < to whose row is `row` or behind it; `to` for none. */
function firstFrom(rows: Uint32Array, from: number, to: number, row: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as number) < row) low = middle + 1;
    else high = middle;
  }
  return low;
}
