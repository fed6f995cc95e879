/**
 * Groups of hits by the values of a payload key: the groups with the best hits, and the best hits of each.
 * A ranking is only seen through its first hits, so it is asked again, narrowed to what is missing.
 */

import { pathOf } from '../protocols/model/json-path.js';
import type { JsonValue, Payload } from '../protocols/model/payload.js';
import { someValue } from './filter/values.js';
import { runSteps, type Steps } from './steps.js';

export type GroupValue = string | number | bigint;

/** Which hits of the ranking are wanted. */
export type Narrowing =
  | { readonly kind: 'all' }
  /** Hits with one of the values. */
  | { readonly kind: 'any'; readonly values: readonly GroupValue[] }
  /** At least all hits with a value that is none of these. */
  | { readonly kind: 'except'; readonly values: readonly GroupValue[] };

export interface GroupPlan {
  /** Groups wanted. */
  readonly limit: number;
  /** Hits wanted of each. */
  readonly size: number;
  /** Whether narrowing is cheap; else the ranking is read further down. */
  readonly canNarrow: boolean;
}

export interface Group<Hit> {
  readonly value: GroupValue;
  /** In the order of the ranking, at most `size`. */
  readonly hits: readonly Hit[];
}

/** The first `count` hits of a ranking that are wanted. */
export interface RankingPart {
  readonly narrowing: Narrowing;
  readonly count: number;
}

/** The best `count` hits beside those seen. */
export interface Round<Hit> {
  readonly seen: readonly Hit[];
  readonly count: number;
  /** Not wanted: hits with one of these values. */
  readonly without: readonly GroupValue[];
  /** Not wanted: hits with none of these values. Null: all are wanted. */
  readonly only: readonly GroupValue[] | null;
}

/** How often prefetched points are asked for, to find groups and to fill them: each round searches anew. */
const ROUNDS_MAX = 5;
/** How much further down the ranking is read when what came was not enough. */
const GROWTH = 4;

/** The values a payload is grouped by: texts and integers at the path, also as elements of an array, each once. */
export function groupValues(payload: Payload, key: string): GroupValue[] {
  const values = new Set<GroupValue>();
  const take = (value: JsonValue): void => {
    if (typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) values.add(value);
  };
  someValue(payload, pathOf(key), (value) => {
    if (Array.isArray(value)) value.forEach(take);
    else take(value);
    return false;
  });
  return [...values];
}

/**
 * The groups in the order of their best hits: as many groups and hits as there are, up to those wanted.
 * run: the first `count` hits of the ranking that are wanted, fewer only when there are no more.
 * valuesOf: the values of a hit, each once.
 */
export function gatherGroups<Hit>(
  plan: GroupPlan,
  run: (narrowing: Narrowing, count: number) => readonly Hit[],
  valuesOf: (hit: Hit) => readonly GroupValue[],
): Group<Hit>[] {
  return runSteps(groupSteps(plan, valuesOf), ({ narrowing, count }) => run(narrowing, count));
}

/** The same, step by step. */
export function* groupSteps<Hit>(
  plan: GroupPlan,
  valuesOf: (hit: Hit) => readonly GroupValue[],
): Steps<RankingPart, readonly Hit[], Group<Hit>[]> {
  const { limit, size } = plan;
  for (let count = limit * size; ; count *= GROWTH) {
    const hits = yield { narrowing: { kind: 'all' }, count };
    const groups: Groups<Hit> = new Map();
    collect(groups, hits, size, valuesOf);
    if (hits.length < count || isComplete(groups, plan)) return firstGroups(groups, limit);
    if (!plan.canNarrow) continue;
    yield* discover(groups, plan, valuesOf);
    return yield* fill(firstGroups(groups, limit), plan, valuesOf);
  }
}

/**
 * Groups of points that prefetches find. Their limits bound what one round brings, and scores of a fusion depend on
 * what else was found, so further rounds leave out what was seen and the groups that are full, and what they bring counts with the
 * scores it has there. The last rounds are for those of the best groups that are not full.
 * run: the hits of a round. compare: the better hit first.
 * Source: scenarios query-fusion (step groups-fusion) and query-sample-groups-more.
 */
export function gatherRounds<Hit>(
  plan: Omit<GroupPlan, 'canNarrow'>,
  run: (round: Round<Hit>) => readonly Hit[],
  valuesOf: (hit: Hit) => readonly GroupValue[],
  compare: (a: Hit, b: Hit) => number,
): Group<Hit>[] {
  return runSteps(roundSteps(plan, valuesOf, compare), run);
}

