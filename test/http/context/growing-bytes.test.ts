import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrowingBytes } from '../../../http/context/growing-bytes.js';
import { unlimitedLedger } from '../../../storage/memory/shared-ledger.js';

const CAN_FREE = 'transfer' in ArrayBuffer.prototype;

test('a body that grows keeps its bytes, and buffers that it outgrew are free at once', {
  skip: !CAN_FREE && 'the runtime cannot free',
}, () => {
  const body = new GrowingBytes(unlimitedLedger(), 300_000);
  const outgrown = new Set<Buffer>();
  for (let at = 0; at < 300_000; at += 10_000) {
    assert.ok(body.add(Buffer.alloc(10_000, at / 10_000)));
    outgrown.add(body.buffer);
  }
  assert.ok(body.isWhole);
  assert.deepEqual([body.buffer[0], body.buffer[150_000], body.buffer[299_999]], [0, 15, 29]);
  outgrown.delete(body.buffer);
  assert.ok(outgrown.size > 1);
  assert.deepEqual(
    [...outgrown].map((buffer) => buffer.length),
    [...outgrown].map(() => 0),
  );
});
