/** What prefetches leave to the level above them. */

import type { Prefetched } from '../../walk/walk.js';
import type { SegmentView } from '../snapshot/snapshot-view.js';
import type { Hit } from './hit.js';

/** The only points that a level may find: distinct rows of each segment, ascending. */
export type Candidates = ReadonlyMap<SegmentView, Uint32Array>;

/** What a prefetch found among rows. */
export type PrefetchedRows = Prefetched<Hit>;

/** All points of the lists. */
export function candidatesOf(lists: readonly PrefetchedRows[]): Candidates {
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
