/**
 * Nearest points by sparse vectors, exactly: with the inverted index of a sealed segment, or by scoring rows where there is
 * none or few rows pass the filter.
 */

import { countBits, forEachBit, hasBit } from '../../query/filter/bits.js';
import { RowScorer, type SparseQuery, type SparseRows } from '../../vectors/sparse/dot.js';
import { postingsOf, type SparseRun, scanSparse, scanSparseRows, searchPostings } from '../../vectors/sparse/search.js';
import { filterBits } from './filter-source.js';
import { type Hit, hitOf } from './hit.js';
import type { NearestSearch } from './search.js';
import { hasVector, type SegmentView } from './snapshot-view.js';
import type { SparseSpace } from './vector-space.js';

/** A row's vector is scored as fast as this many postings are added up. */
const ROW_COST = 100;

/** The k best of a segment; points without a common index, or with a score of 0, are none. */
export function nearestSparse(view: SegmentView, search: NearestSearch, query: SparseQuery, k: number): Hit[] {
  const items = view.reader.vector(search.using)?.items;
  if (!items || view.rows === 0 || query.indices.length === 0) return [];
  const { clock } = view.reader;
  clock.check();
  const bits = search.filter === null ? null : filterBits(view, search.filter);
  const { own } = search;
  const run: SparseRun = {
    rows: view.rows,
    counts: (row) => view.isLive(row) && (bits === null || hasBit(bits, row)) && !(own?.row === row && own.view === view),
    check: () => clock.check(),
    k: Math.min(k, view.rows),
  };
  const { count, rows, scores } = rank(view, search.using, query, items, bits, run);
  return Array.from({ length: count }, (_, i) => hitOf(view, rows[i] as number, scores[i] as number));
}

function rank(view: SegmentView, using: string, query: SparseQuery, items: SparseRows, bits: Uint32Array | null, run: SparseRun) {
  const index = view.reader.sparseIndex(using);
  const scorer = new RowScorer(query, items);
  const listed = bits === null ? view.rows : countBits(bits);
  if (index !== null && postingsOf(index, query) < listed * ROW_COST) return searchPostings(index, query, scorer, run);
  if (bits === null || listed > view.rows / 2) return scanSparse(scorer, run);
  return scanSparseRows(scorer, countedRows(bits, listed, run), run);
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
  rows.forEach((row, at) => {
    if (at % 512 === 0) view.reader.clock.check();
    if (hasVector(vector, row)) scores[at] = scorer.score(row);
  });
  return scores;
}
