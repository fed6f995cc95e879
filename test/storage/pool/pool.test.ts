import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { EnginePool, type PoolOptions } from '../../../storage/pool/pool.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { sampleConfig } from '../../actors/samples.js';
import { ALONE } from '../write.js';

const pools: EnginePool[] = [];
after(() => Promise.all(pools.map((pool) => pool.close())));

const entries = {
  reader: new URL('../engine/fake-reader.js', import.meta.url),
  writer: new URL('../engine/fake-writer.js', import.meta.url),
};

async function fakePool(options: PoolOptions = {}): Promise<EnginePool> {
  const pool = await EnginePool.start({ readers: 2, writers: 1, entries, ...options });
  pools.push(pool);
  return pool;
}

const request = (what: string, deadlineMs = Date.now() + 10_000, body: Uint8Array | null = null): RawRequest => ({
  path: { do: what },
  query: {},
  body,
  deadlineMs,
});
const textOf = async (bytes: Promise<Uint8Array>): Promise<string> => new TextDecoder().decode(await bytes);
const read = (pool: EnginePool, what: string, deadlineMs?: number): Promise<string> =>
  textOf(pool.read('query', ['c/0'], request(what, deadlineMs)));
const write = async (pool: EnginePool, what: string, bytes = 0): Promise<string | undefined> => {
  const undecoded = { operation: 'upsertPoints', path: { do: what } } as const;
  const asked = { operations: [new Uint8Array(bytes)], until: 'applied', deadlineMs: Number.MAX_SAFE_INTEGER, undecoded } as const;
  return (await pool.write('c/0', ALONE, asked)).failure?.detail;
};
const spec = (key = 'c/0', folder = 'x') => ({ key, folder, config: {} as CollectionConfig });

function failsWith(promise: Promise<unknown>, code: string): Promise<void> {
  return assert.rejects(promise, (error: unknown) => error instanceof TroupeError && error.code === code);
}

/** A pool that starts threads as they are needed; its one reader is ready. */
async function latePool(expectsReplicas: boolean): Promise<EnginePool> {
  const { pool, started } = EnginePool.begin({ readers: 2, writers: 1, entries }, expectsReplicas);
  pools.push(pool);
  await started;
  return pool;
}

const begun = (pool: EnginePool): string[] => pool.depths().workers.flatMap(({ begun: hasBegun, name }) => (hasBegun ? [name] : []));

test('a pool with nothing to do has one reader, and shows the other threads as not begun', async () => {
  const pool = await latePool(false);
  assert.deepEqual(begun(pool), ['reader-0']);
  const writer = pool.depths().workers.find(({ kind }) => kind === 'writer');
  assert.deepEqual([writer?.up, writer?.uptimeMs, writer?.restarts, writer?.lastError], [false, 0, 0, null]);
  assert.equal(await read(pool, 'echo'), 'echo from 0');
});

test('the body of a request goes to its writer uncopied, operations that are kept are copied', async () => {
  const pool = await latePool(false);
  await pool.openReplica(spec(), null);
  const asked = { until: 'applied', deadlineMs: Number.MAX_SAFE_INTEGER } as const;
  const undecoded = { operation: 'upsertPoints', path: { do: 'echo' } } as const;
  const own = new Uint8Array(1000);
  await pool.write('c/0', ALONE, { ...asked, operations: [own], undecoded });
  assert.equal(own.byteLength, 0, 'the memory is the writer’s');
  const part = new Uint8Array(1000).subarray(0, 500);
  await pool.write('c/0', ALONE, { ...asked, operations: [part], undecoded });
  assert.equal(part.byteLength, 500, 'memory that holds more than the body stays');
  const kept = new Uint8Array(1000);
  await pool.write('c/0', ALONE, { ...asked, operations: [kept] });
  assert.equal(kept.byteLength, 1000);
});

