/**
 * A read as a walk: a generator that yields what it needs to know of the points, and is given it. The walk decides which levels of a query
 * are run, in which order, with which filters, and what becomes of what they find. It does not know where the points are, so each form of a
 * query is written once. Two drivers answer its needs: `../reader/query/row-answers.ts` at once with rows of this thread, and
 * `../gather/shard-answers.ts` later with what the shards of many nodes answer.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { ShardId, ShardKey, ShardKeySelector } from '../../protocols/model/cluster.js';
import type { CollectionParams, FieldSchema } from '../../protocols/model/collection.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LookupLocation, QueryNode, RetrieveQuery, Scoring } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { Formula } from '../../query/formula.js';
import type { GroupValue } from '../../query/group.js';
import type { Page, RankedPoint } from '../../query/merge.js';
import { runStepsLater, type Steps } from '../../query/steps.js';
import type { PointView } from '../answers/result.js';
import type { Extras, LevelQuery, ShownParts } from '../threads/portion.js';

/** A read that is under way. Hit: what the driver has of a found point; it says where the point is. */
export type Walk<Hit extends WalkHit, Result> = Generator<Need<Hit>, Result, Given<Hit>[NeedKind]>;

/** A point that a level found. Its version is its own, also where the API shows 0. */
export interface WalkHit extends RankedPoint {
  /** The value it was ordered by (`order_by`). */
  readonly orderValue?: number | bigint;
}

/** One level of a query and which part of its hits is wanted. */
export interface PagedNode extends QueryNode {
  readonly offset: number;
}

/** What a prefetch found, best first. */
export interface Prefetched<Hit> {
  readonly hits: readonly Hit[];
  /** Which of its scores are better. */
  readonly better: Page['better'];
}

/** How a level scores: as shards are asked, with every input resolved. */
export type ResolvedQuery = Exclude<LevelQuery, { kind: 'formula' }> | { readonly kind: 'formula'; readonly formula: Formula };

/** What of a query says where its points are looked up. */
export type InputPlace = Pick<QueryNode, 'using' | 'lookupFrom'>;

export interface ResolvedInput {
  /** The caller may change it in place. */
  readonly value: VectorValue;
  /** The point of the asked collection that the input names; null: it names none. */
  readonly own: { readonly shard: ShardId; readonly id: PointId } | null;
}

/** What the inputs of one query stand for. */
export interface ResolvedInputs {
  /**
   * Errors: `notFound` when the point, its vector or the lookup collection is not there; `wrongInput` for unknown vector names;
   * `unsupported` for models that are not.
   */
  of(input: VectorInput): ResolvedInput;
}

/** What an answer shows of a point beside its id, version and score. */
export interface ShownPoint extends ShownParts {
  readonly shardKey?: ShardKey;
}

/** A walk within the walk, over the shards of some keys (undefined: over those of the whole). */
export interface Branch<Hit extends WalkHit, Result> {
  readonly shardKey?: ShardKeySelector | undefined;
  readonly walk: (scope: Scope<Hit>) => Walk<Hit, Result>;
}

/** What a walk may need, by kind. What is given for it: `Given`. */
export interface Needs<Hit extends WalkHit> {
  /** All of these walks. They do not depend on one another. Errors: that of the first that fails. */
  readonly walks: { readonly branches: readonly Branch<Hit, unknown>[] };
  /** What the inputs of a query stand for. */
  readonly inputs: { readonly query: Scoring; readonly place: InputPlace };
  /** Whether the lookup is made in the collection that is asked, and in shards that are asked. Errors: `notFound`. */
  readonly isOwnLookup: { readonly lookupFrom: LookupLocation };
  /**
   * The page of hits of one level, best first. node: its filter is the whole one: the level's own, those above it, and no point that the
   * query names. lists: what its prefetches found, which are its only candidates; none: all points that pass. extras: what may come along.
   */
  readonly level: {
    readonly node: PagedNode;
    readonly query: ResolvedQuery;
    readonly lists: readonly Prefetched<Hit>[];
    readonly extras: Extras;
  };
  /** What is shown of each hit; null for a point that is gone since it was found. */
  readonly shown: { readonly hits: readonly Hit[]; readonly extras: Extras };
  /** The values each hit is grouped by; null for a point that is gone since it was found. */
  readonly groupValues: { readonly hits: readonly Hit[]; readonly groupBy: string };
  /** The index of a payload key. */
  readonly field: { readonly key: string };
  /** That another collection is there. Errors: `notFound`. */
  readonly lookup: { readonly collection: string };
  /** Points by id, in the order asked for, each once, without those that are not there. collection: another one; null: the asked one. */
  readonly points: { readonly collection: string | null; readonly query: RetrieveQuery };
  /** Those of the hits that have a vector, in their order, to be compared with one another. kept: scores of each that are for the answer. */
  readonly comparable: { readonly hits: readonly Hit[]; readonly using: string; readonly kept: number };
  /**
   * Scores of the one at a position together with all of `hits` (a list that `comparable` gave). query: whose vector is the query's: that of
   * the one, or that of each hit in turn, which scores a multivector otherwise.
   */
  readonly scores: { readonly hits: readonly Hit[]; readonly using: string; readonly at: number; readonly query: 'one' | 'each' };
  /** How many points pass. */
  readonly count: { readonly filter: Filter | null };
  /** In how many of the points that pass each value of a key is. Errors: `wrongInput` without an index that tells values apart. */
  readonly facet: { readonly key: string; readonly filter: Filter | null };
}

