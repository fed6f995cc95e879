/**
 * A rate limit in requests per minute: a bucket of tokens, which refills evenly. It is kept as the time at which it is full again, in shared
 * memory, so that each thread that answers requests takes from the same one. Source: specification, strict mode; contract, scenario
 * strict-rate-limits.
 */

import { type ErrorFacts, errorFromFacts } from '../../protocols/errors.js';

/** A bucket as it is sent to other threads. */
export interface SharedTokens {
  readonly kind: 'read' | 'write';
  /** Tokens that the bucket holds, and that come back in a minute. */
  readonly perMinute: number;
  /** Bits of a float64: the time (`steadyNowMs()`) at which the bucket is full again. BigInt64Array [1] in shared memory. */
  readonly fullAt: BigInt64Array;
}

const MINUTE_MS = 60_000;
/** What is lost by rounding does not cost a token. */
const EPSILON = 1e-6;
const NAMES = { read: 'Read', write: 'Write' } as const;

/** A full bucket. */
export function newTokens(kind: SharedTokens['kind'], perMinute: number): SharedTokens {
  return { kind, perMinute, fullAt: new BigInt64Array(new SharedArrayBuffer(8)) };
}

/**
 * When the bucket is full again after so many tokens were taken; it stays as it was if there is an error: `rateLimited`. What costs more
 * than the bucket ever holds is refused for good.
 */
export function afterTaking(
  fullAtMs: number,
  { kind, perMinute }: Pick<SharedTokens, 'kind' | 'perMinute'>,
  cost: number,
  nowMs: number,
): { readonly fullAtMs: number; readonly error: ErrorFacts | null } {
  const limit = `${kind}_rate_limit`;
  const tokenMs = MINUTE_MS / perMinute;
  if (cost > perMinute) {
    const detail = `${NAMES[kind]} rate limit exceeded, request larger than rate limiter capacity, please try to split your request`;
    return { fullAtMs, error: { code: 'rateLimited', detail, limit } };
  }
  const lackingMs = Math.max(0, fullAtMs - nowMs);
  const tokens = perMinute - lackingMs / tokenMs;
  if (cost <= tokens + EPSILON) return { fullAtMs: nowMs + lackingMs + cost * tokenMs, error: null };
  const retryAfterMs = Math.ceil((cost - tokens) * tokenMs);
  const shown = (Math.floor(tokens * 10) / 10).toFixed(1);
  const seconds = Math.ceil(retryAfterMs / 1000);
  const detail = `${NAMES[kind]} rate limit exceeded: Operation requires ${cost} tokens but only ${shown} were available. Retry after ${seconds}s`;
  return { fullAtMs, error: { code: 'rateLimited', detail, retryAfterMs, limit } };
}

/** Takes tokens. Errors: `rateLimited`; none are taken then. */
export function takeTokens(tokens: SharedTokens, cost: number, nowMs: number): void {
  const lack = takeOrLack(tokens, cost, nowMs);
  if (lack !== null) throw errorFromFacts(lack);
}

/** Takes tokens; or why there are too few of them (`rateLimited`), and none are taken. */
export function takeOrLack(tokens: SharedTokens, cost: number, nowMs: number): ErrorFacts | null {
  let lack: ErrorFacts | null = null;
  change(tokens, (fullAtMs) => {
    const { error, fullAtMs: after } = afterTaking(fullAtMs, tokens, cost, nowMs);
    lack = error;
    return after;
  });
  return lack;
}

/** Why the bucket has not even the token of the smallest request (`rateLimited`); null: it has. None is taken. */
export function lackOf(tokens: SharedTokens, nowMs: number): ErrorFacts | null {
  return afterTaking(timeOf(Atomics.load(tokens.fullAt, 0)), tokens, 1, nowMs).error;
}

/** Checks that there is the token of the smallest request, without taking it. Errors: `rateLimited`. */
export function checkToken(tokens: SharedTokens, nowMs: number): void {
  const lack = lackOf(tokens, nowMs);
  if (lack !== null) throw errorFromFacts(lack);
}

/** Gives back tokens of a request that somebody else is going to take them for. */
export function giveBackTokens(tokens: SharedTokens, cost: number): void {
  change(tokens, (fullAtMs) => fullAtMs - (cost * MINUTE_MS) / tokens.perMinute);
}

function change({ fullAt }: SharedTokens, next: (fullAtMs: number) => number): void {
  for (;;) {
    const before = Atomics.load(fullAt, 0);
    const after = bitsOf(next(timeOf(before)));
    if (Atomics.compareExchange(fullAt, 0, before, after) === before) return;
  }
}

const time = new Float64Array(1);
const bits = new BigInt64Array(time.buffer);

function timeOf(stored: bigint): number {
  bits[0] = stored;
  return time[0] as number;
}

function bitsOf(timeMs: number): bigint {
  time[0] = timeMs;
  return bits[0] as bigint;
}
