/**
 * Decides how one segment is searched by several examples: by a walk of its graph, whose rows are then scored exactly, or by scoring all rows that pass.
 * Pure; the plans, their reasons and Query-Q1 are those of `plan.ts`.
 *
 * - Recommendation by the best score, discovery and context are walked by all examples at once, from rows near the positives and the target.
 * - Sums of weighted similarities (recommendation by their sum, relevance feedback) are similarities to one vector, wherever similarity is a product or
 *   a squared distance; so that vector is searched for.
 */

import type { ExampleWalk, Metric } from '../vectors/kernel-api.js';
import { cheapestWalk, kilobytes, type SegmentFacts, type SegmentPlan, THRESHOLD_PATIENCE, vectorBytes, WALK_ADVANTAGE } from './plan.js';

/** How a graph is searched for a query with examples. */
export type ExampleSearch =
  | { readonly kind: 'ranks'; readonly walk: ExampleWalk }
  /** The rows nearest to a vector. */
  | { readonly kind: 'nearest'; readonly target: Float32Array };

/** What planning needs to know of the examples. */
export interface ExampleFacts {
  readonly count: number;
  /** Null: they lead to no place in the graph. */
  readonly search: ExampleSearch | null;
  /** Examples that a walk has room for. */
  readonly countMax: number;
}

/** Scoring a row exactly by one example: the combining of scores included, which is no kernel's. */
const EXACT_ROW_NS = 60;
const EXACT_BYTE_NS = 0.09;
/** What a further example adds to a walk: its rows are in the cache by then. */
const FURTHER_EXAMPLE = 0.15;
/** Rows that are opened to find those from which a walk begins. */
const START_OPENED = 16;
/**
 * How many times `hnsw_ef` the list of candidates grows by for each pair of a discovery: rows on the right side of all pairs lie in more places. Measured on 6,000
 * rows in 60 clusters, with three pairs: with 1 and a graph of insertions 0.967 of ten were found for 25,400 scores, with a graph of pairs 0.942 for 20,400, and
 * with lists 1.3 and 1.6 times as long 0.955 for 24,200 and 0.972 for 27,500.
 */
const EF_OF_PAIR = 2;
/** The same for a sum of several similarities: the middle between examples may lie where few rows are. */
const EF_OF_SUM = 2;
/** Zones of a walk's ranks are -30 to 30. */
const PAIRS_MAX = 30;

/** The plan for one segment. facts: `k` is at least 1. */
export function planExamples(facts: SegmentFacts, { count, countMax, search }: ExampleFacts): SegmentPlan {
  const wanted = facts.admitted ?? facts.live;
  if (facts.exact) return allRows(facts, { kind: 'exact' });
  if (!facts.hasGraph && facts.valueGraph === null) return allRows(facts, { kind: 'noGraph' });
  if (search === null) return allRows(facts, { kind: 'placeless' });
  if (areTooCoarse(facts, search)) return allRows(facts, { kind: 'coarseCodes' });
  if (search.kind === 'ranks' && (count > countMax || pairsOf(search) > PAIRS_MAX)) return allRows(facts, { kind: 'manyExamples' });
  const ef = Math.max(Math.ceil((facts.hnswEf ?? facts.efDefault) * efShare(search, count)), facts.k);
  if (wanted <= ef) return allRows(facts, { kind: 'mostRowsWanted' });
  const walk = exampleWalk(facts, search, ef, wanted);
  const exactNs = count * rowNs(facts);
  const walkNs = walk.ns + ef * exactNs;
  const size = kilobytes(wanted, facts);
  if (size < facts.fullScanThresholdKb && wanted * exactNs <= walkNs * THRESHOLD_PATIENCE) {
    return allRows(facts, { kind: 'belowThreshold', kilobytes: size });
  }
  const { graph, narrow, of, rows, selectivity } = walk;
  const why = { kind: 'costs', walk: { ns: walkNs, of, rows, selectivity }, exhaustive: 'gather', exhaustiveNs: wanted * exactNs } as const;
  if (why.exhaustiveNs * WALK_ADVANTAGE <= walkNs) return allRows(facts, why);
  return { kind: 'walk', graph, narrow, ef, useCodes: facts.codes !== null, rescore: true, keep: ef, fallback: 'gather', why };
}

/**
 * Whether rows that a walk has found, of which the last has this exact score, are taken for the best. Within a context nothing is better than 0. Where too
 * few rows are, as when pairs contradict each other, the best lie between positives and negatives everywhere, and no walk leads along there: it
 * found 0.13 to 0.68 of ten.
 */
export function walkSettles(search: ExampleSearch | null, lastScore: number): boolean {
  return search?.kind !== 'ranks' || search.walk.form !== 'context' || lastScore >= 0;
}

