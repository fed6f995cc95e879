import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import v8 from 'node:v8';
import { Worker } from 'node:worker_threads';
import { GrowingBytes } from '../../../http/context/growing-bytes.js';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { beginCollection, GarbageCollector, type HeapFacts, LeftMemory, RestingHeap } from '../../../storage/threads/collect-garbage.js';

/** Timers of a clock that tests move, and how many garbage collections ran. */
function fakeTime() {
  let nowMs = 0;
  let runs = 0;
  const timers: { atMs: number; run: () => void }[] = [];
  const later = (run: () => void, delayMs: number) => {
    timers.push({ atMs: nowMs + delayMs, run });
    return { unref: () => {} } as unknown as NodeJS.Timeout;
  };
  const collector = new GarbageCollector(
    () => runs++,
    later,
    () => nowMs,
    0,
  );
  const pass = (ms: number): void => {
    nowMs += ms;
    for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.run();
    }
  };
  return { collector, pass, runs: () => runs };
}

test('the segments of a thousand replicas that go at once cost one garbage collection', () => {
  const { collector, pass, runs } = fakeTime();
  for (let replica = 0; replica < 1000; replica++) collector.soon();
  assert.equal(runs(), 0, 'none while messages wait');
  pass(1000);
  assert.equal(runs(), 1);
  pass(60_000);
  assert.equal(runs(), 1);
});

test('segments that go all the time cost a garbage collection every two seconds', () => {
  const { collector, pass, runs } = fakeTime();
  for (let ms = 0; ms < 20_000; ms += 10) {
    collector.soon();
    pass(10);
  }
  assert.ok(runs() >= 9 && runs() <= 10, `${runs()} collections in 20 s`);
});

test('where little stays, half a minute lies between two collections, unless much has come meanwhile', () => {
  const { collector, pass, runs } = fakeTime();
  collector.soon(1 << 20);
  pass(1000);
  assert.equal(runs(), 1);
  collector.soon(15 << 20);
  pass(29_999);
  assert.equal(runs(), 1);
  pass(1);
  assert.equal(runs(), 2);
  collector.soon(15 << 20);
  collector.soon(1 << 20);
  pass(2000);
  assert.equal(runs(), 3, 'counted anew, and as much as may not stay');
  pass(60_000);
  assert.equal(runs(), 3);
});

test('threads collect in turn: none stops while another one does', () => {
  const delays = Array.from({ length: 9 }, (_, turn) => {
    let delay = 0;
    const later = (_run: () => void, delayMs: number) => {
      delay = delayMs;
      return { unref: () => {} } as unknown as NodeJS.Timeout;
    };
    new GarbageCollector(
      () => {},
      later,
      () => 0,
      turn % 8,
    ).soon();
    return delay;
  });
  assert.deepEqual(delays, [1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1000]);
});

test('what requests leave is collected once for so many bytes, when the caller is done', () => {
  let runs = 0;
  const later: (() => void)[] = [];
  const left = new LeftMemory(
    100,
    () => runs++,
    (run) => later.push(run),
  );
  left.add(99);
  assert.equal(later.length, 0);
  left.add(1);
  left.add(500);
  assert.deepEqual([later.length, runs], [1, 0]);
  later.shift()?.();
  assert.equal(runs, 1);
  left.add(99);
  assert.equal(later.length, 0, 'counted anew');
});

test('a thread of a small container does not keep the bodies of requests that are over: V8 collects them only at 64 MB', async () => {
  const ledger = new SharedLedger(memoryBudget(Number.MAX_SAFE_INTEGER, 64));
  const { arrayBuffers: before } = process.memoryUsage();
  for (let request = 0; request < 20; request++) {
    new GrowingBytes(ledger, 3 << 20).add(new Uint8Array(3 << 20));
    ledger.left.add(3 << 20);
    await new Promise((done) => setImmediate(done));
  }
  const { arrayBuffers } = process.memoryUsage();
  assert.ok(arrayBuffers - before < 16 << 20, `${(arrayBuffers - before) >> 20} MB of 60 are left`);
});

