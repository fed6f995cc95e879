/** What prefetches leave to the level above them. */

import type { QueryNode } from '../../../protocols/model/query.js';
import type { Page } from '../../../query/merge.js';
import type { SegmentView } from '../snapshot/snapshot-view.js';
import type { Hit } from './hit.js';

/** One level of a query and which part of its hits is wanted. */
export interface PagedNode extends QueryNode {
  readonly offset: number;
}

/** The only points that a level may find: distinct rows of each segment, ascending. */
export type Candidates = ReadonlyMap<SegmentView, Uint32Array>;

/** What a prefetch found, best first. */
export interface Prefetched {
  readonly hits: readonly Hit[];
  /** Which of its scores are better. */
  readonly better: Page['better'];
}

/** All points of the lists. */
export function candidatesOf(lists: readonly Prefetched[]): Candidates {
  const rows = new Map<SegmentView, Set<number>>();
  for (const { hits } of lists) {
    for (const { view, row } of hits) {
      const known = rows.get(view);
      if (known === undefined) rows.set(view, new Set([row]));
      else known.add(row);
    }
  }
  return new Map([...rows].map(([view, found]) => [view, Uint32Array.from(found).sort()]));
}