test('the first replica starts its writer and the other readers, which get its sets', async () => {
  const pool = await latePool(false);
  const bothUp = new Promise<void>((done) => {
    const missing = new Set(['writer-0', 'reader-1']);
    pool.onWorker(({ event, name }) => {
      if (event === 'started' && missing.delete(name) && missing.size === 0) done();
    });
  });
  assert.equal((await pool.openReplica(spec(), null)).key, 'c/0');
  await bothUp;
  assert.deepEqual(begun(pool), ['reader-0', 'reader-1', 'writer-0']);
  assert.equal(await write(pool, 'echo'), 'echo');
});

test('a read that has to wait starts the other readers', async () => {
  const pool = await latePool(false);
  const answers = Array.from({ length: 8 }, () => read(pool, 'echo'));
  assert.deepEqual(begun(pool), ['reader-0', 'reader-1']);
  await Promise.all(answers);
});

test('writers begin at once where replicas are expected', async () => {
  const pool = await latePool(true);
  assert.deepEqual(begun(pool), ['reader-0', 'writer-0']);
});

test('a pool that closes starts no more threads, and a replica that waits for its writer is refused', async () => {
  const pool = await latePool(false);
  const opening = failsWith(pool.openReplica(spec(), null), 'unavailable');
  await pool.close();
  await opening;
  await failsWith(pool.openReplica(spec('c/1'), null), 'unavailable');
});

test('reads go to several readers and their answers and errors come back', async () => {
  const pool = await fakePool();
  assert.deepEqual(await Promise.all([read(pool, 'a'), read(pool, 'b')]), ['a from 0', 'b from 1']);
  await failsWith(read(pool, 'refuse'), 'wrongInput');
});

test('a body is handed over without the buffer it is a part of', async () => {
  const pool = await fakePool();
  const body = new Uint8Array(100_000).subarray(5, 12);
  assert.equal(await textOf(pool.read('query', ['c/0'], request('size', Date.now() + 5000, body))), '7');
});

test('a read whose reader is lost is answered by another one, and the lost one comes back', async () => {
  const pool = await fakePool();
  const events: string[] = [];
  pool.onWorker(({ name, event }) => events.push(`${name} ${event}`));
  assert.equal(await read(pool, 'crash in 0'), 'crash in 0 from 1');
  await until(() => events.includes('reader-0 started'));
  assert.deepEqual(events, ['reader-0 lost', 'reader-0 started']);
  assert.equal(pool.depths().workers.find(({ name }) => name === 'reader-0')?.restarts, 1);
  assert.deepEqual(await Promise.all([read(pool, 'a'), read(pool, 'b')]), ['a from 0', 'b from 1']);
});

test('heavy reads get a reader that starts with the first of them, has what the others have, and ends when there are none', async (t) => {
  const pool = await fakePool({ heavyIdleMs: 600 });
  const heavy = (what: string) =>
    textOf(pool.read('query', ['c/0'], { ...request(what), heavy: { gone: new Int32Array(new SharedArrayBuffer(4)) } }));
  const names = () =>
    pool
      .depths()
      .workers.filter(({ kind }) => kind === 'reader')
      .map(({ name }) => name);
  assert.deepEqual(names(), ['reader-0', 'reader-1']);
  const events: string[] = [];
  t.after(pool.onWorker(({ name, event }) => events.push(`${name} ${event}`)));
  assert.equal(await heavy('first'), 'first from 0');
  await until(() => events.includes('reader-2 started'));
  assert.equal(await heavy('second'), 'second from 2');
  assert.equal(await read(pool, 'other'), 'other from 0');
  assert.deepEqual(names(), ['reader-0', 'reader-1', 'reader-2']);
  await until(() => names().length === 2);
  assert.deepEqual(events, ['reader-2 started']);
  assert.equal(await heavy('third'), 'third from 0');
  await until(() => events.length === 2);
  assert.equal(await heavy('fourth'), 'fourth from 2');
});

