import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { Ledger, SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { watchLimits } from '../../../storage/pool/thread-watch.js';
import { ownBytes, WorkerSlots } from '../../../storage/pool/worker-slots.js';

test('bytes that fill their buffer, but for the head of a message, are given away as they are', () => {
  const whole = new Uint8Array(20);
  assert.equal(ownBytes(whole), whole);
  const framed = Buffer.allocUnsafeSlow(100_005).subarray(5);
  assert.equal(ownBytes(framed), framed);
});

test('bytes within a larger or a shared buffer are copied out of it', () => {
  const part = new Uint8Array(100_000).subarray(0, 50_000).fill(7);
  const copied = ownBytes(part);
  assert.deepEqual([copied.byteLength, copied.buffer.byteLength, copied[49_999]], [50_000, 50_000, 7]);
  // Almost all of the pool that small buffers come out of: another one may hold the rest.
  const pooled = Buffer.alloc(Buffer.poolSize).subarray(0, Buffer.poolSize - 8);
  assert.notEqual(ownBytes(pooled).buffer, pooled.buffer);
  const small = Buffer.from('a message');
  assert.notEqual(ownBytes(small).buffer, small.buffer);
});

test('a thread whose heap is full ends alone, gives its memory back, and another one takes its place', {
  timeout: 60_000,
}, async (context) => {
  const closing = new AbortController();
  const ledger = new SharedLedger(memoryBudget(128 << 20, null));
  const events: string[] = [];
  let again = (): void => {};
  const restarted = new Promise<void>((resolve) => {
    again = resolve;
  });
  const slots = new WorkerSlots<{ kind: string }, { kind: string }>(
    {
      kind: 'reader',
      count: 1,
      entry: new URL('./greedy-thread.js', import.meta.url),
      closing: closing.signal,
      watch: watchLimits(60_000),
      ledger,
    },
    {
      ready: () => {
        if (events.length > 0) again();
      },
      lost: (_, reason) => events.push(reason),
      message: () => {},
      tellWorker: () => {},
    },
  );
  context.after(() => {
    closing.abort();
    return slots.endAll();
  });
  await slots.startAll();
  new Ledger(ledger.shareOf('reader-0')).reserve('bodies', 1 << 20);
  slots.post(0, { kind: 'take all' });
  await restarted;
  assert.equal(events.length, 1);
  assert.match(events[0] as string, /memory limit/);
  assert.equal(ledger.held().size, 0);
});

test('a thread that cannot be started is lost and tried again, and its lack goes no further', { timeout: 60_000 }, async (context) => {
  const closing = new AbortController();
  const lost: string[] = [];
  let again = (): void => {};
  const triedAgain = new Promise<void>((resolve) => {
    again = resolve;
  });
  const slots = new WorkerSlots<{ kind: string }, { kind: string }>(
    {
      kind: 'reader',
      count: 1,
      // Node.js refuses to start it, as it does where the system has no thread to give.
      entry: new URL('http://127.0.0.1/thread.js'),
      closing: closing.signal,
      watch: watchLimits(60_000),
      ledger: new SharedLedger(memoryBudget(128 << 20, null)),
    },
    {
      ready: () => {},
      lost: (_, reason) => {
        lost.push(reason);
        if (lost.length === 2) again();
      },
      message: () => {},
      tellWorker: () => {},
    },
  );
  context.after(() => {
    closing.abort();
    return slots.endAll();
  });
  await assert.rejects(slots.startAll(), /reader 0 did not start/);
  assert.equal(slots.isUp(0), false);
  await triedAgain;
  assert.equal(lost.length, 2);
});

test('a thread that is asked to end and stays is ended, so nobody waits for its answers for ever', { timeout: 60_000 }, async (context) => {
  const closing = new AbortController();
  let hear: (isWanted: boolean) => void = () => {};
  const ended = new Promise<boolean>((resolve) => {
    hear = resolve;
  });
  const slots = new WorkerSlots<{ kind: string }, { kind: string }>(
    {
      kind: 'reader',
      count: 1,
      entry: new URL('./staying-thread.js', import.meta.url),
      closing: closing.signal,
      watch: watchLimits(60_000),
      ledger: new SharedLedger(memoryBudget(128 << 20, null)),
      endMs: 100,
    },
    { ready: () => {}, lost: (_index, _reason, isWanted) => hear(isWanted), message: () => {}, tellWorker: () => {} },
  );
  context.after(() => {
    closing.abort();
    return slots.endAll();
  });
  await slots.startAll();
  slots.endOne(0, { kind: 'end' });
  assert.equal(await ended, true);
  assert.equal(slots.isUp(0), false);
});
