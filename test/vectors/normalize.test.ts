import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalizeRows } from '../../vectors/normalize.js';

test('rows get length 1, and a second time changes nothing', () => {
  const values = Float32Array.of(3, 4, 0, -1e30, 1e-30, 1e-30);
  normalizeRows(values, 2);
  assert.deepEqual([...values], [0.6, 0.8, 0, -1, Math.SQRT1_2, Math.SQRT1_2].map(Math.fround));
  const again = values.slice();
  normalizeRows(again, 2);
  assert.deepEqual(again, values);
});

test('zero rows stay zero, and rows that are not finite stay as they are', () => {
  const values = Float32Array.of(0, 0, Number.POSITIVE_INFINITY, 1, Number.NaN, 1);
  const before = values.slice();
  normalizeRows(values, 2);
  assert.deepEqual(values, before);
});
