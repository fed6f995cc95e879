/**
 * Decodes `query`: how points are scored. An object of no known kind is an input of `nearest`, or nothing.
 * Errors: `malformedBody`, `invalidValue`, `wrongInput`.
 * Source: schemas QueryInterface and Query of the API; their scenarios query-*.
 */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import type { ContextPair, Mmr, RecommendStrategy, Scoring } from '../model/query.js';
import type { VectorInput } from '../model/vector.js';
import { formulaOf } from './expressions.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { orderByOf } from './order-by.js';
import { INPUT_FORMS, isInput, type TakenVectors, unknownKeys, vectorInput } from './query-input.js';
import { isGiven, outOfRange, positive, unsignedField } from './request-fields.js';

const KINDS = [
  'nearest',
  'recommend',
  'discover',
  'context',
  'order_by',
  'fusion',
  'rrf',
  'formula',
  'sample',
  'relevance_feedback',
] as const;
const STRATEGIES = ['average_vector', 'best_score', 'sum_scores'] as const;
const MMR_CANDIDATES_MAX = 16_384;
/** Each rated example is compared with all others. */
const FEEDBACK_MAX = 2048;

/** The scoring of a `query` that is given. path: how messages name the value. */
export function scoringOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): Scoring {
  const scoring = isObject(value) ? kindOf(value, vectors, path) : undefined;
  if (scoring !== undefined) return scoring;
  if (isObject(value) && !isInput(value)) throw unknownKeys(value, path, `an object with one of ${listed(KINDS)}; or ${INPUT_FORMS}`);
  return nearest(value, null, vectors, path);
}

/** undefined: the object is an input, or nothing. */
function kindOf(query: JsonObject, vectors: TakenVectors, path: string): Scoring | undefined {
  if (isGiven(query.nearest)) return nearest(query.nearest, query.mmr, vectors, path);
  if (Object.hasOwn(query, 'recommend')) return recommendOf(query.recommend, vectors, `${path}.recommend`);
  if (Object.hasOwn(query, 'discover')) return discoverOf(query.discover, vectors, `${path}.discover`);
  if (Object.hasOwn(query, 'context')) {
    return { kind: 'context', pairs: pairsOf(query.context, vectors, `${path}.context`) };
  }
  if (Object.hasOwn(query, 'order_by')) return { kind: 'orderBy', orderBy: orderByOf(query.order_by) };
  if (Object.hasOwn(query, 'fusion')) return fusionOf(query.fusion, `${path}.fusion`);
  if (Object.hasOwn(query, 'rrf')) return rrfOf(query.rrf, `${path}.rrf`);
  if (Object.hasOwn(query, 'formula')) return formulaOf(query);
  if (Object.hasOwn(query, 'sample')) {
    if (query.sample !== 'random') throw wrongType(`${path}.sample`, query.sample, '`random`');
    return { kind: 'sample' };
  }
  if (Object.hasOwn(query, 'relevance_feedback')) return feedbackOf(query.relevance_feedback, vectors, `${path}.relevance_feedback`);
  return undefined;
}

function nearest(value: JsonValue | undefined, mmr: JsonValue | undefined, vectors: TakenVectors, path: string): Scoring {
  return { kind: 'nearest', target: vectorInput(value, vectors, path), mmr: mmrOf(mmr, `${path}.mmr`) };
}

function mmrOf(value: JsonValue | undefined, path: string): Mmr | null {
  if (!isGiven(value)) return null;
  if (!isObject(value)) throw wrongType(path, value, 'an object');
  const diversity = isGiven(value.diversity) ? float32(value.diversity, `${path}.diversity`) : null;
  if (diversity !== null && (diversity < 0 || diversity > 1)) throw outOfRange(`${path}.diversity`, diversity, 'from 0.0 to 1.0');
  const candidatesLimit = unsignedField(value, 'candidates_limit', path) ?? null;
  if (candidatesLimit !== null && candidatesLimit > MMR_CANDIDATES_MAX) {
    throw outOfRange(`${path}.candidates_limit`, candidatesLimit, `${MMR_CANDIDATES_MAX} or smaller`);
  }
  return { diversity, candidatesLimit };
}

function recommendOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): Scoring {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `positive`, `negative` or both');
  const positive = decodeInputs(value.positive, vectors, `${path}.positive`);
  const negative = decodeInputs(value.negative, vectors, `${path}.negative`);
  const strategy = strategyOf(value.strategy, `${path}.strategy`);
  if (positive.length + negative.length === 0) {
    const detail = `[${path}.positives, negatives: Validation error: At least one positive or negative vector/id must be provided [{}]]`;
    throw new TroupeError('invalidValue', detail);
  }
  return { kind: 'recommend', positive, negative, strategy };
}

