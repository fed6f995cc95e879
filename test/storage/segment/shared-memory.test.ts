import assert from 'node:assert/strict';
import { test } from 'node:test';
import { threadId } from 'node:worker_threads';
import { giveBackPlace, type MemoryPlace, smallPlace } from '../../../storage/segment/shared-memory.js';

const SIZE = 128 * 1024;

function bytesOf({ base, memory }: MemoryPlace): Uint8Array {
  return new Uint8Array(memory.buffer, base, SIZE);
}

test('a place that was given back is used again for a segment of its size, all zero, and no other one is', () => {
  const first = smallPlace(SIZE);
  const second = smallPlace(SIZE);
  bytesOf(first).fill(1);
  bytesOf(second).fill(2);
  giveBackPlace(first, SIZE);
  const smaller = smallPlace(SIZE / 2);
  assert.ok(smaller.base !== first.base);
  const again = smallPlace(SIZE);
  assert.equal(again.memory, first.memory);
  assert.equal(again.base, first.base);
  assert.ok(bytesOf(again).every((byte) => byte === 0));
  assert.ok(bytesOf(second).every((byte) => byte === 2));
  assert.ok(![first.base, second.base, smaller.base].includes(smallPlace(SIZE).base));
});

test('thousands of small segments that come and go, some at a time, take no other memory', () => {
  const first = smallPlace(SIZE);
  const open: MemoryPlace[] = [first];
  for (let at = 0; at < 5000; at++) {
    open.push(smallPlace(SIZE));
    if (open.length > 50) giveBackPlace(open.shift() as MemoryPlace, SIZE);
  }
  assert.equal(new Set([first, ...open].map(({ common }) => common.number)).size, 1);
});

test('a place of another thread, of an older memory or of a large segment is not used again', () => {
  const place = smallPlace(SIZE);
  giveBackPlace({ ...place, common: { ...place.common, thread: threadId + 1 } }, SIZE);
  giveBackPlace({ ...place, common: { ...place.common, number: place.common.number - 1 } }, SIZE);
  assert.ok(smallPlace(SIZE).base !== place.base);
  const large = smallPlace(2 ** 20);
  giveBackPlace(large, 2 ** 20);
  assert.ok(smallPlace(2 ** 20).base !== large.base);
});
