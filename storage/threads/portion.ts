/**
 * What a read asks of some shards of its collection, and what they answer: the parts of a distributed read that need their rows.
 * The coordinator walks the levels of the query, has each level's inputs resolved (`values`, `terms`), asks all shards for their
 * best (`level`) and merges. One portion has any number of asks, which see the same moment of each shard. The same portion may be
 * sent to all nodes: what names points of other shards than those that are asked is passed over.
 *
 * The rules are those of a read on one node, whose functions run on the shards that are asked: see `storage/reader/portion/README.md`.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Filter, PayloadSelector, VectorSelector } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { OrderBy, Scoring, SearchParams } from '../../protocols/model/query.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { Formula } from '../../query/formula.js';
import type { GroupValue } from '../../query/group.js';
import type { OrderValue } from '../../query/order.js';
import type { VectorView } from '../answers/result.js';

/** Answered in the same order, or with the error of the first that fails. */
export interface Portion {
  readonly asks: readonly Ask[];
}

export type Ask =
  | LevelAsk
  | PointsAsk
  | ValuesAsk
  | TermsAsk
  | ScoresAsk
  | CountAsk
  | FacetAsk
  | FieldAsk
  | LeavingAsk
  | OwnedAsk
  | GoneAsk
  | StrayAsk;

/** Distinct points of a shard; null: of whichever of the asked shards has them. */
export interface ShardPoints {
  readonly shard: ShardId | null;
  readonly ids: readonly PointId[];
}

/** What comes along with each hit. Errors: `wrongInput` for an unknown vector name. */
export interface Extras {
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
  /** The key whose values make groups; null: none. */
  readonly groupBy: string | null;
}

export const NO_EXTRAS: Extras = { withPayload: { kind: 'none' }, withVector: { kind: 'none' }, groupBy: null };

// ------------------------------------------------------------------ asks

/** The best points of the asked shards by one level of a query. Answered by `Hits`. */
export interface LevelAsk {
  readonly kind: 'level';
  readonly query: LevelQuery;
  readonly using: string;
  /** The whole filter of the level: its own, those above it, and no point that the query names (see `walk/query.ts`). */
  readonly filter: Filter | null;
  readonly params: SearchParams;
  readonly scoreThreshold: number | null;
  /** Offset and limit of the page together. */
  readonly count: number;
  /** What the prefetches found, which passes the filter; null: there are none. */
  readonly candidates: readonly ShardPoints[] | null;
  /** For sparse vectors with idf: sums over all shards of the read for every index of the query's values. Null: of the asked shards alone. */
  readonly terms: TermSums | null;
  readonly extras: Extras;
}

export type LevelQuery =
  /** Points in id order, from an id on (null: the first). */
  | { readonly kind: 'list'; readonly from: PointId | null }
  /**
   * own: the query's own point, which is left out of the answer; as on one shard, one more is searched for then, wherever it is.
   * Also for recommendations by the average.
   */
  | { readonly kind: 'nearest'; readonly value: VectorValue; readonly own: { readonly shard: ShardId; readonly id: PointId } | null }
  /** All inputs are values. */
  | Extract<Scoring, { kind: 'recommend' | 'discover' | 'context' | 'relevanceFeedback' }>
  | { readonly kind: 'orderBy'; readonly orderBy: OrderBy }
  /**
   * Points at random, in random order: see `Hits.total`. having: only those with this vector (matrices); null: any.
   * Of candidates the coordinator draws itself.
   */
  | { readonly kind: 'sample'; readonly having: string | null }
  /** lists: the scores that each prefetch gave the candidates, aligned with `points`. */
  | { readonly kind: 'formula'; readonly formula: Formula; readonly lists: readonly ScoredPoints[] };

export interface ScoredPoints {
  readonly points: readonly ShardPoints[];
  /** Of the points one after the other. */
  readonly scores: Float64Array;
}

/** Those of these points that are there, in the order in which they are named, shard after shard. Answered by `Hits`. */
export interface PointsAsk {
  readonly kind: 'points';
  readonly points: readonly ShardPoints[];
  readonly extras: Extras;
}

/** The vectors of stored points. Answered by `Values`. Errors: `wrongInput` when one of them has no such vector as the collection has none. */
export interface ValuesAsk {
  readonly kind: 'values';
  readonly points: readonly ShardPoints[];
  readonly using: string;
}

/** How rare the indices of a sparse vector are. Answered by `TermSums`. */
export interface TermsAsk {
  readonly kind: 'terms';
  readonly using: string;
  /** Distinct. */
  readonly indices: Uint32Array;
}

/** Exact scores of points by several values (MMR, matrices). Answered by `Scores`. */
export interface ScoresAsk {
  readonly kind: 'scores';
  readonly using: string;
  readonly values: readonly VectorValue[];
  readonly points: readonly ShardPoints[];
  readonly terms: TermSums | null;
}

export interface CountAsk {
  readonly kind: 'count';
  readonly filter: Filter | null;
}

/** All values of a key and in how many points each is. Errors: as `facet`. Answered by `Counts`. */
export interface FacetAsk {
  readonly kind: 'facet';
  readonly key: string;
  readonly filter: Filter | null;
}

