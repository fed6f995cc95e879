import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryRoom } from '../../../../actors/context/memory-room.js';
import type { CollectionEntry } from '../../../../actors/context/view.js';
import { openGate } from '../../../../actors/requests/limits/gate.js';
import { limitedPoints } from '../../../../actors/requests/limits/limited-points.js';
import { RateLimits } from '../../../../actors/requests/limits/limits.js';
import { newBucket, takeTokens } from '../../../../actors/requests/limits/rate.js';
import type { NodeApi } from '../../../../actors/requests/node-api.js';
import type { TroupeError } from '../../../../protocols/errors.js';
import { sampleConfig } from '../../samples.js';

test('a minute’s tokens may be taken at once, and then one after the other as they come back', () => {
  let bucket = newBucket(4, 0);
  for (let times = 0; times < 4; times += 1) {
    const taken = takeTokens(bucket, 1, 'Write', 0);
    assert.equal(taken.error, null);
    bucket = taken.bucket;
  }
  assert.deepEqual(takeTokens(bucket, 1, 'Write', 0).error, {
    code: 'rateLimited',
    detail: 'Write rate limit exceeded: Operation requires 1 tokens but only 0.0 were available. Retry after 15s',
    retryAfterMs: 15_000,
  });
  assert.equal(takeTokens(bucket, 1, 'Write', 14_999).error?.retryAfterMs, 1);
  assert.equal(takeTokens(bucket, 1, 'Write', 15_000).error, null);
});

test('what costs more than a bucket ever holds is told to be split, and costs nothing', () => {
  const { bucket, error } = takeTokens(newBucket(5, 0), 6, 'Read', 0);
  assert.match(error?.detail ?? '', /larger than rate limiter capacity/);
  assert.equal(bucket.tokens, 5);
});

test('limits hold while strict mode is enabled, for reads and writes each, and a changed limit begins anew', () => {
  const limits = new RateLimits({ nowMs: () => 0, dateMs: () => 0 });
  const owner = {};
  const strict = (config: Record<string, unknown>) => ({ ...sampleConfig(), strict_mode_config: config });
  const on = strict({ enabled: true, read_rate_limit: 1, write_rate_limit: 2 });
  limits.take(owner, on, 'read', 1);
  assert.throws(
    () => limits.take(owner, on, 'read', 1),
    (error: TroupeError) => error.code === 'rateLimited',
  );
  limits.take(owner, on, 'write', 1);
  limits.take(owner, strict({ ...on.strict_mode_config, enabled: false }), 'read', 1);
  limits.take(owner, strict({ enabled: true, read_rate_limit: 3 }), 'read', 1);
  limits.take({}, on, 'read', 1);
});

test('what a request costs is asked for only where its collection has a limit, and it may say something', async () => {
  const asked: string[] = [];
  const engine = {
    weigh: async ({ operation }: { readonly operation: string }) => {
      asked.push(operation);
      return 3;
    },
  };
  const node = { read: async () => new Uint8Array(1), write: async () => new Uint8Array(1) } as unknown as NodeApi;
  const strict_mode_config = { enabled: true, read_rate_limit: 5, write_rate_limit: 2 };
  const entries = new Map([
    ['limited', { config: { ...sampleConfig(), strict_mode_config } }],
    ['free', { config: sampleConfig() }],
  ]) as unknown as ReadonlyMap<string, CollectionEntry>;
  const limited = limitedPoints(
    node,
    (name) => entries.get(name) ?? null,
    engine,
    null,
    new MemoryRoom(null),
    { nowMs: () => 0, dateMs: () => 0 },
    { after: () => () => {} },
  );
  const request = { path: {}, query: {}, body: null, deadlineMs: 1 };
  await limited.read('free', 'queryBatch', request);
  await limited.write('free', 'upsertPoints', true, request);
  await limited.read('elsewhere', 'queryBatch', request);
  await limited.read('limited', 'count', request);
  assert.deepEqual(asked, []);
  await limited.read('limited', 'queryBatch', request);
  const refused = (error: TroupeError) => error.code === 'rateLimited';
  await assert.rejects(limited.read('limited', 'queryBatch', request), refused);
  await limited.read('limited', 'scroll', request);
  await assert.rejects(limited.write('limited', 'upsertPoints', true, request), refused);
  await limited.write('limited', 'createFieldIndex', true, request);
  assert.deepEqual(asked, ['queryBatch', 'queryBatch', 'upsertPoints']);
  await limited.write('limited', 'deleteFieldIndex', true, request);
  await assert.rejects(limited.write('limited', 'upsertPoints', true, request), refused);
  assert.equal(asked.length, 3, 'without a token nobody looks into it');
});

test('so many updates go on at a time, others in the order in which they came, and none beyond its deadline', async () => {
  const timers: (() => void)[] = [];
  const after = (_delayMs: number, run: () => void) => {
    timers.push(run);
    return () => {};
  };
  const gate = openGate(2, { nowMs: () => 0, dateMs: () => 0 }, { after });
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const enter = (name: string) =>
    gate.enter(100, () => {
      begun.push(name);
      return new Promise<void>((done) => ends.push(done));
    });
  const all = ['a', 'b', 'c', 'd'].map(enter);
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([begun.join(''), gate.waiting], ['ab', 2]);
  timers[0]?.();
  await assert.rejects(all[2] as Promise<void>, (error: TroupeError) => error.code === 'timeout');
  ends[0]?.();
  await all[0];
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([begun.join(''), gate.waiting], ['abd', 0]);
  for (const end of ends) end();
  await Promise.all([all[1], all[3]]);
});

test('a node short of memory refuses what takes more and takes what gives some back', async () => {
  const node = { read: async () => new Uint8Array(1), write: async () => new Uint8Array(1) } as unknown as NodeApi;
  const room = new MemoryRoom({ budgetBytes: 1000, usedBytes: () => 800, noteHeld: () => {} });
  const engine = { weigh: async () => 1 };
  const limited = limitedPoints(node, () => null, engine, null, room, { nowMs: () => 0, dateMs: () => 0 }, { after: () => () => {} });
  const request = { path: {}, query: {}, body: new Uint8Array(51), deadlineMs: 1 };
  const refused = (error: TroupeError) => error.code === 'outOfMemory' && error.outcome === 'none' && /delete points/.test(error.detail);
  for (const operation of ['upsertPoints', 'updateVectors', 'setPayload', 'batchUpdate'] as const)
    await assert.rejects(limited.write('c', operation, true, request), refused, operation);
  for (const operation of ['deletePoints', 'deleteVectors', 'deletePayload', 'clearPayload', 'deleteFieldIndex'] as const)
    await limited.write('c', operation, true, request);
  await limited.write('c', 'upsertPoints', true, { ...request, body: new Uint8Array(50) });
  await limited.read('c', 'count', request);
});
