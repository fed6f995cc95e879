/** Distance matrices over the points of many nodes. */

import { compareIds } from '../../protocols/model/point-id.js';
import { DEFAULT_SEARCH_PARAMS, type MatrixQuery } from '../../protocols/model/query.js';
import { nearestPositions } from '../../query/matrix.js';
import type { DistanceMatrix } from '../answers/read-answer.js';
import { betterOf } from '../reader/nearest/search.js';
import { NO_EXTRAS } from '../threads/portion.js';
import type { GatherContext } from './context.js';
import { PairScores } from './diverse.js';
import { sampleHits } from './sample.js';
import { spaceFacts } from './source.js';

/** As `../matrix.ts`. */
export async function distanceMatrix(context: GatherContext, query: MatrixQuery): Promise<DistanceMatrix> {
  const { using, filter, sample, limit } = query;
  const better = betterOf(spaceFacts(context.source.place.params, using).distance);
  const node = { filter, using, params: DEFAULT_SEARCH_PARAMS };
  const hits = await sampleHits(context, node, sample, NO_EXTRAS, using);
  if (hits.length < 2) return { ids: [], neighbours: [] };
  const pairs = await PairScores.of(
    context,
    using,
    hits.sort((a, b) => compareIds(a.id, b.id)),
  );
  const neighbours: { at: number; score: number }[][] = [];
  for (let own = 0; own < pairs.points.length; own++) {
    const scores = await pairs.to(own);
    neighbours.push(nearestPositions(scores, own, limit, better).map((at) => ({ at, score: scores[at] as number })));
  }
  return { ids: pairs.points.map(({ id }) => id), neighbours };
}
