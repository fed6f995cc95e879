/** Segments for filter tests: rows in memory, with sealed indexes, with indexes of sorted terms, or with none. */

import assert from 'node:assert/strict';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Filter } from '../../../protocols/model/filter.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { decodeFilter } from '../../../protocols/rest/filter.js';
import { forEachBit } from '../../../query/filter/bits.js';
import type { ConditionCache } from '../../../query/filter/cache.js';
import { evaluateFilter } from '../../../query/filter/evaluate.js';
import { matchesPayload } from '../../../query/filter/predicate.js';
import type { FieldIndex, FilterSource } from '../../../query/filter/source.js';
import { buildFieldIndex } from '../../../storage/segment/index/build.js';
import { openFieldIndex } from '../../../storage/segment/index/open.js';
import { encodeTerm, fieldTerms, matchTerms } from '../../../storage/segment/index/terms.js';
import { residentBytes } from '../../../storage/segment/index-layout.js';
import type { Row } from './arbitrary.js';

export type IndexKind = 'none' | 'sealed' | 'onDisk' | 'terms';

const MAKERS = { sealed: sealedIndex, onDisk: onDiskIndex, terms: termIndex };

export type Schemas = ReadonlyMap<string, FieldSchema>;

/** A segment that counts which payloads were read. */
export interface TestSource extends FilterSource {
  readonly read: number[];
}

export function sourceOf(rows: readonly Row[], schemas: Schemas = new Map(), kind: IndexKind = 'none'): TestSource {
  const read: number[] = [];
  const indexes = new Map<string, FieldIndex>();
  if (kind !== 'none') for (const [key, schema] of schemas) indexes.set(key, MAKERS[kind](rows, key, schema));
  return {
    read,
    rows: rows.length,
    fieldIndex: (key) => indexes.get(key),
    fieldSchema: (key) => schemas.get(key),
    payload: (row) => {
      read.push(row);
      return (rows[row] as Row).payload;
    },
    rowsWithIds: (ids) => ids.flatMap((id) => rows.flatMap((row, at) => (row.id === id ? [at] : []))),
    hasVector: (name, row) => (rows[row] as Row).vectors.includes(name),
  };
}

export function sealedIndex(rows: readonly Row[], key: string, schema: FieldSchema): FieldIndex {
  const payloads = (row: number): Payload => (rows[row] as Row).payload;
  return openFieldIndex(schema, key, buildFieldIndex(schema, rows.length, payloads, key), rows.length);
}

/** As a sealed one whose postings and terms are in its file. */
export function onDiskIndex(rows: readonly Row[], key: string, schema: FieldSchema): FieldIndex {
  const whole = buildFieldIndex(schema, rows.length, (row) => (rows[row] as Row).payload, key);
  const resident = residentBytes(whole);
  const buffer = new SharedArrayBuffer(resident);
  new Uint8Array(buffer).set(new Uint8Array(whole, 0, resident));
  return openFieldIndex(schema, key, buffer, rows.length, (position, target) => {
    assert.ok(position >= resident && position + target.length <= whole.byteLength);
    target.set(new Uint8Array(whole, position, target.length));
  });
}

/** As the appendable segment's index: rows filed under the bytes of their terms. */
export function termIndex(rows: readonly Row[], key: string, schema: FieldSchema): FieldIndex {
  const filed = rows.flatMap((row, at) => fieldTerms(schema, row.payload, key).map((term) => ({ key: encodeTerm(term), row: at })));
  return {
    match: (condition, bits) =>
      matchTerms(schema, condition, bits, rows.length, (ranges, visit) => {
        for (const range of ranges)
          for (const entry of filed)
            if (
              Buffer.compare(entry.key, range.from) >= 0 &&
              Buffer.compare(entry.key, range.to) < 0 &&
              range.accepts?.(entry.key) !== false
            ) {
              visit(entry.row);
            }
      }),
    cardinality: () => null,
  };
}

export function rowsOf(bits: Uint32Array): number[] {
  const rows: number[] = [];
  forEachBit(bits, (row) => rows.push(row));
  return rows;
}

export function evaluate(filter: Filter, source: FilterSource, cache?: ConditionCache): number[] {
  return rowsOf(evaluateFilter(filter, source, cache));
}

/** Rows that pass one by one. */
export function oneByOne(filter: Filter, rows: readonly Row[], schemas: Schemas = new Map()): number[] {
  return rows.flatMap((row, at) => {
    const point = { id: row.id, payload: row.payload, hasVector: (name: string) => row.vectors.includes(name) };
    return matchesPayload(filter, point, (key) => schemas.get(key)) ? [at] : [];
  });
}

/** Rows 0, 1, 2… with these payloads; ids are row numbers. */
export function rowsWith(...payloads: Payload[]): Row[] {
  return payloads.map((payload, at) => ({ id: at, payload, vectors: [''] }));
}

/** The filter of a request body. */
export function wire(body: unknown): Filter {
  const filter = decodeFilter(body, 'filter');
  if (filter === null) throw new Error('no filter');
  return filter;
}
