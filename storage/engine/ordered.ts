/** Points by the values of a payload key. */

import type { Filter } from '../../protocols/model/filter.js';
import type { OrderBy } from '../../protocols/model/query.js';
import { forEachBit } from '../../query/filter/bits.js';
import { bothFilters } from '../../query/filter/combine.js';
import { FirstInOrder, type OrderedPoint, orderCondition, orderType, orderValues } from '../../query/order.js';
import type { Candidates } from './candidates.js';
import { payloadOf } from './filter-source.js';
import type { Hit } from './hit.js';
import { liveBits } from './live-rows.js';
import type { FoundRow } from './points.js';
import type { ReplicaSnapshot, SegmentView } from './snapshot-view.js';

/** A row under one of its values. */
export interface OrderedRow extends OrderedPoint, FoundRow {}

/**
 * The first `count` rows in order, a row once for each of its values within the order.
 * candidates: the only rows that may be found; null: those that pass the filter.
 * Errors: `wrongInput` when the key has no index of numbers or times; `timeout`.
 */
export function rowsByValue(
  snapshots: readonly ReplicaSnapshot[],
  orderBy: OrderBy,
  count: number,
  filter: Filter | null,
  candidates: Candidates | null,
): OrderedRow[] {
  const schema = snapshots.flatMap(({ segments }) => segments)[0]?.fields.get(orderBy.key);
  const type = orderType(orderBy.key, schema);
  const first = new FirstInOrder<OrderedRow>(orderBy.direction, count);
  const add = (view: SegmentView, row: number): void => {
    for (const value of orderValues(orderBy, type, payloadOf(view, row))) first.add({ view, row, id: view.id(row), value });
  };
  if (candidates !== null) {
    for (const [view, rows] of candidates) for (const row of rows) add(view, row);
    return first.inOrder();
  }
  const wanted = bothFilters(filter, { must: [orderCondition(orderBy, type)], should: [], mustNot: [], minShould: null });
  for (const { segments } of snapshots) {
    for (const view of segments) {
      let looked = 0;
      forEachBit(liveBits(view, wanted), (row) => {
        if (++looked % CHECK_ROWS === 0) view.reader.clock.check();
        add(view, row);
      });
    }
  }
  return first.inOrder();
}

/** Rows looked at between two looks at the clock. */
const CHECK_ROWS = 256;

/** Rows in order as hits. The API gives them score 1 and version 0. */
export function orderedHits(rows: readonly OrderedRow[]): Hit[] {
  return rows.map(({ view, row, id, value }) => ({ id, score: 1, version: 0, view, row, orderValue: value }));
}
