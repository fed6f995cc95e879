/** A read operation as a walk. */

import type { ShardKeySelector } from '../../protocols/model/cluster.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { GroupsRequest, QueryNode, QueryRequest } from '../../protocols/model/query.js';
import { pointResult, queriedResult } from '../answers/read-answer.js';
import type { GroupView, PointView, ReadResult } from '../answers/result.js';
import type { ReadRequest } from '../requests/read-request.js';
import { groupsWalk } from './groups.js';
import { noSuchPoint, pointsNamed } from './inputs.js';
import { matrixWalk } from './matrix.js';
import { countWalk, facetWalk, idsWithin, retrieveWalk, scrollWalk } from './points.js';
import { queryWalk } from './query.js';
import type { Scope, Walk, WalkHit } from './walk.js';

/** What the read answers. Errors: those of its parts. */
export function* readWalk<Hit extends WalkHit>(scope: Scope<Hit>, read: ReadRequest): Walk<Hit, ReadResult> {
  switch (read.kind) {
    case 'queries': {
      const branches = read.queries.map((query) => ({
        shardKey: query.shardKey,
        walk: (own: Scope<Hit>) => (read.within === undefined ? queryWalk(own, query) : queryWithin(own, query, read.within)),
      }));
      return queriedResult(read.answer, yield* scope.all(branches));
    }
    case 'groups':
      return { kind: 'groups', groups: yield* within(scope, read.request.shardKey, (own) => groupsWithin(own, read.request, read.within)) };
    case 'retrieve':
      return { kind: 'points', points: yield* within(scope, read.query.shardKey, (own) => retrieveWalk(own, read.query, read.within)) };
    case 'point':
      return pointResult(read.query, yield* retrieveWalk(scope, read.query, read.within));
    case 'scroll':
      return { kind: 'scrolled', ...(yield* within(scope, read.query.shardKey, (own) => scrollWalk(own, read.query))) };
    case 'count': {
      const { filter, shardKey } = read.query;
      return { kind: 'count', count: yield* within(scope, shardKey, (own) => countWalk(own, filter)) };
    }
    case 'facet':
      return { kind: 'facet', hits: yield* within(scope, read.query.shardKey, (own) => facetWalk(own, read.query)) };
    case 'matrix':
      return {
        kind: read.answer === 'pairs' ? 'matrixPairs' : 'matrixOffsets',
        matrix: yield* within(scope, read.query.shardKey, (own) => matrixWalk(own, read.query)),
      };
    default:
      return read satisfies never;
  }
}

/** The walk over the shards of some keys; undefined: over all that are asked. */
function* within<Hit extends WalkHit, Result>(
  scope: Scope<Hit>,
  shardKey: ShardKeySelector | undefined,
  walk: (scope: Scope<Hit>) => Walk<Hit, Result>,
): Walk<Hit, Result> {
  if (shardKey === undefined) return yield* walk(scope);
  const [result] = yield* scope.all([{ shardKey, walk }]);
  return result as Result;
}

function* queryWithin<Hit extends WalkHit>(scope: Scope<Hit>, query: QueryRequest, within: Filter): Walk<Hit, PointView[]> {
  yield* checkNamed(scope, query, within);
  return yield* queryWalk(scope, query);
}

function* groupsWithin<Hit extends WalkHit>(scope: Scope<Hit>, request: GroupsRequest, within: Filter | undefined): Walk<Hit, GroupView[]> {
  if (within !== undefined) yield* checkNamed(scope, request, within);
  return yield* groupsWalk(scope, request);
}

/** Checks the points that a query and its prefetches name as examples. Errors: `notFound`, as for points that are not there. */
function* checkNamed<Hit extends WalkHit>(scope: Scope<Hit>, node: QueryNode, within: Filter): Walk<Hit, void> {
  const ids = ownPointsNamed(node);
  const passing = yield* idsWithin(scope, ids, within);
  const other = ids.find((id) => !passing.has(id));
  if (other !== undefined) throw noSuchPoint(other);
}

/** Of the asked collection. */
function ownPointsNamed({ lookupFrom, prefetch, query }: QueryNode): PointId[] {
  const own = query === null || lookupFrom !== null ? [] : pointsNamed(query);
  return [...new Set([...own, ...prefetch.flatMap(ownPointsNamed)])];
}
