import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GarbageCollector } from '../../../storage/threads/collect-garbage.js';

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
