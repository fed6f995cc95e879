import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { GatherAccess } from '../../../storage/gather/access.js';
import { unlimitedLedger } from '../../../storage/memory/shared-ledger.js';
import { GatherPool } from '../../../storage/pool/gather-pool.js';
import { watchLimits } from '../../../storage/pool/thread-watch.js';
import { configOf } from '../engine/collection-fixture.js';

const place = { uid: 3, params: configOf({ size: 1, distance: 'Dot' }).params, shards: [] };
const access: GatherAccess = {
  place,
  locate: () => {
    throw new TroupeError('notFound', 'no such collection');
  },
  scatter: async () => [new TextEncoder().encode('one'), new TextEncoder().encode('two')],
};

async function poolFor(context: TestContext): Promise<GatherPool> {
  const closing = new AbortController();
  const entry = new URL('../gather/fake-gather.js', import.meta.url);
  const pool = new GatherPool(
    { entry, closing: closing.signal, watch: watchLimits(60_000), ledger: unlimitedLedger() },
    { watchDeadline: () => {}, tellWorker: () => {} },
  );
  await pool.startAll();
  context.after(() => {
    closing.abort();
    return pool.close();
  });
  return pool;
}

async function gather(pool: GatherPool, what: string, of = access, deadlineMs = Date.now() + 20_000): Promise<string> {
  const request = { path: { do: what }, query: {}, body: new Uint8Array(8), deadlineMs };
  return new TextDecoder().decode(await pool.gather('query', request, of));
}

function failsWith(promise: Promise<unknown>, code: string): Promise<void> {
  return assert.rejects(promise, (error: unknown) => error instanceof TroupeError && error.code === code);
}

test('questions are asked in the main thread, and their answers go back to the read', async (t) => {
  const pool = await poolFor(t);
  assert.equal(await gather(pool, 'hello'), 'hello');
  assert.equal(await gather(pool, 'ask'), 'one and two');
  assert.equal(await gather(pool, 'locate', { ...access, locate: () => place }), 'place 3');
});

test('what fails in the main thread ends the read that asked', async (t) => {
  const pool = await poolFor(t);
  await failsWith(gather(pool, 'locate'), 'notFound');
  await failsWith(gather(pool, 'ask', { ...access, scatter: () => Promise.reject(new TroupeError('busy', 'x')) }), 'busy');
});

test('reads that lose their thread begin anew with the next one', async (t) => {
  const pool = await poolFor(t);
  let asked = 0;
  // The first thread is lost while it waits for this.
  const waiting = gather(pool, 'ask', { ...access, scatter: (ask) => (++asked === 1 ? new Promise(() => {}) : access.scatter(ask)) });
  let located = 0;
  const locate = () => ({ ...place, uid: located++ });
  assert.equal(await gather(pool, 'locate', { ...access, locate }), 'place 1');
  assert.equal(await waiting, 'one and two');
  assert.equal(asked, 2);
});

test('a read that ends two threads is given up', async (t) => {
  const pool = await poolFor(t);
  await failsWith(gather(pool, 'locate', { ...access, locate: () => ({ ...place, uid: 0 }) }), 'internal');
  assert.equal(await gather(pool, 'still here'), 'still here');
});

test('a read at its deadline is answered, and leaves room', async (t) => {
  const pool = await poolFor(t);
  const waiting = gather(pool, 'wait', access, 1000);
  assert.equal(pool.depths(0)[0]?.depth, 1);
  assert.equal(pool.expire(999), 1000);
  assert.equal(pool.expire(1000), Number.POSITIVE_INFINITY);
  await failsWith(waiting, 'timeout');
  assert.deepEqual([pool.depths(0)[0]?.depth, pool.depths(0)[0]?.queuedBytes], [0, 0]);
});

test('more reads than there is room for are refused with a time to try again', async (t) => {
  const pool = await poolFor(t);
  const waiting = Array.from({ length: 1024 }, () => gather(pool, 'wait'));
  await assert.rejects(
    gather(pool, 'late'),
    (error: unknown) => error instanceof TroupeError && error.code === 'busy' && (error.retryAfterMs ?? 0) > 0,
  );
  pool.expire(Number.POSITIVE_INFINITY);
  const settled = await Promise.allSettled(waiting);
  assert.ok(settled.every(({ status }) => status === 'rejected'));
});

test('reads that wait when the pool closes are answered', async (t) => {
  const pool = await poolFor(t);
  const waiting = gather(pool, 'wait');
  await Promise.all([failsWith(waiting, 'unavailable'), pool.close()]);
});
