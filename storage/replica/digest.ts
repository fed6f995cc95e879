/**
 * The digest of a replica's points, which replicas compare: for each bucket of ids, the sum of hashes over (id, version) mod 2^64, and the
 * number of points. Points are added to the sum and subtracted one by one, so it is kept while points change.
 *
 * A point's hash consists of two 32-bit hashes (MurmurHash3, `vectors/murmur3.ts`): the lower over kind, id words, version, the upper over
 * the same in reverse order. Replicas of one shard have the same operations in the same order, so equal versions mean equal points.
 */

import { invariant } from '../../protocols/invariant.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { finishHash, mixBlock } from '../../vectors/murmur3.js';
import { hashIdWords, hashPoint } from '../sharding/point-hash.js';
import { DIGEST_BUCKETS } from '../threads/shard-log.js';
import type { SegmentRows } from './segment-rows.js';

/** A row that became live, or is live no more. */
export interface RowChange {
  readonly segment: SegmentRows;
  readonly row: number;
  readonly sign: 1 | -1;
}

export class PointDigest {
  /** The sums as u32 pairs, lower half first, which is u64 on little-endian machines. */
  private readonly halves = new Uint32Array(DIGEST_BUCKETS * 2);
  private readonly counts = new Uint32Array(DIGEST_BUCKETS);

  /** The digest of all live rows. */
  static of(segments: readonly SegmentRows[]): PointDigest {
    const digest = new PointDigest();
    for (const segment of segments)
      for (let row = 0; row < segment.rows; row++) if (segment.isLive(row)) digest.change({ segment, row, sign: 1 });
    return digest;
  }

  change({ row, segment, sign }: RowChange): void {
    const bucket = bucketOfRow(segment, row);
    hashRow(segment, row);
    const at = bucket * 2;
    const count = (this.counts[bucket] as number) + sign;
    invariant(count >= 0, 'Op-O4', 'more rows left a bucket of the digest than came to it');
    this.counts[bucket] = count;
    const low = (this.halves[at] as number) + sign * rowHash.low;
    const carry = low < 0 ? -1 : low > 0xffff_ffff ? 1 : 0;
    this.halves[at] = low;
    this.halves[at + 1] = (this.halves[at + 1] as number) + sign * rowHash.high + carry;
  }

  /** The number of points in all buckets. */
  get points(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** Copies of the sums and counts: u64 [DIGEST_BUCKETS] and u32 [DIGEST_BUCKETS]. */
  value(): { buckets: BigUint64Array; points: Uint32Array } {
    return { buckets: new BigUint64Array(this.halves.slice().buffer), points: this.counts.slice() };
  }
}

/** The bucket of a point: 0..DIGEST_BUCKETS-1. */
export function bucketOfId(id: PointId): number {
  return hashPoint(id) % DIGEST_BUCKETS;
}

/**
 * The bucket of a row's point: 0..DIGEST_BUCKETS-1. The shard follows from the whole hash, so the hash's last bits do not depend on the
 * shard.
 */
export function bucketOfRow({ kinds, words }: SegmentRows, row: number): number {
  return hashIdWords(kinds[row] as number, words, row * 4) % DIGEST_BUCKETS;
}

/** The result of the last `hashRow`. */
const rowHash = { low: 0, high: 0 };
const BYTES = 28;

function hashRow({ kinds, versions, words }: SegmentRows, row: number): void {
  const kind = kinds[row] as number;
  const version = versions[row] as number;
  const versionLow = version >>> 0;
  const versionHigh = Math.floor(version / 0x1_0000_0000);
  const at = row * 4;
  let low = mixBlock(0, kind);
  for (let word = at; word < at + 4; word++) low = mixBlock(low, words[word] as number);
  let high = mixBlock(mixBlock(0, versionHigh), versionLow);
  for (let word = at + 3; word >= at; word--) high = mixBlock(high, words[word] as number);
  rowHash.low = finishHash(mixBlock(mixBlock(low, versionLow), versionHigh), BYTES) >>> 0;
  rowHash.high = finishHash(mixBlock(high, kind), BYTES) >>> 0;
}
