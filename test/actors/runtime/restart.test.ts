import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CrashHistory,
  DEFAULT_RESTART_POLICY,
  decideRestart,
  jittered,
  NO_CRASHES,
  restartDelayMs,
} from '../../../actors/runtime/restart.js';

test('delays double from 100 ms to 30 s', () => {
  const delays = Array.from({ length: 12 }, (_, at) => restartDelayMs(at + 1, DEFAULT_RESTART_POLICY));
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
});

test('the tenth crash within five minutes goes to the parent', () => {
  let history: CrashHistory = NO_CRASHES;
  const kinds: string[] = [];
  for (let crash = 0; crash < 10; crash++) {
    const decided = decideRestart(history, crash * 10_000, DEFAULT_RESTART_POLICY);
    history = decided.history;
    kinds.push(decided.decision.kind);
  }
  assert.deepEqual(kinds, [...Array(9).fill('restart'), 'escalate']);
});

test('crashes that are far apart never reach the parent', () => {
  let history: CrashHistory = NO_CRASHES;
  for (let crash = 0; crash < 100; crash++) {
    const decided = decideRestart(history, crash * 100_000, DEFAULT_RESTART_POLICY);
    history = decided.history;
    assert.deepEqual(decided.decision, { kind: 'restart', delayMs: 100 });
  }
});

test('the time an actor waits for its restart is not calm', () => {
  const policy = { delayMinMs: 1000, delayMaxMs: 1000, calmMs: 500, crashesMax: 10, windowMs: 1e9 };
  const first = decideRestart(NO_CRASHES, 0, policy);
  assert.equal(decideRestart(first.history, 1400, policy).history.streak, 2);
  assert.equal(decideRestart(first.history, 1500, policy).history.streak, 1);
});

test('a delay moves by a fifth at most', () => {
  assert.deepEqual([jittered(1000, 0), jittered(1000, 0.5), jittered(1000, 0.999_999)], [800, 1000, 1200]);
});
