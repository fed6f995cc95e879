import assert from 'node:assert/strict';
import { test } from 'node:test';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { Deadline, TooHeavy } from '../../../storage/threads/deadline.js';
import { givingWay } from '../../../storage/threads/low-priority.js';

test('a thread for heavy reads lets others go first every so often, as it looks at the deadline', () => {
  let calls = 0;
  let nowMs = 0;
  const deadline = new Deadline();
  const ways = { yieldCpu: () => calls++, rest: () => assert.fail('nobody else is about'), isCrowded: () => false };
  deadline.giveWay = givingWay(ways, () => nowMs);
  const callsAt = (ms: number): number => {
    nowMs = ms;
    deadline.expired();
    return calls;
  };
  assert.deepEqual([0.05, 0.11, 0.15, 0.2, 0.22, 5].map(callsAt), [0, 1, 1, 1, 2, 3]);
});

test('a thread for heavy reads rests while others want the CPUs and ten milliseconds more, and looks every two whether they do', () => {
  const done: string[] = [];
  let nowMs = 0;
  let isCrowded = false;
  const look = (): boolean => {
    done.push(`look ${isCrowded}`);
    return isCrowded;
  };
  const giveWay = givingWay({ yieldCpu: () => done.push('yield'), rest: (ms) => done.push(`rest ${ms}`), isCrowded: look }, () => nowMs);
  const at = (ms: number): string[] => {
    nowMs = ms;
    giveWay();
    return done.splice(0);
  };
  assert.deepEqual(at(1), ['look false', 'yield']);
  isCrowded = true;
  assert.deepEqual(at(2.9), ['yield']);
  assert.deepEqual(at(3), ['look true', 'rest 0.5']);
  isCrowded = false;
  assert.deepEqual(at(4), ['rest 0.5']);
  assert.deepEqual(at(12.9), ['look false', 'rest 0.5']);
  assert.deepEqual(at(13), ['yield']);
});

test('a read that takes longer than was expected leaves its thread, unless its own time is over before', () => {
  const deadline = new Deadline();
  deadline.check();
  deadline.leaveAtMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), TooHeavy);
  deadline.deadlineMs = steadyNowMs() - 1;
  assert.throws(() => deadline.check(), { code: 'timeout' });
});
