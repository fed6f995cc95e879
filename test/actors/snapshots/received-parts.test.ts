import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PARTS_KEPT_MS, ReceivedParts } from '../../../actors/snapshots/received-parts.js';
import { FakeWorld } from '../fake-world.js';

function world() {
  const clock = new FakeWorld();
  const removed: string[] = [];
  const remove = async (folder: string) => void removed.push(folder);
  return { clock, removed, received: new ReceivedParts({ timers: clock.ports.timers, remove }) };
}

test('files of a restore whose sender sends no more are removed, however many parts came', () => {
  const { clock, received, removed } = world();
  received.expectMore('one');
  clock.advance(PARTS_KEPT_MS - 1);
  received.expectMore('one');
  received.expectMore('two');
  clock.advance(PARTS_KEPT_MS - 1);
  assert.deepEqual(removed, []);
  clock.advance(1);
  assert.deepEqual(removed, ['one', 'two']);
  assert.equal(clock.pendingTimers, 0);
});

test('files that are being installed are no longer waited for', () => {
  const { clock, received, removed } = world();
  received.expectMore('one');
  received.settle('one');
  clock.advance(2 * PARTS_KEPT_MS);
  assert.deepEqual(removed, []);
});
