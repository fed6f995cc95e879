/** Groups of a query's hits by the values of a payload key, with a point of another collection for each if asked. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Condition, Filter } from '../../protocols/model/filter.js';
import { type PointId, pointIdFrom } from '../../protocols/model/point-id.js';
import type { GroupsRequest, QueryNode, WithLookup } from '../../protocols/model/query.js';
import { canFacet } from '../../query/facet.js';
import { bothFilters, withoutPoints } from '../../query/filter/combine.js';
import { type Group, type GroupValue, groupSteps, type Narrowing, roundSteps } from '../../query/group.js';
import type { GroupView, PointView } from '../answers/result.js';
import { NO_EXTRAS } from '../threads/portion.js';
import { pageWalk } from './query.js';
import { scoredView, viewsOf } from './shown.js';
import { betterScores, checkSelected } from './space.js';
import type { PagedNode, Scope, Walk, WalkHit } from './walk.js';

/** A hit and the groups that it stands in. */
interface GroupedHit<Hit> {
  readonly hit: Hit;
  readonly values: readonly GroupValue[];
}

type Found<Hit> = readonly Group<GroupedHit<Hit>>[];

/** The groups in the order of their best hits. Errors: those of the query; `notFound` for a lookup collection that is not there. */
export function* groupsWalk<Hit extends WalkHit>(scope: Scope<Hit>, request: GroupsRequest): Walk<Hit, GroupView[]> {
  const { withLookup, withPayload, withVector } = request;
  if (withLookup !== null) yield* scope.ask('lookup', { collection: withLookup.collection });
  checkSelected(scope.params, withVector);
  const found = request.prefetch.length > 0 ? yield* prefetchedGroups(scope, request) : yield* rankedGroups(scope, request);
  const points = withLookup === null ? NO_POINTS : yield* lookupPoints(scope, withLookup, found);
  // What is shown is asked for once it is known which hits stay.
  const hits = found.flatMap((group) => group.hits.map(({ hit }) => hit));
  const shown = yield* scope.ask('shown', { hits, extras: { withPayload, withVector, groupBy: null } });
  let from = 0;
  return found.map((group) => {
    const own = shown.slice(from, from + group.hits.length);
    from += group.hits.length;
    const views = viewsOf(
      group.hits.map(({ hit }) => hit),
      own,
      (hit, parts) => scoredView(request, hit, parts),
    );
    const id = pointIdFrom(group.value);
    const lookup = id === undefined ? undefined : points.get(id);
    return lookup === undefined ? { id: group.value, hits: views } : { id: group.value, hits: views, lookup };
  });
}

function* rankedGroups<Hit extends WalkHit>(scope: Scope<Hit>, request: GroupsRequest): Walk<Hit, Found<Hit>> {
  const { groupBy, limit, groupSize } = request;
  const schema = yield* scope.ask('field', { key: groupBy });
  const steps = groupSteps<GroupedHit<Hit>>({ limit, size: groupSize, canNarrow: canNarrow(schema) }, valuesOf);
  return yield* scope.steps(steps, ({ narrowing, count }) => {
    const filter = bothFilters(request.filter, narrowingFilter(groupBy, schema, narrowing));
    return groupedWalk(scope, { ...request, filter, limit: count, offset: 0 }, groupBy);
  });
}

function* prefetchedGroups<Hit extends WalkHit>(scope: Scope<Hit>, request: GroupsRequest): Walk<Hit, Found<Hit>> {
  const { groupBy, limit, groupSize } = request;
  const node = withPrefetches(request, groupSize);
  const sign = betterScores(scope.params, node) === 'larger' ? -1 : 1;
  const steps = roundSteps<GroupedHit<Hit>>({ limit, size: groupSize }, valuesOf, (a, b) => sign * (a.hit.score - b.hit.score));
  return yield* scope.steps(steps, ({ seen, count, without, only }) => {
    const ids = seen.map(({ hit }) => hit.id);
    const filter = bothFilters(withoutPoints(node.filter, ids), valuesFilter(groupBy, without, only));
    return groupedWalk(scope, { ...node, filter, limit: count, offset: 0 }, groupBy);
  });
}

