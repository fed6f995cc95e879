import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeUpdateMessage } from '../../../protocols/grpc/update-message.js';
import { bytesOf } from './protos.js';

const VECTORS = { vectors: { size: 2, distance: 'Dot' } } as const;

function upsert(...vectors: number[][]) {
  const points = vectors.map((data, at) => ({ id: { num: at + 1 }, vectors: { vector: { dense: { data } } } }));
  const bytes = bytesOf('UpsertPoints', { collection_name: 'c', points });
  return decodeUpdateMessage('upsertPoints', bytes, 'qdrant.UpsertPoints', {}, VECTORS);
}

test('vectors of a write stay as they are while the next one is decoded', () => {
  const first = upsert([1, 2], [3, 4]);
  upsert([9, 9], [9, 9], [9, 9]);
  const [operation] = first.operations;
  assert.ok(operation?.kind === 'upsert');
  assert.deepEqual(operation.batch.vectors[0]?.values, Float32Array.of(1, 2, 3, 4));
});

test('NaN and infinities in a vector are refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -Number.MAX_VALUE]) {
    assert.throws(() => upsert([1, 2], [1, value]), { code: 'wrongInput', message: /finite/ });
  }
  // Their sum is beyond a 32-bit number, but each of them is one.
  upsert([3e38, 3e38]);
});
