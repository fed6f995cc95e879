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

test('each row of any length, also of no multiple of four, is divided by its own length', () => {
  for (const dim of [1, 3, 4, 5, 7, 8, 13]) {
    const values = Float32Array.from({ length: 3 * dim }, (_, at) => Math.sin(at + dim) * (at + 1));
    const expected = [0, 1, 2].flatMap((row) => {
      const components = [...values.subarray(row * dim, (row + 1) * dim)];
      const length = Math.hypot(...components);
      return components.map((component) => component / length);
    });
    normalizeRows(values, dim);
    for (const [at, component] of values.entries()) assert.ok(Math.abs(component - (expected[at] as number)) < 1e-7, `${dim}: ${at}`);
  }
});

test('zero rows stay zero, and rows that are not finite stay as they are', () => {
  const values = Float32Array.of(0, 0, Number.POSITIVE_INFINITY, 1, Number.NaN, 1);
  const before = values.slice();
  normalizeRows(values, 2);
  assert.deepEqual(values, before);
});
