/** A rate limit in requests per minute: a bucket of tokens, which refills evenly. */

import type { ErrorFacts } from '../../../protocols/errors.js';

export interface RateBucket {
  readonly perMinute: number;
  /** 0 to `perMinute`. */
  readonly tokens: number;
  readonly atMs: number;
}

const MINUTE_MS = 60_000;

/** A full bucket. */
export function newBucket(perMinute: number, nowMs: number): RateBucket {
  return { perMinute, tokens: perMinute, atMs: nowMs };
}

/**
 * The bucket after a request: without the tokens that it costs or, if it is refused, unchanged with the error `rateLimited`. An operation
 * that costs more than the bucket ever holds is refused for good. Source: specification, strict mode; contract, scenario
 * strict-rate-limits.
 */
export function takeTokens(
  bucket: RateBucket,
  cost: number,
  what: 'Read' | 'Write',
  nowMs: number,
): { readonly bucket: RateBucket; readonly error: ErrorFacts | null } {
  const { perMinute } = bucket;
  const filled = bucket.tokens + (Math.max(0, nowMs - bucket.atMs) * perMinute) / MINUTE_MS;
  const now = { perMinute, tokens: Math.min(perMinute, filled), atMs: Math.max(nowMs, bucket.atMs) };
  if (cost > perMinute) {
    const detail = `${what} rate limit exceeded, request larger than rate limiter capacity, please try to split your request`;
    return { bucket: now, error: { code: 'rateLimited', detail } };
  }
  if (cost <= now.tokens) return { bucket: { ...now, tokens: now.tokens - cost }, error: null };
  const retryAfterMs = Math.ceil(((cost - now.tokens) * MINUTE_MS) / perMinute);
  const shown = (Math.floor(now.tokens * 10) / 10).toFixed(1);
  const seconds = Math.ceil(retryAfterMs / 1000);
  const detail = `${what} rate limit exceeded: Operation requires ${cost} tokens but only ${shown} were available. Retry after ${seconds}s`;
  return { bucket: now, error: { code: 'rateLimited', detail, retryAfterMs } };
}