test('a read with a large body is heavy from the start, whoever has its connection', async () => {
  const pool = await fakePool();
  const events: string[] = [];
  pool.onWorker(({ name, event }) => events.push(`${name} ${event}`));
  const large = (what: string) => textOf(pool.read('query', ['c/0'], request(what, undefined, new Uint8Array((1 << 20) + 1))));
  await large('first');
  await until(() => events.includes('reader-2 started'));
  assert.equal(await large('second'), 'second from 2');
  assert.equal(await read(pool, 'small'), 'small from 0');
});

test('a write with a large body is decoded by a reader for heavy reads: others would not be heard meanwhile, and their answers come too late', async () => {
  const pool = await fakePool();
  const events: string[] = [];
  pool.onWorker(({ name, event }) => events.push(`${name} ${event}`));
  const { params } = sampleConfig();
  const split = async (bytes: number) => {
    const job = {
      operation: 'upsertPoints',
      request: request('', undefined, new Uint8Array(bytes)),
      params,
      shards: [0],
      wait: true,
    } as const;
    return (await pool.split(job)).index?.field;
  };
  await split(5 << 20);
  await until(() => events.includes('reader-2 started'));
  assert.equal(await split(5 << 20), 'from 2');
  assert.notEqual(await split(1 << 20), 'from 2');
});

test('a reader that is stuck in a read of its own is replaced, and its server opened anew', async () => {
  const pool = await fakePool({ stuckGraceMs: 50 });
  const events: string[] = [];
  pool.onWorker(({ name, event }) => events.push(`${name} ${event}`));
  const opened: number[] = [];
  pool.changeOwnReads(() => ({ isWhole: true, collections: new Map(), peers: new Map() }));
  await new Promise(setImmediate);
  pool.openDoors((reader) => {
    const { port1, port2 } = new MessageChannel();
    port1.close();
    opened.push(reader);
    return { port: port2, settings: opened.length === 1 ? 'hang' : 'serve' };
  });
  await until(() => events.includes('reader-0 started'));
  assert.deepEqual(events, ['reader-0 lost', 'reader-0 started']);
  assert.deepEqual(opened, [0, 1, 0]);
});

test('a read that its reader leaves goes to a reader for heavy ones, and to any while that starts', async () => {
  const pool = await fakePool();
  const events: string[] = [];
  pool.onWorker(({ name, event }) => events.push(`${name} ${event}`));
  assert.equal(await read(pool, 'leave'), 'leave from 0');
  await until(() => events.includes('reader-2 started'));
  assert.equal(await read(pool, 'leave'), 'leave from 2');
});

test('a read that ends two readers is given up', async () => {
  const pool = await fakePool();
  await failsWith(read(pool, 'crash'), 'internal');
  assert.match(await read(pool, 'still here'), /^still here from/);
});

test('too many reads are refused at once, with a time to try again', async () => {
  const pool = await fakePool({ readers: 1, waitingReadsMax: 2 });
  // Four are with the reader, two wait.
  const reads = Array.from({ length: 6 }, () => read(pool, 'pause'));
  await assert.rejects(
    read(pool, 'late'),
    (error: unknown) => error instanceof TroupeError && error.code === 'busy' && (error.retryAfterMs ?? 0) >= 50,
  );
  assert.equal(pool.depths().waitingReads, 2);
  await Promise.all(reads);
});

test('a read is answered at its deadline even when its reader hangs', async () => {
  const pool = await fakePool();
  const start = performance.now();
  await failsWith(read(pool, 'hang', Date.now() + 100), 'timeout');
  assert.ok(performance.now() - start < 1000);
  assert.match(await read(pool, 'other'), /^other from 1/);
});

test('sets go from the writer to every reader, old ones are retired, also by a reader that was lost', async () => {
  const pool = await fakePool({ readers: 1 });
  assert.equal((await pool.openReplica(spec(), null)).points, 1);
  assert.equal(await read(pool, 'log'), 'attach c/0 1; retire c/0 1');
  await write(pool, 'publish');
  assert.equal(await read(pool, 'log'), 'attach c/0 1; retire c/0 1; attach c/0 2; retire c/0 2');
  assert.equal(await write(pool, 'log'), 'open c/0 with 2 readers; retired 1; retired 2');
  await failsWith(read(pool, 'crash'), 'internal');
  assert.equal(await read(pool, 'log'), 'attach c/0 2');
});

