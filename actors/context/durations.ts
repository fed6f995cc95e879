/** Statistics of durations: sum, extremes and a histogram. */

/** Upper bounds of the histogram's buckets in seconds; one more bucket takes the rest. */
export const BUCKET_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BUCKET_MS = BUCKET_SECONDS.map((bound) => bound * 1000);

export class Durations {
  count = 0;
  totalMs = 0;
  minMs = Number.POSITIVE_INFINITY;
  maxMs = 0;
  /** The date of the last one. */
  lastMs = 0;
  /** Requests per bucket, not cumulated: [BUCKET_SECONDS.length + 1]. */
  readonly buckets = new Uint32Array(BUCKET_SECONDS.length + 1);

  /** Adds what others have counted. */
  merge(other: Durations): void {
    this.count += other.count;
    this.totalMs += other.totalMs;
    this.minMs = Math.min(this.minMs, other.minMs);
    this.maxMs = Math.max(this.maxMs, other.maxMs);
    this.lastMs = Math.max(this.lastMs, other.lastMs);
    other.buckets.forEach((count, at) => {
      this.buckets[at] = (this.buckets[at] as number) + count;
    });
  }

  add(milliseconds: number, dateMs: number): void {
    this.count++;
    this.totalMs += milliseconds;
    if (milliseconds < this.minMs) this.minMs = milliseconds;
    if (milliseconds > this.maxMs) this.maxMs = milliseconds;
    this.lastMs = dateMs;
    const bucket = bucketOf(milliseconds);
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1;
  }
}

/** The place of a duration's bucket. */
export function bucketOf(milliseconds: number): number {
  let bucket = 0;
  while (bucket < BUCKET_MS.length && milliseconds > (BUCKET_MS[bucket] as number)) bucket++;
  return bucket;
}
