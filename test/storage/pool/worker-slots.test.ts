import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownBytes } from '../../../storage/pool/worker-slots.js';

test('bytes that fill their buffer, but for the head of a message, are given away as they are', () => {
  const whole = new Uint8Array(20);
  assert.equal(ownBytes(whole), whole);
  const framed = Buffer.allocUnsafeSlow(100_005).subarray(5);
  assert.equal(ownBytes(framed), framed);
});

test('bytes within a larger or a shared buffer are copied out of it', () => {
  const part = new Uint8Array(100_000).subarray(0, 50_000).fill(7);
  const copied = ownBytes(part);
  assert.deepEqual([copied.byteLength, copied.buffer.byteLength, copied[49_999]], [50_000, 50_000, 7]);
  // Almost all of the pool that small buffers come out of: another one may hold the rest.
  const pooled = Buffer.alloc(Buffer.poolSize).subarray(0, Buffer.poolSize - 8);
  assert.notEqual(ownBytes(pooled).buffer, pooled.buffer);
  const small = Buffer.from('a message');
  assert.notEqual(ownBytes(small).buffer, small.buffer);
});
