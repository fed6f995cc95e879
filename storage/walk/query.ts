/** A query, level by level: its prefetches first, then its own way of scoring on what they found. */

import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Mmr, QueryNode, QueryRequest, Scoring } from '../../protocols/model/query.js';
import { bothFilters, withoutPoints } from '../../query/filter/combine.js';
import { diverseSteps } from '../../query/mmr.js';
import { similarScores } from '../../query/shown-score.js';
import type { PointView } from '../answers/result.js';
import { type Extras, NO_EXTRAS } from '../threads/portion.js';
import { averageOf, type ExampleQuery, withInputs } from './examples.js';
import { fusedPage } from './fusion.js';
import { pointsNamed } from './inputs.js';
import { scoredView, viewsOf } from './shown.js';
import { betterScores, checkSelected, spaceFacts } from './space.js';
import type { PagedNode, Prefetched, Scope, Walk, WalkHit } from './walk.js';

type Nearest = Extract<Scoring, { kind: 'nearest' }>;

/** The page of points that a query asks for. Errors: those of its parts. */
export function* queryWalk<Hit extends WalkHit>(scope: Scope<Hit>, request: QueryRequest): Walk<Hit, PointView[]> {
  checkSelected(scope.params, request.withVector);
  const extras = { withPayload: request.withPayload, withVector: request.withVector, groupBy: null };
  const hits = yield* pageWalk(scope, request, extras);
  const shown = yield* scope.ask('shown', { hits, extras });
  return viewsOf(hits, shown, (hit, parts) => scoredView(request, hit, parts));
}

/** The page of hits of one level of a query, best first. extras: what will be asked of the hits; where it pays, it comes along. */
export function pageWalk<Hit extends WalkHit>(scope: Scope<Hit>, node: PagedNode, extras: Extras): Walk<Hit, readonly Hit[]> {
  // It does not pay when more hits are passed over than are shown.
  return levelWalk(scope, node, node.offset > node.limit ? NO_EXTRAS : extras);
}

function* levelWalk<Hit extends WalkHit>(scope: Scope<Hit>, node: PagedNode, extras: Extras): Walk<Hit, readonly Hit[]> {
  const { query } = node;
  // The hot path: nothing but a search. The query's own point is found too, and left out afterwards: that is cheaper than a filter without it.
  if (query?.kind === 'nearest' && query.mmr === null && node.prefetch.length === 0) {
    spaceFacts(scope.params, node.using);
    const { value, own } = (yield* scope.ask('inputs', { query, place: node })).of(query.target);
    return yield* scope.ask('level', { node, query: { kind: 'nearest', value, own }, lists: [], extras });
  }
  const filter = query === null ? node.filter : withoutPoints(node.filter, yield* ownPointsNamed(scope, query, node));
  // A level's filter holds for all that lead to it, so that they spend their limits on points that can be answers.
  const prefetches = node.prefetch.map((prefetch) => ({ walk: (own: Scope<Hit>) => prefetchWalk(own, prefetch, filter) }));
  const lists = prefetches.length === 0 ? [] : yield* scope.all(prefetches);
  return yield* scoredWalk(scope, { ...node, filter }, lists, extras);
}

function* prefetchWalk<Hit extends WalkHit>(scope: Scope<Hit>, node: QueryNode, above: Filter | null): Walk<Hit, Prefetched<Hit>> {
  const hits = yield* levelWalk(scope, { ...node, filter: bothFilters(above, node.filter), offset: 0 }, NO_EXTRAS);
  return { hits, better: betterScores(scope.params, node) };
}

/** Ids of this collection's points that a query names: they are no answers to it. */
function* ownPointsNamed<Hit extends WalkHit>(scope: Scope<Hit>, query: Scoring, { lookupFrom }: QueryNode): Walk<Hit, readonly PointId[]> {
  const ids = pointsNamed(query);
  if (ids.length === 0 || lookupFrom === null) return ids;
  return (yield* scope.ask('isOwnLookup', { lookupFrom })) ? ids : [];
}

