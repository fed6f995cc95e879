/** A segment in a snapshot, as filter evaluation sees it. */

import { parseValues } from '../../../protocols/json.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Condition, Filter } from '../../../protocols/model/filter.js';
import type { Payload } from '../../../protocols/model/payload.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { Work } from '../../../query/effort.js';
import { estimateMatches } from '../../../query/explain/estimate.js';
import { countBits } from '../../../query/filter/bits.js';
import { evaluateFilter } from '../../../query/filter/evaluate.js';
import type { FieldIndex, FilterNotes, FilterSource } from '../../../query/filter/source.js';
import { type Explainer, explaining } from '../../explain/explainer.js';
import { boundsIn, HeardFilter } from '../../explain/heard-filter.js';
import { hasVector, type SegmentView } from './snapshot-view.js';

/** Bits of the rows of the segment that pass, deleted ones included. Not to be changed: filters that are asked again get the same. Errors: `timeout`. */
export function filterBits(view: SegmentView, filter: Filter): Uint32Array {
  const explainer = explaining();
  if (explainer === null) return evaluateFilter(filter, new SegmentSource(view), view.reader.filters);
  return explainedBits(explainer, view, filter);
}

function explainedBits(explainer: Explainer, view: SegmentView, filter: Filter): Uint32Array {
  const note = explainer.of(view);
  const heard = new HeardFilter(view);
  const source = new SegmentSource(view, heard);
  const bits = evaluateFilter(filter, source, view.reader.filters);
  note.mark('filter');
  note.filter = heard.told();
  note.estimated = estimateMatches(filter, view.rows, (condition) => boundsIn(view, condition));
  note.matches = countBits(bits);
  explainer.filters.push({ view, filter });
  note.skip();
  return bits;
}

/** The row's payload as a value, to be looked at. */
export function payloadOf(view: SegmentView, row: number): Payload {
  return parseValues(view.payloadText(row)) as Payload;
}

class SegmentSource implements FilterSource {
  readonly rows: number;

  constructor(
    private readonly view: SegmentView,
    readonly notes: FilterNotes | undefined = undefined,
  ) {
    this.rows = view.rows;
  }

  fieldIndex(key: string): FieldIndex | undefined {
    return this.view.fieldIndex(key);
  }

  fieldSchema(key: string): FieldSchema | undefined {
    return this.view.fields.get(key);
  }

  payload(row: number): Payload {
    return payloadOf(this.view, row);
  }

  rowsWithIds(ids: readonly PointId[]): number[] {
    const rows: number[] = [];
    for (const id of ids) {
      const row = this.view.findAny(id);
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  hasVector(name: string, row: number): boolean {
    const vector = this.view.reader.vector(name);
    return vector !== undefined && hasVector(vector, row);
  }

  claim(work: Work): void {
    this.view.reader.deadline.claim(work);
  }

  hold(bytes: number): void {
    this.view.reader.deadline.hold(bytes);
  }

  giveBack(bytes: number): void {
    this.view.reader.deadline.memory?.give(bytes);
  }

  checkpoint(): void {
    this.view.reader.deadline.check();
  }

  beginScan(conditions: readonly Condition[], rows: number): (() => void) | undefined {
    return this.view.reader.beginScan(conditions, this.view.fields, rows);
  }
}