/** The facts with which a segment is planned and walked: without its codes, if these are too coarse and the originals are in memory. */
export function exampleFacts(facts: SegmentFacts, search: ExampleSearch | null): SegmentFacts {
  return facts.codes?.rescoreFound === true && areTooCoarse(facts, search) ? { ...facts, codes: null } : facts;
}

/** A walk by ranks has to tell on which side of examples a row lies. By half bytes a discovery found 0.92 to 0.97 of ten, by 8 bits 0.98 and more. */
function areTooCoarse({ codes, dim }: SegmentFacts, search: ExampleSearch | null): boolean {
  if (codes === null || search?.kind !== 'ranks') return false;
  return codes.coarse || (search.walk.form === 'discover' && codes.bytes < dim);
}

function allRows(facts: SegmentFacts, why: SegmentPlan['why']): SegmentPlan {
  return { kind: 'gather', useCodes: false, rescore: false, keep: facts.k, why };
}

function rowNs(facts: SegmentFacts): number {
  return EXACT_ROW_NS + EXACT_BYTE_NS * vectorBytes(facts);
}

/** How many times `hnsw_ef` candidates are kept; measured, see vectors/README.md. */
function efShare(search: ExampleSearch, count: number): number {
  if (search.kind === 'nearest') return count > 1 ? 1 + EF_OF_SUM : 1;
  return 1 + EF_OF_PAIR * pairsOf(search);
}

/** Of a discovery. */
function pairsOf(search: ExampleSearch): number {
  return search.kind === 'ranks' && search.walk.form === 'discover' ? (search.walk.examples.length - 1) / 2 : 0;
}

/** The cheapest walk; it does not end by distance. */
function exampleWalk(facts: SegmentFacts, search: ExampleSearch, ef: number, wanted: number): ReturnType<typeof cheapestWalk> {
  const byEf = { ...facts, k: 0 };
  const walk = cheapestWalk(byEf, ef, wanted);
  if (search.kind === 'nearest') return walk;
  const start = cheapestWalk({ ...byEf, admitted: null }, START_OPENED, facts.live);
  const { examples, starts } = search.walk;
  return { ...walk, ns: walk.ns * (1 + FURTHER_EXAMPLE * (examples.length - 1)) + starts.length * start.ns };
}

// ------------------------------------------------------------------ where a walk leads

/** The examples of a query, in the order in which its scorer takes them; as rows are compared with them. */
export type ExampleForm =
  | { readonly kind: 'bestScore'; readonly positives: number }
  | { readonly kind: 'discover' | 'context' }
  /** The score is the sum of the similarities, each times its weight. */
  | { readonly kind: 'sum'; readonly weights: readonly number[] };

/** How a graph is searched by these examples; null: they lead to no place. */
export function exampleSearch(form: ExampleForm, examples: readonly Float32Array[], metric: Metric): ExampleSearch | null {
  switch (form.kind) {
    case 'bestScore':
      return ranks('bestScore', examples, form.positives, examples.slice(0, form.positives));
    case 'discover':
      return ranks('discover', examples, 0, [...examples.slice(0, 1), ...everySecond(examples.slice(1))]);
    case 'context':
      return ranks('context', examples, 0, everySecond(examples));
    case 'sum':
      return nearestTo(form.weights, examples, metric);
    default:
      return form satisfies never;
  }
}

/** Rows far from all negatives may be anywhere: without positives there is no walk. */
function ranks(
  form: ExampleWalk['form'],
  examples: readonly Float32Array[],
  positives: number,
  starts: readonly Float32Array[],
): ExampleSearch | null {
  return starts.length === 0 ? null : { kind: 'ranks', walk: { form, examples, positives, starts } };
}

/** The positives of pairs. */
function everySecond(pairs: readonly Float32Array[]): Float32Array[] {
  return pairs.filter((_, at) => at % 2 === 0);
}

/**
 * Of products, the similarity to the weighted sum. Of squared distances that to the weighted mean, up to a constant, if the weights' sum is above 0.
 * A sum that is 0, or beyond a float32, points nowhere.
 */
function nearestTo(weights: readonly number[], examples: readonly Float32Array[], metric: Metric): ExampleSearch | null {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (examples.length === 0 || metric === 'l1' || (metric === 'l2' && total <= 0)) return null;
  const sum = new Float64Array((examples[0] as Float32Array).length);
  examples.forEach((example, at) => {
    const weight = (weights[at] as number) / (metric === 'l2' ? total : 1);
    for (let i = 0; i < sum.length; i++) (sum[i] as number) += weight * (example[i] as number);
  });
  const target = Float32Array.from(sum);
  const points = target.every(Number.isFinite) && (metric === 'l2' || target.some((component) => component !== 0));
  return points ? { kind: 'nearest', target } : null;
}
