/** A read operation as a walk. */

import type { ShardKeySelector } from '../../protocols/model/cluster.js';
import { pointResult, queriedResult } from '../answers/read-answer.js';
import type { ReadResult } from '../answers/result.js';
import type { ReadRequest } from '../requests/read-request.js';
import { groupsWalk } from './groups.js';
import { matrixWalk } from './matrix.js';
import { countWalk, facetWalk, retrieveWalk, scrollWalk } from './points.js';
import { queryWalk } from './query.js';
import type { Scope, Walk, WalkHit } from './walk.js';

/** What the read answers. Errors: those of its parts. */
export function* readWalk<Hit extends WalkHit>(scope: Scope<Hit>, read: ReadRequest): Walk<Hit, ReadResult> {
  switch (read.kind) {
    case 'queries': {
      const branches = read.queries.map((query) => ({ shardKey: query.shardKey, walk: (own: Scope<Hit>) => queryWalk(own, query) }));
      return queriedResult(read.answer, yield* scope.all(branches));
    }
    case 'groups':
      return { kind: 'groups', groups: yield* within(scope, read.request.shardKey, (own) => groupsWalk(own, read.request)) };
    case 'retrieve':
      return { kind: 'points', points: yield* within(scope, read.query.shardKey, (own) => retrieveWalk(own, read.query)) };
    case 'point':
      return pointResult(read.query, yield* retrieveWalk(scope, read.query));
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
