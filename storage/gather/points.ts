/** Reads that need no scoring, over many nodes, by the rules of `../points.ts` and `../facet.ts`. */

import type { PointId } from '../../protocols/model/point-id.js';
import {
  type CountQuery,
  DEFAULT_SEARCH_PARAMS,
  type FacetQuery,
  type RetrieveQuery,
  type ScrollQuery,
} from '../../protocols/model/query.js';
import { type FacetHit, topValues } from '../../query/facet.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { PointView } from '../answers/result.js';
import type { GatherContext } from './context.js';
import { type GatheredHit, hitsFrom } from './hits.js';
import { Level } from './level.js';
import { checkSelected, placedPoints, type Source, shownKey } from './source.js';

/** The points in the order they are asked for; missing ones and repetitions are left out. */
export async function retrieve(context: GatherContext, { ids, withPayload, withVector }: RetrieveQuery): Promise<PointView[]> {
  const { source, portions } = context;
  checkSelected(source.place.params, withVector);
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return [];
  const { points, shards } = placedPoints(source, distinct);
  const answers = await portions.ask(source, { kind: 'points', points, extras: { withPayload, withVector, groupBy: null } }, shards);
  const found = new Map<PointId, GatheredHit>();
  for (const hit of answers.flatMap(hitsFrom)) {
    const other = found.get(hit.id);
    if (other === undefined || hit.shard < other.shard) found.set(hit.id, hit);
  }
  return distinct.flatMap((id) => {
    const hit = found.get(id);
    return hit === undefined ? [] : [recordView(source, hit)];
  });
}

/** A page in id order and the id that the next one starts with, or the first points by a payload value. */
export async function scroll(context: GatherContext, query: ScrollQuery): Promise<{ points: PointView[]; next: PointId | null }> {
  const { orderBy, filter, limit, withPayload, withVector } = query;
  checkSelected(context.source.place.params, withVector);
  const node = { prefetch: [], query: null, using: '', filter, params: DEFAULT_SEARCH_PARAMS, scoreThreshold: null, lookupFrom: null };
  const extras = { withPayload, withVector, groupBy: null };
  if (orderBy !== null) {
    const hits = await new Level(context, { ...node, limit, offset: 0 }, [], extras).ordered(orderBy);
    return { points: hits.map((hit) => recordView(context.source, hit)), next: null };
  }
  const hits = await new Level(context, { ...node, limit: limit + 1, offset: 0 }, [], extras).listed(query.offset);
  return { points: hits.slice(0, limit).map((hit) => recordView(context.source, hit)), next: hits[limit]?.id ?? null };
}

/** The point without score or version. */
function recordView(source: Source, { id, shard, shown, orderValue }: GatheredHit): PointView {
  return { id, ...shown, ...shownKey(source, shard), ...(orderValue === undefined ? {} : { orderValue }) };
}

export async function count({ source, portions }: GatherContext, { filter }: CountQuery): Promise<number> {
  const answers = await portions.ask(source, { kind: 'count', filter });
  return answers.reduce((sum, answer) => sum + answer.count, 0);
}

export async function facet({ source, portions }: GatherContext, { key, filter, limit }: FacetQuery): Promise<FacetHit[]> {
  const answers = await portions.ask(source, { kind: 'facet', key, filter });
  const sums = new Map<TermValue, number>();
  for (const { values, counts } of answers) {
    values.forEach((value, at) => {
      sums.set(value, (sums.get(value) ?? 0) + (counts[at] as number));
    });
  }
  return topValues(sums, limit);
}
