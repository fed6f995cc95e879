/**
 * Portions: the parts of a distributed read that need the rows of some shards, and their answers. The coordinator walks the levels of the
 * query, has each level's inputs resolved (`values`, `terms`), asks all shards for their best points (`level`) and merges. One portion has
 * any number of asks, which see the same moment of each shard. The same portion may be sent to all nodes: named points of shards that are
 * not asked are skipped.
 *
 * The rules are those of a read on one node, whose functions run on the asked shards: see `storage/reader/portion/README.md`.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { ExplainedPortion } from '../../protocols/model/explanation.js';
import type { Filter, PayloadSelector, VectorSelector } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { OrderBy, Scoring, SearchParams } from '../../protocols/model/query.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { Formula } from '../../query/formula.js';
import type { GroupValue } from '../../query/group.js';
import type { OrderValue } from '../../query/order.js';
import type { VectorView } from '../answers/result.js';

/** Asks to some shards, answered in the same order, or with the error of the first that fails. */
export interface Portion {
  readonly asks: readonly Ask[];
  /** Whether the answer is to say how it came about. */
  readonly explain?: boolean;
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

/** Distinct points of a shard; null if any of the asked shards may have them. */
export interface ShardPoints {
  readonly shard: ShardId | null;
  readonly ids: readonly PointId[];
}

/** The data returned with each hit. Errors: `wrongInput` for an unknown vector name. */
export interface Extras {
  readonly withPayload: PayloadSelector;
  readonly withVector: VectorSelector;
  /** The payload key whose values make groups; null for no groups. */
  readonly groupBy: string | null;
}

export const NO_EXTRAS: Extras = { withPayload: { kind: 'none' }, withVector: { kind: 'none' }, groupBy: null };

// ------------------------------------------------------------------ asks

/** The best points of the asked shards by one level of a query. Answered by `Hits`. */
export interface LevelAsk {
  readonly kind: 'level';
  readonly query: LevelQuery;
  readonly using: string;
  /**
   * The complete filter of the level: its own, those of the levels above, and the exclusion of points that the query names (see
   * `walk/query.ts`).
   */
  readonly filter: Filter | null;
  readonly params: SearchParams;
  readonly scoreThreshold: number | null;
  /** Offset and limit of the page together. */
  readonly count: number;
  /** Points that the prefetches found and that pass the filter; null if there are no prefetches. */
  readonly candidates: readonly ShardPoints[] | null;
  /**
   * For sparse vectors with idf: for every index of the query's values, the sums over all shards of the read. Null for the sums of the
   * asked shards alone.
   */
  readonly terms: TermSums | null;
  readonly extras: Extras;
}

export type LevelQuery =
  /** Points in id order, from an id on; null to start with the first. */
  | { readonly kind: 'list'; readonly from: PointId | null }
  /**
   * The points nearest to a value; also used for recommendations by the average. own: the query's own point, which the answer leaves out;
   * as on one shard, one more point is searched for then, whichever shard has it.
   */
  | { readonly kind: 'nearest'; readonly value: VectorValue; readonly own: { readonly shard: ShardId; readonly id: PointId } | null }
  /** All inputs are values. */
  | Extract<Scoring, { kind: 'recommend' | 'discover' | 'context' | 'relevanceFeedback' }>
  | { readonly kind: 'orderBy'; readonly orderBy: OrderBy }
  /**
   * Random points in random order: see `Hits.total`. having: only points with this vector (matrices); null for any. The coordinator itself
   * draws among candidates.
   */
  | { readonly kind: 'sample'; readonly having: string | null }
  /** Scores by a formula. lists: the scores that each prefetch gave the candidates, aligned with `points`. */
  | { readonly kind: 'formula'; readonly formula: Formula; readonly lists: readonly ScoredPoints[] };

export interface ScoredPoints {
  readonly points: readonly ShardPoints[];
  /** Scores of the points, in their order. */
  readonly scores: Float64Array;
}

/** The existing ones of these points, in the given order, shard after shard. Answered by `Hits`. */
export interface PointsAsk {
  readonly kind: 'points';
  readonly points: readonly ShardPoints[];
  readonly extras: Extras;
}

/**
 * The vectors of stored points. Answered by `Values`. Errors: `wrongInput` if a point has no such vector because the collection has none.
 */
export interface ValuesAsk {
  readonly kind: 'values';
  readonly points: readonly ShardPoints[];
  readonly using: string;
}

/** The number of rows with each index of a sparse vector. Answered by `TermSums`. */
export interface TermsAsk {
  readonly kind: 'terms';
  readonly using: string;
  /** Distinct indices. */
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

/** All values of a key, and the number of points with each. Errors: as `facet`. Answered by `Counts`. */
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

/** A part of one shard's points in id order; the answer tells where the next part begins. */
interface ShardPart {
  /** The first id of the part; null for the shard's first point. */
  readonly from: PointId | null;
}

/** The points that belong to other shards of the ring, complete, as operations for those shards. Answered by `Leaving`. */
export interface LeavingAsk extends ShardPart {
  readonly kind: 'leaving';
  readonly ring: readonly ShardId[];
  /** Null for all points. */
  readonly filter: Filter | null;
  /** Only points with a version higher than this. */
  readonly after: number;
}

/** Ids of this shard's points that a ring gives to `owner`. Answered by `Ids`. */
export interface OwnedAsk extends ShardPart {
  readonly kind: 'owned';
  readonly ring: readonly ShardId[];
  readonly owner: ShardId;
  /** Null for all points. */
  readonly filter: Filter | null;
  /** Only the number of points is wanted, without their ids. */
  readonly countOnly: boolean;
}

/** The deletion of those of these points (`Ids`) that do not exist here or do not pass the filter. Answered by `Deletion`. */
export interface GoneAsk {
  readonly kind: 'gone';
  readonly filter: Filter | null;
  readonly ids: Uint8Array;
}

/** The deletion of this shard's points that the ring gives to another shard. Answered by `Deletion`. */
export interface StrayAsk extends ShardPart {
  readonly kind: 'stray';
  readonly ring: readonly ShardId[];
}

// ------------------------------------------------------------------ answers

/** The answers, aligned with the asks. */
export interface PortionAnswer {
  readonly answers: readonly ShardAnswer[];
  /** Absent: it was not asked for, or the node is of a release that does not tell. */
  readonly explanation?: ExplainedPortion;
}

export type ShardAnswer = Hits | Values | TermSums | Scores | Count | Counts | IndexedField | Leaving | Ids | Deletion;

/** The type of the answer to each kind of ask. */
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

/** Points in the requested order; all lists are aligned. With `orderBy` a point is listed once for each of its values. */
export interface Hits {
  readonly kind: 'hits';
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** Scores as the API shows them; 1 for lists, orders, samples and `points`. */
  readonly scores: Float64Array;
  /** The points' own versions, also where the API shows 0 (lists, orders, samples). */
  readonly versions: Float64Array;
  /** The values of `orderBy`; null for other queries. */
  readonly orderValues: readonly OrderValue[] | null;
  /** Payloads and vectors; null if none were asked for. */
  readonly shown: readonly ShownParts[] | null;
  /** For each point, the values that it is grouped by; null if no groups were asked for. */
  readonly groups: readonly (readonly GroupValue[])[] | null;
  /**
   * For samples, the number of points to choose from; otherwise 0. A sample over several portions is fair if each next point is taken from
   * a portion with a probability proportional to the number of its points that are left, in the order of its hits.
   */
  readonly total: number;
}

/** See `PointView`. */
export interface ShownParts {
  readonly payload?: Uint8Array;
  readonly vector?: VectorView;
}

/** The vectors of the existing ones of the points. */
export interface Values {
  readonly kind: 'values';
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** Null for a point without such a vector. */
  readonly values: readonly (VectorValue | null)[];
}

export interface TermSums {
  readonly kind: 'terms';
  readonly indices: Uint32Array;
  /** Number of rows with each index. */
  readonly rows: Float64Array;
  /** Number of rows with a vector that is not empty. */
  readonly filled: number;
}

export interface Scores {
  readonly kind: 'scores';
  /** The existing points. */
  readonly shards: readonly ShardId[];
  readonly ids: readonly PointId[];
  /** Scores as the API shows them (see `scoreRows`), NaN without the vector: Float32Array [values, points]. */
  readonly scores: Float32Array;
}

export interface Count {
  readonly kind: 'count';
  readonly count: number;
}

export interface Counts {
  readonly kind: 'counts';
  /** Distinct values; large integers are bigints. */
  readonly values: readonly TermValue[];
  readonly counts: readonly number[];
}

export interface IndexedField {
  readonly kind: 'field';
  /** Null if the key has no index. */
  readonly schema: FieldSchema | null;
}

export interface Leaving {
  readonly kind: 'leaving';
  /** For each shard, the points as an operation that `encodeOperation` made. */
  readonly parts: readonly { readonly shard: ShardId; readonly points: number; readonly operation: Uint8Array }[];
  /** The first id of the next part; null after the last part. */
  readonly next: PointId | null;
}

export interface Ids {
  readonly kind: 'ids';
  readonly count: number;
  /** The ids for `GoneAsk`; empty if they are not wanted. */
  readonly ids: Uint8Array;
  readonly next: PointId | null;
}

export interface Deletion {
  readonly kind: 'deletion';
  readonly count: number;
  /** The deletion as `encodeOperation` makes it; null if there are no such points. */
  readonly operation: Uint8Array | null;
  readonly next: PointId | null;
}
