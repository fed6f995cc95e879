/** Runs a query: its prefetches first, then its own way of scoring on what they found. */

import type { Filter } from '../../../protocols/model/filter.js';
import type { QueryNode, QueryRequest, Scoring } from '../../../protocols/model/query.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { bothFilters, withoutPoints } from '../../../query/filter/combine.js';
import type { Page } from '../../../query/merge.js';
import type { PointView } from '../../answers/result.js';
import { checkDeadline } from '../../threads/deadline.js';
import { type Candidates, candidatesOf, type PagedNode, type Prefetched } from '../nearest/candidates.js';
import type { Hit } from '../nearest/hit.js';
import { diverseHits, nearestCandidates } from '../nearest/rescore.js';
import { betterOf, nearestHits } from '../nearest/search.js';
import type { ReadContext } from '../operations.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import { averageOf, exampleHits } from './examples.js';
import { formulaHits, fusedHits } from './fused.js';
import { namedPoints, resolveInput } from './inputs.js';
import { orderedHits, rowsByValue } from './ordered.js';
import { PointViews } from './point-view.js';
import { listHits } from './points.js';
import { randomRows } from './sample.js';

/** The page of points that a query asks for. Errors: those of its parts. */
export function runQuery(context: ReadContext, request: QueryRequest): PointView[] {
  const { config, vectors } = context.snapshots[0] as ReplicaSnapshot;
  const views = new PointViews(config, vectors, request.withPayload, request.withVector);
  return hitsOf(context, request).map((hit) => views.scored(hit));
}

/** The page of hits of one level of a query, best first. */
export function hitsOf(context: ReadContext, node: PagedNode): Hit[] {
  // A request may have hundreds of thousands of queries that take no time at all.
  checkDeadline(context.snapshots);
  const { query } = node;
  // The hot path: nothing but a search.
  if (query?.kind === 'nearest' && query.mmr === null && node.prefetch.length === 0) return plainHits(context, node, query);
  const filter = query === null ? node.filter : withoutPoints(node.filter, namedPoints(context, query, node));
  // A level's filter holds for all that lead to it, so that they spend their limits on points that can be answers.
  const lists = node.prefetch.map((prefetch) => prefetched(context, prefetch, filter));
  return scoredHits(context, { ...node, filter }, lists, lists.length === 0 ? null : candidatesOf(lists));
}

function plainHits(context: ReadContext, node: PagedNode, query: Extract<Scoring, { kind: 'nearest' }>): Hit[] {
  const { using, filter, params } = node;
  vectorSpace(context.snapshots, using);
  const { value, own } = resolveInput(context, query.target, node);
  return nearestHits(context.snapshots, { using, value, filter, params, own }, node);
}

function prefetched(context: ReadContext, node: QueryNode, above: Filter | null): Prefetched {
  const hits = hitsOf(context, { ...node, filter: bothFilters(above, node.filter), offset: 0 });
  return { hits, better: betterScores(context, node) };
}

/**
 * node: its filter is the whole one: the node's own, those above it, and no point that the query names.
 * candidates: the only points that may be found, which pass the filter; null: all that pass.
 */
function scoredHits(context: ReadContext, node: PagedNode, lists: readonly Prefetched[], candidates: Candidates | null): Hit[] {
  const { snapshots } = context;
  const { query, filter, limit, offset } = node;
  if (query === null) return listHits(snapshots, filter, { limit, offset });
  switch (query.kind) {
    case 'nearest':
      return nearestOrDiverse(context, node, query, candidates);
    case 'rrf':
    case 'dbsf':
      return fusedHits(node, query, lists);
    case 'formula':
      return formulaHits(node, query, lists);
    case 'orderBy':
      return orderedHits(rowsByValue(snapshots, query.orderBy, offset + limit, filter, candidates).slice(offset));
    case 'sample': {
      const rows = randomRows(snapshots, offset + limit, filter, candidates, context.random).slice(offset);
      return rows.map(({ view, row }) => ({ id: view.id(row), score: 1, version: 0, view, row }));
    }
    case 'recommend':
      if (query.strategy === 'average_vector') return nearestTo(context, node, averageOf(context, node, query), candidates);
      return exampleHits(context, node, query, candidates);
    case 'discover':
    case 'context':
    case 'relevanceFeedback':
      return exampleHits(context, node, query, candidates);
    default:
      return query satisfies never;
  }
}

function nearestOrDiverse(
  context: ReadContext,
  node: PagedNode,
  { target, mmr }: Extract<Scoring, { kind: 'nearest' }>,
  candidates: Candidates | null,
): Hit[] {
  vectorSpace(context.snapshots, node.using);
  const { value } = resolveInput(context, target, node);
  if (mmr === null) return nearestTo(context, node, value, candidates);
  const nearest = nearestTo(context, { ...node, limit: mmr.candidatesLimit ?? node.limit, offset: 0 }, value, candidates);
  return diverseHits(context.snapshots, node, mmr, nearest);
}

/** The page of points nearest to a value (which may be changed in place). */
function nearestTo({ snapshots }: ReadContext, node: PagedNode, value: VectorValue, candidates: Candidates | null): Hit[] {
  if (candidates !== null) return nearestCandidates(snapshots, node, value, candidates);
  const { using, filter, params } = node;
  return nearestHits(snapshots, { using, value, filter, params, own: null }, node);
}

/** Which scores of a level's hits are better. */
export function betterScores({ snapshots }: ReadContext, { query, using }: QueryNode): Page['better'] {
  const isDistance = query?.kind === 'nearest' || (query?.kind === 'recommend' && query.strategy === 'average_vector');
  return isDistance ? betterOf(vectorSpace(snapshots, using).distance) : 'larger';
}
