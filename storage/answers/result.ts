/** What read operations answer, before it is written as JSON or as a gRPC message. */

import type { ShardKey } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import type { DistanceMatrix } from './read-answer.js';

/** A point of an answer: what is undefined is left out. */
export interface PointView {
  readonly id: PointId;
  readonly version?: number;
  readonly score?: number;
  /** JSON text, UTF-8. */
  readonly payload?: Uint8Array;
  readonly vector?: VectorView;
  /** Of the shard that holds it. */
  readonly shardKey?: ShardKey;
  /** The value it was ordered by. */
  readonly orderValue?: number | bigint;
}

/** The unnamed vector, or vectors by name; a point without the unnamed vector has the empty object. */
export type VectorView =
  | { readonly kind: 'single'; readonly value: VectorValue }
  | { readonly kind: 'named'; readonly vectors: readonly { readonly name: string; readonly value: VectorValue }[] };

export interface GroupView {
  readonly id: string | number | bigint;
  readonly hits: readonly PointView[];
  /** The point of the lookup collection; undefined: there is none, or none was asked for. */
  readonly lookup?: PointView;
}

export type ReadResult =
  /** A list of points: retrieve, search, recommend, discover. */
  | { readonly kind: 'points'; readonly points: readonly PointView[] }
  /** The same as `{"points": […]}`: query. */
  | { readonly kind: 'queried'; readonly points: readonly PointView[] }
  | { readonly kind: 'pointLists'; readonly lists: readonly (readonly PointView[])[] }
  | { readonly kind: 'queriedLists'; readonly lists: readonly (readonly PointView[])[] }
  | { readonly kind: 'point'; readonly point: PointView }
  | { readonly kind: 'scrolled'; readonly points: readonly PointView[]; readonly next: PointId | null }
  | { readonly kind: 'count'; readonly count: number }
  | { readonly kind: 'groups'; readonly groups: readonly GroupView[] }
  | { readonly kind: 'facet'; readonly hits: readonly { readonly value: string | number | bigint | boolean; readonly count: number }[] }
  | { readonly kind: 'matrixPairs' | 'matrixOffsets'; readonly matrix: DistanceMatrix };
