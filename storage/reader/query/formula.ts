/** Points of several prefetches, by the score that a formula gives each. */

import type { Condition } from '../../../protocols/model/filter.js';
import type { Payload } from '../../../protocols/model/payload.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import { compileCondition, type PredicateContext, type RowTest } from '../../../query/filter/predicate.js';
import { type Formula, formulaScore } from '../../../query/formula.js';
import { mergeRanked } from '../../../query/merge.js';
import { newestHits } from '../../walk/fusion.js';
import type { PagedNode } from '../../walk/walk.js';
import type { PrefetchedRows } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { payloadOf } from '../snapshot/filter-source.js';
import { hasVector, type SegmentView } from '../snapshot/snapshot-view.js';

/** The page of the points of all lists, by the score that a formula gives them. Errors: those of `formulaScore`. */
export function formulaHits(node: PagedNode, formula: Formula, lists: readonly PrefetchedRows[]): Hit[] {
  const scores = lists.map(({ hits }) => {
    const byId = new Map<PointId, number>();
    for (const { id, score } of hits) if (!byId.has(id)) byId.set(id, score);
    return byId;
  });
  const conditions = new Map<SegmentView, ConditionTests>();
  const hits: Hit[] = [];
  for (const { view, row, id } of newestHits(lists).values()) {
    view.reader.deadline.check();
    view.reader.deadline.claim({ kind: 'payloads', count: 1 });
    const tests = conditions.get(view) ?? new ConditionTests(view);
    conditions.set(view, tests);
    hits.push(hitOf(view, row, formulaScore(formula, new PrefetchedPoint(view, row, id, scores, tests))));
  }
  return mergeRanked([hits], { ...node, better: 'larger' });
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
