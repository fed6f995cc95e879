import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_FULL_TRIES, noteFullTry, rests, stillFull } from '../../../cluster/plans/full-disks.js';

const HAND_OVER = { collection: 'a', uid: 1, shardId: 0, from: 11, to: 12, term: 3 };

test('a hand-over that keeps failing rests longer each time, up to a bound, and one that succeeds is forgotten', () => {
  let tries = NO_FULL_TRIES;
  let tick = 0;
  const pauses = Array.from({ length: 9 }, () => {
    tries = noteFullTry(tries, HAND_OVER, true, tick);
    const from = tick;
    while (rests(tries, HAND_OVER, tick)) tick += 1;
    return tick - from;
  });
  assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
  assert.equal(rests(tries, { ...HAND_OVER, shardId: 1 }, tick - 1), false);
  assert.equal(noteFullTry(tries, HAND_OVER, false, tick).size, 0);
});

test('what failed on a full disk is forgotten when that disk has room again', () => {
  const both = noteFullTry(noteFullTry(NO_FULL_TRIES, HAND_OVER, true, 7), { ...HAND_OVER, from: 13 }, true, 7);
  assert.equal(stillFull(both, new Set([11, 13])), both);
  const left = stillFull(both, new Set([13]));
  assert.deepEqual([rests(left, HAND_OVER, 8), rests(left, { ...HAND_OVER, from: 13 }, 8)], [false, true]);
});