test('a closed replica is detached from every reader and takes no writes', async () => {
  const pool = await fakePool({ readers: 1 });
  await pool.openReplica(spec(), null);
  await pool.closeReplica('c/0');
  assert.match(await read(pool, 'log'), /detach c\/0$/);
  await failsWith(write(pool, 'a'), 'unavailable');
  assert.equal(pool.stats('c/0'), null);
  await pool.openReplica(spec(), null);
  assert.equal(await write(pool, 'again'), 'again');
});

test('a pool is settled when every reader has done what it was sent before, also when one is lost meanwhile', async () => {
  const pool = await fakePool({ readers: 2 });
  const order: string[] = [];
  const slow = [read(pool, 'pause'), read(pool, 'pause')].map((answer) => answer.then(() => order.push('read')));
  await pool.settled().then(() => order.push('settled'));
  await Promise.all(slow);
  assert.deepEqual(order, ['read', 'read', 'settled']);
  const lost = read(pool, 'crash in 0');
  await pool.settled();
  await lost;
});

test('replicas whose memory is not worth a garbage collection go without one, and so do all when the pool closes', async () => {
  const pool = await fakePool({ readers: 1 });
  for (let replica = 0; replica < 100; replica++) {
    await pool.openReplica(spec(`c/${replica}`), null);
    await pool.closeReplica(`c/${replica}`);
  }
  assert.equal((await read(pool, 'log')).includes('collect'), false);
});

test('a replica that cannot be opened is not there', async () => {
  const pool = await fakePool();
  await failsWith(pool.openReplica(spec('c/0', 'broken'), null), 'storage');
  await failsWith(write(pool, 'a'), 'unavailable');
  await pool.openReplica(spec(), null);
});

test('a lost writer makes the fate of its writes unknown, and its replicas come back', async () => {
  const pool = await fakePool();
  const stats: number[] = [];
  await pool.openReplica(spec(), null);
  pool.onStats(({ points }) => stats.push(points));
  await failsWith(write(pool, 'crash'), 'unavailable');
  await failsWith(write(pool, 'too early'), 'unavailable');
  await until(() => stats.length > 0);
  await pause(10);
  assert.equal(await write(pool, 'a'), 'a');
});

test('a writer’s queue is bounded in writes and in bytes', async () => {
  const pool = await fakePool({ queuedWritesMax: 2, queuedWriteBytesMax: 100 });
  await pool.openReplica(spec(), null);
  const first = write(pool, 'pause');
  await failsWith(write(pool, 'a', 101), 'busy');
  const second = write(pool, 'a');
  await failsWith(write(pool, 'b'), 'busy');
  await Promise.all([first, second]);
  await write(pool, 'a', 101);
});

test('a question that takes too long is answered at its deadline', async () => {
  const pool = await fakePool();
  await pool.openReplica(spec(), null);
  await failsWith(pool.missing('c/0', [1], Date.now() + 30), 'timeout');
  assert.equal(await write(pool, 'a'), 'a');
});

test('after closing nothing is taken', async () => {
  const pool = await fakePool();
  await pool.openReplica(spec(), null);
  const queued = write(pool, 'pause');
  await pool.close();
  assert.equal(await queued, 'pause');
  await failsWith(read(pool, 'a'), 'unavailable');
});

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 300 && !holds(); i++) await pause(10);
  assert.ok(holds());
}

test('a reader that is lost in its turn at shared scratch keeps no other one from it', async () => {
  const pool = await fakePool();
  await failsWith(read(pool, 'crash in its turn'), 'internal');
  assert.match(await read(pool, 'take a turn'), /^take a turn from /);
});
