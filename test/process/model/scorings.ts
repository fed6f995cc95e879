/** Random ways of scoring points, each with the score that it gives to one point. */

import type { RandomNumbers } from '../../../ops/random.js';
import { metres } from './areas.js';
import { elementsAt, type Filter, filterOf } from './filters.js';
import { chance, many, one, placeOf, vectorValue } from './points.js';
import {
  type Id,
  isDistance,
  isSparse,
  type Json,
  type Model,
  type ModelPoint,
  type Payload,
  type Space,
  scoreOf,
  similarity,
  type Value,
  vectorsOf,
} from './state.js';

/** A query as requests write it, and what it means. */
export interface Scoring {
  readonly wire: unknown;
  /** Undefined: the point is no answer. */
  readonly score: (point: ModelPoint) => number | undefined;
  readonly better: 'larger' | 'smaller';
  /** Points that the query names: they are no answers. */
  readonly named: readonly Id[];
  /** Size of the numbers that scores are differences of. */
  readonly slack: number;
}

interface Example {
  readonly wire: unknown;
  readonly value: Value;
  readonly id: Id | null;
}

/** An example: a value, or a point that has the vector. */
function exampleOf(model: Model, random: RandomNumbers, using: string): Example {
  const own = chance(random, 2) ? [...model.points].filter(([, { vectors }]) => vectors[using] !== undefined) : [];
  if (own.length > 0) {
    const [id, { vectors }] = one(random, own);
    return { wire: id, value: vectors[using] as Value, id };
  }
  const value = vectorValue(random, model.space(using));
  return { wire: value, value, id: null };
}

function namedBy(examples: readonly Example[]): Id[] {
  return examples.flatMap(({ id }) => id ?? []);
}

function byVector(using: string, score: (value: Value) => number): Scoring['score'] {
  return ({ vectors }) => {
    const value = vectors[using];
    return value === undefined ? undefined : score(value);
  };
}

export function nearestScoring(model: Model, random: RandomNumbers, using: string): Scoring {
  const example = exampleOf(model, random, using);
  const scoring = nearestTo(model.space(using), using, example.value, namedBy([example]));
  return { ...scoring, wire: chance(random, 2) ? { nearest: example.wire } : example.wire };
}

/** Two sparse vectors without a common index, or with a score of 0, have nothing to do with each other. */
function nearestTo(space: Space, using: string, target: Value, named: readonly Id[]): Scoring {
  const score = byVector(using, (value) => scoreOf(space, target, value));
  return {
    wire: undefined,
    named,
    slack: 0,
    better: isDistance(space) ? 'smaller' : 'larger',
    score: (point) => (space.kind === 'sparse' && score(point) === 0 ? undefined : score(point)),
  };
}

const squash = (x: number) => x / (1 + Math.abs(x));
const share = (x: number) => (squash(x) + 1) / 2;

export function recommendScoring(model: Model, random: RandomNumbers, using: string): Scoring {
  const space = model.space(using);
  const strategy = one(random, ['average_vector', 'best_score', 'sum_scores', undefined] as const);
  const isAverage = strategy === undefined || strategy === 'average_vector';
  const examples = (least: number) => many(least + random.integer(3 - least), () => exampleOf(model, random, using));
  const positive = examples(1);
  const negative = examples(0);
  const wire = { recommend: { positive: positive.map(({ wire }) => wire), negative: negative.map(({ wire }) => wire), strategy } };
  const named = namedBy([...positive, ...negative]);
  if (isAverage) return { ...nearestTo(space, using, averageOf(positive, negative), named), wire };
  const similarities = (list: readonly Example[], value: Value) => list.map((example) => similarity(space, example.value, value));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, x) => total + x, 0);
  const score = byVector(using, (value) => {
    const [plus, minus] = [similarities(positive, value), similarities(negative, value)];
    if (strategy === 'sum_scores') return sum(plus) - sum(minus);
    const [best, worst] = [Math.max(...plus), Math.max(...minus)];
    return best > worst ? share(best) : -share(worst);
  });
  return { wire, named, score, better: 'larger', slack: strategy === 'sum_scores' ? SLACK : 0 };
}

/** Similarities go up to some ten thousands. */
const SLACK = 0.02;

/** Twice the mean of the positives less that of the negatives; of multivectors all of them, the negatives negated. */
function averageOf(positive: readonly Example[], negative: readonly Example[]): Value {
  const [plus, minus] = negative.length === 0 ? [1 / positive.length, 0] : [2 / positive.length, -1 / negative.length];
  const weighed = [...positive.map(({ value }) => ({ value, weight: plus })), ...negative.map(({ value }) => ({ value, weight: minus }))];
  const first = (positive[0] as Example).value;
  if (isSparse(first)) {
    const sums = new Map<number, number>();
    for (const { value, weight } of weighed) {
      if (!isSparse(value)) continue;
      value.indices.forEach((index, at) => {
        sums.set(index, (sums.get(index) ?? 0) + weight * (value.values[at] as number));
      });
    }
    return { indices: [...sums.keys()], values: [...sums.values()] };
  }
  if (typeof (first as readonly unknown[])[0] === 'number') {
    return (first as readonly number[]).map((_, at) =>
      weighed.reduce((sum, { value, weight }) => sum + weight * ((value as number[])[at] as number), 0),
    );
  }
  const negated = negative.flatMap(({ value }) => vectorsOf(value).map((vector) => vector.map((x) => -x)));
  return [...positive.flatMap(({ value }) => vectorsOf(value)), ...negated];
}

