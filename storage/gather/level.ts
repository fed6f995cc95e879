/** One level of a query, asked of all shards: its filter is the whole one, and its prefetches are done. */

import { compareIds, type PointId } from '../../protocols/model/point-id.js';
import type { OrderBy, QueryNode } from '../../protocols/model/query.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import { mergeRanked, type Page } from '../../query/merge.js';
import { compareOrdered, type OrderedPoint } from '../../query/order.js';
import type { PagedNode } from '../reader/nearest/candidates.js';
import { betterOf } from '../reader/nearest/search.js';
import type { Extras, LevelQuery, ShardPoints, TermSums } from '../threads/portion.js';
import type { GatherContext } from './context.js';
import { type GatheredHit, hitsFrom, pointsOf, shardsOf } from './hits.js';
import { termsOf } from './inputs.js';
import { spaceFacts } from './source.js';

/** What a prefetch found, best first. */
export interface Prefetched {
  readonly hits: readonly GatheredHit[];
  readonly better: Page['better'];
}

export class Level {
  /** The only points that may be found; null: all that pass the filter. */
  private readonly candidates: readonly ShardPoints[] | null;

  constructor(
    readonly context: GatherContext,
    readonly node: PagedNode,
    readonly lists: readonly Prefetched[],
    readonly extras: Extras,
  ) {
    this.candidates = lists.length === 0 ? null : pointsOf(lists.flatMap(({ hits }) => hits));
  }

  get count(): number {
    return this.node.offset + this.node.limit;
  }

  /** The page by scores that shards give with these values. */
  async ranked(query: LevelQuery, values: readonly VectorValue[]): Promise<readonly GatheredHit[]> {
    const { context, node } = this;
    const terms = node.query === null || values.length === 0 ? null : await termsOf(context, node.query, node, values);
    const lists = await this.ask(query, terms);
    const better = query.kind === 'nearest' ? betterScores(context, node) : 'larger';
    return mergeRanked(lists, { ...node, better });
  }

  /** The page of points in id order, from an id on (null: the first). */
  async listed(from: PointId | null): Promise<readonly GatheredHit[]> {
    const lists = await this.ask({ kind: 'list', from }, null);
    const hits = lists.flat().sort((a, b) => compareIds(a.id, b.id) || a.shard - b.shard);
    // Shards of several keys may each have a point of one id.
    return this.page(hits.filter(({ id }, at) => at === 0 || hits[at - 1]?.id !== id));
  }

  /** The page of points by a value of their payload. */
  async ordered(orderBy: OrderBy): Promise<readonly GatheredHit[]> {
    const lists = await this.ask({ kind: 'orderBy', orderBy }, null);
    const byValue = compareOrdered(orderBy.direction);
    return this.page(lists.flat().sort((a, b) => byValue(orderedPoint(a), orderedPoint(b))));
  }

  page(hits: readonly GatheredHit[]): readonly GatheredHit[] {
    return hits.slice(this.node.offset, this.count);
  }

  private async ask(query: LevelQuery, terms: TermSums | null): Promise<GatheredHit[][]> {
    const { context, node, candidates, extras, count } = this;
    if (candidates?.length === 0 && !EXAMPLES.has(query.kind)) return [];
    const { using, filter, params, scoreThreshold } = node;
    const shards = candidates === null || candidates.length === 0 ? context.source.shards : shardsOf(candidates);
    const answers = await context.portions.ask(
      context.source,
      { kind: 'level', query, using, filter, params, scoreThreshold, count, candidates, terms, extras },
      shards,
    );
    return answers.map(hitsFrom);
  }
}

/** Their values are checked also where there is no point to compare them with. */
const EXAMPLES: ReadonlySet<LevelQuery['kind']> = new Set(['recommend', 'discover', 'context', 'relevanceFeedback']);

function orderedPoint({ id, orderValue }: GatheredHit): OrderedPoint {
  return { id, value: orderValue as number | bigint };
}

/** Which scores of a level's hits are better. Errors: `wrongInput` for an unknown vector name. */
export function betterScores({ source }: GatherContext, { query, using }: QueryNode): Page['better'] {
  const isDistance = query?.kind === 'nearest' || (query?.kind === 'recommend' && query.strategy === 'average_vector');
  return isDistance ? betterOf(spaceFacts(source.place.params, using).distance) : 'larger';
}