/** The index of a payload key. Answered by `Field`. */
export interface FieldAsk {
  readonly kind: 'field';
  readonly key: string;
}

// ------------------------------------------------------------------ points that go to other shards

/** A part of a shard's points in id order. Of one shard; the answer says from where the next part goes. */
interface ShardPart {
  /** Null: from the first. */
  readonly from: PointId | null;
}

/** Points that another shard of the ring has, whole, as operations for those shards. Answered by `Leaving`. */
export interface LeavingAsk extends ShardPart {
  readonly kind: 'leaving';
  readonly ring: readonly ShardId[];
  /** Null: all. */
  readonly filter: Filter | null;
  /** Only points with a higher version. */
  readonly after: number;
}

/** Ids of the points here that a ring gives to `owner`. Answered by `Ids`. */
export interface OwnedAsk extends ShardPart {
  readonly kind: 'owned';
  readonly ring: readonly ShardId[];
  readonly owner: ShardId;
  /** Null: all. */
  readonly filter: Filter | null;
  /** The ids themselves are not wanted. */
  readonly countOnly: boolean;
}

/** Which of these points (`Ids`) are not here, or do not pass. Answered by `Deletion`. */
export interface GoneAsk {
  readonly kind: 'gone';
  readonly filter: Filter | null;
  readonly ids: Uint8Array;
}

/** Points here that the ring gives to another shard. Answered by `Deletion`. */
export interface StrayAsk extends ShardPart {
  readonly kind: 'stray';
  readonly ring: readonly ShardId[];
}

// ------------------------------------------------------------------ answers

/** Aligned with the asks. */
export interface PortionAnswer {
  readonly answers: readonly ShardAnswer[];
}

export type ShardAnswer = Hits | Values | TermSums | Scores | Count | Counts | IndexedField | Leaving | Ids | Deletion;

/** The answer to each kind of ask. */
export interface AnswerOf {
  readonly level: Hits;
  readonly points: Hits;
  readonly values: Values;
  readonly terms: TermSums;
  readonly scores: Scores;
  readonly count: Count;
  readonly facet: Counts;
  readonly field: IndexedField;
  readonly leaving: Leaving;
  readonly owned: Ids;
  readonly gone: Deletion;
  readonly stray: Deletion;
}

/** Points in the order that was asked for; all lists are aligned. An order has a point once for each of its values. */
export interface Hits {
  readonly kind: 'hits';
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** As the API shows them; 1 for lists, orders, samples and `points`. */
  readonly scores: Float64Array;
  /** The points' own, also where the API shows 0 (lists, orders, samples). */
  readonly versions: Float64Array;
  /** Of `orderBy`, else null. */
  readonly orderValues: readonly OrderValue[] | null;
  /** Null: no payload or vector was asked for. */
  readonly shown: readonly ShownParts[] | null;
  /** The values that each point is grouped by; null: none were asked for. */
  readonly groups: readonly (readonly GroupValue[])[] | null;
  /**
   * Of samples: how many points there were to choose from, else 0. A sample over several portions is fair when each next point is taken
   * from a portion with the chance of how many of its points are left, in the order of its hits.
   */
  readonly total: number;
}

/** See `PointView`. */
export interface ShownParts {
  readonly payload?: Uint8Array;
  readonly vector?: VectorView;
}

/** Those of the points that are there. */
export interface Values {
  readonly kind: 'values';
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** Null: the point has no such vector. */
  readonly values: readonly (VectorValue | null)[];
}

export interface TermSums {
  readonly kind: 'terms';
  readonly indices: Uint32Array;
  /** Rows with each index. */
  readonly rows: Float64Array;
  /** Rows with a vector that is not empty. */
  readonly filled: number;
}

export interface Scores {
  readonly kind: 'scores';
  /** The points that are there. */
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** As the API shows them (see `scoreRows`), NaN without the vector: Float32Array [values, points]. */
  readonly scores: Float32Array;
}

export interface Count {
  readonly kind: 'count';
  readonly count: number;
}

export interface Counts {
  readonly kind: 'counts';
  /** Distinct; large integers are bigints. */
  readonly values: readonly TermValue[];
  readonly counts: readonly number[];
}

export interface IndexedField {
  readonly kind: 'field';
  /** Null: it has no index. */
  readonly schema: FieldSchema | null;
}

export interface Leaving {
  readonly kind: 'leaving';
  /** Operations are as `encodeOperation` makes them. */
  readonly parts: readonly { readonly shard: ShardId; readonly points: number; readonly operation: Uint8Array }[];
  /** Null: that was the last part. */
  readonly next: PointId | null;
}

export interface Ids {
  readonly kind: 'ids';
  readonly count: number;
  /** For `GoneAsk`; of none where they are not wanted. */
  readonly ids: Uint8Array;
  readonly next: PointId | null;
}

export interface Deletion {
  readonly kind: 'deletion';
  readonly count: number;
  /** As `encodeOperation` makes it; null: there are none. */
  readonly operation: Uint8Array | null;
  readonly next: PointId | null;
}
