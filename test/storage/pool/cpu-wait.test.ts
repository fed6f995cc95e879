import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuWaitMs, MoreTime } from '../../../storage/pool/cpu-wait.js';

test('what a thread has waited for a CPU since its deadline is added to its time, up to a bound', () => {
  let waitedMs = 400;
  const more = new MoreTime(() => waitedMs, 90);
  assert.equal(more.get(0, 1000, 1000), 0);
  waitedMs += 30;
  assert.equal(more.get(0, 1000, 1050), 30);
  waitedMs += 100;
  assert.equal(more.get(0, 1000, 1200), 90);
  assert.equal(more.get(1, 1000, 1020), 20, 'one that is looked at late has its time from then on');
  assert.equal(more.get(0, 2000, 2000), 0, 'the next deadline has a time of its own');
});

test('a thread whose number is not known, or that has ended, has waited for nothing', () => {
  assert.equal(cpuWaitMs(0), 0);
  assert.equal(cpuWaitMs(2 ** 30), 0);
});
