/** Points as answers show them. */

import type { QueryNode } from '../../protocols/model/query.js';
import type { PointView } from '../answers/result.js';
import type { Shown, WalkHit } from './walk.js';

/** A hit of a query. What has no score of its own is shown without its version, too. */
export function scoredView({ query }: QueryNode, { id, score, version, orderValue }: WalkHit, shown: Shown): PointView {
  const isOrdered = query?.kind === 'orderBy';
  const view = { id, version: isOrdered || query === null || query.kind === 'sample' ? 0 : version, score, ...shown };
  return isOrdered && orderValue !== undefined ? { ...view, orderValue } : view;
}

/** A point without score or version. */
export function recordView({ id, orderValue }: WalkHit, shown: Shown): PointView {
  return orderValue === undefined ? { id, ...shown } : { id, ...shown, orderValue };
}
