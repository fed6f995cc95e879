/** Points by the values of a payload key. */

import type { Filter } from '../../../protocols/model/filter.js';
import type { OrderBy } from '../../../protocols/model/query.js';
import { countBits, forEachBit, hasBit } from '../../../query/filter/bits.js';
import { FirstInOrder, type OrderedPoint, orderCondition, orderType, orderValues } from '../../../query/order.js';
import { explaining } from '../../explain/explainer.js';
import type { Candidates } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { payloadOf } from '../snapshot/filter-source.js';
import { liveBits } from '../snapshot/live-rows.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';
import type { FoundRow } from './points.js';

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
  const addPayload = (view: SegmentView, row: number): void => {
    for (const value of orderValues(orderBy, type, payloadOf(view, row))) first.add({ view, row, id: view.id(row), value });
  };
  if (candidates !== null) {
    for (const [view, rows] of candidates) for (const row of rows) addPayload(view, row);
    return first.inOrder();
  }
  for (const view of snapshots.flatMap(({ segments }) => segments)) {
    const bits = filter === null ? null : liveBits(view, filter);
    const note = explaining()?.of(view);
    if (addFromIndex(view, orderBy, bits, count, first)) {
      note?.way('order_index', `The index of \`${orderBy.key}\` is gone through in its order until there are enough rows.`);
      note?.mark('order');
      continue;
    }
    note?.way(
      'order_payloads',
      `Few rows pass, or the index of \`${orderBy.key}\` is not built here yet, so payloads are read and sorted.`,
    );
    const wanted = bits ?? liveBits(view, { must: [orderCondition(orderBy, type)], should: [], mustNot: [], minShould: null });
    view.reader.deadline.claim({ kind: 'payloads', count: countBits(wanted) });
    let looked = 0;
    forEachBit(wanted, (row) => {
      if (++looked % CHECK_ROWS === 0) view.reader.deadline.check();
      addPayload(view, row);
    });
    note?.mark('order');
  }
  const found = first.inOrder();
  explaining()?.gave(found);
  return found;
}

/**
 * Adds a segment's first rows among `bits` (null: the live ones) as its index has them. False: nothing was added, as
 * there is no index that can, or few rows pass, so that their payloads are sooner read than the index is gone through.
 */
function addFromIndex(
  view: SegmentView,
  { key, direction, startFrom }: OrderBy,
  bits: Uint32Array | null,
  count: number,
  first: FirstInOrder<OrderedRow>,
): boolean {
  const index = view.fieldIndex(key);
  if (index?.visitInOrder === undefined || (bits !== null && countBits(bits) * PAYLOAD_PER_ENTRY < view.rows)) return false;
  const passing = bits === null ? view.rows : Math.max(1, countBits(bits));
  view.reader.deadline.claim({ kind: 'entries', count: Math.min(view.rows, (count * view.rows) / passing) });
  let added = 0;
  let looked = 0;
  let last = Number.NaN;
  return index.visitInOrder(direction, startFrom?.value ?? null, (value, row) => {
    if (++looked % CHECK_ENTRIES === 0) view.reader.deadline.check();
    // Rows of one value come in no order, so all of the last value's are taken.
    if (added >= count && value !== last) return false;
    if (!view.isLive(row) || (bits !== null && !hasBit(bits, row))) return true;
    first.add({ view, row, id: view.id(row), value });
    last = value;
    added++;
    return true;
  });
}

/** Entries of an index that are gone through in the time in which one payload is read. */
const PAYLOAD_PER_ENTRY = 200;
const CHECK_ENTRIES = 8192;
/** Rows looked at between two checks of the deadline. */
const CHECK_ROWS = 64;

/** Rows in order as hits, which have no score of their own. */
export function orderedHits(rows: readonly OrderedRow[]): Hit[] {
  return rows.map(({ view, row, value }) => ({ ...hitOf(view, row, 1), orderValue: value }));
}
