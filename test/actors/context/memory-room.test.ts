import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryRoom } from '../../../actors/context/memory-room.js';

const MB = 1 << 20;

function roomOf(budget: number, caution = 1) {
  const figures = { used: 0, held: 0, lately: null as number | null };
  const room = new MemoryRoom(
    {
      budgetBytes: budget,
      usedBytes: (when) => (when === 'lately' ? (figures.lately ?? figures.used) : figures.used),
      noteHeld: (bytes) => {
        figures.held = bytes;
      },
    },
    caution,
  );
  return { figures, room };
}

test('room is given up to the budget, and what is held counts before it is used', () => {
  const { figures, room } = roomOf(100 * MB);
  figures.used = 40 * MB;
  const held = room.hold(50 * MB);
  assert.ok(held !== null);
  assert.equal(figures.held, 50 * MB);
  assert.equal(room.hold(11 * MB), null);
  figures.used = 85 * MB;
  assert.equal(room.committedBytes(), 90 * MB, 'what a build has taken is not counted twice');
  const second = room.hold(10 * MB);
  assert.ok(second !== null);
  held.release();
  held.release();
  second.release();
  assert.equal(room.committedBytes(), 85 * MB);
  assert.equal(figures.held, 0);
});

test('a build is given what is left now, not what was left when it was last measured', () => {
  const { figures, room } = roomOf(100 * MB);
  figures.lately = 10 * MB;
  figures.used = 80 * MB;
  assert.equal(room.hold(21 * MB), null);
  assert.ok(room.hold(20 * MB) !== null);
});

test('points leave a part of the budget to builds, also to those that have begun', () => {
  const { figures, room } = roomOf(100 * MB);
  figures.used = 80 * MB;
  assert.ok(room.takesPoints(5 * MB));
  assert.ok(!room.takesPoints(6 * MB));
  figures.used = 40 * MB;
  room.hold(50 * MB);
  assert.ok(!room.takesPoints(1));
});

test('points of a fast upload are refused by what is used now: half a second later a next start could not hold them', () => {
  const { figures, room } = roomOf(100 * MB);
  figures.lately = 51 * MB;
  figures.used = 84 * MB;
  assert.ok(room.takesPoints(1 * MB));
  assert.ok(!room.takesPoints(2 * MB));
  // Far from the end it is not measured for each write.
  figures.lately = 40 * MB;
  assert.ok(room.takesPoints(2 * MB));
});

test('after the process was killed for memory builds are taken to need more', () => {
  const { figures, room } = roomOf(100 * MB, 2);
  figures.used = 50 * MB;
  assert.equal(room.hold(26 * MB), null);
  assert.equal(room.describe(26 * MB), "it may need 52 MB of memory, and 50 MB of this node's budget are left");
  assert.ok(room.hold(25 * MB) !== null);
});

test('without figures nothing is refused', () => {
  const room = new MemoryRoom(null);
  assert.ok(room.hold(1e15) !== null);
  assert.ok(room.takesPoints(1e15));
  assert.equal(room.resultBytesMax, Number.POSITIVE_INFINITY);
});
