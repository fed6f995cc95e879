import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterSend, SendQueue } from '../../../http/otlp/send-queue.js';

test('beyond its room the newest items are lost and counted', () => {
  const queue = new SendQueue<number>(3, 2);
  queue.add([1, 2]);
  queue.add([3, 4, 5]);
  assert.deepEqual([queue.batch(), queue.length, queue.lost], [[1, 2], 3, 2]);
});

test('a batch stays until it is sent, and one that is refused is lost', () => {
  const queue = new SendQueue<number>(10, 2);
  queue.add([1, 2, 3]);
  const twice = [queue.batch(), queue.batch()];
  assert.deepEqual(twice[0], twice[1]);
  queue.done(2, false);
  assert.deepEqual([queue.batch(), queue.lost], [[3], 0]);
  queue.done(1, true);
  assert.deepEqual([queue.length, queue.lost], [0, 1]);
});

test('a collector that is gone or busy is asked again, later each time, and one that refuses is not', () => {
  assert.deepEqual(afterSend(200, 0, null, 0), { kind: 'sent' });
  assert.deepEqual(afterSend(400, 0, null, 0), { kind: 'refused' });
  assert.deepEqual(afterSend(301, 0, null, 0), { kind: 'refused' });
  assert.deepEqual(afterSend(null, 0, null, 1), { kind: 'again', delayMs: 1000 });
  assert.deepEqual(afterSend(503, 3, null, 0), { kind: 'again', delayMs: 4000 });
  assert.deepEqual(afterSend(503, 20, null, 1), { kind: 'again', delayMs: 30_000 });
  assert.deepEqual(afterSend(429, 0, 5, 1), { kind: 'again', delayMs: 5000 });
  assert.deepEqual(afterSend(429, 0, 86_400, 1), { kind: 'again', delayMs: 30_000 });
});
