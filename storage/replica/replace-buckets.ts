/** Replaces the points of some buckets by those of another replica, including their versions. */

import type { PointId } from '../../protocols/model/point-id.js';
import type { PassedBuckets } from './bucket-codec.js';
import { rowsOfBuckets } from './bucket-rows.js';
import type { SegmentRows } from './segment-rows.js';
import { withoutStale } from './stale.js';
import type { Location, Transaction } from './transaction.js';

/** The live points of the buckets. */
export function pointsOfBuckets(segments: readonly SegmentRows[], buckets: ReadonlySet<number>): Location[] {
  return segments.flatMap((segment) => Array.from(rowsOfBuckets(segment, buckets), (row) => ({ segment, row })));
}

/**
 * Replaces the points. Returns the number of points that were changed, added or removed; points that have their version already stay as
 * they are.
 */
export function replaceBuckets(transaction: Transaction, { buckets, payloadText, segment: passed }: PassedBuckets): number {
  const own = new Map<PointId, Location>();
  for (const location of pointsOfBuckets(transaction.segments, buckets)) own.set(location.segment.idAt(location.row), location);
  let changed = 0;
  for (let row = 0; row < passed.rows; row++) {
    const id = passed.idAt(row);
    const version = passed.versions[row] as number;
    const old = own.get(id);
    own.delete(id);
    if (old !== undefined && old.segment.versions[old.row] === version) continue;
    const added = transaction.append(id, version, passed.itemsOf(row));
    added.segment.copyVectors(added.row, passed, row);
    transaction.setPayload(added, payloadText(row));
    if (old !== undefined) transaction.remove(old, added);
    changed++;
  }
  for (const location of own.values()) transaction.remove(location);
  transaction.stale = withoutStale(transaction.stale, buckets);
  return changed + own.size;
}