export function discoverScoring(model: Model, random: RandomNumbers, using: string): Scoring {
  const space = model.space(using);
  const target = exampleOf(model, random, using);
  const pairs = many(random.integer(3), () => pairOf(model, random, using));
  const score = byVector(using, (value) => {
    const near = (example: Example) => similarity(space, example.value, value);
    return pairs.reduce((sum, { positive, negative }) => sum + Math.sign(near(positive) - near(negative)), share(near(target)));
  });
  const wire = { discover: { target: target.wire, context: pairs.map(wirePair) } };
  return {
    wire,
    score,
    named: namedBy([target, ...pairs.flatMap(({ positive, negative }) => [positive, negative])]),
    better: 'larger',
    slack: 0,
  };
}

export function contextScoring(model: Model, random: RandomNumbers, using: string): Scoring {
  const space = model.space(using);
  const pairs = many(1 + random.integer(2), () => pairOf(model, random, using));
  const score = byVector(using, (value) => {
    const near = (example: Example) => similarity(space, example.value, value);
    return pairs.reduce((sum, { positive, negative }) => sum + Math.min(squash(near(positive) - near(negative)), 0), 0);
  });
  const wire = { context: pairs.length === 1 ? wirePair(pairs[0] as Pair) : pairs.map(wirePair) };
  return {
    wire,
    score,
    named: namedBy(pairs.flatMap(({ positive, negative }) => [positive, negative])),
    better: 'larger',
    slack: SLACK / 5,
  };
}

export function feedbackScoring(model: Model, random: RandomNumbers, using: string): Scoring {
  const space = model.space(using);
  const target = exampleOf(model, random, using);
  const feedback = many(1 + random.integer(3), () => ({ example: exampleOf(model, random, using), score: random.integer(5) / 4 }));
  const [a, b, c] = [random.integer(3) / 2, 1 + random.integer(2), random.integer(4) / 4] as const;
  const score = byVector(using, (value) => {
    const near = (example: Example) => similarity(space, example.value, value);
    let sum = a * near(target);
    for (const better of feedback) {
      for (const worse of feedback) {
        if (better.score > worse.score) sum += c * (better.score - worse.score) ** b * (near(better.example) - near(worse.example));
      }
    }
    return sum;
  });
  const given = feedback.map(({ example, score }) => ({ example: example.wire, score }));
  const wire = { relevance_feedback: { target: target.wire, feedback: given, strategy: { naive: { a, b, c } } } };
  return { wire, score, named: namedBy([target, ...feedback.map(({ example }) => example)]), better: 'larger', slack: SLACK };
}

interface Pair {
  readonly positive: Example;
  readonly negative: Example;
}

function pairOf(model: Model, random: RandomNumbers, using: string): Pair {
  return { positive: exampleOf(model, random, using), negative: exampleOf(model, random, using) };
}

function wirePair({ positive, negative }: Pair): object {
  return { positive: positive.wire, negative: negative.wire };
}

// ------------------------------------------------------------------ formulas

/** What a formula gives to a point; scores: those its prefetches gave it. */
export interface FormulaScoring {
  readonly wire: object;
  readonly score: (id: Id, point: ModelPoint, scores: readonly (number | undefined)[]) => number;
}

const DEFAULTS = { m: 3, x: -1, spot: { lon: 10, lat: 50 } };

export function formulaScoring(model: Model, random: RandomNumbers, lists: number): FormulaScoring {
  const filter: Filter = filterOf(model, random, 1);
  const origin = placeOf(random);
  const weight = random.integer(40) / 8 - 2;
  const list = random.integer(lists);
  const scale = 1_000_000;
  const formula = {
    sum: [
      { mult: [0.5, `$score[${list}]`] },
      { mult: [weight, filter.wire] },
      { div: { left: 'm', right: { sum: [{ abs: 'x' }, 1] } } },
      { exp_decay: { x: { geo_distance: { origin, to: 'spot' } }, scale } },
      { lin_decay: { x: 'x', target: 2, scale: 8, midpoint: 0.25 } },
      { neg: { sqrt: 'm' } },
    ],
  };
  const score: FormulaScoring['score'] = (id, point, scores) => {
    const m = only(point.payload, 'm', DEFAULTS.m);
    const x = only(point.payload, 'x', DEFAULTS.x);
    const place = only(point.payload, 'spot', DEFAULTS.spot);
    return (
      0.5 * (scores[list] ?? 0) +
      (filter.passes(id, point) ? weight : 0) +
      m / (Math.abs(x) + 1) +
      0.5 ** (metres(origin, place) / scale) +
      Math.max(0, 1 - (0.75 * Math.abs(x - 2)) / 8) -
      Math.sqrt(m)
    );
  };
  return { wire: { formula, defaults: DEFAULTS }, score };
}

/** The value at a key, also in a list of its own. */
function only<T>(payload: Payload, key: string, byDefault: T): T {
  const [value] = elementsAt(payload, key);
  return value === undefined ? byDefault : (value as unknown as T);
}

/** Values that make groups: texts and integers, each once. */
export function groupValues(payload: Payload, key: string): (string | number)[] {
  return [
    ...new Set(
      elementsAt(payload, key).filter((value: Json): value is string | number => typeof value === 'string' || Number.isInteger(value)),
    ),
  ];
}
