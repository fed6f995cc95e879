import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heapMegabytes, memoryBudget } from '../../../storage/memory/budget.js';
import { grantsRequest, noRoomForRequest, noRoomToGrow } from '../../../storage/memory/ledger.js';
import { Ledger, SharedLedger, SMALL_BYTES } from '../../../storage/memory/shared-ledger.js';
import { queuedWriteBytesMax } from '../../../storage/pool/writer-pool.js';

const MB = 1 << 20;

test('the budget is 80 % of the limit, or what is set and within the limit; requests have a quarter of it', () => {
  assert.deepEqual(memoryBudget(1000 * MB, null), { bytes: 800 * MB, requestBytes: 200 * MB });
  assert.deepEqual(memoryBudget(1000 * MB, 400), { bytes: 400 * MB, requestBytes: 100 * MB });
  assert.deepEqual(memoryBudget(1000 * MB, 4000), { bytes: 1000 * MB, requestBytes: 250 * MB });
});

test('requests are granted up to their part, inclusive', () => {
  const budget = memoryBudget(1000 * MB, null);
  assert.ok(grantsRequest(budget, 190 * MB, 10 * MB));
  assert.ok(!grantsRequest(budget, 190 * MB, 10 * MB + 1));
});

test('a refusal for want of memory says what to do, when to retry, and that nothing was done', () => {
  const read = noRoomForRequest('busy');
  assert.equal(read.code, 'busy');
  assert.match(read.detail, /retry later/);
  const growth = noRoomToGrow(680 * MB, 900 * MB);
  assert.match(growth.detail, /plans with 900 MB .* writes up to 680 MB: delete points/);
  for (const error of [read, growth]) {
    assert.equal(error.outcome, 'none');
    assert.ok((error.retryAfterMs ?? 0) > 0);
  }
});

test('the heap of a thread is well below the budget, within what V8 gives and what a thread needs', () => {
  const container = memoryBudget(512 * MB, null);
  assert.deepEqual([heapMegabytes(container, 'reader'), heapMegabytes(container, 'writer')], [102, 204]);
  assert.equal(heapMegabytes(memoryBudget(64 * MB, null), 'reader'), 64);
  assert.equal(heapMegabytes(memoryBudget(64_000 * MB, null), 'builder'), 4096);
});

test('threads share one bound of requests, and each shows what it holds', () => {
  const shared = new SharedLedger(memoryBudget(1000 * MB, null));
  const one = new Ledger(shared.shareOf('reader-0'));
  const other = new Ledger(shared.shareOf('reader-1'));
  assert.ok(one.reserve('bodies', 150 * MB));
  assert.ok(!other.reserve('answers', 51 * MB));
  assert.ok(other.reserve('answers', 50 * MB));
  assert.equal(shared.held().get('reader-0')?.bodies, 150 * MB);
  assert.equal(shared.held().get('reader-1')?.answers, 50 * MB);
  one.release('bodies', 150 * MB);
  assert.deepEqual([...shared.held().keys()], ['reader-1']);
  assert.ok(shared.reserve('answers', 150 * MB));
});

test('a lost thread gives back what it held', () => {
  const shared = new SharedLedger(memoryBudget(1000 * MB, null));
  const first = new Ledger(shared.shareOf('reader-0'));
  assert.ok(first.reserve('bodies', 200 * MB));
  first.note('filters', 3 * MB);
  assert.ok(!shared.reserve('bodies', MB));
  shared.forget('reader-0');
  assert.equal(shared.held().size, 0);
  assert.ok(shared.reserve('bodies', 200 * MB));
});

test('what is small is not counted, and what has been noted is replaced', () => {
  const shared = new SharedLedger(memoryBudget(64 * MB, null));
  for (let i = 0; i < 100_000; i++) assert.ok(shared.reserve('bodies', SMALL_BYTES - 1));
  assert.equal(shared.held().size, 0);
  shared.note('filters', 5 * MB);
  shared.note('filters', 2 * MB);
  assert.equal(shared.held().get('main')?.filters, 2 * MB);
  shared.measured(60 * MB);
  assert.equal(shared.usedBytes, 60 * MB);
});

test('writes that wait for their writer have half of what requests have: accepted ones took the memory of a small container', () => {
  assert.equal(queuedWriteBytesMax(memoryBudget(512 * MB, null)), Math.floor(512 * MB * 0.8 * 0.25 * 0.5));
  assert.equal(queuedWriteBytesMax(memoryBudget(64_000 * MB, null)), 128 * MB);
});
