/** Random queries as trees of prefetches, and the points they lead to by plain loops. */

import type { RandomNumbers } from '../../../ops/random.js';
import { compareIds } from '../../../protocols/model/point-id.js';
import type { Wanted } from './compare.js';
import { ALL, filterOf } from './filters.js';
import { chance, many, one } from './points.js';
import {
  contextScoring,
  discoverScoring,
  feedbackScoring,
  formulaScoring,
  nearestScoring,
  recommendScoring,
  type Scoring,
} from './scorings.js';
import { IDF, type Id, type Model, type ModelPoint } from './state.js';

type Passes = (id: Id, point: ModelPoint) => boolean;
type Scored = readonly (readonly [Id, number])[];

/** One level of a query. */
export interface Level {
  readonly wire: object;
  readonly better: 'larger' | 'smaller';
  readonly limit: number;
  readonly offset: number;
  /** Points that may be answers, in any order. above: the filter of the levels above. */
  readonly scored: (above: Passes) => Scored;
  readonly slack: number;
}

/** All that a query of one level says besides how points are scored. */
interface Frame {
  readonly wire: object;
  readonly passes: Passes;
  readonly limit: number;
  readonly offset: number;
}

export function wantedOf({ scored, better, limit, offset, slack }: Level): Wanted {
  return { scored: scored(() => true), better, limit, offset, slack };
}

/** Names of vectors whose scores have no rounding errors. */
export function preciseNames(model: Model): string[] {
  return [...model.spaces].filter(([, { precise }]) => precise).map(([name]) => name);
}

/** Names of vectors whose scores a model can tell. */
function comparableNames(model: Model): string[] {
  return [...model.spaces.keys()].filter((name) => name !== IDF);
}

/** A query without prefetches, exact. precise: only such that equal scores are equal at the node too. */
export function flatQuery(model: Model, random: RandomNumbers, precise: boolean): Level {
  const using = precise ? one(random, preciseNames(model)) : one(random, comparableNames(model));
  const frame = frameOf(model, random, true);
  const kinds = precise ? [nearestScoring] : [nearestScoring, nearestScoring, recommendScoring, contextScoring, feedbackScoring];
  const discovers = !precise && model.space(using).precise && chance(random, 4);
  const scoring = (discovers ? discoverScoring : one(random, kinds))(model, random, using);
  return withThreshold(model, random, levelOf(model, frame, scoring, using, null));
}

/** The level with one scoring by a vector. lists: prefetches, null for none. */
function levelOf(model: Model, frame: Frame, scoring: Scoring, using: string, lists: readonly Level[] | null): Level {
  const { named, score, better, slack } = scoring;
  const prefetch = lists === null ? {} : { prefetch: lists.map(({ wire }) => wire) };
  return {
    wire: { ...frame.wire, ...prefetch, query: scoring.wire, using, params: { exact: true } },
    better,
    slack,
    limit: frame.limit,
    offset: frame.offset,
    scored: (above) => {
      const passes: Passes = (id, point) => above(id, point) && frame.passes(id, point) && !named.includes(id);
      return candidates(model, passes, lists).flatMap(([id, point]): [Id, number][] => {
        const own = score(point);
        return own === undefined ? [] : [[id, Math.fround(own)]];
      });
    },
  };
}

function candidates(model: Model, passes: Passes, lists: readonly Level[] | null): [Id, ModelPoint][] {
  const all = [...model.points].filter(([id, point]) => passes(id, point));
  if (lists === null) return all;
  const found = new Set(lists.flatMap((list) => pageOf(list, passes).map(([id]) => id)));
  return all.filter(([id]) => found.has(id));
}

/** Where a limit cuts through points of one score, any of them may stay. */
export class TiedCut extends Error {}

/** What one level leaves to the one above: best first, ties by id. Errors: `TiedCut`. */
function pageOf(level: Level, above: Passes): Scored {
  const ranked = rankedOf(level, above);
  const { limit } = level;
  if (ranked.length > limit && ranked[limit - 1]?.[1] === ranked[limit]?.[1]) throw new TiedCut();
  return ranked.slice(0, limit);
}

/** All points that may be answers: best first, ties by id. */
export function rankedOf({ scored, better }: Level, above: Passes): Scored {
  const sign = better === 'larger' ? -1 : 1;
  return [...scored(above)].sort(([a, x], [b, y]) => sign * (x - y) || compareIds(a, b));
}

function frameOf(model: Model, random: RandomNumbers, withOffset: boolean): Frame {
  const filter = chance(random, 2) ? filterOf(model, random) : ALL;
  const limit = 1 + random.integer(chance(random, 5) ? 400 : 40);
  const offset = withOffset && chance(random, 4) ? random.integer(20) : 0;
  const wire = { limit, ...(filter === ALL ? {} : { filter: filter.wire }), ...(offset === 0 ? {} : { offset }) };
  return { wire, passes: filter.passes, limit, offset };
}

