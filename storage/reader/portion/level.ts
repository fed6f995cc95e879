/** One level of a query on the shards of a portion: what each way of scoring finds there, by the local executor's rules. */

import { TroupeError } from '../../../protocols/errors.js';
import type { LevelAsk, LevelQuery, ScoredPoints } from '../../threads/portion.js';
import type { Candidates, PagedNode, Prefetched } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { nearestCandidates } from '../nearest/rescore.js';
import { nearestHits } from '../nearest/search.js';
import { exampleHits } from '../query/examples.js';
import { formulaHits } from '../query/fused.js';
import { orderedHits, rowsByValue } from '../query/ordered.js';
import { type FoundRow, rowsInOrder } from '../query/points.js';
import { drawnRows, shuffled } from '../query/sample.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import type { Shards } from './shards.js';

export interface LevelHits {
  readonly hits: readonly Hit[];
  /** Of samples: points there were to choose from; else 0. */
  readonly total: number;
}

/** Errors: those of the way of scoring; `timeout`. */
export function levelHits(shards: Shards, ask: LevelAsk, random: () => number): LevelHits {
  const { query, filter, count } = ask;
  if (query.kind === 'sample') {
    const { rows, total } = drawnRows(shards.snapshots, filter, query.having, count, random);
    return { hits: plainHits(shuffled(rows, random)), total };
  }
  const candidates = ask.candidates && shards.candidates(ask.candidates);
  return { hits: rankedHits(shards, ask, query, candidates), total: 0 };
}

function rankedHits(
  shards: Shards,
  ask: LevelAsk,
  query: Exclude<LevelQuery, { kind: 'sample' }>,
  candidates: Candidates | null,
): readonly Hit[] {
  const node = nodeOf(ask);
  const { filter, limit } = node;
  switch (query.kind) {
    case 'list':
      return firstHits(shards.snapshots, ask, query);
    case 'nearest': {
      const snapshots = shards.scoredWith(ask.terms);
      if (candidates !== null) return nearestCandidates(snapshots, node, query.value, candidates);
      return nearestBeside(shards, snapshots, node, query);
    }
    case 'recommend':
    case 'discover':
    case 'context':
    case 'relevanceFeedback':
      return exampleHits({ snapshots: shards.scoredWith(ask.terms), lookup: noLookup, random: noChance }, node, query, candidates);
    case 'orderBy':
      return orderedHits(rowsByValue(shards.snapshots, query.orderBy, limit, filter, candidates));
    case 'formula':
      return formulaHits(
        node,
        query.formula,
        query.lists.map((list) => prefetchedHere(shards, list)),
      );
    default:
      return query satisfies never;
  }
}

function nearestBeside(
  shards: Shards,
  snapshots: readonly ReplicaSnapshot[],
  node: PagedNode,
  { value, own }: Extract<LevelQuery, { kind: 'nearest' }>,
): Hit[] {
  const { using, filter, params } = node;
  const place = own === null ? null : (shards.find(own.shard, own.id) ?? null);
  return nearestHits(snapshots, { using, value, filter, params, own: place, ownElsewhere: own !== null && place === null }, node);
}

function firstHits(
  snapshots: readonly ReplicaSnapshot[],
  { filter, count }: LevelAsk,
  { from }: Extract<LevelQuery, { kind: 'list' }>,
): Hit[] {
  const rows: FoundRow[] = [];
  if (count === 0) return [];
  for (const found of rowsInOrder(snapshots, from, filter)) {
    rows.push(found);
    if (rows.length === count) break;
  }
  return plainHits(rows);
}

function plainHits(rows: readonly FoundRow[]): Hit[] {
  return rows.map(({ view, row }) => hitOf(view, row, 1));
}

/** What a prefetch found of these shards. Formulas do not ask which scores are better. */
function prefetchedHere(shards: Shards, { points, scores }: ScoredPoints): Prefetched {
  const hits = shards.found(points).map(({ view, row, at }) => hitOf(view, row, scores[at] as number));
  return { hits, better: 'larger' };
}

function nodeOf({ using, filter, params, scoreThreshold, count }: LevelAsk): PagedNode {
  return { prefetch: [], query: null, using, filter, params, scoreThreshold, limit: count, offset: 0, lookupFrom: null };
}

/** Inputs are values, and come without places to look them up. */
function noLookup(): never {
  throw new TroupeError('internal', 'a portion of a read looks nothing up in other collections');
}

function noChance(): never {
  throw new TroupeError('internal', 'only samples are left to chance');
}
