/** How the buckets of a replica are sent: as many at a time as make a message of a good size. */

/** What `compare` found: the leader's points in each bucket that differs; equal lengths. */
export interface BucketDifferences {
  readonly buckets: readonly number[];
  readonly points: readonly number[];
}

/** Large enough to be worth a round, small enough that writes that wait behind it do so for a moment only. */
const BATCH_BYTES = 4 * 2 ** 20;
/** Until it is known how large a point is. */
const FIRST_BATCH_POINTS = 512;
const BATCH_POINTS_MAX = 20_000;

/** Buckets from `at` on that go together; one at least. bytesPerPoint: of those that were sent; null: not known yet. */
export function nextBatch(
  { buckets, points }: BucketDifferences,
  at: number,
  bytesPerPoint: number | null,
): { readonly buckets: readonly number[]; readonly points: number } {
  const most = pointsAtOnce(bytesPerPoint);
  let end = at;
  let sum = 0;
  while (end < buckets.length) {
    const more = points[end] ?? 0;
    if (end > at && sum + more > most) break;
    sum += more;
    end += 1;
  }
  return { buckets: buckets.slice(at, end), points: sum };
}

function pointsAtOnce(bytesPerPoint: number | null): number {
  if (bytesPerPoint === null || bytesPerPoint <= 0) return FIRST_BATCH_POINTS;
  return Math.min(BATCH_POINTS_MAX, Math.max(1, Math.floor(BATCH_BYTES / bytesPerPoint)));
}
