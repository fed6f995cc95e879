import assert from 'node:assert/strict';
import test from 'node:test';
import { isDecided } from '../../../storage/builder/recall.js';

const shares = (count: number, of: (i: number) => number) => Array.from({ length: count }, (_, i) => of(i));

test('fewer than 20 queries decide nothing about a recall', () => {
  assert.equal(
    isDecided(
      shares(19, () => 1),
      0.95,
    ),
    false,
  );
  assert.equal(
    isDecided(
      shares(20, () => 1),
      0.95,
    ),
    true,
  );
  assert.equal(
    isDecided(
      shares(20, () => 0.4),
      0.95,
    ),
    true,
  );
});

test('a recall near its bound needs more queries than one far from it', () => {
  const near = (i: number) => (i % 5 === 0 ? 0.8 : 1);
  assert.equal(isDecided(shares(30, near), 0.95), false);
  assert.equal(isDecided(shares(30, near), 0.5), true);
});
