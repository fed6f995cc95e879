import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guarded } from './guard.js';
import { Life, World } from './world.js';

test('events run in the order of their time, and of their making where the time is the same', async () => {
  const world = new World();
  const seen: string[] = [];
  world.after(20, () => seen.push(`b ${world.nowMs}`));
  world.after(10, () => seen.push(`a ${world.nowMs}`));
  world.after(20, () => seen.push(`c ${world.nowMs}`));
  await world.run(30);
  assert.deepEqual([seen, world.nowMs], [['a 10', 'b 20', 'c 20'], 30]);
});

test('messages and promises of an event are at rest before the next event', async () => {
  const world = new World();
  const life = new Life('one');
  const seen: string[] = [];
  const box = world.mailboxesOf(life).open(null, 'box', async (item) => {
    await null;
    seen.push(`${item} at ${world.nowMs}`);
    if (item === 'first') box.post('second');
  });
  world.after(5, () => box.post('first'));
  world.after(5.001, () => seen.push('next event'));
  await world.run(10);
  assert.deepEqual(seen, ['first at 5', 'second at 5', 'next event']);
});

test('what a life began ends with it, and waits while it is paused', async () => {
  const world = new World();
  const [one, other] = [new Life('one'), new Life('other')];
  const seen: string[] = [];
  world.after(10, () => seen.push('one'), one);
  world.after(10, () => seen.push('other'), other);
  one.alive = false;
  world.pause(other);
  await world.run(20);
  assert.deepEqual(seen, []);
  world.after(0, () => world.resume(other));
  await world.run(1);
  assert.deepEqual(seen, ['other']);
});

test('a run that asks the real clock or real randomness is stopped', async () => {
  await assert.rejects(
    guarded(
      async () => Math.random(),
      () => {},
    ),
    { message: 'a run used random of the real world' },
  );
  await assert.rejects(
    guarded(
      async () => Date.now(),
      () => {},
    ),
    { message: 'a run used now of the real world' },
  );
  assert.equal(typeof Math.random(), 'number');
});
