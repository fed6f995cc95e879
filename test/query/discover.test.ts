import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextScores, discoverScores, feedbackWeights } from '../../query/discover.js';
import { weightedScores } from '../../query/recommend.js';

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

test('an example weighs what its pairs with examples of other ratings do together', () => {
  assert.deepEqual(feedbackWeights([0.5, 1, 0.5], { a: 2, b: 2, c: 4 }), [2, -1, 2, -1]);
  assert.deepEqual(feedbackWeights([0.5], { a: 2, b: 2, c: 4 }), [2, 0]);
});

test('feedback weighs the target and the pairs by the power of their confidence', () => {
  const weights = feedbackWeights([1, 0, 0.5], { a: 0.5, b: 2, c: 0.25 });
  const scores = weightedScores(weights)([list(2, 0.5), list(1, 0.25), list(0.5, 0), list(-2.25, -0.5)], 2);
  assert.deepEqual(rounded(scores), [1.15625, 0.328125]);
  assert.deepEqual(rounded(weightedScores(feedbackWeights([0.9], { a: 2, b: 1, c: 1 }))([list(3), list(5)], 1)), [6]);
});

test('thousands of ratings have their weights without a list of all pairs, and the clock is looked at meanwhile', () => {
  const ratings = Array.from({ length: 4000 }, (_, at) => at);
  let checks = 0;
  const weights = feedbackWeights(ratings, { a: 0, b: 1, c: 1 }, () => void checks++);
  assert.equal(checks, ratings.length);
  // From the lowest: less the sum of all distances; to the highest: that sum.
  assert.deepEqual([weights[1], weights.at(-1)], [-7_998_000, 7_998_000]);
  assert.throws(() => feedbackWeights(ratings, { a: 0, b: 1, c: 1 }, () => assert.fail('the time is over')), /the time is over/);
});
