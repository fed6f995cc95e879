import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../protocols/errors.js';
import { sparseVector, type VectorValue } from '../../protocols/model/vector.js';
import { averageTarget, bestScore, share, squash, weightedScores } from '../../query/recommend.js';

const dense = (...values: number[]): VectorValue => ({ kind: 'dense', values: Float32Array.from(values) });
const multi = (...rows: number[][]): VectorValue => ({ kind: 'multi', dim: rows[0]?.length ?? 0, values: Float32Array.from(rows.flat()) });
const sparse = (entries: Record<number, number>): VectorValue =>
  sparseVector(Object.keys(entries).map(Number), Object.values(entries)) as VectorValue;
const list = (...values: number[]): Float32Array => Float32Array.from(values);
const rounded = (scores: Float32Array): number[] => [...scores].map((score) => Number(score.toFixed(6)));

test('shares keep the order of similarities and lie between 0 and 1', () => {
  assert.equal(squash(-3), -0.75);
  assert.deepEqual([-1e30, -1, 0, 1, 1e30].map(share), [0, 0.25, 0.5, 0.75, 1]);
});

test('the best positive counts unless a negative is as near', () => {
  const scores = bestScore(2)([list(2, 0.75, 0), list(0.875, 1.125, 0), list(1, 1.5, 0)], 3);
  assert.deepEqual(rounded(scores), [0.833333, -0.8, -0.5]);
  assert.deepEqual(rounded(bestScore(0)([list(0, 0.125), list(-1, -2)], 2)), [-0.5, -0.555556]);
  assert.deepEqual(rounded(bestScore(1)([list(-3, 3)], 2)), [0.125, 0.875]);
});

test('similarities add up, those to negatives with a minus', () => {
  assert.deepEqual(rounded(weightedScores([1, 1, -1])([list(2, 0.5), list(0.875, 0.25), list(1, 0)], 2)), [1.875, 0.75]);
  assert.deepEqual(rounded(weightedScores([-1, -1])([list(2), list(-4)], 1)), [2]);
});

test('the mean of the positives is the target, with negatives twice it less theirs', () => {
  assert.deepEqual(averageTarget([dense(1, 0), dense(0, 1)], []), dense(0.5, 0.5));
  assert.deepEqual(averageTarget([dense(1, 0, 0, 0), dense(0, 1, 0, 0.5)], [dense(0, 0, 2, 0)]), dense(1, 1, -2, 0.5));
  assert.deepEqual(averageTarget([sparse({ 1: 1, 2: 0.5, 3: 0.25 })], [sparse({ 3: 4, 9: 2 })]), sparse({ 1: 2, 2: 1, 3: -3.5, 9: -2 }));
  assert.deepEqual(averageTarget([multi([1.5, 0], [0, 1.25])], [dense(1, -1)]), multi([1.5, 0], [0, 1.25], [-1, 1]));
});

test('an average leaves its examples as they are', () => {
  const example = dense(1, 2);
  const target = averageTarget([example], []);
  target.values[0] = 9;
  assert.deepEqual(example, dense(1, 2));
});

test('examples that do not fit together have no average', () => {
  const wrong = (positive: VectorValue[], negative: VectorValue[]): void => {
    assert.throws(
      () => averageTarget(positive, negative),
      (error) => error instanceof TroupeError && error.code === 'wrongInput',
    );
  };
  wrong([dense(1, 2)], [dense(1)]);
  wrong([dense(1)], [sparse({ 1: 1 })]);
  wrong([multi([1, 2])], [sparse({ 1: 1 })]);
  wrong([multi([1, 2])], [multi([1])]);
});
