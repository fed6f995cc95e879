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

/** One pair of rated examples, the better one first. */
export interface FeedbackPair {
  readonly better: number;
  readonly worse: number;
  /** How much higher the better one was rated, > 0. */
  readonly confidence: number;
}

/** All pairs of examples with different ratings. */
export function feedbackPairs(ratings: readonly number[]): FeedbackPair[] {
  const pairs: FeedbackPair[] = [];
  ratings.forEach((one, i) => {
    for (let j = i + 1; j < ratings.length; j++) {
      const other = ratings[j] as number;
      if (one > other) pairs.push({ better: i, worse: j, confidence: one - other });
      else if (other > one) pairs.push({ better: j, worse: i, confidence: other - one });
    }
  });
  return pairs;
}

/**
 * Relevance feedback, strategy naive. Examples: the target, then those that were rated. The score is a × similarity to
 * the target + c × the sum over pairs of confidence^b × (similarity to the better − to the worse one).
 */
export function feedbackScores(ratings: readonly number[], strategy: FeedbackStrategy): ExampleScorer {
  const [ofTarget, ...weights] = feedbackWeights(ratings, strategy) as [number, ...number[]];
  return ([target, ...examples], rows) => {
    const scores = Float64Array.from(target as Float32Array, (similarity) => ofTarget * similarity);
    examples.forEach((similarities, example) => {
      const weight = weights[example] as number;
      for (let row = 0; row < rows; row++) (scores[row] as number) += weight * (similarities[row] as number);
    });
    return Float32Array.from(scores);
  };
}

/** The numbers of strategy naive. */
interface FeedbackStrategy {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** What the similarity to the target counts, then those to the rated examples: in all of their pairs together, as there are many more pairs than examples. */
export function feedbackWeights(ratings: readonly number[], { a, b, c }: FeedbackStrategy): number[] {
  const weights = new Array<number>(ratings.length).fill(0);
  for (const { better, worse, confidence } of feedbackPairs(ratings)) {
    const weight = c * confidence ** b;
    (weights[better] as number) += weight;
    (weights[worse] as number) -= weight;
  }
  return [a, ...weights];
}
