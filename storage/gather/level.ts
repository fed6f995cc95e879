/** One level of a query, asked of all shards: its filter is the whole one, and its prefetches are done. */

import { compareIds } from '../../protocols/model/point-id.js';
import { mergeRanked } from '../../query/merge.js';
import { compareOrdered, type OrderedPoint } from '../../query/order.js';
import type { Hits, LevelQuery, ShardPoints, TermSums } from '../threads/portion.js';
import { isExampleQuery } from '../walk/examples.js';
import { betterScores } from '../walk/space.js';
import type { Needs, ResolvedQuery } from '../walk/walk.js';
import type { GatherContext } from './context.js';
import { formulaLists } from './formula-lists.js';
import { type GatheredHit, hitsFrom, pointsOf, shardIdsOf } from './hits.js';
import { termsOf } from './inputs.js';
import { drawn, drawnHits } from './sample.js';

type LevelNeed = Needs<GatheredHit>['level'];

/** The page of the level's hits, best first. Errors: those of its way of scoring. */
export async function levelPage(context: GatherContext, need: LevelNeed): Promise<readonly GatheredHit[]> {
  const { node, query, lists } = need;
  const end = node.offset + node.limit;
  switch (query.kind) {
    case 'list': {
      const hits = (await askLevel(context, need, query, null)).flatMap(hitsFrom);
      hits.sort((a, b) => compareIds(a.id, b.id) || a.shard - b.shard);
      // Shards of several keys may each have a point of one id.
      return hits.filter(({ id }, at) => at === 0 || hits[at - 1]?.id !== id).slice(node.offset, end);
    }
    case 'orderBy': {
      const hits = (await askLevel(context, need, query, null)).flatMap(hitsFrom);
      const byValue = compareOrdered(query.orderBy.direction);
      return hits.sort((a, b) => byValue(orderedPoint(a), orderedPoint(b))).slice(node.offset, end);
    }
    case 'sample': {
      const all = lists.flatMap(({ hits }) => hits);
      const found =
        lists.length > 0 ? drawnHits(all, end, context.random) : drawn(await askLevel(context, need, query, null), end, context.random);
      return found.slice(node.offset, end);
    }
    default: {
      const terms = node.query === null ? null : await termsOf(context, node.query, node, query);
      const found = await askLevel(context, need, asked(query, lists), terms);
      return mergeRanked(found.map(hitsFrom), {
        ...node,
        better: query.kind === 'nearest' ? betterScores(context.source.place.params, node) : 'larger',
      });
    }
  }
}

/** As shards are asked: they have not seen what the prefetches found. */
function asked(query: Exclude<ResolvedQuery, { kind: 'sample' }>, lists: LevelNeed['lists']): LevelQuery {
  return query.kind === 'formula' ? { ...query, lists: formulaLists(lists.map(({ hits }) => hits)) } : query;
}

/** What each portion answers: its first `offset + limit` hits. */
async function askLevel(
  context: GatherContext,
  { node, lists, extras }: LevelNeed,
  query: LevelQuery,
  terms: TermSums | null,
): Promise<readonly Hits[]> {
  const candidates: readonly ShardPoints[] | null = lists.length === 0 ? null : pointsOf(lists.flatMap(({ hits }) => hits));
  // The values of examples are checked also where there is no point to compare them with.
  if (candidates?.length === 0 && !isExampleQuery(query)) return [];
  const { using, filter, params, scoreThreshold, offset, limit } = node;
  const shards = candidates === null || candidates.length === 0 ? context.source.shards : shardIdsOf(candidates);
  return context.portions.ask(
    context.source,
    { kind: 'level', query, using, filter, params, scoreThreshold, count: offset + limit, candidates, terms, extras },
    shards,
  );
}

function orderedPoint({ id, orderValue }: GatheredHit): OrderedPoint {
  return { id, value: orderValue as number | bigint };
}