/** node: its filter is the whole one: the node's own, those above it, and no point that the query names. */
function* scoredWalk<Hit extends WalkHit>(
  scope: Scope<Hit>,
  node: PagedNode,
  lists: readonly Prefetched<Hit>[],
  extras: Extras,
): Walk<Hit, readonly Hit[]> {
  const { query } = node;
  if (query === null) return yield* scope.ask('level', { node, query: { kind: 'list', from: null }, lists, extras });
  switch (query.kind) {
    case 'nearest':
      return yield* nearestOrDiverse(scope, node, query, lists, extras);
    case 'rrf':
    case 'dbsf':
      return fusedPage(node, query, lists);
    case 'formula': {
      const { expression, defaults } = query;
      return yield* scope.ask('level', { node, query: { kind: 'formula', formula: { expression, defaults } }, lists, extras });
    }
    case 'orderBy':
      return yield* scope.ask('level', { node, query: { kind: 'orderBy', orderBy: query.orderBy }, lists, extras });
    case 'sample':
      // Behind some points of a sample there are as many others: it has no pages (scenario query-sample-groups-more).
      return yield* scope.ask('level', { node: { ...node, offset: 0 }, query: { kind: 'sample', having: null }, lists, extras });
    case 'recommend':
      if (query.strategy === 'average_vector') return yield* nearestToAverage(scope, node, query, lists, extras);
      return yield* likeExamples(scope, node, query, lists, extras);
    case 'discover':
    case 'context':
    case 'relevanceFeedback':
      return yield* likeExamples(scope, node, query, lists, extras);
    default:
      return query satisfies never;
  }
}

function* nearestOrDiverse<Hit extends WalkHit>(
  scope: Scope<Hit>,
  node: PagedNode,
  query: Nearest,
  lists: readonly Prefetched<Hit>[],
  extras: Extras,
): Walk<Hit, readonly Hit[]> {
  const { target, mmr } = query;
  spaceFacts(scope.params, node.using);
  const { value } = (yield* scope.ask('inputs', { query, place: node })).of(target);
  const nearest = { kind: 'nearest', value, own: null } as const;
  if (mmr === null) return yield* scope.ask('level', { node, query: nearest, lists, extras });
  const near = { ...node, limit: mmr.candidatesLimit ?? node.limit, offset: 0 };
  return yield* diverseWalk(scope, node, mmr, yield* scope.ask('level', { node: near, query: nearest, lists, extras: NO_EXTRAS }));
}

/**
 * The page of an order in which each point adds something to those before it. nearest: the candidates, best first. How much a multivector is like
 * one that was chosen is what it scores as the query (scenario query-mmr-multivector).
 */
function* diverseWalk<Hit extends WalkHit>(
  scope: Scope<Hit>,
  node: PagedNode,
  mmr: Mmr,
  nearest: readonly Hit[],
): Walk<Hit, readonly Hit[]> {
  const { using } = node;
  const { distance, multi } = spaceFacts(scope.params, using);
  const hits = yield* scope.ask('comparable', { hits: nearest, using, kept: 0 });
  const relevance = similarScores(
    distance,
    Float32Array.from(hits, ({ score }) => score),
  );
  const chosen = yield* scope.steps(diverseSteps(relevance, mmr.diversity, node.offset + node.limit), function* (at) {
    return similarScores(distance, yield* scope.ask('scores', { hits, using, at, query: multi ? 'each' : 'one' }));
  });
  return chosen.slice(node.offset).map((at) => hits[at] as Hit);
}

function* nearestToAverage<Hit extends WalkHit>(
  scope: Scope<Hit>,
  node: PagedNode,
  query: Extract<Scoring, { kind: 'recommend' }>,
  lists: readonly Prefetched<Hit>[],
  extras: Extras,
): Walk<Hit, readonly Hit[]> {
  const inputs = yield* scope.ask('inputs', { query, place: node });
  const value = averageOf(query, (input) => inputs.of(input).value);
  return yield* scope.ask('level', { node, query: { kind: 'nearest', value, own: null }, lists, extras });
}

function* likeExamples<Hit extends WalkHit>(
  scope: Scope<Hit>,
  node: PagedNode,
  query: ExampleQuery,
  lists: readonly Prefetched<Hit>[],
  extras: Extras,
): Walk<Hit, readonly Hit[]> {
  spaceFacts(scope.params, node.using);
  const inputs = yield* scope.ask('inputs', { query, place: node });
  return yield* scope.ask('level', { node, query: withInputs(query, (input) => inputs.of(input).value), lists, extras });
}
