/** Answers what walks need by asking shards of many nodes, and merges what they answer. */

import { TroupeError } from '../../protocols/errors.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { TermValue } from '../../query/filter/lookup.js';
import type { GroupValue } from '../../query/group.js';
import type { PointView } from '../answers/result.js';
import { NO_EXTRAS } from '../threads/portion.js';
import { type LaterAnswers, type Needs, type ResolvedInputs, type Scope, type ShownPoint, type Walk, walkLater } from '../walk/walk.js';
import { allInOrder, type GatherContext, within } from './context.js';
import { completeHits, type GatheredHit } from './hits.js';
import { resolveInputs } from './inputs.js';
import { levelPage } from './level.js';
import { PairScores } from './pair-scores.js';
import { gatherPoints, sumCounts, sumValues } from './points.js';
import { isSame, shardKeyShown } from './source.js';

/** Runs a walk over the shards of a collection. Errors: those of the walk; `timeout`. */
export function walkShards<Result>(
  context: GatherContext,
  start: (scope: Scope<GatheredHit>) => Walk<GatheredHit, Result>,
): Promise<Result> {
  return walkLater(context.source.place.params, new ShardAnswers(context), start);
}

class ShardAnswers implements LaterAnswers<GatheredHit> {
  /** Of lists whose points are compared with one another. */
  private readonly compared = new WeakMap<readonly GatheredHit[], PairScores>();

  constructor(private readonly context: GatherContext) {}

  walks({ branches }: Needs<GatheredHit>['walks']): Promise<unknown[]> {
    const walks = branches.map(async ({ shardKey, walk }) => {
      return walkLater(
        this.context.source.place.params,
        shardKey === undefined ? this : new ShardAnswers(within(this.context, shardKey)),
        walk,
      );
    });
    return allInOrder(walks);
  }

  inputs({ query, place }: Needs<GatheredHit>['inputs']): Promise<ResolvedInputs> {
    return resolveInputs(this.context, query, place);
  }

  async isOwnLookup({ lookupFrom: { collection, shardKey } }: Needs<GatheredHit>['isOwnLookup']): Promise<boolean> {
    return isSame(await this.context.lookup(collection, shardKey), this.context.source);
  }

  level(need: Needs<GatheredHit>['level']): Promise<readonly GatheredHit[]> {
    return levelPage(this.context, need);
  }

  async shown({ hits, extras }: Needs<GatheredHit>['shown']): Promise<readonly (ShownPoint | null)[]> {
    const complete = await completeHits(this.context, hits, extras);
    return complete.map((hit) => hit && { ...hit.shown, ...shardKeyShown(this.context.source, hit.shard) });
  }

  async groupValues({ hits, groupBy }: Needs<GatheredHit>['groupValues']): Promise<readonly (readonly GroupValue[] | null)[]> {
    const complete = await completeHits(this.context, hits, { ...NO_EXTRAS, groupBy });
    return complete.map((hit) => hit && (hit.groups ?? []));
  }

  /** All shards have the same. */
  async field({ key }: Needs<GatheredHit>['field']): Promise<FieldSchema | undefined> {
    const answers = await this.context.portions.ask(this.context.source, { kind: 'field', key });
    return answers.find(({ schema }) => schema !== null)?.schema ?? undefined;
  }

  async lookup({ collection }: Needs<GatheredHit>['lookup']): Promise<undefined> {
    await this.context.lookup(collection);
  }

  async points({ collection, query }: Needs<GatheredHit>['points']): Promise<readonly PointView[]> {
    const source = collection === null ? this.context.source : await this.context.lookup(collection);
    return gatherPoints({ ...this.context, source }, query);
  }

  async comparable({ hits, using }: Needs<GatheredHit>['comparable']): Promise<readonly GatheredHit[]> {
    const pairs = await PairScores.of(this.context, using, hits);
    this.compared.set(pairs.points, pairs);
    return pairs.points;
  }

  async scores({ hits, at, query }: Needs<GatheredHit>['scores']): Promise<Float32Array> {
    const pairs = this.compared.get(hits);
    if (pairs === undefined) throw new TroupeError('internal', 'points are compared that were not made comparable');
    return query === 'each' ? pairs.from(at) : pairs.to(at);
  }

  count({ filter }: Needs<GatheredHit>['count']): Promise<number> {
    return sumCounts(this.context, filter);
  }

  facet(need: Needs<GatheredHit>['facet']): Promise<ReadonlyMap<TermValue, number>> {
    return sumValues(this.context, need);
  }
}
