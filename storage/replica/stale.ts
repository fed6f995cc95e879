/**
 * Stale buckets: their points may differ from those at the replica's position in the log. Buckets become stale when the log begins after a
 * reset, or loses operations that the leader does not have, until each of them has been compared with the leader's or filled from them.
 *
 * The rules are Bucket-B1 to Bucket-B3 in storage/README.md.
 */

import type { PointId } from '../../protocols/model/point-id.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { DIGEST_BUCKETS, type ReplicaDigest } from '../threads/shard-log.js';
import { damagedRecord, sealBody, unseal } from '../wal/records.js';
import { bucketOfId } from './digest.js';

/** Key in `meta`; a replica without stale buckets has no such record. */
export const STALE_KEY = Buffer.from('stale');

/** Bits [DIGEST_BUCKETS], never changed in place; null if no bucket is stale. */
export type StaleBuckets = Uint8Array | null;

const BYTES = DIGEST_BUCKETS / 8;

export const ALL_STALE: StaleBuckets = new Uint8Array(BYTES).fill(0xff);

export function isStale(stale: StaleBuckets, bucket: number): boolean {
  return stale !== null && (((stale[bucket >> 3] as number) >> (bucket & 7)) & 1) === 1;
}

/** The stale buckets, with those of all points that the operations may have changed, including points that do not exist any more. */
export function withStale(stale: StaleBuckets, operations: Iterable<UpdateOperation>): StaleBuckets {
  const more = stale?.slice() ?? new Uint8Array(BYTES);
  for (const operation of operations) {
    const ids = pointsOf(operation);
    if (ids === 'any') return ALL_STALE;
    for (const id of ids) {
      const bucket = bucketOfId(id);
      (more[bucket >> 3] as number) |= 1 << (bucket & 7);
    }
  }
  return more.some((byte) => byte !== 0) ? more : null;
}

function pointsOf(operation: UpdateOperation): readonly PointId[] | 'any' {
  if ('batch' in operation) return operation.batch.ids;
  if (!('selector' in operation)) return [];
  return operation.selector.kind === 'ids' ? operation.selector.ids : 'any';
}

/** The stale buckets without `buckets`. */
export function withoutStale(stale: StaleBuckets, buckets: Iterable<number>): StaleBuckets {
  if (stale === null) return null;
  const left = stale.slice();
  for (const bucket of buckets) (left[bucket >> 3] as number) &= ~(1 << (bucket & 7));
  return left.some((byte) => byte !== 0) ? left : null;
}

/** The buckets in which two digests are equal. */
export function* equalBuckets(one: ReplicaDigest, other: ReplicaDigest): Generator<number> {
  for (let bucket = 0; bucket < DIGEST_BUCKETS; bucket++)
    if (one.buckets[bucket] === other.buckets[bucket] && one.points[bucket] === other.points[bucket]) yield bucket;
}

export function encodeStale(stale: Uint8Array): Uint8Array {
  return sealBody(stale);
}

/** Decodes the record of stale buckets. Errors: `storage`. */
export function decodeStale(record: Uint8Array | undefined): StaleBuckets {
  if (record === undefined) return null;
  const stale = unseal(record, 'meta/stale');
  if (stale.length !== BYTES) throw damagedRecord('meta/stale');
  return stale.slice();
}
