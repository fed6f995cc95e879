/** Rows of several segments, segment by segment. */

import type { FoundRow } from '../query/points.js';
import type { SegmentView } from './snapshot-view.js';

export interface RowPart {
  readonly view: SegmentView;
  readonly rows: Uint32Array;
  /** Of each row, its place in the whole list. */
  readonly positions: readonly number[];
}

export function partsOf(found: readonly FoundRow[]): RowPart[] {
  const positions = new Map<SegmentView, number[]>();
  found.forEach(({ view }, at) => {
    const known = positions.get(view);
    if (known === undefined) positions.set(view, [at]);
    else known.push(at);
  });
  return [...positions].map(([view, at]) => ({ view, positions: at, rows: Uint32Array.from(at, (one) => (found[one] as FoundRow).row) }));
}
