import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextScores, discoverScores, feedbackPairs, feedbackScores } from '../../query/discover.js';

const list = (...values: number[]): Float32Array => Float32Array.from(values);
const rounded = (scores: Float32Array): number[] => [...scores].map((score) => Number(score.toFixed(6)));

test('a discovery ranks by pairs won less pairs lost, then by the target', () => {
  const target = list(0.625, 2.59375, 1);
  assert.deepEqual(rounded(discoverScores([target, list(0.25, 0.875, 0), list(0, 1, 0)], 3)), [1.692308, -0.13913, 0.75]);
  assert.deepEqual(rounded(discoverScores([list(0.5), list(1), list(0), list(2), list(3), list(1), list(0)], 1)), [1.666667]);
  assert.deepEqual(rounded(discoverScores([target], 3)), [0.692308, 0.86087, 0.75]);
});

test('a context is a loss of 0 where all positives are nearer', () => {
  const scores = contextScores([list(0.25, 0.875, 0), list(0, 1, 0)], 3);
  assert.deepEqual(rounded(scores), [0, -0.111111, -0]);
  assert.ok((scores[2] as number) < 0, 'as near to both is a little less');
  assert.deepEqual(rounded(contextScores([list(0), list(1), list(0), list(3)], 1)), [-1.25]);
  assert.deepEqual([...contextScores([], 2)], [0, 0]);
});

test('each two examples with different ratings are a pair, the better one first', () => {
  assert.deepEqual(feedbackPairs([0.5, 1, 0.5]), [
    { better: 1, worse: 0, confidence: 0.5 },
    { better: 1, worse: 2, confidence: 0.5 },
  ]);
  assert.deepEqual(feedbackPairs([0.5]), []);
});

test('feedback weighs the target and the pairs by the power of their confidence', () => {
  const scores = feedbackScores([1, 0, 0.5], { a: 0.5, b: 2, c: 0.25 })([list(2, 0.5), list(1, 0.25), list(0.5, 0), list(-2.25, -0.5)], 2);
  assert.deepEqual(rounded(scores), [1.15625, 0.328125]);
  assert.deepEqual(rounded(feedbackScores([0.9], { a: 2, b: 1, c: 1 })([list(3), list(5)], 1)), [6]);
});
