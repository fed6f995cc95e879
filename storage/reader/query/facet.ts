/** Counts the values of a payload key over the points that pass a filter: from the segments' indexes, else from payloads. */

import { TroupeError } from '../../../protocols/errors.js';
import type { FieldType } from '../../../protocols/model/collection.js';
import { pathOf } from '../../../protocols/model/json-path.js';
import type { FacetQuery } from '../../../protocols/model/query.js';
import { canFacet } from '../../../query/facet.js';
import { countBits, forEachBit } from '../../../query/filter/bits.js';
import { scalarTerms, type TermValue } from '../../../query/filter/lookup.js';
import { explaining } from '../../explain/explainer.js';
import { payloadOf } from '../snapshot/filter-source.js';
import { areAllLive, liveBits } from '../snapshot/live-rows.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';

/** For so few rows their payloads are quicker than a look at every entry of an index. */
const FEW_ROWS = 64;
/** Payloads read between two checks of the deadline. */
const CHECK_ROWS = 64;

/**
 * In how many of the points that pass each value is. A point counts once for each of its distinct values.
 * Errors: `wrongInput` when the key has no index that tells values apart; `timeout`.
 */
export function valueCounts(
  snapshots: readonly ReplicaSnapshot[],
  query: Pick<FacetQuery, 'key' | 'filter'>,
): ReadonlyMap<TermValue, number> {
  const views = snapshots.flatMap(({ segments }) => segments);
  const schema = views[0]?.fields.get(query.key);
  if (schema === undefined || !canFacet(schema)) {
    throw new TroupeError(
      'wrongInput',
      `No appropriate index for faceting: \`${query.key}\`. Create a keyword, integer (with lookup), bool or uuid index on this field`,
    );
  }
  const counts = new Map<TermValue, number>();
  const add = (value: TermValue, count: number): void => {
    // Large integers come as either type.
    const key = typeof value === 'number' && !Number.isSafeInteger(value) ? BigInt(value) : value;
    counts.set(key, (counts.get(key) ?? 0) + count);
  };
  for (const view of views) {
    view.reader.deadline.check();
    const note = explaining()?.of(view);
    const addNoted = (value: TermValue, count: number): void => {
      note?.gave(count);
      add(value, count);
    };
    const way = countSegment(view, query, schema.type, note === undefined ? add : addNoted);
    if (way !== null) note?.way(way, FACET_WAYS[way]);
    note?.mark('count');
  }
  return counts;
}

const FACET_WAYS = {
  facet_index: 'The index of the key tells its values with the number of rows that pass.',
  facet_payloads: 'So few rows pass that their payloads are sooner read than the index, or the index is not built here yet.',
} as const;

/** How the values were counted; null: there was no row to count. */
function countSegment(
  view: SegmentView,
  { key, filter }: Pick<FacetQuery, 'key' | 'filter'>,
  type: FieldType,
  add: (value: TermValue, count: number) => void,
): keyof typeof FACET_WAYS | null {
  if (view.rows === 0) return null;
  if (filter === null && view.rows > FEW_ROWS && areAllLive(view) && view.fieldIndex(key)?.countValues?.(null, add) === true)
    return 'facet_index';
  const bits = liveBits(view, filter);
  const rows = countBits(bits);
  if (rows === 0) return null;
  const index = rows <= FEW_ROWS ? undefined : view.fieldIndex(key);
  const { deadline } = view.reader;
  if (index !== undefined) deadline.claim({ kind: 'entries', count: view.rows });
  if (index?.countValues?.(rows === view.rows ? null : bits, add) === true) return 'facet_index';
  deadline.claim({ kind: 'payloads', count: rows });
  const path = pathOf(key);
  let read = 0;
  forEachBit(bits, (row) => {
    if (++read % CHECK_ROWS === 0) deadline.check();
    for (const value of scalarTerms(type, payloadOf(view, row), path)) add(value, 1);
  });
  return 'facet_payloads';
}
