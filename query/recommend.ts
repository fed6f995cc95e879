/**
 * Recommendation: scores by similarity to positive and negative examples.
 * Similarities: higher is nearer for every distance; scores: higher is better. Sources: scenarios query-recommend,
 * recommend-legacy, search-sparse and search-multivector.
 */

import { TroupeError } from '../protocols/errors.js';
import { type DenseVector, type MultiVector, type SparseVector, sparseVector, type VectorValue } from '../protocols/model/vector.js';

/** Scores rows by their similarities to examples: a Float32Array [rows] for each example (there may be none); the answer is one more. */
export type ExampleScorer = (similarities: readonly Float32Array[], rows: number) => Float32Array;

/** x / (1 + |x|): keeps order and sign, within -1..1. */
export function squash(x: number): number {
  return x / (1 + Math.abs(x));
}

/** 0..1 for any similarity. */
export function share(similarity: number): number {
  return (squash(similarity) + 1) / 2;
}

/**
 * Strategy best_score: the best positive's share, unless a negative is as near or nearer: then minus the best negative's.
 * The first `positives` examples are the positive ones.
 */
export function bestScore(positives: number): ExampleScorer {
  return (similarities, rows) => {
    const positive = largest(similarities.slice(0, positives), rows);
    const negative = largest(similarities.slice(positives), rows);
    return positive.map((best, row) => {
      const worst = negative[row] as number;
      return best > worst ? share(best) : -share(worst);
    });
  };
}

/** Scores by the sum of similarities, each times its weight. Strategy sum_scores: 1 for a positive example, -1 for a negative one. */
export function weightedScores(weights: readonly number[]): ExampleScorer {
  return (examples, rows) => {
    const scores = new Float64Array(rows);
    examples.forEach((similarities, example) => {
      const weight = weights[example] as number;
      for (let row = 0; row < rows; row++) (scores[row] as number) += weight * (similarities[row] as number);
    });
    return Float32Array.from(scores);
  };
}

function largest(lists: readonly Float32Array[], rows: number): Float32Array {
  const best = new Float32Array(rows).fill(Number.NEGATIVE_INFINITY);
  for (const list of lists) for (let row = 0; row < rows; row++) best[row] = Math.max(best[row] as number, list[row] as number);
  return best;
}

// ------------------------------------------------------------------ average_vector

/**
 * Strategy average_vector: the vector that nearest points are searched for. The mean of the positives, and with
 * negatives twice that mean less theirs. Of multivectors it is all positive vectors and all negative ones negated.
 * positive: at least one. The answer is a vector of its own. Errors: `wrongInput` for examples of different kinds or sizes.
 */
export function averageTarget(positive: readonly VectorValue[], negative: readonly VectorValue[]): VectorValue {
  const all = [...positive, ...negative];
  if (all.some(({ kind }) => kind === 'multi')) return joined(positive.map(asMulti), negative.map(asMulti));
  if (all.every(isDense)) return denseAverage(positive as DenseVector[], negative as DenseVector[]);
  if (all.every(isSparse)) return sparseAverage(positive as SparseVector[], negative as SparseVector[]);
  throw mixedKinds();
}

function denseAverage(positive: readonly DenseVector[], negative: readonly DenseVector[]): DenseVector {
  const dim = (positive[0] as DenseVector).values.length;
  const sum = new Float64Array(dim);
  const add = ({ values }: DenseVector, weight: number): void => {
    if (values.length !== dim) throw new TroupeError('wrongInput', `Vector dimension error: expected dim: ${dim}, got ${values.length}`);
    for (let i = 0; i < dim; i++) (sum[i] as number) += weight * (values[i] as number);
  };
  const [plus, minus] = weights(positive.length, negative.length);
  for (const vector of positive) add(vector, plus);
  for (const vector of negative) add(vector, minus);
  return { kind: 'dense', values: Float32Array.from(sum) };
}

function sparseAverage(positive: readonly SparseVector[], negative: readonly SparseVector[]): SparseVector {
  const sums = new Map<number, number>();
  const add = ({ indices, values }: SparseVector, weight: number): void => {
    indices.forEach((index, i) => {
      sums.set(index, (sums.get(index) ?? 0) + weight * (values[i] as number));
    });
  };
  const [plus, minus] = weights(positive.length, negative.length);
  for (const vector of positive) add(vector, plus);
  for (const vector of negative) add(vector, minus);
  return sparseVector([...sums.keys()], [...sums.values()]) as SparseVector;
}

function joined(positive: readonly MultiVector[], negative: readonly MultiVector[]): MultiVector {
  const { dim } = positive[0] as MultiVector;
  const parts = [...positive, ...negative];
  for (const part of parts) {
    if (part.dim !== dim) throw new TroupeError('wrongInput', `Vector dimension error: expected dim: ${dim}, got ${part.dim}`);
  }
  const values = new Float32Array(parts.reduce((sum, part) => sum + part.values.length, 0));
  let at = 0;
  parts.forEach((part, index) => {
    values.set(index < positive.length ? part.values : part.values.map((value) => -value), at);
    at += part.values.length;
  });
  return { kind: 'multi', dim, values };
}

/** What each positive and each negative weighs. */
function weights(positives: number, negatives: number): [number, number] {
  return negatives === 0 ? [1 / positives, 0] : [2 / positives, -1 / negatives];
}

function asMulti(vector: VectorValue): MultiVector {
  if (vector.kind === 'sparse') throw mixedKinds();
  return vector.kind === 'multi' ? vector : { kind: 'multi', dim: vector.values.length, values: vector.values };
}

function isDense({ kind }: VectorValue): boolean {
  return kind === 'dense';
}

function isSparse({ kind }: VectorValue): boolean {
  return kind === 'sparse';
}

function mixedKinds(): TroupeError {
  return new TroupeError('wrongInput', 'the examples are vectors of different kinds: give dense ones or sparse ones only');
}
