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
  const view = { id, version: isOrdered || query === null || query.kind === 'sample' ? 0 : version, score, ...shown };
  return isOrdered && orderValue !== undefined ? { ...view, orderValue } : view;
}

/** A point without score or version. */
export function recordView({ id, orderValue }: WalkHit, shown: ShownPoint): PointView {
  return orderValue === undefined ? { id, ...shown } : { id, ...shown, orderValue };
}
