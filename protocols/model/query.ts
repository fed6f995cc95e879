/**
 * The query model: what the doors decode read requests to. All ways of asking for scored points (`points/query`, search,
 * recommend, discover) come to one `QueryRequest`, so that the engine knows one.
 */

import type { ShardKeySelector } from './cluster.js';
import type { Condition, Filter, GeoPoint, PayloadSelector, VectorSelector } from './filter.js';
import type { JsonValue } from './payload.js';
import type { PointId } from './point-id.js';
import type { VectorInput } from './vector.js';

export interface SearchParams {
  /** Size of the dynamic candidate list of the graph walk; null: the collection's ef_construct. */
  readonly hnswEf: number | null;
  readonly exact: boolean;
  readonly indexedOnly: boolean;
  readonly quantization: QuantizationParams;
}

/** How quantized vectors are used; where a collection has none, nothing changes. */
export interface QuantizationParams {
  /** Search the originals. */
  readonly ignore: boolean;
  /** Score candidates with the originals; null: as suits the quantization. */
  readonly rescore: boolean | null;
  /** Candidates per wanted point before rescoring, >= 1; null: as suits the quantization. */
  readonly oversampling: number | null;
}

export const DEFAULT_SEARCH_PARAMS: SearchParams = {
  hnswEf: null,
  exact: false,
  indexedOnly: false,
  quantization: { ignore: false, rescore: null, oversampling: null },
};

// ------------------------------------------------------------------ queries

/** One level of a query: which points, and how they are scored. Its prefetches, when it has some, are its only candidates. */
export interface QueryNode {
  readonly prefetch: readonly QueryNode[];
  /** Null: points in id order, or the prefetched ones as they come. */
  readonly query: Scoring | null;
  /** Vector name; '' is the unnamed one. */
  readonly using: string;
  readonly filter: Filter | null;
  readonly params: SearchParams;
  readonly scoreThreshold: number | null;
  readonly limit: number;
  /** Where point ids of the query are looked up; null: in the collection itself. */
  readonly lookupFrom: LookupLocation | null;
}

export interface QueryRequest extends QueryNode {
  /** Here and below: absent: all shards. */
  readonly shardKey?: ShardKeySelector;
  readonly offset: number;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}

export interface LookupLocation {
  readonly collection: string;
  /** Vector name there; null: as `using`. */
  readonly vector: string | null;
  readonly shardKey?: ShardKeySelector;
}

/** A way to score points. */
export type Scoring =
  | { readonly kind: 'nearest'; readonly target: VectorInput; readonly mmr: Mmr | null }
  | {
      readonly kind: 'recommend';
      readonly positive: readonly VectorInput[];
      readonly negative: readonly VectorInput[];
      readonly strategy: RecommendStrategy;
    }
  | { readonly kind: 'discover'; readonly target: VectorInput; readonly context: readonly ContextPair[] }
  | { readonly kind: 'context'; readonly pairs: readonly ContextPair[] }
  | { readonly kind: 'orderBy'; readonly orderBy: OrderBy }
  /** k: null for the default; weights: one per prefetch, null for equal ones. */
  | { readonly kind: 'rrf'; readonly k: number | null; readonly weights: readonly number[] | null }
  | { readonly kind: 'dbsf' }
  | { readonly kind: 'formula'; readonly expression: Expression; readonly defaults: { readonly [variable: string]: JsonValue } }
  | { readonly kind: 'sample' }
  | {
      readonly kind: 'relevanceFeedback';
      readonly target: VectorInput;
      readonly feedback: readonly { readonly example: VectorInput; readonly score: number }[];
      readonly strategy: { readonly a: number; readonly b: number; readonly c: number };
    };

export type RecommendStrategy = 'average_vector' | 'best_score' | 'sum_scores';

export interface ContextPair {
  readonly positive: VectorInput;
  readonly negative: VectorInput;
}

/** Maximal marginal relevance. */
export interface Mmr {
  /** 0: only relevance, 1: only diversity. Null: 0.5. */
  readonly diversity: number | null;
  /** Null: the limit. */
  readonly candidatesLimit: number | null;
}

export interface OrderBy {
  readonly key: string;
  readonly direction: 'asc' | 'desc';
  /** First value wanted; datetimes in microseconds. */
  readonly startFrom: { readonly kind: 'number' | 'datetime'; readonly value: number } | null;
}

/** An expression over a prefetched point's scores and payload. */
export type Expression =
  | { readonly kind: 'constant'; readonly value: number }
  /** `$score`, `$score[n]` of the n-th prefetch, or a payload path. */
  | { readonly kind: 'score'; readonly prefetch: number }
  | { readonly kind: 'variable'; readonly path: string }
  /** 1 where the condition holds, else 0. */
  | { readonly kind: 'condition'; readonly condition: Condition }
  /** Metres from the origin to the point at a payload path. */
  | { readonly kind: 'geoDistance'; readonly origin: GeoPoint; readonly path: string }
  /** Seconds since the epoch. */
  | { readonly kind: 'datetime'; readonly seconds: number }
  | { readonly kind: 'datetimeKey'; readonly path: string }
  | { readonly kind: 'mult' | 'sum'; readonly terms: readonly Expression[] }
  | { readonly kind: 'neg' | 'abs' | 'sqrt' | 'exp' | 'log10' | 'ln'; readonly of: Expression }
  | { readonly kind: 'div'; readonly left: Expression; readonly right: Expression; readonly byZeroDefault: number | null }
  | { readonly kind: 'pow'; readonly base: Expression; readonly exponent: Expression }
  | {
      readonly kind: 'expDecay' | 'gaussDecay' | 'linDecay';
      readonly x: Expression;
      /** Null: 0. */
      readonly target: Expression | null;
      /** Null: 1. */
      readonly scale: number | null;
      /** Null: 0.5. */
      readonly midpoint: number | null;
    };

// ------------------------------------------------------------------ groups

export interface GroupsRequest extends QueryNode {
  readonly shardKey?: ShardKeySelector;
  /** Payload path whose values make the groups. `limit` of the request counts groups. */
  readonly groupBy: string;
  readonly groupSize: number;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
  readonly withLookup: WithLookup | null;
}

/** Points of another collection whose ids are the groups' values. */
export interface WithLookup {
  readonly collection: string;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
}

// ------------------------------------------------------------------ everything else

export interface ScrollQuery {
  readonly offset: PointId | null;
  readonly orderBy: OrderBy | null;
  readonly limit: number;
  /** The request does not say how many: the default of the limit is not checked (strict mode). */
  readonly isLimitDefault?: true;
  readonly filter: Filter | null;
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
  readonly shardKey?: ShardKeySelector;
}

export interface CountQuery {
  readonly filter: Filter | null;
  readonly exact: boolean;
  readonly shardKey?: ShardKeySelector;
}

export interface RetrieveQuery {
  readonly ids: readonly PointId[];
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
  readonly shardKey?: ShardKeySelector;
}

/** How often each value of a payload key occurs. */
export interface FacetQuery {
  readonly key: string;
  readonly filter: Filter | null;
  readonly limit: number;
  readonly exact: boolean;
  readonly shardKey?: ShardKeySelector;
}

/** Similarities within a sample of points. */
export interface MatrixQuery {
  readonly filter: Filter | null;
  readonly sample: number;
  /** Neighbours per point. */
  readonly limit: number;
  readonly using: string;
  readonly shardKey?: ShardKeySelector;
}
