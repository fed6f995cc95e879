/** Runs a query over many nodes, level by level, by the rules of `../query.ts`: what it does on rows, this asks of the shards. */

import type { Filter } from '../../protocols/model/filter.js';
import type { QueryNode, QueryRequest, Scoring } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import { bothFilters, withoutPoints } from '../../query/filter/combine.js';
import { mergeRanked } from '../../query/merge.js';
import type { PointView } from '../answers/result.js';
import type { PagedNode } from '../reader/nearest/candidates.js';
import { averageOfValues, type ExampleQuery } from '../reader/query/examples.js';
import { type FusionQuery, fusedScores } from '../reader/query/fused.js';
import { type Extras, NO_EXTRAS } from '../threads/portion.js';
import { allInOrder, type GatherContext } from './context.js';
import { diverseHits } from './diverse.js';
import { formulaLists } from './formula-lists.js';
import { completeHits, type GatheredHit } from './hits.js';
import { namedPoints, resolveInputs } from './inputs.js';
import { betterScores, Level, type Prefetched } from './level.js';
import { drawnHits, sampleHits } from './sample.js';
import { checkSelected, shownKey, spaceFacts } from './source.js';

/** The page of points that a query asks for. Errors: as `../query.ts`. */
export async function runQuery(context: GatherContext, request: QueryRequest): Promise<PointView[]> {
  checkSelected(context.source.place.params, request.withVector);
  const { withPayload, withVector } = request;
  const hits = await hitsOf(context, request, { withPayload, withVector, groupBy: null });
  return hits.map((hit) => scoredView(context, request, hit));
}

/** A hit as the API shows it: what has no score of its own is shown without its version, too. */
export function scoredView({ source }: GatherContext, { query }: QueryNode, hit: GatheredHit): PointView {
  const { id, shard, score, version, orderValue, shown } = hit;
  const unscored = query === null || query.kind === 'orderBy' || query.kind === 'sample';
  return {
    id,
    version: unscored ? 0 : version,
    score,
    ...shown,
    ...shownKey(source, shard),
    ...(orderValue === undefined ? {} : { orderValue }),
  };
}

/** The page of hits of one level of a query, best first, with all that is to be shown of them. */
export async function hitsOf(context: GatherContext, node: PagedNode, extras: Extras): Promise<readonly GatheredHit[]> {
  // What is shown comes along with the hits, unless more of them are passed over than are shown.
  const hits = await levelHits(context, node, node.offset > node.limit ? NO_EXTRAS : extras);
  return completeHits(context, hits, extras);
}

async function levelHits(context: GatherContext, node: PagedNode, extras: Extras): Promise<readonly GatheredHit[]> {
  const { query } = node;
  if (query?.kind === 'nearest' && query.mmr === null && node.prefetch.length === 0) return plainHits(context, node, query, extras);
  const filter = query === null ? node.filter : withoutPoints(node.filter, await namedPoints(context, query, node));
  const lists = await allInOrder(node.prefetch.map((prefetch) => prefetched(context, prefetch, filter)));
  return scoredHits(new Level(context, { ...node, filter }, lists, extras));
}

/** Nothing but a search. */
async function plainHits(
  context: GatherContext,
  node: PagedNode,
  query: Extract<Scoring, { kind: 'nearest' }>,
  extras: Extras,
): Promise<readonly GatheredHit[]> {
  spaceFacts(context.source.place.params, node.using);
  const { value, own } = (await resolveInputs(context, query, node)).of(query.target);
  return new Level(context, node, [], extras).ranked({ kind: 'nearest', value, own }, [value]);
}

async function prefetched(context: GatherContext, node: QueryNode, above: Filter | null): Promise<Prefetched> {
  const hits = await levelHits(context, { ...node, filter: bothFilters(above, node.filter), offset: 0 }, NO_EXTRAS);
  return { hits, better: betterScores(context, node) };
}

