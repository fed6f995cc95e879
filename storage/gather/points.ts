/** Reads that need no scoring, over many nodes. */

import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { RetrieveQuery } from '../../protocols/model/query.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { PointView } from '../answers/result.js';
import { recordView } from '../walk/shown.js';
import { checkSelected } from '../walk/space.js';
import type { Needs } from '../walk/walk.js';
import type { GatherContext } from './context.js';
import { type GatheredHit, hitsFrom } from './hits.js';
import { placedPoints, shardKeyShown } from './source.js';

/** The points in the order they are asked for; missing ones and repetitions are left out. */
export async function gatherPoints(context: GatherContext, { ids, withPayload, withVector }: RetrieveQuery): Promise<PointView[]> {
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
    return hit === undefined ? [] : [recordView(hit, { ...hit.shown, ...shardKeyShown(source, hit.shard) })];
  });
}

/** How many points pass, over all shards that are asked. */
export async function sumCounts({ source, portions }: GatherContext, filter: Filter | null): Promise<number> {
  const answers = await portions.ask(source, { kind: 'count', filter });
  return answers.reduce((sum, answer) => sum + answer.count, 0);
}

/** In how many points each value is, over all shards that are asked. Errors: as `valueCounts` of a reader. */
export async function sumValues(
  { source, portions }: GatherContext,
  { key, filter }: Needs<GatheredHit>['facet'],
): Promise<ReadonlyMap<TermValue, number>> {
  const answers = await portions.ask(source, { kind: 'facet', key, filter });
  const sums = new Map<TermValue, number>();
  for (const { values, counts } of answers) {
    values.forEach((value, at) => {
      sums.set(value, (sums.get(value) ?? 0) + (counts[at] as number));
    });
  }
  return sums;
}