/** Now and then a threshold that is far from every score. */
function withThreshold(model: Model, random: RandomNumbers, level: Level): Level {
  if (!chance(random, 5) || model.points.size === 0) return level;
  const scores = level
    .scored(() => true)
    .map(([, score]) => score)
    .sort((a, b) => a - b);
  const at = random.integer(Math.max(1, scores.length - 1));
  const [a = 0, b = a + 2] = scores.slice(at, at + 2);
  if (b - a < 0.05) return level;
  const threshold = (a + b) / 2;
  const passes = (score: number) => (level.better === 'larger' ? score > threshold : score < threshold);
  return {
    ...level,
    wire: { ...level.wire, score_threshold: threshold },
    scored: (above) => level.scored(above).filter(([, score]) => passes(score)),
  };
}

// ------------------------------------------------------------------ trees

/** A query with prefetches: fusion, formula, or a vector's scores of what was found. */
export function treeQuery(model: Model, random: RandomNumbers, depth = 2): Level {
  const lists = many(1 + random.integer(3), () =>
    depth > 1 && chance(random, 3) ? treeQuery(model, random, depth - 1) : flatPrefetch(model, random),
  );
  const frame = frameOf(model, random, depth === 2);
  // Of what levels above are to cut, scores have to be the same to the bit.
  switch (random.integer(depth === 2 ? 4 : 2)) {
    case 0: {
      const using = one(random, preciseNames(model));
      return levelOf(model, frame, nearestScoring(model, random, using), using, lists);
    }
    case 1:
      return ranksFused(model, random, frame, lists);
    case 2:
      return distributionsFused(model, frame, lists);
    default:
      return scoredByFormula(model, random, frame, lists);
  }
}

function flatPrefetch(model: Model, random: RandomNumbers): Level {
  const using = one(random, preciseNames(model));
  const level = levelOf(model, frameOf(model, random, false), nearestScoring(model, random, using), using, null);
  return withThreshold(model, random, level);
}

function fused(
  model: Model,
  frame: Frame,
  lists: readonly Level[],
  query: object,
  score: (id: Id, point: ModelPoint, pages: readonly Scored[]) => number,
): Level {
  return {
    wire: { ...frame.wire, prefetch: lists.length === 1 ? lists[0]?.wire : lists.map(({ wire }) => wire), query },
    better: 'larger',
    slack: 0,
    limit: frame.limit,
    offset: frame.offset,
    scored: (above) => {
      const passes: Passes = (id, point) => above(id, point) && frame.passes(id, point);
      const pages = lists.map((list) => pageOf(list, passes));
      const ids = new Set(pages.flatMap((page) => page.map(([id]) => id)));
      return [...ids].map((id) => [id, Math.fround(score(id, model.points.get(id) as ModelPoint, pages))]);
    },
  };
}

function ranksFused(model: Model, random: RandomNumbers, frame: Frame, lists: readonly Level[]): Level {
  const weights = chance(random, 3) ? lists.map(() => random.integer(5) / 2) : null;
  const k = chance(random, 2) ? 1 + random.integer(60) : null;
  const plain = weights === null && k === null;
  const query = plain ? { fusion: 'rrf' } : { rrf: { ...(k === null ? {} : { k }), ...(weights === null ? {} : { weights }) } };
  return fused(model, frame, lists, query, (id, _, pages) =>
    pages.reduce((sum, page, at) => {
      const rank = page.findIndex(([other]) => other === id);
      const weight = weights?.[at] ?? 1;
      return rank < 0 || weight === 0 ? sum : sum + 1 / ((rank + 1) / weight + (k ?? 2) - 1);
    }, 0),
  );
}

function distributionsFused(model: Model, frame: Frame, lists: readonly Level[]): Level {
  return fused(model, frame, lists, { fusion: 'dbsf' }, (id, _, pages) =>
    pages.reduce((sum, page, at) => {
      const own = page.find(([other]) => other === id)?.[1];
      if (own === undefined) return sum;
      const scores = page.map(([, score]) => score);
      const mean = scores.reduce((total, score) => total + score, 0) / scores.length;
      const deviation = Math.sqrt(scores.reduce((total, score) => total + (score - mean) ** 2, 0) / Math.max(1, scores.length - 1));
      const sign = lists[at]?.better === 'larger' ? 1 : -1;
      return sum + (deviation === 0 ? 0.5 : 0.5 + (sign * (own - mean)) / (6 * deviation));
    }, 0),
  );
}

function scoredByFormula(model: Model, random: RandomNumbers, frame: Frame, lists: readonly Level[]): Level {
  const { wire, score } = formulaScoring(model, random, lists.length);
  return fused(model, frame, lists, wire, (id, point, pages) =>
    score(
      id,
      point,
      pages.map((page) => page.find(([other]) => other === id)?.[1]),
    ),
  );
}