/** Null and absence are the average. */
export function strategyOf(value: JsonValue | undefined, path: string): RecommendStrategy {
  if (!isGiven(value)) return 'average_vector';
  const strategy = STRATEGIES.find((word) => word === value);
  if (strategy === undefined) throw wrongType(path, value, `one of ${listed(STRATEGIES)}`);
  return strategy;
}

/** A list of inputs; null and absence are none. */
export function decodeInputs(value: JsonValue | undefined, vectors: TakenVectors, path: string): VectorInput[] {
  if (!isGiven(value)) return [];
  if (!Array.isArray(value)) throw wrongType(path, value, 'a list of vectors and point ids');
  return value.map((input, i) => vectorInput(input, vectors, `${path}[${i}]`));
}

function discoverOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): Scoring {
  // The context may be null, but has to be named: without it the query would be a nearest one.
  if (!isObject(value) || !Object.hasOwn(value, 'context')) throw wrongType(path, value, 'an object with `target` and `context`');
  const target = vectorInput(value.target, vectors, `${path}.target`);
  return { kind: 'discover', target, context: pairsOf(value.context, vectors, `${path}.context`) };
}

/** One pair or a list of pairs; null is none. */
export function pairsOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): ContextPair[] {
  if (!isGiven(value)) return [];
  if (!Array.isArray(value)) return [pairOf(value, vectors, path)];
  return value.map((pair, i) => pairOf(pair, vectors, `${path}[${i}]`));
}

function pairOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): ContextPair {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `positive` and `negative`');
  const { positive, negative } = value;
  return { positive: vectorInput(positive, vectors, `${path}.positive`), negative: vectorInput(negative, vectors, `${path}.negative`) };
}

function fusionOf(value: JsonValue | undefined, path: string): Scoring {
  if (value === 'rrf') return { kind: 'rrf', k: null, weights: null };
  if (value === 'dbsf') return { kind: 'dbsf' };
  throw wrongType(path, value, 'one of `rrf`, `dbsf`');
}

function rrfOf(value: JsonValue | undefined, path: string): Scoring {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `k`, `weights` or both');
  const { weights } = value;
  if (isGiven(weights) && !Array.isArray(weights)) throw wrongType(`${path}.weights`, weights, 'a list of numbers');
  return {
    kind: 'rrf',
    k: positive(value, 'k', path) ?? null,
    weights: Array.isArray(weights) ? weights.map((weight, i) => float32(weight, `${path}.weights[${i}]`)) : null,
  };
}

function feedbackOf(value: JsonValue | undefined, vectors: TakenVectors, path: string): Scoring {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `target`, `feedback` and `strategy`');
  if (!Array.isArray(value.feedback)) throw wrongType(`${path}.feedback`, value.feedback, 'a list of examples with their scores');
  const target = vectorInput(value.target, vectors, `${path}.target`);
  const feedback = value.feedback.map((item, i) => {
    const at = `${path}.feedback[${i}]`;
    if (!isObject(item)) throw wrongType(at, item, 'an object with `example` and `score`');
    return { example: vectorInput(item.example, vectors, `${at}.example`), score: float32(item.score, `${at}.score`) };
  });
  if (feedback.length > FEEDBACK_MAX) {
    throw new TroupeError('invalidValue', `[${path}.feedback: ${feedback.length} elements, must be ${FEEDBACK_MAX} or fewer]`);
  }
  const naive = isObject(value.strategy) ? value.strategy.naive : undefined;
  const at = `${path}.strategy.naive`;
  if (!isObject(naive)) throw wrongType(at, naive, 'an object with `a`, `b` and `c`');
  const strategy = { a: float32(naive.a, `${at}.a`), b: float32(naive.b, `${at}.b`), c: float32(naive.c, `${at}.c`) };
  if (feedback.length === 0) throw new TroupeError('invalidValue', `[${path}.__all__: feedback elements must be non-empty]`);
  if (strategy.b < 0) throw outOfRange(`${at}.b`, strategy.b, '0.0 or larger');
  return { kind: 'relevanceFeedback', target, feedback, strategy };
}

/** A number within a float32. */
function float32(value: JsonValue | undefined, path: string): number {
  if ((typeof value !== 'number' && typeof value !== 'bigint') || !Number.isFinite(Math.fround(Number(value))))
    throw wrongType(path, value, 'a finite 32-bit number');
  return Number(value);
}

function listed(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ');
}
