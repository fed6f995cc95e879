import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectDiverse } from '../../query/mmr.js';

// Two pairs of lookalikes: 0 and 1, 2 and 3.
const RELEVANCE = Float32Array.of(0.9, 0.8, 0.5, 0.4);
const SIMILAR = [
  [1, 0.95, 0.1, 0.1],
  [0.95, 1, 0.1, 0.1],
  [0.1, 0.1, 1, 0.9],
  [0.1, 0.1, 0.9, 1],
].map((row) => Float32Array.from(row));
const similarTo = (position: number) => SIMILAR[position] as Float32Array;

test('without diversity the order is that of relevance', () => {
  assert.deepEqual(selectDiverse(RELEVANCE, 0, 4, similarTo), [0, 1, 2, 3]);
});

test('with diversity what is like a chosen one waits', () => {
  // Second choice: 0.4 - 0.475 for 1, 0.25 - 0.05 for 2, 0.2 - 0.05 for 3.
  assert.deepEqual(selectDiverse(RELEVANCE, 0.5, 4, similarTo), [0, 2, 1, 3]);
  assert.deepEqual(selectDiverse(RELEVANCE, null, 3, similarTo), [0, 2, 1]);
  assert.deepEqual(selectDiverse(RELEVANCE, 1, 2, similarTo), [0, 2]);
});

test('the first among equals is chosen first', () => {
  const level = Float32Array.of(1, 1, 1);
  assert.deepEqual(
    selectDiverse(level, 0.5, 3, () => level),
    [0, 1, 2],
  );
});

test('no more is chosen than there is or is wanted', () => {
  assert.deepEqual(selectDiverse(RELEVANCE, 0.5, 0, similarTo), []);
  assert.deepEqual(selectDiverse(RELEVANCE, 0.5, 9, similarTo).length, 4);
  assert.deepEqual(selectDiverse(new Float32Array(0), 0.5, 3, similarTo), []);
});
