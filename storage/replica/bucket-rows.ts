/** Finds the rows of a segment by the bucket of their ids, without looking at all rows each time. */

import { DIGEST_BUCKETS } from '../threads/shard-log.js';
import { bucketOfRow } from './digest.js';
import type { SegmentRows } from './segment-rows.js';

interface Filed {
  /** Number of rows that are sorted by bucket. */
  readonly rows: number;
  /** u32 [rows]: rows, bucket after bucket. */
  readonly order: Uint32Array;
  /** u32 [DIGEST_BUCKETS + 1]: the begin of each bucket in `order`. */
  readonly starts: Uint32Array;
}

/** Rows are sorted again when the new ones are more than this plus a quarter of the sorted ones. */
const UNFILED_MAX = 4096;

/** Sorted rows by segment. Rows never change, so an entry is valid as long as the segment exists. */
const filed = new WeakMap<SegmentRows, Filed>();

/** The live rows of the buckets. */
export function* rowsOfBuckets(segment: SegmentRows, buckets: ReadonlySet<number>): Generator<number> {
  const { order, rows, starts } = filedRows(segment);
  for (const bucket of buckets) {
    for (let at = starts[bucket] as number; at < (starts[bucket + 1] as number); at++) {
      const row = order[at] as number;
      if (segment.isLive(row)) yield row;
    }
  }
  for (let row = rows; row < segment.rows; row++) if (segment.isLive(row) && buckets.has(bucketOfRow(segment, row))) yield row;
}

function filedRows(segment: SegmentRows): Filed {
  const known = filed.get(segment);
  // A failed transaction may have removed rows.
  if (known !== undefined && known.rows <= segment.rows && segment.rows - known.rows <= UNFILED_MAX + known.rows / 4) return known;
  const made = fileRows(segment);
  filed.set(segment, made);
  return made;
}

function fileRows(segment: SegmentRows): Filed {
  const { rows } = segment;
  const buckets = new Uint16Array(rows);
  const starts = new Uint32Array(DIGEST_BUCKETS + 1);
  for (let row = 0; row < rows; row++) {
    const bucket = bucketOfRow(segment, row);
    buckets[row] = bucket;
    (starts[bucket + 1] as number)++;
  }
  for (let bucket = 0; bucket < DIGEST_BUCKETS; bucket++) (starts[bucket + 1] as number) += starts[bucket] as number;
  const next = starts.slice();
  const order = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) {
    const bucket = buckets[row] as number;
    const at = next[bucket] as number;
    order[at] = row;
    next[bucket] = at + 1;
  }
  return { rows, order, starts };
}
