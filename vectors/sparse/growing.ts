/**
 * Inverted index of sparse vectors that more rows are added to, in parts: each indexes some thousand rows that follow
 * those of the part before it. The newest rows wait until they are enough for a part and are scored one by one till then.
 *
 * Parts of about the same size are made one, as in a binary counter, up to ROWS_MAX rows: so there are few, and a row is
 * indexed log2(ROWS_MAX / ROWS_MIN) times at most.
 */

import type { SparseRows } from './dot.js';
import { buildSparseIndex, openSparseIndex } from './index.js';
import type { IndexedRange } from './search.js';

/** Rows that make a part: scoring fewer one by one takes 0.1 ms (of 40 items each). */
const ROWS_MIN = 256;
/** Rows of a part at most: indexing them takes 10 to 20 ms, which a query may wait for now and then. */
const ROWS_MAX = 4096;

export class GrowingIndex {
  private readonly parts: IndexedRange[] = [];

  /** source: rows that never change once they are there. */
  constructor(private readonly source: SparseRows) {}

  /** Rows from 0 that are indexed. */
  get rows(): number {
    const last = this.parts.at(-1);
    return last === undefined ? 0 : last.from + last.index.rowCount;
  }

  /** The parts, after one more was made if there are rows for it among the first `rows`. One call takes no longer than one part does. */
  upTo(rows: number): readonly IndexedRange[] {
    const to = Math.min(rows, this.rows + ROWS_MAX);
    if (to - this.rows < ROWS_MIN) return this.parts;
    let from = this.rows;
    for (let last = this.parts.at(-1); last !== undefined; last = this.parts.at(-1)) {
      if (last.index.rowCount > to - from || to - last.from > ROWS_MAX) break;
      from = last.from;
      this.parts.pop();
    }
    const { offsets, indices, values } = this.source;
    const count = to - from;
    const buffer = buildSparseIndex({ offsets: offsets.subarray(from), indices, values }, count);
    this.parts.push({ from, index: openSparseIndex(buffer, 'rows added', count) });
    return this.parts;
  }
}
