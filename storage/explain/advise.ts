/** What a payload index would save, by trial: an index of a sample of rows is made and asked. */

import { parseValues } from '../../protocols/json.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { ExplainedAdvice } from '../../protocols/model/explanation.js';
import type { Payload } from '../../protocols/model/payload.js';
import { adviceSentence } from '../../query/explain/sentences.js';
import { countBits, emptyBits } from '../../query/filter/bits.js';
import { compileCondition } from '../../query/filter/predicate.js';
import { conditionsOf, type WantedIndex, wantedIndexes } from '../../query/filter/wanted-indexes.js';
import { buildFieldIndex } from '../segment/index/build.js';
import { openFieldIndex } from '../segment/index/open.js';
import { type Explainer, rounded } from './explainer.js';
import type { SeenSegment } from './seen-segment.js';

/** Rows of a sample, of all segments together. */
const SAMPLE_ROWS = 512;
/** Fields that are tried for one read. */
const FIELDS_MAX = 8;
/** A list that is shorter is read in no time. */
const ROWS_MIN = 1000;

/** For each field without an index that the read's filters name, if its segments have so many rows that an index pays. */
export function adviceOf({ filters, place }: Explainer): ExplainedAdvice[] {
  const wanted = new Map<string, { readonly index: WantedIndex; readonly views: Set<SeenSegment> }>();
  for (const { filter, view } of filters) {
    for (const index of wantedIndexes(conditionsOf(filter), (field) => view.fields.get(field))) {
      const known = wanted.get(index.field) ?? { index, views: new Set() };
      known.views.add(view);
      wanted.set(index.field, known);
    }
  }
  const tried = [...wanted.values()].slice(0, FIELDS_MAX).map(({ index, views }) => tryIndex(index, [...views], place.collection));
  return tried.filter((advice) => advice !== null);
}

function tryIndex({ condition, field, type }: WantedIndex, views: readonly SeenSegment[], collection: string): ExplainedAdvice | null {
  const rows = views.reduce((sum, view) => sum + view.rows, 0);
  if (rows < ROWS_MIN) return null;
  const schema: FieldSchema = { type };
  let sampled = 0;
  let passed = 0;
  let readUs = 0;
  let askedUs = 0;
  for (const view of views) {
    const sample = sampleOf(view, Math.ceil((SAMPLE_ROWS * view.rows) / rows));
    const payloads: Payload[] = [];
    const test = compileCondition(condition, { fieldSchema: () => undefined, known: () => undefined });
    readUs += timeOf(() => {
      for (const row of sample) {
        const payload = parseValues(view.payloadText(row)) as Payload;
        payloads.push(payload);
        test(row, payload, payload);
      }
    });
    const index = openFieldIndex(
      schema,
      field,
      buildFieldIndex(schema, sample.length, (at) => payloads[at], field),
      sample.length,
    );
    const bits = emptyBits(sample.length);
    askedUs += timeOf(() => index.match(condition, bits));
    sampled += sample.length;
    passed += countBits(bits);
    view.reader.deadline.check();
  }
  if (sampled === 0) return null;
  const withIndex = Math.round((passed / sampled) * rows);
  const call = {
    method: 'PUT',
    path: `/collections/${encodeURIComponent(collection)}/index`,
    body: { field_name: field, field_schema: type },
  } as const;
  return {
    kind: 'field_index',
    field,
    reason: adviceSentence(field, rows, withIndex),
    rows_read: rows,
    rows_with_index: withIndex,
    rows_sampled: sampled,
    time_us: rounded((readUs / sampled) * rows),
    time_us_with_index: rounded(askedUs),
    call,
  };
}

/** Rows at equal distances. */
function sampleOf({ rows }: SeenSegment, wanted: number): readonly number[] {
  const count = Math.min(rows, wanted);
  return Array.from({ length: count }, (_, at) => Math.floor((at * rows) / count));
}

/** Microseconds. */
function timeOf(work: () => void): number {
  const startedMs = performance.now();
  work();
  return (performance.now() - startedMs) * 1000;
}
