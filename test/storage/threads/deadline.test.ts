import assert from 'node:assert/strict';
import { test } from 'node:test';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { Deadline, TooHeavy } from '../../../storage/threads/deadline.js';

test('a read that takes longer than was expected leaves its thread, unless its own time is over before', () => {
  const deadline = new Deadline();
  deadline.check();
  deadline.leaveAtMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), TooHeavy);
  deadline.deadlineMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), { code: 'timeout' });
});
