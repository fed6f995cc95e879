/** What is told of a filter while it is evaluated in a segment. */

import type { AnsweredBy, ExplainedCondition, ExplainedFilter } from '../../protocols/model/explanation.js';
import type { Condition } from '../../protocols/model/filter.js';
import { estimateCondition } from '../../query/explain/estimate.js';
import { conditionText } from '../../query/explain/sentences.js';
import { countBits } from '../../query/filter/bits.js';
import { indexCondition } from '../../query/filter/evaluate.js';
import type { FilterNotes } from '../../query/filter/source.js';
import type { SeenSegment } from './seen-segment.js';

/** Conditions that are shown; more say nothing to a reader. */
const CONDITIONS_MAX = 64;

export class HeardFilter implements FilterNotes {
  private cache: ExplainedFilter['cache'] = 'miss';
  private payloads = 0;
  private readonly conditions: { readonly condition: Condition; readonly by: AnsweredBy; readonly bits: Uint32Array | null }[] = [];

  constructor(private readonly view: SeenSegment) {}

  cached(cache: ExplainedFilter['cache']): void {
    this.cache = cache;
  }

  answered(condition: Condition, by: AnsweredBy, bits: Uint32Array | null): void {
    if (this.conditions.length < CONDITIONS_MAX) this.conditions.push({ condition, by, bits });
  }

  read(payloads: number): void {
    this.payloads += payloads;
  }

  told(): ExplainedFilter {
    const { view } = this;
    const conditions = this.conditions.map(({ condition, by, bits }): ExplainedCondition => {
      const bounds = boundsIn(view, condition);
      return {
        condition: conditionText(condition),
        answered_by: by,
        index: indexOf(view, condition),
        matches_estimated: bounds === null ? null : estimateCondition(condition, view.rows, () => bounds),
        matches: bits === null ? null : countBits(bits),
      };
    });
    return { cache: this.cache, payloads_read: this.payloads, conditions };
  }
}

/** What the segment's index says of a condition by its counts; null: nothing. */
export function boundsIn(view: SeenSegment, condition: Condition): { readonly min: number; readonly max: number } | null {
  const asked = indexCondition(condition);
  return asked === undefined ? null : (view.fieldIndex(asked.key)?.cardinality(asked) ?? null);
}

function indexOf(view: SeenSegment, condition: Condition): string | null {
  switch (condition.kind) {
    case 'hasId':
      return 'id';
    case 'hasVector':
      return 'vector';
    default: {
      const asked = indexCondition(condition);
      const index = asked === undefined ? undefined : view.fieldIndex(asked.key);
      return asked === undefined || index === undefined ? null : (view.fields.get(asked.key)?.type ?? null);
    }
  }
}
