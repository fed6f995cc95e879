/** Points as answers show them. */

import type { QueryNode } from '../../protocols/model/query.js';
import type { PointView } from '../answers/result.js';
import type { ShownPoint, WalkHit } from './walk.js';

/** The views of all hits that are still there. shown: aligned with the hits; null for a point that is gone. */
export function viewsOf<Hit extends WalkHit>(
  hits: readonly Hit[],
  shown: readonly (ShownPoint | null)[],
  viewOf: (hit: Hit, shown: ShownPoint) => PointView,
): PointView[] {
  const views: PointView[] = [];
  for (let at = 0; at < hits.length; at++) {
    const parts = shown[at];
    if (parts != null) views.push(viewOf(hits[at] as Hit, parts));
  }
  return views;
}

/** A hit of a query. What has no score of its own is shown without its version, too. */
export function scoredView({ query }: QueryNode, { id, score, version, orderValue }: WalkHit, shown: ShownPoint): PointView {
  const isOrdered = query?.kind === 'orderBy';
  const { payload, vector, shardKey } = shown;
  return {
    id,
    version: isOrdered || query === null || query.kind === 'sample' ? 0 : version,
    score,
    payload,
    vector,
    shardKey,
    orderValue: isOrdered ? orderValue : undefined,
  };
}

/** A point without score or version. */
export function recordView({ id, orderValue }: Pick<WalkHit, 'id' | 'orderValue'>, { payload, vector, shardKey }: ShownPoint): PointView {
  // All fields, in one order: objects of one shape are made and read several times as quickly as copies of others.
  return { id, version: undefined, score: undefined, payload, vector, shardKey, orderValue };
}
