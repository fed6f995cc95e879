/** Runs a query and shows the points it found. */

import { TroupeError } from '../../protocols/errors.js';
import type { QueryRequest } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import type { Hit } from './hit.js';
import type { ReadContext } from './operations.js';
import { PointViews, vectorParams } from './point-view.js';
import { type FoundRow, findPoint, listHits } from './points.js';
import type { PointView } from './result.js';
import { nearestHits } from './search.js';
import type { ReplicaSnapshot } from './snapshot-view.js';

/** The page of points that a query asks for. Errors: those of its parts. */
export function runQuery(context: ReadContext, request: QueryRequest): PointView[] {
  const { config, vectors } = context.snapshots[0] as ReplicaSnapshot;
  const views = new PointViews(config, vectors, request.withPayload, request.withVector);
  return hitsOf(context, request).map((hit) => views.scored(hit));
}

function hitsOf(context: ReadContext, request: QueryRequest): Hit[] {
  const { snapshots } = context;
  const { query, using, filter, params, limit, offset, scoreThreshold } = request;
  if (query === null) return listHits(snapshots, filter, { limit, offset });
  if (query.kind !== 'nearest') throw new TroupeError('unsupported', `queries of the kind ${query.kind}`);
  if (request.prefetch.length > 0 || request.lookupFrom !== null || query.mmr !== null) {
    throw new TroupeError('unsupported', '`prefetch`, `lookup_from` and `mmr`');
  }
  vectorParams((snapshots[0] as ReplicaSnapshot).vectors, using);
  const { value, own } = resolveInput(context, query.target, using);
  return nearestHits(snapshots, { using, value, filter, params, own }, { limit, offset, scoreThreshold });
}

/**
 * The value that a query's input stands for, and where it is stored when it is a point's.
 * Errors: `notFound` when the point is not there or has no such vector.
 */
export function resolveInput(context: ReadContext, input: VectorInput, using: string): { value: VectorValue; own: FoundRow | null } {
  switch (input.kind) {
    case 'point': {
      const own = findPoint(context.snapshots, input.id);
      if (own === undefined) throw new TroupeError('notFound', `No point with id ${input.id} found`);
      const value = own.view.vectorOf(using, own.row);
      if (value === undefined) throw new TroupeError('notFound', `Vector with name ${JSON.stringify(using)} for point not found`);
      return { value, own };
    }
    case 'document':
    case 'image':
    case 'object':
      throw new TroupeError('unsupported', 'inference of vectors from documents, images or objects');
    default:
      return { value: input, own: null };
  }
}
