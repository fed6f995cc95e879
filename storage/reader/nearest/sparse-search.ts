/**
 * Nearest points by sparse vectors, exactly: with the inverted index of a sealed segment or the one that this thread makes
 * of other segments, or by scoring rows where few pass the filter.
 */

import { countBits, forEachBit, hasBit } from '../../../query/filter/bits.js';
import { finiteScore } from '../../../query/shown-score.js';
import { RowScorer, type SparseQuery, type SparseRows } from '../../../vectors/sparse/dot.js';
import { GrowingIndex } from '../../../vectors/sparse/growing.js';
import {
  type IndexedRange,
  postingsOf,
  type SparseRun,
  scanSparse,
  scanSparseRows,
  searchPostings,
} from '../../../vectors/sparse/search.js';
import { WINDOW_SUMS_BYTES, WindowSums } from '../../../vectors/sparse/sums.js';
import { isMeasured, spend } from '../../disk/meter.js';
import { explaining } from '../../explain/explainer.js';
import { sharedMemory } from '../../segment/shared-memory.js';
import { filterBits } from '../snapshot/filter-source.js';
import { hasVector, type SegmentView } from '../snapshot/snapshot-view.js';
import type { SparseSpace } from '../snapshot/vector-space.js';
import { type Hit, hitOf } from './hit.js';
import type { NearestSearch } from './search.js';

/** A row's vector is scored as fast as this many postings are added up. */
export const ROW_COST = 100;
/** An index and a value. */
const ITEM_BYTES = 8;

/** The k best of a segment; points without a common index, or with a score of 0, are none. */
export function nearestSparse(view: SegmentView, search: NearestSearch, query: SparseQuery, k: number): Hit[] {
  const items = view.reader.vector(search.using)?.items;
  if (!items || view.rows === 0 || query.indices.length === 0) return [];
  const { deadline } = view.reader;
  deadline.check();
  const bits = search.filter === null ? null : filterBits(view, search.filter);
  const { own } = search;
  const run: SparseRun = {
    rows: view.rows,
    counts: (row) => view.isLive(row) && (bits === null || hasBit(bits, row)) && !(own?.row === row && own.view === view),
    check: () => deadline.check(),
    k: Math.min(k, view.rows),
  };
  const { count, rows, scores } = rank(view, search.using, query, items, bits, run);
  explaining()?.of(view).answered('score', count);
  return Array.from({ length: count }, (_, i) => hitOf(view, rows[i] as number, scores[i] as number));
}

function rank(view: SegmentView, using: string, query: SparseQuery, items: SparseRows, bits: Uint32Array | null, run: SparseRun) {
  const scorer = new RowScorer(query, items);
  const listed = bits === null ? view.rows : countBits(bits);
  const indexed = indexedRows(view, using, items);
  const indexCost = searchCost(indexed, query, view.rows);
  view.reader.deadline.claim({ kind: 'postings', count: Math.min(indexCost, listed * ROW_COST) });
  explaining()
    ?.of(view)
    .sparse(using, indexCost, listed * ROW_COST, listed);
  if (indexCost < listed * ROW_COST) {
    if (isMeasured()) spendPostings(indexed, query, items, view.rows);
    windowSums ??= new WindowSums(sharedMemory(WINDOW_SUMS_BYTES));
    return searchPostings(indexed, query, scorer, run, windowSums);
  }
  if (bits === null || listed > view.rows / 2) {
    spendItems(items, 0, view.rows);
    return scanSparse(scorer, run);
  }
  const rows = countedRows(bits, listed, run);
  if (isMeasured()) for (const row of rows) spendItems(items, row, row + 1);
  return scanSparseRows(scorer, rows, run);
}

/** Made with the first search that needs it. Errors: `storage` without addresses for it. */
let windowSums: WindowSums | undefined;

/** All items of some rows are looked at. */
function spendItems({ offsets }: SparseRows, from: number, to: number): void {
  spend('cpu', ((offsets[to] as number) - (offsets[from] as number)) * ITEM_BYTES);
}

/** The query's postings may be looked at, and the items of the rows behind those indexed. */
function spendPostings(indexed: readonly IndexedRange[], query: SparseQuery, items: SparseRows, rows: number): void {
  let first = 0;
  for (const { from, index } of indexed) {
    spend('cpu', postingsOf(index, query) * ITEM_BYTES);
    first = from + index.rowCount;
  }
  if (first < rows) spendItems(items, first, rows);
}

/** In postings. */
function searchCost(indexed: readonly IndexedRange[], query: SparseQuery, rows: number): number {
  let first = 0;
  let cost = 0;
  for (const { from, index } of indexed) {
    cost += postingsOf(index, query);
    first = from + index.rowCount;
  }
  return cost + Math.max(0, rows - first) * ROW_COST;
}

/**
 * Indexes of segments that have none of their own, for as long as a thread has the vector's rows. Rows never change (View-V2),
 * so those indexed stay right; 8 bytes a posting, and up to 36 where an index occurs in a single row.
 */
const growing = new WeakMap<SparseRows, GrowingIndex>();

function indexedRows(view: SegmentView, using: string, items: SparseRows): readonly IndexedRange[] {
  const index = view.reader.sparseIndex(using);
  if (index !== null) return [{ from: 0, index }];
  let own = growing.get(items);
  if (own === undefined) {
    own = new GrowingIndex(items);
    growing.set(items, own);
  }
  return own.upTo(view.rows);
}

function countedRows(bits: Uint32Array, listed: number, run: SparseRun): Uint32Array {
  const rows = new Uint32Array(listed);
  let count = 0;
  forEachBit(bits, (row) => {
    if (run.counts(row)) rows[count++] = row;
  });
  return rows.subarray(0, count);
}

/** The score of each of these rows; 0 without a common index, NaN for rows without the vector. Errors: `timeout`. */
export function scoreSparseRows(view: SegmentView, space: SparseSpace, query: SparseQuery, rows: Uint32Array): Float32Array {
  const scores = new Float32Array(rows.length).fill(Number.NaN);
  const vector = view.reader.vector(space.name);
  if (!vector?.items) return scores;
  const scorer = new RowScorer(query, vector.items);
  const { items } = vector;
  if (isMeasured()) for (const row of rows) spendItems(items, row, row + 1);
  rows.forEach((row, at) => {
    if (at % 512 === 0) view.reader.deadline.check();
    if (hasVector(vector, row)) scores[at] = finiteScore(scorer.score(row));
  });
  return scores;
}
