import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TroupeError } from '../../../protocols/errors.js';
import { afterTaking, checkToken, giveBackTokens, newTokens, takeTokens } from '../../../storage/limits/tokens.js';

const refused = (error: TroupeError) => error.code === 'rateLimited';

test('a minute’s tokens may be taken at once, and then one after the other as they come back', () => {
  const bucket = { kind: 'write', perMinute: 4 } as const;
  const startMs = 1_700_000_000_000;
  let fullAtMs = 0;
  for (let times = 0; times < 4; times += 1) {
    const taken = afterTaking(fullAtMs, bucket, 1, startMs);
    assert.equal(taken.error, null);
    ({ fullAtMs } = taken);
  }
  assert.deepEqual(afterTaking(fullAtMs, bucket, 1, startMs).error, {
    code: 'rateLimited',
    detail: 'Write rate limit exceeded: Operation requires 1 tokens but only 0.0 were available. Retry after 15s',
    retryAfterMs: 15_000,
    limit: 'write_rate_limit',
  });
  assert.equal(afterTaking(fullAtMs, bucket, 1, startMs + 14_999).error?.retryAfterMs, 1);
  assert.equal(afterTaking(fullAtMs, bucket, 1, startMs + 15_000).error, null);
  assert.equal(afterTaking(fullAtMs, bucket, 4, startMs + 59_999).error?.retryAfterMs, 1);
  assert.equal(afterTaking(fullAtMs, bucket, 4, startMs + 60_000).error, null);
});

test('whoever comes back after the time that was named gets a token, at any rate', () => {
  for (const perMinute of [1, 3, 7, 59, 61, 997, 60_000, 1_000_003]) {
    const bucket = { kind: 'read', perMinute } as const;
    const nowMs = 1_700_000_000_123;
    const { fullAtMs } = afterTaking(0, bucket, perMinute, nowMs);
    const { error } = afterTaking(fullAtMs, bucket, 1, nowMs);
    assert.equal(error?.code, 'rateLimited', `${perMinute}`);
    assert.equal(afterTaking(fullAtMs, bucket, 1, nowMs + (error?.retryAfterMs ?? 0)).error, null, `${perMinute}`);
  }
});

test('what costs more than a bucket ever holds is told to be split, and costs nothing', () => {
  const { error, fullAtMs } = afterTaking(0, { kind: 'read', perMinute: 5 }, 6, 1);
  assert.match(error?.detail ?? '', /^Read rate limit exceeded, request larger than rate limiter capacity/);
  assert.deepEqual([error?.retryAfterMs, error?.limit, fullAtMs], [undefined, 'read_rate_limit', 0]);
});

test('a look at a bucket takes no token, a refusal takes none, and what is given back may be taken again', () => {
  const bucket = newTokens('read', 3);
  for (let times = 0; times < 5; times += 1) checkToken(bucket, 1000);
  takeTokens(bucket, 2, 1000);
  assert.throws(() => takeTokens(bucket, 2, 1000), refused);
  takeTokens(bucket, 1, 1000);
  assert.throws(() => checkToken(bucket, 1000), refused);
  giveBackTokens(bucket, 2);
  takeTokens(bucket, 2, 1000);
  assert.throws(() => checkToken(bucket, 1000), refused);
});

test('a copy of a bucket that another thread gets takes from the same tokens', () => {
  const bucket = newTokens('read', 1);
  const copy = structuredClone(bucket);
  takeTokens(copy, 1, 1000);
  assert.throws(() => takeTokens(bucket, 1, 1000), refused);
});
