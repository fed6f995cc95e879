/** What the inputs of queries stand for: the values of stored points, and what models make of documents. */

import { TroupeError } from '../../../protocols/errors.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { QueryNode, Scoring } from '../../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../../protocols/model/vector.js';
import { embedQueried } from '../../requests/embed.js';
import type { ReadContext } from '../operations.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import { type FoundRow, findPoint } from './points.js';

/** What of a query says where its points are looked up. */
export type InputPlace = Pick<QueryNode, 'using' | 'lookupFrom'>;

/**
 * The value that a query's input stands for (the caller may change it in place), and where it is stored when it is that
 * of a point of the collection that is asked.
 * Errors: `notFound` when the point, its vector or the lookup collection is not there; `wrongInput` for unknown vector names;
 * `unsupported` for models that are not.
 */
export function resolveInput(context: ReadContext, input: VectorInput, place: InputPlace): { value: VectorValue; own: FoundRow | null } {
  if (input.kind === 'point') return storedValue(context, input.id, place);
  return { value: givenValue(input), own: null };
}

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

/** Ids of this collection's points that a query names: they are no answers to it. */
export function namedPoints(context: ReadContext, query: Scoring, { lookupFrom }: InputPlace): PointId[] {
  const ids = new Set<PointId>();
  for (const input of inputsOf(query)) if (input.kind === 'point') ids.add(input.id);
  if (ids.size === 0 || lookupFrom === null) return [...ids];
  return isSame(context.lookup(lookupFrom.collection, lookupFrom.shardKey), context.snapshots) ? [...ids] : [];
}

function storedValue(context: ReadContext, id: PointId, { using, lookupFrom }: InputPlace): { value: VectorValue; own: FoundRow | null } {
  const snapshots = lookupFrom === null ? context.snapshots : context.lookup(lookupFrom.collection, lookupFrom.shardKey);
  const name = lookupFrom?.vector ?? using;
  const found = findPoint(snapshots, id);
  if (found === undefined) throw noSuchPoint(id);
  const value = found.view.vectorOf(name, found.row);
  if (value === undefined) {
    // A name that no point can have is another mistake.
    vectorSpace(snapshots, name);
    throw noSuchVector(name);
  }
  if (lookupFrom === null) return { value, own: found };
  return { value, own: isSame(snapshots, context.snapshots) ? (findPoint(context.snapshots, id) ?? null) : null };
}

export function noSuchPoint(id: PointId): TroupeError {
  return new TroupeError('notFound', `No point with id ${id} found`);
}

export function noSuchVector(name: string): TroupeError {
  return new TroupeError('notFound', `Vector with name ${JSON.stringify(name)} for point not found`);
}

/** Whether both are the same collection, by whatever name it was called, or have some of its shards in common. */
function isSame(a: readonly ReplicaSnapshot[], b: readonly ReplicaSnapshot[]): boolean {
  const readers = new Set(a.flatMap(({ segments }) => segments.map(({ reader }) => reader)));
  return b.some(({ segments }) => segments.some(({ reader }) => readers.has(reader)));
}

/** All that a query compares with. */
export function inputsOf(query: Scoring): readonly VectorInput[] {
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
