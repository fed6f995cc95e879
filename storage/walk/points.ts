/** Reads that need no scoring: points by id, in order, and counts of values. */

import { parseStored } from '../../protocols/json.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { DEFAULT_SEARCH_PARAMS, type FacetQuery, type RetrieveQuery, type ScrollQuery } from '../../protocols/model/query.js';
import { type FacetHit, topValues } from '../../query/facet.js';
import { matchesPayload } from '../../query/filter/predicate.js';
import type { PointView } from '../answers/result.js';
import { recordView, viewsOf } from './shown.js';
import { checkSelected } from './space.js';
import type { PagedNode, Scope, Walk, WalkHit } from './walk.js';

/** The points in the order they are asked for; missing ones and repetitions are left out. within: only points that pass; undefined: all. */
export function* retrieveWalk<Hit extends WalkHit>(
  scope: Scope<Hit>,
  query: RetrieveQuery,
  within?: Filter,
): Walk<Hit, readonly PointView[]> {
  if (within === undefined) return yield* scope.ask('points', { collection: null, query });
  const passing = yield* idsWithin(scope, query.ids, within);
  return yield* scope.ask('points', { collection: null, query: { ...query, ids: query.ids.filter((id) => passing.has(id)) } });
}

/**
 * Those of the points that are there and pass. within: on payloads alone. The payloads of these points are read: a list of all that pass would
 * have to go through every point in front of them.
 */
export function* idsWithin<Hit extends WalkHit>(
  scope: Scope<Hit>,
  ids: readonly PointId[],
  within: Filter,
): Walk<Hit, ReadonlySet<PointId>> {
  if (ids.length === 0) return new Set();
  const query = { ids, withPayload: { kind: 'all' }, withVector: { kind: 'none' } } as const;
  const points = yield* scope.ask('points', { collection: null, query });
  return new Set(points.filter((point) => passes(point, within)).map(({ id }) => id));
}

function passes({ id, payload }: PointView, within: Filter): boolean {
  const values = payload === undefined ? {} : (parseStored(payload) as Payload);
  return matchesPayload(within, { id, payload: values, hasVector: () => false });
}

/** A page in id order and the id that the next one starts with, or the first points by a payload value. */
export function* scrollWalk<Hit extends WalkHit>(
  scope: Scope<Hit>,
  query: ScrollQuery,
): Walk<Hit, { readonly points: readonly PointView[]; readonly next: PointId | null }> {
  const { orderBy, filter, limit, offset, withPayload, withVector } = query;
  checkSelected(scope.params, withVector);
  const extras = { withPayload, withVector, groupBy: null };
  // One more than a page of the list tells where the next one starts.
  const node = listNode(filter, orderBy === null ? limit + 1 : limit);
  const level = orderBy === null ? ({ kind: 'list', from: offset } as const) : ({ kind: 'orderBy', orderBy } as const);
  const found = yield* scope.ask('level', { node, query: level, lists: [], extras });
  const hits = found.length > limit ? found.slice(0, limit) : found;
  const shown = yield* scope.ask('shown', { hits, extras });
  return { points: viewsOf(hits, shown, recordView), next: found[limit]?.id ?? null };
}

/** How many points pass. */
export function* countWalk<Hit extends WalkHit>(scope: Scope<Hit>, filter: Filter | null): Walk<Hit, number> {
  return yield* scope.ask('count', { filter });
}

/** The most frequent values. A point counts once for each of its distinct values. Always exact. */
export function* facetWalk<Hit extends WalkHit>(scope: Scope<Hit>, { key, filter, limit }: FacetQuery): Walk<Hit, FacetHit[]> {
  return topValues(yield* scope.ask('facet', { key, filter }), limit);
}

/** A level without a query: its points have no scores. */
export function listNode(filter: Filter | null, limit: number): PagedNode {
  return {
    prefetch: [],
    query: null,
    using: '',
    filter,
    params: DEFAULT_SEARCH_PARAMS,
    scoreThreshold: null,
    limit,
    offset: 0,
    lookupFrom: null,
  };
}