export type NeedKind = keyof Needs<WalkHit>;

/** What is given for each kind of need. */
export interface Given<Hit> {
  readonly walks: readonly unknown[];
  readonly inputs: ResolvedInputs;
  readonly isOwnLookup: boolean;
  readonly level: readonly Hit[];
  readonly shown: readonly (ShownPoint | null)[];
  readonly groupValues: readonly (readonly GroupValue[] | null)[];
  readonly field: FieldSchema | undefined;
  readonly lookup: undefined;
  readonly points: readonly PointView[];
  readonly comparable: readonly Hit[];
  /** As the API shows them: Float32Array [hits], NaN for a point that is gone. */
  readonly scores: Float32Array;
  readonly count: number;
  readonly facet: ReadonlyMap<TermValue, number>;
}

export type Need<Hit extends WalkHit, Kind extends NeedKind = NeedKind> = {
  [K in Kind]: { readonly kind: K; readonly need: Needs<Hit>[K] };
}[Kind];

/** A driver that knows all at once. */
export type Answers<Hit extends WalkHit> = { readonly [Kind in NeedKind]: (need: Needs<Hit>[Kind]) => Given<Hit>[Kind] };

/** A driver that has to ask. */
export type LaterAnswers<Hit extends WalkHit> = { readonly [Kind in NeedKind]: (need: Needs<Hit>[Kind]) => Promise<Given<Hit>[Kind]> };

/** What a walk knows from the start, and how it asks for the rest. */
export class Scope<Hit extends WalkHit> {
  /** params: of the collection that is asked. known: a driver that knows all at once; null: needs are yielded. */
  constructor(
    readonly params: CollectionParams,
    private readonly known: Answers<Hit> | null = null,
  ) {}

  /** What is given for a need; for `yield*`. Errors: those of the need, thrown by the driver: they end the walk. */
  ask<Kind extends NeedKind>(kind: Kind, need: Needs<Hit>[Kind]): Asked<Hit, Kind> {
    return new Asked(this.known, kind, need);
  }

  /** The results of all branches, in their order. */
  *all<Result>(branches: readonly Branch<Hit, Result>[]): Walk<Hit, readonly Result[]> {
    const only = branches[0];
    if (branches.length === 1 && only !== undefined && only.shardKey === undefined) return [yield* only.walk(this)];
    return (yield* this.ask('walks', { branches })) as readonly Result[];
  }

  /** Carries out steps; what each asks is answered by a walk. */
  *steps<Question, Answer, Result>(
    steps: Steps<Question, Answer, Result>,
    answer: (question: Question) => Walk<Hit, Answer>,
  ): Walk<Hit, Result> {
    let step = steps.next();
    while (step.done !== true) step = steps.next(yield* answer(step.value));
    return step.value;
  }
}

/**
 * One need, for `yield*`. A driver that knows is called at once, and the walk is not left: handing a need up through the walks
 * that wait for one another, and its answer down again, costs about as much as a small read.
 */
export class Asked<Hit extends WalkHit, Kind extends NeedKind> implements Iterable<Need<Hit>, Given<Hit>[Kind], Given<Hit>[NeedKind]> {
  private isYielded = false;

  constructor(
    private readonly known: Answers<Hit> | null,
    private readonly kind: Kind,
    private readonly need: Needs<Hit>[Kind],
  ) {}

  [Symbol.iterator](): this {
    return this;
  }

  next(given?: Given<Hit>[NeedKind]): IteratorResult<Need<Hit>, Given<Hit>[Kind]> {
    if (this.known !== null) return { done: true, value: this.known[this.kind](this.need) };
    // Drivers are tables by kind, so what is given is of the kind that was asked for.
    if (this.isYielded) return { done: true, value: given as Given<Hit>[Kind] };
    this.isYielded = true;
    return { done: false, value: { kind: this.kind, need: this.need } as Need<Hit> };
  }
}

/** Runs a walk to its end with a driver that knows all at once. params: of the collection that is asked. */
export function walkNow<Hit extends WalkHit, Result>(
  params: CollectionParams,
  answers: Answers<Hit>,
  start: (scope: Scope<Hit>) => Walk<Hit, Result>,
): Result {
  const { done, value } = start(new Scope(params, answers)).next();
  if (done !== true) throw new TroupeError('internal', 'a walk that is told everything has asked');
  return value;
}

/** The same with answers that come later. */
export function walkLater<Hit extends WalkHit, Result>(
  params: CollectionParams,
  answers: LaterAnswers<Hit>,
  start: (scope: Scope<Hit>) => Walk<Hit, Result>,
): Promise<Result> {
  return runStepsLater(start(new Scope<Hit>(params)), (need: Need<Hit>) => laterAnswerTo(answers, need));
}

function laterAnswerTo<Hit extends WalkHit, Kind extends NeedKind>(
  answers: LaterAnswers<Hit>,
  { kind, need }: Need<Hit, Kind>,
): Promise<Given<Hit>[Kind]> {
  return answers[kind](need);
}
