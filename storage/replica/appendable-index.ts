/**
 * The index of a payload field over the rows of an appendable segment, in LMDB: sorted leaves (`index-leaves.ts`), and what the newest rows are
 * filed under, of all fields together (`recent-filings.ts`). `storage/segment/index/terms.ts` defines the terms.
 */

import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { FieldCondition } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import { fullBits, hasBit } from '../../query/filter/bits.js';
import type { Mark, TermValue } from '../../query/filter/lookup.js';
import type { FieldIndex } from '../../query/filter/source.js';
import type { Environment } from '../disk/lmdb.js';
import type { Reading } from '../disk/lmdb-tables.js';
import {
  ALL_VALUES,
  conditionTerms,
  decodeTerm,
  encodeTerm,
  fieldTerms,
  INDEXED_TERM,
  matchTerms,
  type Term,
  type TermRange,
} from '../segment/index/terms.js';
import { type FiledTerm, rowCount, rowNumbers, visitRanges, visitRows } from './filed-terms.js';
import { fieldPrefix, mergingFiled, verifyLeaves, visitLeaves } from './index-leaves.js';
import { addRecent, type Filing, recentOf } from './recent-filings.js';
import type { IsOver } from './slices.js';

/** Most keys that an estimate looks at. */
const ESTIMATE_KEYS_MAX = 256;
/** Terms of fields, and rows under all of them, that are collected before they are written. */
const FILINGS_MAX = 2048;
const FILED_ROWS_MAX = 8192;

/** The key of a term within a field: terms with the same bytes have the same key, so that the bytes are made only once. */
type TermKey = string | number | boolean | symbol;

const MARK_KEYS: Readonly<Record<Mark, symbol>> = {
  present: Symbol('present'),
  null: Symbol('null'),
  other: Symbol('other'),
  indexed: Symbol('indexed'),
};

function keyOf(term: Term): TermKey {
  if (term.kind === 'mark') return MARK_KEYS[term.mark];
  const { type, value } = term;
  if (typeof value === 'object') return Buffer.from(encodeTerm(term)).toString('latin1');
  switch (type) {
    case 'keyword':
    case 'text':
    case 'uuid':
      return String(value);
    case 'bool':
      return value === true;
    default:
      return Number(value);
  }
}

/** Collects a transaction's additions to the index, and writes each record once. */
export class IndexWriter {
  /** By segment, then by number of the field. */
  private readonly pending = new Map<number, Map<number, Map<TermKey, Filing>>>();
  /** Of all of them. */
  private filings = 0;
  private rows = 0;

  /** Adds a row under the terms of its payload. Returns whether it has a value in the index. */
  add(
    segment: number,
    field: { readonly number: number; readonly name: string; readonly schema: FieldSchema },
    row: number,
    payload: Payload | undefined,
  ): boolean {
    const terms = fieldTerms(field.schema, payload, field.name);
    if (terms.length === 0) return false;
    const filings = madeIn(madeIn(this.pending, segment), field.number);
    let indexed = false;
    for (const term of terms) {
      if (term.kind === 'mark' && term.mark === 'indexed') indexed = true;
      const key = keyOf(term);
      const known = filings.get(key);
      this.rows++;
      if (known === undefined) {
        filings.set(key, { term, rows: [row] });
        this.filings++;
      } else known.rows.push(row);
    }
    return indexed;
  }

  get isEmpty(): boolean {
    return this.pending.size === 0;
  }

  /** Whether there are so many that it is time to write them: they take memory, and what is written at once keeps others waiting. */
  get isFull(): boolean {
    return this.filings >= FILINGS_MAX || this.rows >= FILED_ROWS_MAX;
  }

  /**
   * Writes the additions, in portions; within a transaction, to which nothing is added meanwhile. isField: whether a number is that of a field that
   * the replica has.
   */
  *flushing(environment: Environment, isField: (fieldNumber: number) => boolean, beginPortion: () => IsOver): Generator<null, void> {
    for (const [segment, fields] of this.pending) {
      const filed = addRecent(environment, segment, new Map([...fields].map(([field, filings]) => [field, filings.values()])));
      if (filed === null) continue;
      yield null;
      for (const [field, entries] of filed)
        if (isField(field)) yield* mergingFiled(environment, fieldPrefix(segment, field), entries, beginPortion);
    }
    this.pending.clear();
    this.filings = 0;
    this.rows = 0;
  }
}

/** The inner map of a key; made if it is missing. */
function madeIn<Key, Value>(map: Map<number, Map<Key, Value>>, key: number): Map<Key, Value> {
  let inner = map.get(key);
  if (inner === undefined) {
    inner = new Map();
    map.set(key, inner);
  }
  return inner;
}

/**
 * The index of a field over the first `rows` rows of a segment, as `reading` sees it. For one filter, and not to be kept: the newest rows are read once for
 * all its conditions.
 */
export function appendableFieldIndex(
  reading: Reading,
  segment: number,
  fieldNumber: number,
  schema: FieldSchema,
  rows: number,
): FieldIndex {
  const field = indexedField(reading, segment, fieldNumber);
  return {
    match(condition, bits) {
      return matchTerms(schema, condition, bits, rows, (ranges, visit) => {
        visitPostings(reading, field, ranges, ({ rows: filed }) => {
          visitRows(filed, visit);
          return true;
        });
      });
    },
    cardinality(condition) {
      return estimate(reading, field, schema, condition, rows);
    },
    countValues(bits, add) {
      return countValues(reading, field, schema.type, bits ?? fullBits(rows), add);
    },
    visitInOrder(direction, start, visit) {
      return visitInOrder(reading, field, schema.type, direction, start, visit);
    },
  };
}

