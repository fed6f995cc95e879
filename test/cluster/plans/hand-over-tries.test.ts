import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_HAND_OVER_TRIES, noteHandOverTry, rests, stillNeeded } from '../../../cluster/plans/hand-over-tries.js';

const HAND_OVER = { collection: 'a', uid: 1, shardId: 0, from: 11, to: 12, term: 3 };

test('a hand-over that keeps failing rests longer each time, up to a bound, and one that succeeds is forgotten', () => {
  let tries = NO_HAND_OVER_TRIES;
  let tick = 0;
  const pauses = Array.from({ length: 9 }, () => {
    tries = noteHandOverTry(tries, 'full', HAND_OVER, true, tick);
    const from = tick;
    while (rests(tries, 'full', HAND_OVER, tick)) tick += 1;
    return tick - from;
  });
  assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
  assert.equal(rests(tries, 'full', { ...HAND_OVER, shardId: 1 }, tick - 1), false);
  assert.equal(rests(tries, 'leaving', HAND_OVER, tick - 1), false);
  assert.equal(noteHandOverTry(tries, 'full', HAND_OVER, false, tick).size, 0);
});

test('what failed is forgotten when its peer has no reason any more, as its disk has room again', () => {
  const one = noteHandOverTry(NO_HAND_OVER_TRIES, 'full', HAND_OVER, true, 7);
  const all = noteHandOverTry(noteHandOverTry(one, 'full', { ...HAND_OVER, from: 13 }, true, 7), 'leaving', HAND_OVER, true, 7);
  assert.equal(
    stillNeeded(all, () => true),
    all,
  );
  const left = stillNeeded(all, (need, from) => need === 'leaving' || from === 13);
  assert.deepEqual(
    [rests(left, 'full', HAND_OVER, 8), rests(left, 'full', { ...HAND_OVER, from: 13 }, 8), rests(left, 'leaving', HAND_OVER, 8)],
    [false, true, true],
  );
});
