/** One level of a query on rows: what each way of scoring finds. */

import type { PagedNode, ResolvedQuery } from '../../walk/walk.js';
import type { Candidates, PrefetchedRows } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { nearestCandidates } from '../nearest/rescore.js';
import { nearestHits } from '../nearest/search.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { exampleHits } from './examples.js';
import { formulaHits } from './formula.js';
import { orderedHits, rowsByValue } from './ordered.js';
import { findPoint, listHits } from './points.js';
import { randomRows } from './sample.js';

export interface RowLevel {
  /** Its filter is the whole one. */
  readonly node: PagedNode;
  readonly query: ResolvedQuery;
  /** What its prefetches found. */
  readonly lists: readonly PrefetchedRows[];
  /** The only points that may be found, which pass the filter; null: all that pass. */
  readonly candidates: Candidates | null;
}

/** The page of hits, best first. random: 0 <= n < 1. Errors: those of the way of scoring; `timeout`. */
export function levelHits(
  snapshots: readonly ReplicaSnapshot[],
  { node, query, lists, candidates }: RowLevel,
  random: () => number,
): readonly Hit[] {
  const { filter, limit, offset } = node;
  switch (query.kind) {
    case 'list':
      return listHits(snapshots, query.from, filter, node);
    case 'nearest':
      if (candidates !== null) return nearestCandidates(snapshots, node, query.value, candidates);
      return nearestBeside(snapshots, node, query);
    case 'recommend':
    case 'discover':
    case 'context':
    case 'relevanceFeedback':
      return exampleHits(snapshots, node, query, candidates);
    case 'orderBy':
      return orderedHits(rowsByValue(snapshots, query.orderBy, offset + limit, filter, candidates).slice(offset));
    case 'formula':
      return formulaHits(node, query.formula, lists);
    case 'sample': {
      const rows = randomRows(snapshots, { count: offset + limit, filter, having: query.having, candidates }, random);
      return rows.slice(offset).map(({ view, row }) => hitOf(view, row, 1));
    }
    default:
      return query satisfies never;
  }
}

/** The query's own point is left out; one more is searched for then, also where that point is in another shard. */
function nearestBeside(
  snapshots: readonly ReplicaSnapshot[],
  node: PagedNode,
  { value, own }: Extract<ResolvedQuery, { kind: 'nearest' }>,
): Hit[] {
  const { using, filter, params } = node;
  if (own === null) return nearestHits(snapshots, { using, value, filter, params, own: null }, node);
  const shard = snapshots.find(({ shardId }) => shardId === own.shard);
  const place = (shard && findPoint([shard], own.id)) ?? null;
  return nearestHits(snapshots, { using, value, filter, params, own: place, ownElsewhere: place === null }, node);
}
