import assert from 'node:assert/strict';
import { test } from 'node:test';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { Deadline, TooHeavy } from '../../../storage/threads/deadline.js';
import { givingWay } from '../../../storage/threads/low-priority.js';

test('a thread for heavy reads lets others go first every so often, as it looks at the deadline', () => {
  let calls = 0;
  let nowMs = 0;
  const deadline = new Deadline();
  deadline.giveWay = givingWay(
    () => calls++,
    () => nowMs,
  );
  const callsAt = (ms: number): number => {
    nowMs = ms;
    deadline.expired();
    return calls;
  };
  assert.deepEqual([0.05, 0.11, 0.15, 0.2, 0.22, 5].map(callsAt), [0, 1, 1, 1, 2, 3]);
});

test('a read that takes longer than was expected leaves its thread, unless its own time is over before', () => {
  const deadline = new Deadline();
  deadline.check();
  deadline.leaveAtMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), TooHeavy);
  deadline.deadlineMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), { code: 'timeout' });
});
