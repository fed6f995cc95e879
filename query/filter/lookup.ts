/**
 * What an index of one payload field can say about a condition, told apart from how the index is stored: sealed
 * segments answer a lookup from sorted arrays, appendable ones from LMDB, and a single payload from its own terms.
 *
 * Every row has marks and terms. Terms are its values of the index's type; marks say what else there is:
 * - `present`: the field has a value that is neither null nor an empty array;
 * - `null`: null, or an array with a null in it;
 * - `other`: a value that is not null and not of the index's type;
 * - `indexed`: at least one term.
 *
 * Where a lookup is exact it also rules: some answers of the reference change with an index, and the scenarios show
 * them (an integer index drops floats from ranges and exceptions, `is_null` looks into arrays, a range of numbers on a
 * datetime index counts microseconds, `gte` beside `gt` is ignored by an integer index). Everything else falls back to
 * the payload.
 */

import { parseDatetime } from '../../protocols/datetime.js';
import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { FieldCondition, Match, MatchValue, Range } from '../../protocols/model/filter.js';
import { type JsonPath, pathOf } from '../../protocols/model/json-path.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { uuidFrom } from '../../protocols/model/point-id.js';
import { inRange, isPresent, listTest, someValue } from './values.js';

/** A value as an index holds it: keywords and canonical UUIDs as text, numbers and microseconds, booleans. */
export type TermValue = string | number | bigint | boolean;

export type Mark = 'present' | 'null' | 'other' | 'indexed';

/** Marks in the order of their bits and codes. */
export const MARKS: readonly Mark[] = ['present', 'null', 'other', 'indexed'];

export type LookupPart =
  | { readonly kind: 'mark'; readonly mark: Mark }
  /** Rows with one of these terms. */
  | { readonly kind: 'values'; readonly values: readonly TermValue[] }
  /** Rows with a term that is none of these. */
  | { readonly kind: 'except'; readonly values: readonly TermValue[] }
  /** Rows with a number in the range. */
  | { readonly kind: 'range'; readonly range: Range };

export interface Lookup {
  /** The union of these is meant. */
  readonly parts: readonly LookupPart[];
  /** All rows but those are meant. */
  readonly complement: boolean;
  /** These rows match, and no others; else they are a superset and their payloads decide. */
  readonly exact: boolean;
}

/** Text with half a surrogate pair has no UTF-8 of its own, so an index cannot tell it from others like it. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const INT64_MIN = -(2 ** 63);
const INT64_END = 2 ** 63;

/** The lookup for a condition on a field with this index; null when the index cannot narrow it down. */
export function lookupFor(schema: FieldSchema, condition: FieldCondition): Lookup | null {
  switch (condition.kind) {
    case 'fieldIsEmpty':
      return { parts: [mark('present')], complement: condition.isEmpty, exact: true };
    case 'fieldIsNull':
      return { parts: [mark('null')], complement: !condition.isNull, exact: true };
    case 'valuesCount':
      return countsSome(condition.range) ? superset(mark('present')) : null;
    case 'match':
      return matchLookup(schema, condition.match);
    case 'range':
      return rangeLookup(schema, condition.range);
    case 'geo':
      return null;
    case 'datetimeRange':
      if (schema.type === 'datetime') return exact({ kind: 'range', range: condition.range });
      return superset(mark(schema.type === 'keyword' ? 'indexed' : 'other'));
    default:
      return unreachable(condition);
  }
}

/** The term of a value in an index of this type; undefined when it is of another type. */
export function termOf(type: FieldType, value: JsonValue): TermValue | undefined {
  switch (type) {
    case 'keyword':
      return typeof value === 'string' && !LONE_SURROGATE.test(value) ? value : undefined;
    case 'integer':
      return isInt64(value) ? value : undefined;
    case 'float':
      return typeof value === 'number' || typeof value === 'bigint' ? value : undefined;
    case 'bool':
      return typeof value === 'boolean' ? value : undefined;
    case 'datetime':
      return typeof value === 'string' ? parseDatetime(value) : undefined;
    case 'uuid':
      return typeof value === 'string' ? uuidFrom(value) : undefined;
    case 'text':
    case 'geo':
      return undefined;
    default:
      return unreachable(type);
  }
}

/** Marks and terms of one row. */
export interface RowTerms {
  readonly present: boolean;
  readonly null: boolean;
  readonly other: boolean;
  /** Without repetitions; in the order of the payload. */
  readonly terms: readonly TermValue[];
}

const NO_TERMS: RowTerms = { present: false, null: false, other: false, terms: [] };