test('a thread at rest gives back what a busy time has left, once', () => {
  const mb = 1 << 20;
  const looks: HeapFacts[] = [];
  let collections = 0;
  let begun = 0;
  const heap = new RestingHeap(
    () => false,
    () => looks.shift() as HeapFacts,
    () => collections++,
    () => begun++,
  );
  const collectionsAfter = (...facts: HeapFacts[]): number => {
    looks.push(...facts);
    heap.tick();
    assert.equal(looks.length, 0);
    return collections;
  };
  assert.equal(collectionsAfter({ heldBytes: 12 * mb, activeShare: 0.3 }), 0, 'it has something to do');
  assert.equal(collectionsAfter({ heldBytes: 12 * mb, activeShare: 0 }, { heldBytes: 7 * mb, activeShare: 1 }), 1);
  assert.equal(collectionsAfter({ heldBytes: 8 * mb, activeShare: 0 }), 1, 'little has come since then');
  assert.equal(collectionsAfter({ heldBytes: 10 * mb, activeShare: 0 }, { heldBytes: 10 * mb, activeShare: 1 }), 2);
  assert.equal(collectionsAfter({ heldBytes: 11 * mb, activeShare: 0 }), 2, 'what is needed is no garbage');
  assert.equal(collectionsAfter({ heldBytes: 7 * mb, activeShare: 0 }), 2);
  assert.equal(
    collectionsAfter({ heldBytes: 9 * mb, activeShare: 0 }, { heldBytes: 7 * mb, activeShare: 1 }),
    3,
    'V8 had collected meanwhile',
  );
  assert.equal(begun, 0);
  assert.equal(collectionsAfter({ heldBytes: 100 * mb, activeShare: 0 }, { heldBytes: 100 * mb, activeShare: 1 }), 3);
  assert.equal(begun, 1, 'a large heap would stop the thread for long: it is marked in steps');
});

test('a thread that may be asked again stays warm for a while: a collection at rest drops its compiled code', () => {
  let collections = 0;
  let activeShare = 0;
  const heap = new RestingHeap(
    () => true,
    () => ({ heldBytes: 12 << 20, activeShare }),
    () => collections++,
  );
  for (let look = 0; look < 9; look++) heap.tick();
  activeShare = 0.2;
  heap.tick();
  activeShare = 0;
  for (let look = 0; look < 9; look++) heap.tick();
  assert.equal(collections, 0, 'it was asked meanwhile');
  heap.tick();
  assert.equal(collections, 1);
  for (let look = 0; look < 20; look++) heap.tick();
  assert.equal(collections, 1);
});

test('a thread that has been busy has less memory some seconds later', { timeout: 60_000 }, async () => {
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    import v8 from 'node:v8';
    const { RestingHeap } = await import(workerData.module);
    let kept = Array.from({ length: 100_000 }, (_, n) => ({ n }));
    const held = () => v8.getHeapStatistics().total_physical_size;
    const before = held();
    kept = null;
    new RestingHeap(() => false).begin();
    parentPort.on('message', () => {});
    const timer = setInterval(() => {
      if (held() > before - (2 << 20)) return;
      clearInterval(timer);
      parentPort.close();
    }, 100);`;
  const module = new URL('../../../storage/threads/collect-garbage.js', import.meta.url).href;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), { workerData: { module } });
  const [code] = await once(worker, 'exit');
  assert.equal(code, 0);
});

test('the main thread has its garbage collected without a stop for the whole heap', { timeout: 30_000 }, async () => {
  const collected = firstMajorCollection();
  let registry = new FinalizationRegistry(() => {});
  const freed = new Promise((done) => {
    registry = new FinalizationRegistry(done);
  });
  registry.register(new SharedArrayBuffer(1 << 20), 'freed');
  // V8's steps keep no process alive, and a registry that nothing refers to says nothing.
  const alive = setInterval(() => registry.unregister(alive), 1000);
  beginCollection();
  const { flags } = await collected;
  assert.equal(flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED, 0);
  assert.equal(await freed, 'freed');
  clearInterval(alive);
});

interface Collection {
  readonly kind: number;
  readonly flags: number;
}

function firstMajorCollection(): Promise<Collection> {
  return new Promise((done) => {
    const observer = new PerformanceObserver((list) => {
      const details = list.getEntries().map((entry) => (entry as PerformanceEntry & { detail: Collection }).detail);
      const major = details.find(({ kind }) => kind === constants.NODE_PERFORMANCE_GC_MAJOR);
      if (major === undefined) return;
      observer.disconnect();
      done(major);
    });
    observer.observe({ entryTypes: ['gc'] });
  });
}

test('a collection leaves no option of V8 behind: threads that start later would take no compiled code', () => {
  const before = v8.cachedDataVersionTag();
  new LeftMemory(1, undefined, (run) => run()).add(1);
  assert.equal(v8.cachedDataVersionTag(), before);
});

test('threads that collect garbage for the first time at the same moment all do: options of V8 are those of the whole process', async () => {
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    const { LeftMemory } = await import(workerData.module);
    const turn = new Int32Array(workerData.turn);
    parentPort.postMessage('ready');
    Atomics.wait(turn, 0, 0);
    new LeftMemory(1, undefined, (run) => run()).add(1);
    parentPort.postMessage('done');`;
  const turn = new SharedArrayBuffer(4);
  const module = new URL('../../../storage/threads/collect-garbage.js', import.meta.url).href;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const workers = Array.from({ length: 12 }, () => new Worker(url, { workerData: { module, turn } }));
  const ended = workers.map((worker) => once(worker, 'exit'));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const said = workers.map((worker) => once(worker, 'message'));
  Atomics.store(new Int32Array(turn), 0, 1);
  Atomics.notify(new Int32Array(turn), 0);
  assert.deepEqual((await Promise.all(said)).flat(), Array(workers.length).fill('done'));
  await Promise.all(ended);
});
