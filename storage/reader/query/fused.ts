/** Points of several prefetches with one score each: by fusion of their lists, or by a formula. */

import type { Condition } from '../../../protocols/model/filter.js';
import type { Payload } from '../../../protocols/model/payload.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { Scoring } from '../../../protocols/model/query.js';
import { compileCondition, type PredicateContext, type RowTest } from '../../../query/filter/predicate.js';
import { type Formula, formulaScore } from '../../../query/formula.js';
import { fuseDistributions, fuseRanks, type ScoredList } from '../../../query/fuse.js';
import { mergeRanked } from '../../../query/merge.js';
import type { PagedNode, Prefetched } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { payloadOf } from '../snapshot/filter-source.js';
import { hasVector, type SegmentView } from '../snapshot/snapshot-view.js';

/** The page of the points of all lists, by fused score. */
export function fusedHits(node: PagedNode, fusion: FusionQuery, lists: readonly Prefetched[]): Hit[] {
  const scores = fusedScores(fusion, lists);
  const hits = [...newestHits(lists).values()].map(({ view, row, id }) => hitOf(view, row, Math.fround(scores.get(id) as number)));
  return mergeRanked([hits], { ...node, better: 'larger' });
}

export type FusionQuery = Extract<Scoring, { kind: 'rrf' | 'dbsf' }>;

/** One score for each point of the lists, which are best first. */
export function fusedScores(
  fusion: FusionQuery,
  lists: readonly { readonly hits: ScoredList['points']; readonly better: ScoredList['better'] }[],
): Map<PointId, number> {
  if (fusion.kind === 'dbsf') return fuseDistributions(lists.map(({ hits, better }) => ({ points: hits, better })));
  return fuseRanks(
    lists.map(({ hits }) => hits.map(({ id }) => id)),
    fusion.k,
    fusion.weights,
  );
}

/** The page of the points of all lists, by the score that a formula gives them. Errors: those of `formulaScore`. */
export function formulaHits(node: PagedNode, formula: Formula, lists: readonly Prefetched[]): Hit[] {
  const scores = lists.map(({ hits }) => {
    const byId = new Map<PointId, number>();
    for (const { id, score } of hits) if (!byId.has(id)) byId.set(id, score);
    return byId;
  });
  const conditions = new Map<SegmentView, ConditionTests>();
  const hits: Hit[] = [];
  for (const { view, row, id } of newestHits(lists).values()) {
    view.reader.deadline.check();
    const tests = conditions.get(view) ?? new ConditionTests(view);
    conditions.set(view, tests);
    hits.push(hitOf(view, row, formulaScore(formula, new PrefetchedPoint(view, row, id, scores, tests))));
  }
  return mergeRanked([hits], { ...node, better: 'larger' });
}

/** A point that stands in several lists, or several times in one (it was moved while they were read), in its newest version. */
function newestHits(lists: readonly Prefetched[]): Map<PointId, Hit> {
  const newest = new Map<PointId, Hit>();
  for (const { hits } of lists) {
    for (const hit of hits) {
      const known = newest.get(hit.id);
      if (known === undefined || hit.view.version(hit.row) > known.view.version(known.row)) newest.set(hit.id, hit);
    }
  }
  return newest;
}

class PrefetchedPoint {
  private known: Payload | undefined;

  constructor(
    private readonly view: SegmentView,
    private readonly row: number,
    private readonly id: PointId,
    private readonly scores: readonly ReadonlyMap<PointId, number>[],
    private readonly tests: ConditionTests,
  ) {}

  score(prefetch: number): number | undefined {
    return this.scores[prefetch]?.get(this.id);
  }

  payload(): Payload {
    this.known ??= payloadOf(this.view, this.row);
    return this.known;
  }

  passes(condition: Condition): boolean {
    const payload = this.payload();
    return this.tests.of(condition)(this.row, payload, payload);
  }
}

/** Conditions of a formula as tests of a segment's rows. */
class ConditionTests {
  private readonly tests = new Map<Condition, RowTest>();
  private readonly context: PredicateContext;

  constructor(view: SegmentView) {
    this.context = {
      fieldSchema: (key) => view.fields.get(key),
      known: (condition) => {
        if (condition.kind === 'hasId') {
          const listed = new Set(condition.ids);
          return (row) => listed.has(view.id(row));
        }
        if (condition.kind !== 'hasVector') return undefined;
        const vector = view.reader.vector(condition.name);
        return (row) => vector !== undefined && hasVector(vector, row);
      },
    };
  }

  of(condition: Condition): RowTest {
    const known = this.tests.get(condition);
    if (known !== undefined) return known;
    const test = compileCondition(condition, this.context);
    this.tests.set(condition, test);
    return test;
  }
}