async function scoredHits(level: Level): Promise<readonly GatheredHit[]> {
  const { context, node, lists, extras } = level;
  const { query } = node;
  if (query === null) return level.listed(null);
  switch (query.kind) {
    case 'nearest':
      return nearestOrDiverse(level, query);
    case 'rrf':
    case 'dbsf':
      return fusedHits(node, query, lists);
    case 'formula': {
      const { expression, defaults } = query;
      const formula = { expression, defaults };
      return level.ranked({ kind: 'formula', formula, lists: formulaLists(lists.map(({ hits }) => hits)) }, []);
    }
    case 'orderBy':
      return level.ordered(query.orderBy);
    case 'sample': {
      const all = lists.flatMap(({ hits }) => hits);
      const found = lists.length > 0 ? drawnHits(all, level.count, context.random) : await sampleHits(context, node, level.count, extras);
      return level.page(found);
    }
    case 'recommend':
      if (query.strategy === 'average_vector') return nearestToAverage(level, query);
      return exampleHits(level, query);
    case 'discover':
    case 'context':
    case 'relevanceFeedback':
      return exampleHits(level, query);
    default:
      return query satisfies never;
  }
}

async function nearestOrDiverse(level: Level, query: Extract<Scoring, { kind: 'nearest' }>): Promise<readonly GatheredHit[]> {
  const { context, node, lists } = level;
  const { target, mmr } = query;
  spaceFacts(context.source.place.params, node.using);
  const { value } = (await resolveInputs(context, query, node)).of(target);
  if (mmr === null) return level.ranked({ kind: 'nearest', value, own: null }, [value]);
  const near = { ...node, limit: mmr.candidatesLimit ?? node.limit, offset: 0 };
  const nearest = await new Level(context, near, lists, NO_EXTRAS).ranked({ kind: 'nearest', value, own: null }, [value]);
  return diverseHits(context, node, mmr, nearest);
}

async function nearestToAverage(level: Level, query: Extract<Scoring, { kind: 'recommend' }>): Promise<readonly GatheredHit[]> {
  const inputs = await resolveInputs(level.context, query, level.node);
  const value = averageOfValues(query, (input) => inputs.of(input).value);
  return level.ranked({ kind: 'nearest', value, own: null }, [value]);
}

async function exampleHits(level: Level, query: ExampleQuery): Promise<readonly GatheredHit[]> {
  const { context, node } = level;
  spaceFacts(context.source.place.params, node.using);
  const inputs = await resolveInputs(context, query, node);
  const values: VectorValue[] = [];
  const resolved = withInputs(query, (input) => {
    const { value } = inputs.of(input);
    values.push(value);
    return value;
  });
  return level.ranked(resolved, values);
}

/** The query with other inputs in the place of its own. */
function withInputs(query: ExampleQuery, inputOf: (input: VectorInput) => VectorValue): ExampleQuery {
  switch (query.kind) {
    case 'recommend':
      return { ...query, positive: query.positive.map(inputOf), negative: query.negative.map(inputOf) };
    case 'discover': {
      const target = inputOf(query.target);
      return { ...query, target, context: query.context.map((pair) => withPair(pair, inputOf)) };
    }
    case 'context':
      return { ...query, pairs: query.pairs.map((pair) => withPair(pair, inputOf)) };
    case 'relevanceFeedback': {
      const target = inputOf(query.target);
      return { ...query, target, feedback: query.feedback.map(({ example, score }) => ({ example: inputOf(example), score })) };
    }
    default:
      return query satisfies never;
  }
}

function withPair(
  { positive, negative }: { readonly positive: VectorInput; readonly negative: VectorInput },
  inputOf: (input: VectorInput) => VectorValue,
): { positive: VectorValue; negative: VectorValue } {
  return { positive: inputOf(positive), negative: inputOf(negative) };
}

/** The page of the points of all lists, by fused score. */
function fusedHits(node: PagedNode, fusion: FusionQuery, lists: readonly Prefetched[]): GatheredHit[] {
  const scores = fusedScores(fusion, lists);
  const newest = new Map<unknown, GatheredHit>();
  for (const hit of lists.flatMap(({ hits }) => hits)) {
    const known = newest.get(hit.id);
    if (known === undefined || hit.version > known.version) newest.set(hit.id, hit);
  }
  const hits = [...newest.values()].map(({ id, shard, version }) => ({ id, shard, version, score: Math.fround(scores.get(id) as number) }));
  return mergeRanked([hits], { ...node, better: 'larger' });
}
