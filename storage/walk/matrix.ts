/** Distance matrices: similarities between the points of a sample. */

import { compareIds } from '../../protocols/model/point-id.js';
import type { MatrixQuery } from '../../protocols/model/query.js';
import { nearestPositions } from '../../query/matrix.js';
import { betterOf } from '../../query/shown-score.js';
import type { DistanceMatrix, MatrixRow } from '../answers/read-answer.js';
import { NO_EXTRAS } from '../threads/portion.js';
import { listNode } from './points.js';
import { spaceFacts } from './space.js';
import type { Scope, Walk, WalkHit } from './walk.js';

/** The matrix over a random sample of the points that pass and have the vector. Errors: `wrongInput` for an unknown vector name; `timeout`. */
export function* matrixWalk<Hit extends WalkHit>(scope: Scope<Hit>, query: MatrixQuery): Walk<Hit, DistanceMatrix> {
  const { using, filter, sample, limit } = query;
  const better = betterOf(spaceFacts(scope.params, using).distance);
  const node = { ...listNode(filter, sample), using };
  const drawn = yield* scope.ask('level', { node, query: { kind: 'sample', having: using }, lists: [], extras: NO_EXTRAS });
  if (drawn.length < 2) return { ids: [], neighbours: [] };
  const hits = yield* scope.ask('comparable', { hits: [...drawn].sort((a, b) => compareIds(a.id, b.id)), using, kept: limit });
  const neighbours: MatrixRow[] = [];
  for (let own = 0; own < hits.length; own++) {
    const scores = yield* scope.ask('scores', { hits, using, at: own, query: 'one' });
    const at = nearestPositions(scores, own, limit, better);
    neighbours.push({ at, scores: Float32Array.from(at, (position) => scores[position] as number) });
  }
  return { ids: hits.map(({ id }) => id), neighbours };
}
