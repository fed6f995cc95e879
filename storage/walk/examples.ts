/** Queries with several examples: recommendation, discovery, context, relevance feedback. */

import { TroupeError } from '../../protocols/errors.js';
import type { Scoring } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import { averageTarget } from '../../query/recommend.js';

export type ExampleQuery = Extract<Scoring, { kind: 'recommend' | 'discover' | 'context' | 'relevanceFeedback' }>;

export function isExampleQuery<Query extends { readonly kind: string }>(query: Query): query is Extract<Query, ExampleQuery> {
  return query.kind === 'recommend' || query.kind === 'discover' || query.kind === 'context' || query.kind === 'relevanceFeedback';
}

/** The value that stands for all examples of a recommendation by their average. Errors: those of `toValue`; `wrongInput` without positives. */
export function averageOf(query: Extract<Scoring, { kind: 'recommend' }>, toValue: (input: VectorInput) => VectorValue): VectorValue {
  const positive = query.positive.map(toValue);
  if (positive.length === 0) throw new TroupeError('wrongInput', 'Positive vectors should not be empty with `average` strategy');
  return averageTarget(positive, query.negative.map(toValue));
}

/** The query with the values of its inputs in their place. */
export function withInputs(query: ExampleQuery, toValue: (input: VectorInput) => VectorValue): ExampleQuery {
  switch (query.kind) {
    case 'recommend':
      return { ...query, positive: query.positive.map(toValue), negative: query.negative.map(toValue) };
    case 'discover': {
      const target = toValue(query.target);
      return { ...query, target, context: query.context.map((pair) => withPair(pair, toValue)) };
    }
    case 'context':
      return { ...query, pairs: query.pairs.map((pair) => withPair(pair, toValue)) };
    case 'relevanceFeedback': {
      const target = toValue(query.target);
      return { ...query, target, feedback: query.feedback.map(({ example, score }) => ({ example: toValue(example), score })) };
    }
    default:
      return query satisfies never;
  }
}

function withPair(
  { positive, negative }: { readonly positive: VectorInput; readonly negative: VectorInput },
  toValue: (input: VectorInput) => VectorValue,
): { positive: VectorValue; negative: VectorValue } {
  return { positive: toValue(positive), negative: toValue(negative) };
}
