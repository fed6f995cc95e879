/**
 * Discovery, context and relevance feedback: scores by which example of each pair a point is nearer to.
 * Similarities and scores as in `recommend.ts`. Sources: scenarios query-discover-context, discover-legacy, search-sparse.
 */

import { type ExampleScorer, share, squash } from './recommend.js';

/** A point as near to both of a pair is a little off its zone. Source: scenario query-discover-context, step context. */
const MARGIN = 2 ** -23;

/**
 * Discovery. Examples: the target, then the positive and the negative of each pair. The score is how many pairs'
 * positives are nearer less how many negatives are, and the target's share on top.
 */
export const discoverScores: ExampleScorer = ([target, ...pairs], rows) => {
  const scores = (target as Float32Array).map(share);
  for (let pair = 0; pair < pairs.length; pair += 2) {
    const positive = pairs[pair] as Float32Array;
    const negative = pairs[pair + 1] as Float32Array;
    for (let row = 0; row < rows; row++) {
      (scores[row] as number) += Math.sign((positive[row] as number) - (negative[row] as number));
    }
  }
  return scores;
};

/**
 * Context. Examples: the positive and the negative of each pair. The score is a loss: 0 where all positives are
 * nearer, less the nearer the negatives are.
 */
export const contextScores: ExampleScorer = (pairs, rows) => {
  const scores = new Float64Array(rows);
  for (let pair = 0; pair < pairs.length; pair += 2) {
    const positive = pairs[pair] as Float32Array;
    const negative = pairs[pair + 1] as Float32Array;
    for (let row = 0; row < rows; row++) {
      const difference = Math.fround(Math.fround((positive[row] as number) - (negative[row] as number)) - MARGIN);
      (scores[row] as number) += Math.min(squash(difference), 0);
    }
  }
  return Float32Array.from(scores);
};

/** The numbers of strategy naive. */
interface FeedbackStrategy {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/**
 * Relevance feedback, strategy naive: what the similarity to the target counts, then those to the rated examples. The score is a × similarity to the
 * target + c × the sum over pairs of examples with different ratings of confidence^b × (similarity to the better − to the worse one). As there are many
 * more pairs than examples, each example has the sum over its pairs. check: called again and again meanwhile; what it throws ends this.
 */
export function feedbackWeights(ratings: readonly number[], { a, b, c }: FeedbackStrategy, check: () => void = () => {}): number[] {
  const counts = new Map<number, number>();
  for (const rating of ratings) counts.set(rating, (counts.get(rating) ?? 0) + 1);
  const weights = new Map<number, number>();
  for (const rating of counts.keys()) {
    check();
    let weight = 0;
    for (const [other, count] of counts) {
      const confidence = Math.abs(rating - other);
      if (confidence > 0) weight += Math.sign(rating - other) * count * c * confidence ** b;
    }
    weights.set(rating, weight);
  }
  return [a, ...ratings.map((rating) => weights.get(rating) as number)];
}