/** The same, step by step. */
export function* roundSteps<Hit>(
  plan: Omit<GroupPlan, 'canNarrow'>,
  valuesOf: (hit: Hit) => readonly GroupValue[],
  compare: (a: Hit, b: Hit) => number,
): Steps<Round<Hit>, readonly Hit[], Group<Hit>[]> {
  const { limit, size } = plan;
  const all: Groups<Hit> = new Map();
  const seen: Hit[] = [];
  const count = limit * size;
  const take = (hits: readonly Hit[]): void => {
    for (const hit of hits) seen.push(hit);
    collect(all, hits, Number.POSITIVE_INFINITY, valuesOf);
  };
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const hits = yield { seen, count, without: fullGroups(all, size), only: null };
    take(hits);
    if (hits.length === 0 || isComplete(bestGroups(all, size, compare), plan)) break;
  }
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const open = firstGroups(bestGroups(all, size, compare), limit).filter(({ hits }) => hits.length < size);
    if (open.length === 0) break;
    const hits = yield { seen, count, without: [], only: open.map(({ value }) => value) };
    if (hits.length === 0) break;
    take(hits);
  }
  return firstGroups(bestGroups(all, size, compare), limit);
}

function fullGroups<Hit>(groups: Groups<Hit>, size: number): GroupValue[] {
  return [...groups].flatMap(([value, hits]) => (hits.length < size ? [] : [value]));
}

/** Each group's best hits, in the order of the groups' best ones. */
function bestGroups<Hit>(groups: Groups<Hit>, size: number, compare: (a: Hit, b: Hit) => number): Groups<Hit> {
  return new Map(
    [...groups]
      .map(([value, hits]): [GroupValue, Hit[]] => [value, hits.sort(compare).slice(0, size)])
      .sort(([, [a]], [, [b]]) => compare(a as Hit, b as Hit)),
  );
}

type Groups<Hit> = Map<GroupValue, Hit[]>;

/** Finds groups behind those known, until there are enough. */
function* discover<Hit>(
  groups: Groups<Hit>,
  { limit, size }: GroupPlan,
  valuesOf: (hit: Hit) => readonly GroupValue[],
): Steps<RankingPart, readonly Hit[], void> {
  let count = limit * size;
  while (groups.size < limit) {
    const known = new Set(groups.keys());
    const hits = yield { narrowing: { kind: 'except', values: [...known] }, count };
    // Of groups already known only some hits are here.
    collect(groups, hits, size, (hit) => valuesOf(hit).filter((value) => !known.has(value)));
    if (hits.length < count) return;
    if (groups.size === known.size) count *= GROWTH;
  }
}

/**
 * Hits asked for to fill a group. If hits fall on the groups by chance, this many for each (mean plus three times its
 * root) leave few groups open, and a further run costs more than some hits that are not needed.
 */
function hitsToFill(size: number): number {
  return Math.ceil(size + 3 * Math.sqrt(size));
}

/** The groups with all their hits. Each run fills a group or shows that there is no more: n × size hits fill one of n. */
function* fill<Hit>(
  groups: readonly Group<Hit>[],
  { size }: GroupPlan,
  valuesOf: (hit: Hit) => readonly GroupValue[],
): Steps<RankingPart, readonly Hit[], Group<Hit>[]> {
  const filled = new Map(groups.map(({ value, hits }) => [value, hits]));
  let open = groups.filter(({ hits }) => hits.length < size).map(({ value }) => value);
  for (let factor = 1; open.length > 0; ) {
    const count = open.length * hitsToFill(size) * factor;
    const hits = yield { narrowing: { kind: 'any', values: open }, count };
    const found: Groups<Hit> = new Map(open.map((value) => [value, []]));
    collect(found, hits, size, (hit) => valuesOf(hit).filter((value) => found.has(value)));
    for (const [value, list] of found) if (list.length > (filled.get(value)?.length ?? 0)) filled.set(value, list);
    if (hits.length < count) break;
    const left = open.filter((value) => (filled.get(value)?.length ?? 0) < size);
    if (left.length === open.length) factor *= GROWTH;
    open = left;
  }
  return groups.map(({ value }) => ({ value, hits: filled.get(value) ?? [] }));
}

function collect<Hit>(groups: Groups<Hit>, hits: readonly Hit[], size: number, valuesOf: (hit: Hit) => readonly GroupValue[]): void {
  for (const hit of hits) {
    for (const value of valuesOf(hit)) {
      const group = groups.get(value);
      if (group === undefined) groups.set(value, [hit]);
      else if (group.length < size) group.push(hit);
    }
  }
}

function isComplete<Hit>(groups: Groups<Hit>, { limit, size }: Pick<GroupPlan, 'limit' | 'size'>): boolean {
  const first = firstGroups(groups, limit);
  return first.length === limit && first.every(({ hits }) => hits.length === size);
}

function firstGroups<Hit>(groups: Groups<Hit>, limit: number): Group<Hit>[] {
  return [...groups].slice(0, limit).map(([value, hits]) => ({ value, hits }));
}
