/** What of a collection's vectors matters where no vectors are. */

import {
  type CollectionParams,
  DEFAULT_VECTOR,
  type Distance,
  isSingleVector,
  sparseByName,
  type VectorParams,
  vectorsByName,
} from '../../protocols/model/collection.js';
import type { VectorSelector } from '../../protocols/model/filter.js';
import type { QueryNode } from '../../protocols/model/query.js';
import { unknownVector } from '../../protocols/rest/point-vectors.js';
import type { Page } from '../../query/merge.js';
import { betterOf } from '../../query/shown-score.js';

export interface SpaceFacts {
  readonly distance: Distance;
  readonly multi: boolean;
  /** Sparse, and weighed by how rare its indices are. */
  readonly idf: boolean;
}

/** Errors: `wrongInput` when the collection has no vector of this name. */
export function spaceFacts(params: CollectionParams, name: string): SpaceFacts {
  const dense = denseParams(params, name);
  if (dense !== undefined) return { distance: dense.distance, multi: dense.multivector_config !== undefined, idf: false };
  const sparse = sparseByName(params).get(name);
  if (sparse === undefined) throw unknownVector(name);
  return { distance: 'Dot', multi: false, idf: sparse.modifier === 'idf' };
}

function denseParams({ vectors }: CollectionParams, name: string): VectorParams | undefined {
  if (isSingleVector(vectors)) return name === DEFAULT_VECTOR ? vectors : undefined;
  return Object.hasOwn(vectors, name) ? vectors[name] : undefined;
}

/** Which scores of a level's hits are better. Errors: `wrongInput` for an unknown vector name. */
export function betterScores(params: CollectionParams, { query, using }: QueryNode): Page['better'] {
  const isDistance = query?.kind === 'nearest' || (query?.kind === 'recommend' && query.strategy === 'average_vector');
  return isDistance ? betterOf(spaceFacts(params, using).distance) : 'larger';
}

/** Errors: `wrongInput` when the collection has not all of these vectors. */
export function checkSelected(params: CollectionParams, selector: VectorSelector): void {
  if (selector.kind === 'names') selectedNames([...vectorsByName(params.vectors).keys(), ...sparseByName(params).keys()], selector);
}

/** Names of vectors that the selector asks for, of those that there are; null: none. Errors: `wrongInput` for another one. */
export function selectedNames(known: readonly string[], selector: VectorSelector): readonly string[] | null {
  switch (selector.kind) {
    case 'none':
      return null;
    case 'all':
      return known.length === 0 ? [DEFAULT_VECTOR] : known;
    case 'names':
      for (const name of selector.names) if (!known.includes(name)) throw unknownVector(name);
      return [...new Set(selector.names)];
    default:
      return selector satisfies never;
  }
}
