import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dropBytes } from '../../../storage/memory/drop-bytes.js';

test('bytes give their memory back only where it is all theirs', () => {
  const own = new Uint8Array(1000).fill(7);
  const whole = new Uint8Array(1000).fill(7);
  const part = new Uint8Array(whole.buffer, 0, 999);
  const shared = new Uint8Array(new SharedArrayBuffer(8)).fill(7);
  for (const bytes of [own, part, shared]) dropBytes(bytes);
  const canTransfer = 'transfer' in ArrayBuffer.prototype;
  assert.equal(own.length, canTransfer ? 0 : 1000);
  assert.ok(part.length === 999 && whole.every((byte) => byte === 7));
  assert.deepEqual([...shared], new Array(8).fill(7));
});
