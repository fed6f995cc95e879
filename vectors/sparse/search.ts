/**
 * The k rows with the largest dot product with a sparse query, exactly. A row with a score of 0 is no result, as rows
 * without a common index have it.
 *
 * `searchPostings` goes over the rows in windows. In each a kernel adds up the postings of the query's terms, row by row, and names the rows
 * whose sum reaches the k-th score. Blocks of postings know their largest values, so a window, or the whole rest, whose largest products together stay
 * below the k-th score is left out (as in MaxScore, Turtle and Flood 1995).
 */

import type { Ranked } from '../kernel-api.js';
import { TopRows } from '../top-rows.js';
import type { RowScorer, SparseQuery } from './dot.js';
import { BLOCK_POSTINGS, findTerm, type SparseIndex } from './index.js';
import { WINDOW_ROWS, type WindowSums } from './sums.js';

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

/** Rows of the first window: all of them may be among the best so far. Each window after it has so many times as many, up to the largest. */
const FIRST_WINDOW_ROWS = 1024;
const WINDOW_GROWTH = 4;
const ROWS_PER_CHECK = 512;
/** Products are summed in doubles, results are compared as single floats: bounds give way by this much. */
const SLACK = 1e-6;
/** Single floats lie closer than this part of them. */
const FLOAT_STEP = 2 ** -22;

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
 * scorer: of the same query, on the same rows. sums: what this thread's queries add up in, one after the other.
 */
export function searchPostings(
  indexed: readonly IndexedRange[],
  query: SparseQuery,
  scorer: RowScorer,
  run: SparseRun,
  sums: WindowSums,
): Ranked {
  const top = new TopRows(run.k);
  let rows = 0;
  for (const { from, index } of indexed) {
    new PostingSearch(index, from, query, run, top, sums).search();
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

/** Adds the best rows of one index to `top`. Rows are those of the index until they are asked about or found. */
class PostingSearch {
  /** In the order of the indices. */
  private readonly lists: List[] = [];
  /** More than the sums in another order may be off. */
  private readonly rounding: number;

  constructor(
    private readonly index: SparseIndex,
    private readonly from: number,
    query: SparseQuery,
    private readonly run: SparseRun,
    private readonly top: TopRows,
    private readonly sums: WindowSums,
  ) {
    query.indices.forEach((wanted, i) => {
      const term = findTerm(index, wanted);
      if (term !== undefined) this.lists.push(listOf(index, term, query.weights[i] as number));
    });
    this.rounding = 1e-12 * this.lists.reduce((sum, { most, least }) => sum + most - least, 0);
  }

  search(): void {
    const { run, top } = this;
    const rows = run.rows - this.from;
    let size = FIRST_WINDOW_ROWS;
    for (let base = this.nextRow(); base < rows; base = this.nextRow()) {
      run.check();
      if (top.bound > 0 && this.mostLeft() < this.needed()) break;
      const end = Math.min(rows, base + size);
      for (const list of this.lists) this.enter(list, end);
      if (!(top.bound > 0 && this.mostInWindow() < this.needed())) this.addWindow(base, end);
      for (const list of this.lists) list.at = list.end;
      size = Math.min(WINDOW_ROWS, size * WINDOW_GROWTH);
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

  /** What a row of the window may score. */
  private mostInWindow(): number {
    let sum = 0;
    for (const { windowMost } of this.lists) sum += windowMost;
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
  private addWindow(base: number, end: number): void {
    for (const list of this.lists) this.add(list, base);
    const { from, run, top, sums } = this;
    const count = sums.collect(end - base, top.bound - Math.abs(top.bound) * FLOAT_STEP);
    for (let i = 0; i < count; i++) {
      const row = from + base + (sums.places[i] as number);
      const score = sums.scores[i] as number;
      if (score >= top.bound && run.counts(row)) top.add(row, score);
    }
  }

  private add({ weight, at, end }: List, base: number): void {
    if (at < end) this.sums.add(this.index, at, end, weight, base);
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
