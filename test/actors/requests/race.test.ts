import assert from 'node:assert/strict';
import { test } from 'node:test';
import { race } from '../../../actors/requests/race.js';
import { FakeWorld } from '../fake-world.js';

interface Runner {
  resolve(value: string): void;
  reject(error: Error): void;
}

/** Runs that a test ends by hand. */
function start(count: number, atOnce = 1) {
  const world = new FakeWorld();
  const begun: Runner[] = [];
  const next = (): Promise<string> | undefined =>
    begun.length === count ? undefined : new Promise<string>((resolve, reject) => begun.push({ resolve, reject }));
  const outcome = race(next, world.ports.timers, { atOnce, delayMs: 100, passes: (error) => (error as Error).message !== 'final' });
  outcome.catch(() => {});
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { world, begun, outcome, turn };
}

test('who is asked first answers, and nobody else is asked', async () => {
  const { begun, outcome, world } = start(2);
  begun[0]?.resolve('one');
  assert.equal(await outcome, 'one');
  world.advance(1000);
  assert.equal(begun.length, 1);
  assert.equal(world.pendingTimers, 0);
});

test('another one is asked when the first fails, and its answer counts', async () => {
  const { begun, outcome, turn } = start(2);
  begun[0]?.reject(new Error('gone'));
  await turn();
  assert.equal(begun.length, 2);
  begun[1]?.resolve('two');
  assert.equal(await outcome, 'two');
});

test('another one is asked beside one that is slow, and the first answer counts', async () => {
  const { begun, outcome, world } = start(2);
  world.advance(99);
  assert.equal(begun.length, 1);
  world.advance(1);
  assert.equal(begun.length, 2);
  begun[0]?.resolve('late');
  assert.equal(await outcome, 'late');
});

test('the first error is told when all have failed, and an error of the request at once', async () => {
  const all = start(2);
  all.begun[0]?.reject(new Error('first'));
  await all.turn();
  all.begun[1]?.reject(new Error('second'));
  await assert.rejects(all.outcome, /first/);
  const one = start(2);
  one.begun[0]?.reject(new Error('final'));
  await assert.rejects(one.outcome, /final/);
  assert.equal(one.begun.length, 1);
});

test('with a fan-out several are asked from the beginning', () => {
  assert.equal(start(3, 2).begun.length, 2);
});
