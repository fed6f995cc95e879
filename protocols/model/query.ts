/** The query model: what the doors decode read requests to. */

import type { Filter, PayloadSelector, VectorSelector } from './filter.js';
import type { PointId } from './point-id.js';

export interface SearchParams {
  /** Size of the dynamic candidate list of the graph walk; null: the collection's ef_construct. */
  readonly hnswEf: number | null;
  readonly exact: boolean;
  readonly indexedOnly: boolean;
}

/** Nearest points to a vector, or to a stored point (which is left out of the answer). */
export interface NearestQuery {
  readonly target: { readonly kind: 'vector'; readonly values: Float32Array } | { readonly kind: 'point'; readonly id: PointId };
  readonly using: string;
  readonly filter: Filter | null;
  readonly params: SearchParams;
  readonly limit: number;
  readonly offset: number;
  readonly scoreThreshold: number | null;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}

/** A query that names no way of scoring: points in id order, all with score 1. */
export interface ListQuery {
  readonly filter: Filter | null;
  readonly limit: number;
  /** Points to leave out at the start. */
  readonly offset: number;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}

export type PointsQuery = { readonly kind: 'nearest'; readonly query: NearestQuery } | { readonly kind: 'list'; readonly query: ListQuery };

export interface ScrollQuery {
  readonly offset: PointId | null;
  readonly limit: number;
  readonly filter: Filter | null;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}

export interface CountQuery {
  readonly filter: Filter | null;
  readonly exact: boolean;
}

export interface RetrieveQuery {
  readonly ids: readonly PointId[];
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}
