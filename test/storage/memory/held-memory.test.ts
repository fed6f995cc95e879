import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { HeldMemory, HeldValues } from '../../../storage/memory/held-memory.js';
import { Ledger, SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { decodedBytes } from '../../../storage/requests/body-values.js';

const MB = 1 << 20;

function ledgers() {
  // Requests have 40 MB.
  const shared = new SharedLedger(memoryBudget(200 * MB, null));
  return { shared, one: new Ledger(shared.shareOf('reader-0')), other: new Ledger(shared.shareOf('reader-1')) };
}

test('what a read holds is counted while it grows, and is free when the read is over', () => {
  const { one, shared } = ledgers();
  const held = new HeldMemory(one);
  for (let i = 0; i < 1000; i++) held.take(5000);
  const counted = shared.held().get('reader-0')?.reads ?? 0;
  assert.ok(counted > 4 * MB && counted <= 5_000_000, `${counted}`);
  held.release();
  assert.equal(shared.held().size, 0);
});

test('a read that holds little costs the ledger nothing', () => {
  const { one, shared } = ledgers();
  new HeldMemory(one).take(200_000);
  assert.equal(shared.held().size, 0);
});

test('a read may hold half of what requests have, and is told to ask for less beyond it', () => {
  const held = new HeldMemory(ledgers().one);
  held.take(20 * MB);
  assert.throws(() => held.take(1 * MB), { code: 'busy', detail: /ask for fewer points/ });
});

test('reads of all threads share one bound with bodies, and who finds no room is told to come later', () => {
  const { one, other, shared } = ledgers();
  assert.ok(shared.reserve('bodies', 15 * MB));
  new HeldMemory(one).take(20 * MB);
  const late = new HeldMemory(other);
  assert.throws(() => late.take(6 * MB), { code: 'busy', detail: /retry later/ });
  late.release();
  assert.ok(shared.reserve('bodies', 5 * MB));
});

test('large bodies are decoded at the same time as far as there is memory for that, and one thread alone may decode any', () => {
  const { one, other, shared } = ledgers();
  const [writes, read] = [new HeldValues(one), new HeldValues(other)];
  writes.take(100 * MB, 'outOfMemory');
  writes.take(MB, 'outOfMemory');
  assert.throws(() => read.take(MB, 'busy'), { code: 'busy', outcome: 'none' });
  assert.equal(shared.held().get('reader-0')?.values, 101 * MB);
  assert.ok(other.reserve('bodies', 40 * MB), 'requests have memory of their own');
  assert.equal(writes.release(), 101 * MB);
  read.take(30 * MB, 'busy');
  assert.throws(() => writes.take(11 * MB, 'outOfMemory'), { code: 'outOfMemory', outcome: 'none' });
  writes.take(10 * MB, 'outOfMemory');
  shared.forget('reader-1');
  writes.take(100 * MB, 'outOfMemory');
});

test('a body counts three times, one of small values more, and a small body not at all', () => {
  const body = (text: string): Buffer => Buffer.alloc(2 * MB, text);
  assert.equal(decodedBytes('read', null), 0);
  assert.equal(decodedBytes('read', body('[').subarray(0, MB - 1)), 0);
  assert.equal(decodedBytes('write', body('{"vector":[0.123,0.456]}')), 6 * MB);
  assert.ok(decodedBytes('write', body('[1,')) > 50 * MB);
});
