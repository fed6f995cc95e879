/** A row that a query found. */

import type { RankedPoint } from '../../../query/merge.js';
import { finiteScore } from '../../../query/shown-score.js';
import type { SegmentView } from '../snapshot/snapshot-view.js';

/** What is kept of a hit until it is shown. */
export const HIT_BYTES = 128;

/** Score as the API shows it: distances themselves where less is better. */
export interface Hit extends RankedPoint {
  readonly view: SegmentView;
  readonly row: number;
  /** The value it was ordered by (`order_by`). */
  readonly orderValue?: number | bigint;
}

/** The hit of a row with its id and version. */
export function hitOf(view: SegmentView, row: number, score: number): Hit {
  return { id: view.id(row), score: finiteScore(score), version: view.version(row), view, row };
}
