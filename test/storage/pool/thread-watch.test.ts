import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { readerWatchLimits, ThreadWatch, type WatchFinding, watchLimits } from '../../../storage/pool/thread-watch.js';

const LIMITS = { silent: 2, terminated: 4, ended: 5 };

function watchOf(t: TestContext, waitOf?: () => number): ThreadWatch {
  const watch = new ThreadWatch(LIMITS, waitOf);
  t.after(() => {
    watch.close();
    watch.data.port.close();
  });
  return watch;
}

function findings(watch: ThreadWatch, looks: number, call: string | null = 'write of c/0'): WatchFinding[] {
  return Array.from({ length: looks }, () => watch.look(call));
}

test('a thread that a call waits for and that never moves is named, terminated and given up, each once', (t) => {
  const watch = watchOf(t);
  assert.deepEqual(findings(watch, 8), ['fine', 'fine', 'silent', 'fine', 'terminate', 'end', 'fine', 'fine']);
  assert.deepEqual(watch.silence, { call: 'write of c/0', looks: 7 });
});

test('a thread that moves its counter is alive, however long its call takes', (t) => {
  const watch = watchOf(t);
  for (let look = 0; look < 10; look++) {
    assert.equal(watch.look('a build of c/0'), 'fine');
    Atomics.add(watch.data.counter, 0, 1);
  }
  assert.equal(watch.silence, null);
});

test('a thread that waits for a CPU is no more silent than it had one, and yet is given up at a tenth of the pace', (t) => {
  let waitedMs = 700;
  const watch = watchOf(t, () => waitedMs);
  assert.deepEqual(findings(watch, 3), ['fine', 'fine', 'silent']);
  waitedMs += 2000;
  assert.deepEqual(findings(watch, 4), ['fine', 'fine', 'fine', 'terminate']);
  Atomics.add(watch.data.counter, 0, 1);
  assert.deepEqual(findings(watch, 1), ['fine']);
  const starved = Array.from({ length: 51 }, () => {
    waitedMs += 1000;
    return findings(watch, 1)[0];
  });
  const told = starved.flatMap((finding, look) => (finding === 'fine' ? [] : [[look, finding]]));
  assert.deepEqual(told, [
    [19, 'silent'],
    [39, 'terminate'],
    [49, 'end'],
  ]);
});

test('a thread that nothing waits for owes no sign of life, and gets its time from the first look that something does', (t) => {
  const watch = watchOf(t);
  assert.deepEqual(findings(watch, 10, null), Array(10).fill('fine'));
  assert.deepEqual(findings(watch, 3), ['fine', 'fine', 'silent']);
  assert.deepEqual(findings(watch, 1, null), ['fine']);
  assert.equal(watch.silence, null, 'its call was answered');
  assert.deepEqual(findings(watch, 3), ['fine', 'fine', 'silent']);
});

test('a thread whose event loop is free answers by itself, and keeps no process alive by it', async (t) => {
  const watch = watchOf(t);
  const program = `
    import { parentPort } from 'node:worker_threads';
    import ${JSON.stringify(new URL('../../../storage/threads/pulse.js', import.meta.url).href)};
    parentPort.once('message', () => parentPort.close());
    parentPort.postMessage('ready');`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
    workerData: { pulse: watch.data },
    transferList: [watch.data.port],
  });
  await once(worker, 'message');
  const moved = () => Atomics.load(watch.data.counter, 0) > 0;
  assert.equal(moved(), false);
  watch.look('a call');
  while (!moved()) await new Promise((done) => setTimeout(done, 2));
  if (process.platform === 'linux') assert.ok(watch.waitedMs() > 0, 'it has waited for a CPU, if only for a moment');
  worker.postMessage('end');
  assert.deepEqual(await once(worker, 'exit'), [0]);
});

test('limits follow the silence that is set: readers get half of it, and the least setting still tells apart what comes when', () => {
  assert.deepEqual(watchLimits(60_000), { silent: 10, terminated: 60, ended: 75 });
  assert.deepEqual(readerWatchLimits(60_000), { silent: 10, terminated: 30, ended: 38 });
  assert.deepEqual(watchLimits(4000), { silent: 1, terminated: 4, ended: 5 });
  assert.deepEqual(readerWatchLimits(4000), { silent: 1, terminated: 2, ended: 3 });
});