/** The hits of a level with their values. An order may repeat a point: it stands in its groups once. */
function* groupedWalk<Hit extends WalkHit>(scope: Scope<Hit>, node: PagedNode, groupBy: string): Walk<Hit, readonly GroupedHit<Hit>[]> {
  const hits = yield* pageWalk(scope, node, { ...NO_EXTRAS, groupBy });
  const values = yield* scope.ask('groupValues', { hits, groupBy });
  return groupedHits(hits, values);
}

function groupedHits<Hit extends WalkHit>(hits: readonly Hit[], values: readonly (readonly GroupValue[] | null)[]): GroupedHit<Hit>[] {
  const seen = new Set<PointId>();
  const grouped: GroupedHit<Hit>[] = [];
  for (let at = 0; at < hits.length; at++) {
    const hit = hits[at] as Hit;
    const own = values[at];
    if (own == null) continue;
    grouped.push({ hit, values: seen.has(hit.id) ? NO_VALUES : own });
    seen.add(hit.id);
  }
  return grouped;
}

const NO_VALUES: readonly GroupValue[] = [];

function valuesOf({ values }: GroupedHit<unknown>): readonly GroupValue[] {
  return values;
}

/** Prefetches find as many times more as a group has hits, so that the groups can be filled. Source: scenario query-groups, step prefetch. */
function withPrefetches<Node extends QueryNode>(node: Node, factor: number): Node {
  if (node.prefetch.length === 0) return node;
  const prefetch = node.prefetch.map((one) => ({ ...withPrefetches(one, factor), limit: one.limit * factor }));
  return { ...node, prefetch };
}

/** Whether the index of the key answers which rows have some of its values, or others, without reading payloads. */
function canNarrow(schema: FieldSchema | undefined): boolean {
  return schema !== undefined && schema.type !== 'bool' && canFacet(schema);
}

/** What passes a narrowing; null: everything. */
function narrowingFilter(key: string, schema: FieldSchema | undefined, narrowing: Narrowing): Filter | null {
  switch (narrowing.kind) {
    case 'all':
      return null;
    case 'any':
      return some({ kind: 'match', key, match: { kind: 'any', values: narrowing.values } });
    case 'except': {
      const others: Condition = { kind: 'match', key, match: { kind: 'except', values: narrowing.values } };
      // Integers are no values of an index of texts, so it would not count them among the others.
      return schema?.type === 'integer' ? some(others) : some(others, { kind: 'range', key, range: {} });
    }
    default:
      return narrowing satisfies never;
  }
}

/** What passes has none of some values, and one of the others where those are given. */
function valuesFilter(key: string, without: readonly GroupValue[], only: readonly GroupValue[] | null): Filter | null {
  if (without.length === 0 && only === null) return null;
  const any = (values: readonly GroupValue[]): Condition => ({ kind: 'match', key, match: { kind: 'any', values } });
  const mustNot = without.length === 0 ? [] : [any(without)];
  return { must: only === null ? [] : [any(only)], should: [], mustNot, minShould: null };
}

function some(...should: Condition[]): Filter {
  return { must: [], should, mustNot: [], minShould: null };
}

const NO_POINTS: ReadonlyMap<PointId, PointView> = new Map();

/** The points whose ids the groups' values are. */
function* lookupPoints<Hit extends WalkHit>(
  scope: Scope<Hit>,
  { collection, withPayload, withVector }: WithLookup,
  groups: Found<Hit>,
): Walk<Hit, ReadonlyMap<PointId, PointView>> {
  const ids = groups.flatMap(({ value }) => pointIdFrom(value) ?? []);
  const points = yield* scope.ask('points', { collection, query: { ids, withPayload, withVector } });
  return new Map(points.map((point) => [point.id, point]));
}