/** Calls `visit` with every row below `rows` that has a value in the index. Errors: `storage` for any damaged record of the field. */
export function visitIndexedRows(reading: Reading, segment: number, fieldNumber: number, visit: (row: number) => void): void {
  const field = indexedField(reading, segment, fieldNumber);
  const end = new Uint8Array(INDEXED_TERM.length + 1);
  end.set(INDEXED_TERM);
  visitPostings(reading, field, [{ from: INDEXED_TERM, to: end }], ({ rows }) => {
    visitRows(rows, visit);
    return true;
  });
}

/** Reads every record of the field in a segment. Errors: `storage` for a damaged one. */
export function verifyFieldIndex(reading: Reading, segment: number, fieldNumber: number): void {
  verifyLeaves(reading, fieldPrefix(segment, fieldNumber));
}

/** A field's index in a segment. */
interface IndexedField {
  readonly prefix: Uint8Array;
  /** What its newest rows are filed under. */
  readonly recent: () => readonly Uint8Array[];
}

function indexedField(reading: Reading, segment: number, number: number): IndexedField {
  let read: readonly Uint8Array[] | null = null;
  const recent = (): readonly Uint8Array[] => {
    read ??= recentOf(reading, segment, number);
    return read;
  };
  return { prefix: fieldPrefix(segment, number), recent };
}

interface Postings {
  readonly term: Uint8Array;
  readonly rows: Uint32Array;
}

/**
 * Calls `visit` with what is filed in some ranges, until it returns false: first what is merged, in the order of the terms, then the newest rows. ranges:
 * ascending, and apart or the same. Returns whether it came to the end.
 */
function visitPostings(
  reading: Reading,
  { prefix, recent }: IndexedField,
  ranges: readonly TermRange[],
  visit: (filed: FiledTerm) => boolean,
): boolean {
  if (ranges.length === 0) return true;
  const accepted = (filed: FiledTerm, { accepts }: TermRange): boolean => accepts?.(filed.term) === false || visit(filed);
  return visitLeaves(reading, prefix, ranges, accepted) && recent().every((terms) => visitRanges(terms, ranges, accepted) >= 0);
}

/** All values with their rows: first those that are merged, in the order of the values, then the newest ones. */
function allPostings(reading: Reading, field: IndexedField): Postings[] {
  const found: Postings[] = [];
  visitPostings(reading, field, [ALL_VALUES], ({ term, rows }) => {
    found.push({ term, rows: rowNumbers(rows) });
    return true;
  });
  return found;
}

/** As `FieldIndex.countValues`; every value is decoded before the first one is returned. */
function countValues(
  reading: Reading,
  field: IndexedField,
  type: FieldType,
  bits: Uint32Array,
  add: (value: TermValue, count: number) => void,
): boolean {
  const found: { readonly value: TermValue; readonly count: number }[] = [];
  for (const { term, rows } of allPostings(reading, field)) {
    const value = decodeTerm(type, term);
    if (value === undefined) return false;
    let count = 0;
    for (const row of rows) if (hasBit(bits, row)) count++;
    if (count > 0) found.push({ value, count });
  }
  for (const { value, count } of found) add(value, count);
  return true;
}

/** As `FieldIndex.visitInOrder`; the whole field is read before the first visit. */
function visitInOrder(
  reading: Reading,
  field: IndexedField,
  type: FieldType,
  direction: 'asc' | 'desc',
  start: number | null,
  visit: (value: number, row: number) => boolean,
): boolean {
  const found: { readonly value: number; readonly row: number }[] = [];
  for (const { term, rows } of allPostings(reading, field)) {
    const value = decodeTerm(type, term);
    if (typeof value !== 'number') return false;
    if (start !== null && (direction === 'asc' ? value < start : value > start)) continue;
    for (const row of rows) found.push({ value, row });
  }
  // The newest rows come last, in the order of their addition.
  found.sort((one, other) => one.value - other.value);
  if (direction === 'desc') found.reverse();
  for (const { value, row } of found) if (!visit(value, row)) break;
  return true;
}

function estimate(
  reading: Reading,
  field: IndexedField,
  schema: FieldSchema,
  condition: FieldCondition,
  rows: number,
): { min: number; max: number } | null {
  const plan = conditionTerms(schema, condition);
  if (plan === null) return null;
  let keys = 0;
  /** Rows filed under terms of the ranges, and the most under one of them; null: there are too many terms to look at. */
  const filedIn = (ranges: readonly TermRange[]): { sum: number; most: number } | null => {
    if (ranges.length > ESTIMATE_KEYS_MAX) return null;
    const byTerm = new Map<string, number>();
    let sum = 0;
    const isWhole = visitPostings(reading, field, ranges, ({ term, rows: filed }) => {
      const text = Buffer.from(term).toString('latin1');
      byTerm.set(text, (byTerm.get(text) ?? 0) + rowCount(filed));
      sum += rowCount(filed);
      return ++keys <= ESTIMATE_KEYS_MAX;
    });
    return isWhole ? { sum, most: Math.max(0, ...byTerm.values()) } : null;
  };
  const any = filedIn(plan.ranges);
  if (any === null) return null;
  let { sum } = any;
  // Several terms may have the same row, so only the rows of the largest one surely count once each.
  const largest = any.most;
  for (const ranges of plan.every) {
    let fewest = rows;
    for (const range of ranges) {
      const here = filedIn([range]);
      if (here === null) return null;
      fewest = Math.min(fewest, here.sum);
    }
    sum += fewest;
  }
  const max = Math.min(sum, rows);
  const min = Math.min(largest, max);
  if (plan.complement) return { min: plan.exact ? rows - max : 0, max: rows - min };
  return { min: plan.exact ? min : 0, max };
}
