/** What the inputs of queries stand for, as far as it can be told without points. */

import { TroupeError } from '../../protocols/errors.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Scoring } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import { embedQueried } from '../requests/embed.js';

/** What an input stands for that comes with the query. Errors: `unsupported` for models that are not. */
export function givenValue(input: Exclude<VectorInput, { readonly kind: 'point' }>): VectorValue {
  switch (input.kind) {
    case 'bm25':
    case 'document':
    case 'image':
    case 'object':
      return embedQueried(input);
    default:
      return input;
  }
}

/** All that a query compares with. */
export function queryInputs(query: Scoring): readonly VectorInput[] {
  switch (query.kind) {
    case 'nearest':
      return [query.target];
    case 'recommend':
      return [...query.positive, ...query.negative];
    case 'discover':
      return [query.target, ...query.context.flatMap(({ positive, negative }) => [positive, negative])];
    case 'context':
      return query.pairs.flatMap(({ positive, negative }) => [positive, negative]);
    case 'relevanceFeedback':
      return [query.target, ...query.feedback.map(({ example }) => example)];
    default:
      return [];
  }
}

/** The points that a query names as inputs, each once. */
export function pointsNamed(query: Scoring): readonly PointId[] {
  return [...new Set(queryInputs(query).flatMap((input) => (input.kind === 'point' ? [input.id] : [])))];
}

export function noSuchPoint(id: PointId): TroupeError {
  return new TroupeError('notFound', `No point with id ${id} found`);
}

export function noSuchVector(name: string): TroupeError {
  return new TroupeError('notFound', `Vector with name ${JSON.stringify(name)} for point not found`);
}
