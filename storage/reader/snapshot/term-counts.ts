/**
 * In how many rows of a collection an index of a sparse vector occurs, and the weight that follows from it. Deleted rows
 * count until a build drops them: telling them apart would cost every query more than it changes the weights.
 */

import { inverseFrequency } from '../../../vectors/sparse/dot.js';
import { findTerm } from '../../../vectors/sparse/index.js';
import type { RaggedItems, ReplicaSnapshot, SegmentReader, SegmentView, TermFrequencies } from './snapshot-view.js';

/** The weight of each index for one query; every index is looked up once. */
export function inverseFrequencies(snapshots: readonly ReplicaSnapshot[], name: string): (index: number) => number {
  const sums = snapshots[0]?.frequencies ?? frequenciesIn(snapshots, name);
  let filled: number | undefined;
  return (index) => {
    filled ??= sums.filled;
    return inverseFrequency(filled, sums.rowsWith(index));
  };
}

/** How often indices occur in these snapshots; counted when it is asked for. */
export function frequenciesIn(snapshots: readonly ReplicaSnapshot[], name: string): TermFrequencies {
  const views = snapshots.flatMap((snapshot) => snapshot.segments);
  return {
    get filled() {
      return views.reduce((sum, view) => sum + filledRows(view, name), 0);
    },
    rowsWith: (index) => views.reduce((sum, view) => sum + rowsWith(view, name, index), 0),
  };
}

/** Rows with a vector that is not empty. */
function filledRows(view: SegmentView, name: string): number {
  return view.reader.sparseIndex(name)?.filled ?? countsOf(view, name)?.filled ?? 0;
}

function rowsWith(view: SegmentView, name: string, index: number): number {
  const postings = view.reader.sparseIndex(name);
  if (postings === null) return countsOf(view, name)?.byIndex.get(index) ?? 0;
  const term = findTerm(postings, index);
  return term === undefined ? 0 : (postings.starts[term + 1] as number) - (postings.starts[term] as number);
}

/** Counts of the first rows of a segment without an index of the vector. */
class TermCounts {
  filled = 0;
  readonly byIndex = new Map<number, number>();
  private rows = 0;

  /** Counts the rows that have come since (View-V2: those counted don't change). */
  advance({ offsets, indices }: RaggedItems, rows: number): void {
    for (; this.rows < rows; this.rows++) {
      const from = offsets[this.rows] as number;
      const to = offsets[this.rows + 1] as number;
      if (to > from) this.filled++;
      for (let item = from; item < to; item++) {
        const index = indices[item] as number;
        this.byIndex.set(index, (this.byIndex.get(index) ?? 0) + 1);
      }
    }
  }
}

/** By segment and vector name, as long as a thread has the segment. */
const known = new WeakMap<SegmentReader, Map<string, TermCounts>>();

function countsOf(view: SegmentView, name: string): TermCounts | undefined {
  const items = view.reader.vector(name)?.items;
  if (!items) return undefined;
  const byName = known.get(view.reader) ?? new Map<string, TermCounts>();
  known.set(view.reader, byName);
  const counts = byName.get(name) ?? new TermCounts();
  byName.set(name, counts);
  counts.advance(items, view.rows);
  return counts;
}