/** What an index of this type at `path` holds of a payload. */
export function rowTerms(type: FieldType, payload: JsonValue | undefined, path: JsonPath): RowTerms {
  if (payload === undefined) return NO_TERMS;
  const found = { present: false, null: false, other: false, terms: [] as TermValue[] };
  const take = (value: JsonValue): void => {
    if (value === null) {
      found.null = true;
      return;
    }
    const term = termOf(type, value);
    if (term === undefined) found.other = true;
    else found.terms.push(term);
  };
  someValue(payload, path, (value) => {
    if (isPresent(value)) found.present = true;
    if (Array.isArray(value)) value.forEach(take);
    else take(value);
    return false;
  });
  if (found.terms.length > 1) found.terms = [...new Set(found.terms)];
  return found;
}

/** The test of an exact lookup on single payloads. */
export function lookupTest(schema: FieldSchema, key: string, lookup: Lookup): (payload: JsonValue) => boolean {
  const path = pathOf(key);
  const tests = lookup.parts.map(partTest);
  return (payload) => {
    const row = rowTerms(schema.type, payload, path);
    return tests.some((test) => test(row)) !== lookup.complement;
  };
}

function partTest(part: LookupPart): (row: RowTerms) => boolean {
  switch (part.kind) {
    case 'mark':
      return part.mark === 'indexed' ? (row) => row.terms.length > 0 : (row) => row[part.mark as 'present' | 'null' | 'other'];
    case 'values': {
      const listed = listTest(part.values);
      return (row) => row.terms.some(listed);
    }
    case 'except': {
      const listed = listTest(part.values);
      return (row) => row.terms.some((term) => !listed(term));
    }
    case 'range':
      return (row) => row.terms.some((term) => typeof term !== 'string' && typeof term !== 'boolean' && inRange(term, part.range));
    default:
      return unreachable(part);
  }
}

// ------------------------------------------------------------------ conditions by index type

function matchLookup(schema: FieldSchema, match: Match): Lookup | null {
  if (match.kind === 'except') return exceptLookup(schema, match.values);
  if (match.kind !== 'value' && match.kind !== 'any') return null;
  const values = match.kind === 'value' ? [match.value] : match.values;
  const terms: TermValue[] = [];
  let others = false;
  for (const value of values) {
    const term = conditionTerm(schema.type, value);
    if (term === undefined) others = true;
    else terms.push(term);
  }
  const parts: LookupPart[] = [];
  if (terms.length > 0 || !others) parts.push({ kind: 'values', values: terms });
  if (others) parts.push(mark('other'));
  // A time is matched as text; one time has many texts. So have UUIDs, but there the index rules when it knows all values.
  return { parts, complement: false, exact: !others && schema.type !== 'datetime' };
}

/** The term that a value of a `match` looks for; undefined when no term can be that value. */
function conditionTerm(type: FieldType, value: MatchValue): TermValue | undefined {
  if (type === 'float' || type === 'integer') return typeof value === 'number' || typeof value === 'bigint' ? value : undefined;
  return termOf(type, value);
}

function exceptLookup(schema: FieldSchema, values: readonly MatchValue[]): Lookup {
  const ruled = schema.type === 'keyword' || schema.type === 'uuid' || (schema.type === 'integer' && schema.params?.lookup !== false);
  const terms = values.map((value) => conditionTerm(schema.type, value));
  if (!ruled || values.length === 0 || terms.includes(undefined)) return superset(mark('present'));
  return exact({ kind: 'except', values: terms as TermValue[] });
}

function rangeLookup(schema: FieldSchema, range: Range): Lookup {
  switch (schema.type) {
    case 'float':
    case 'datetime':
      return exact({ kind: 'range', range });
    case 'integer':
      if (schema.params?.range === false) return { parts: [{ kind: 'range', range }, mark('other')], complement: false, exact: false };
      return exact({ kind: 'range', range: range.gt === undefined ? range : { ...range, gte: undefined } });
    default:
      return superset(mark('other'));
  }
}

/** Whether a count of zero is out of the range. */
function countsSome(range: Range): boolean {
  return !inRange(0, range);
}

function isInt64(value: JsonValue): value is number | bigint {
  if (typeof value === 'number') return Number.isInteger(value) && value >= INT64_MIN && value < INT64_END;
  return typeof value === 'bigint' && value >= INT64_MIN && value < INT64_END;
}

function mark(name: Mark): LookupPart {
  return { kind: 'mark', mark: name };
}

function exact(part: LookupPart): Lookup {
  return { parts: [part], complement: false, exact: true };
}

function superset(part: LookupPart): Lookup {
  return { parts: [part], complement: false, exact: false };
}

function unreachable(value: never): never {
  throw new Error(`unknown kind: ${JSON.stringify(value)}`);
}
