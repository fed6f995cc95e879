/** Groups of a query's hits over many nodes, by the rules of `../groups.ts`. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import { type PointId, pointIdFrom } from '../../protocols/model/point-id.js';
import type { GroupsRequest, WithLookup } from '../../protocols/model/query.js';
import { bothFilters, withoutPoints } from '../../query/filter/combine.js';
import { type Group, type GroupValue, groupSteps, roundSteps } from '../../query/group.js';
import { carryOutLater } from '../../query/steps.js';
import type { GroupView, PointView } from '../answers/result.js';
import { canNarrow, narrowingFilter, withPrefetches } from '../reader/query/groups.js';
import { type Extras, NO_EXTRAS } from '../threads/portion.js';
import type { GatherContext } from './context.js';
import { completeHits, type GatheredHit, PointTable } from './hits.js';
import { betterScores } from './level.js';
import { retrieve } from './points.js';
import { hitsOf, scoredView } from './query.js';
import { checkSelected, type Source } from './source.js';

type Found = readonly Group<GatheredHit>[];

export async function queryGroups(context: GatherContext, request: GroupsRequest): Promise<GroupView[]> {
  const { withLookup, withPayload, withVector } = request;
  const lookup = withLookup === null ? null : await context.lookup(withLookup.collection);
  checkSelected(context.source.place.params, withVector);
  const found = request.prefetch.length > 0 ? await prefetchedGroups(context, request) : await rankedGroups(context, request);
  const shown = await shownGroups(context, found, { withPayload, withVector, groupBy: null });
  const points = lookup === null || withLookup === null ? NO_POINTS : await lookupPoints(context, lookup, withLookup, found);
  return shown.map(({ value, hits }) => {
    const group = { id: value, hits: hits.map((hit) => scoredView(context, request, hit)) };
    const id = pointIdFrom(value);
    const point = id === undefined ? undefined : points.get(id);
    return point === undefined ? group : { ...group, lookup: point };
  });
}

async function rankedGroups(context: GatherContext, request: GroupsRequest): Promise<Found> {
  const { groupBy, limit, groupSize } = request;
  const schema = await schemaOf(context, groupBy);
  const steps = groupSteps<GatheredHit>({ limit, size: groupSize, canNarrow: canNarrow(schema) }, valuesOf);
  return carryOutLater(steps, async ({ narrowing, count }) => {
    const filter = bothFilters(request.filter, narrowingFilter(groupBy, schema, narrowing));
    return onceEach(await hitsOf(context, { ...request, filter, limit: count, offset: 0 }, { ...NO_EXTRAS, groupBy }));
  });
}

async function prefetchedGroups(context: GatherContext, request: GroupsRequest): Promise<Found> {
  const { groupBy, limit, groupSize } = request;
  const node = withPrefetches(request, groupSize);
  const sign = betterScores(context, node) === 'larger' ? -1 : 1;
  const steps = roundSteps<GatheredHit>({ limit, size: groupSize }, valuesOf, (a, b) => sign * (a.score - b.score));
  return carryOutLater(steps, async ({ seen, count }) => {
    const filter = withoutPoints(
      node.filter,
      seen.map(({ id }) => id),
    );
    return onceEach(await hitsOf(context, { ...node, filter, limit: count, offset: 0 }, { ...NO_EXTRAS, groupBy }));
  });
}

function valuesOf({ groups }: GatheredHit): readonly GroupValue[] {
  return groups ?? [];
}

/** An order may repeat a point: it stands in its groups once. */
function onceEach(hits: readonly GatheredHit[]): GatheredHit[] {
  const seen = new PointTable<true>();
  return hits.map((hit) => {
    const again = seen.get(hit) === true;
    seen.set(hit.shard, hit.id, true);
    return again ? { ...hit, groups: [] } : hit;
  });
}

/** The index of the key: all shards have the same. */
async function schemaOf({ source, portions }: GatherContext, key: string): Promise<FieldSchema | undefined> {
  const answers = await portions.ask(source, { kind: 'field', key });
  return answers.find(({ schema }) => schema !== null)?.schema ?? undefined;
}

/** What is shown is asked for once it is known which hits stay. */
async function shownGroups(context: GatherContext, groups: Found, extras: Extras): Promise<Found> {
  const complete = new PointTable<GatheredHit>();
  const all = groups.flatMap(({ hits }) => hits);
  for (const hit of await completeHits(context, all, extras)) complete.set(hit.shard, hit.id, hit);
  return groups.map(({ value, hits }) => ({
    value,
    // An order has a value of its own for each hit.
    hits: hits.flatMap((hit) => {
      const known = complete.get(hit);
      return known === undefined ? [] : [{ ...hit, ...(known.shown === undefined ? {} : { shown: known.shown }) }];
    }),
  }));
}

const NO_POINTS: ReadonlyMap<PointId, PointView> = new Map();

/** The points whose ids the groups' values are. */
async function lookupPoints(
  context: GatherContext,
  source: Source,
  { withPayload, withVector }: WithLookup,
  groups: Found,
): Promise<ReadonlyMap<PointId, PointView>> {
  const ids = groups.flatMap(({ value }) => pointIdFrom(value) ?? []);
  const points = await retrieve({ ...context, source }, { ids, withPayload, withVector });
  return new Map(points.map((point) => [point.id, point]));
}
