/**
 * What an index of one payload field can say about a condition, told apart from how the index is stored: sealed
 * segments answer a lookup from sorted arrays, appendable ones from LMDB, and a single payload from its own terms.
 *
 * Every row has marks and terms. Terms are its values of the index's type; marks say what else there is:
 * - `present`: the field has a value that is neither null nor an empty array;
 * - `null`: null, or an array with a null in it;
 * - `other`: a value that is not null and not of the index's type;
 * - `indexed`: a value of the index's type, hence a term (but for a text without tokens).
 *
 * The terms of a text index are the tokens of all texts at the field, as its analyzer has them.
 *
 * Where a lookup is exact it also rules: some answers of the reference change with an index, and the scenarios show
 * them (an integer index drops floats from ranges and exceptions, `is_null` looks into arrays, a range of numbers on a
 * datetime index counts microseconds, `gte` beside `gt` is ignored by an integer index, a text index compares tokens, a
 * geo index knows no latitude of 95 degrees). Everything else falls back to the payload.
 */

import { parseDatetime } from '../../protocols/datetime.js';
import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { FieldCondition, GeoArea, GeoPoint, Match, MatchValue, Range } from '../../protocols/model/filter.js';
import { type JsonPath, pathOf } from '../../protocols/model/json-path.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { uuidFrom } from '../../protocols/model/point-id.js';
import type { TextParams } from '../../protocols/model/text.js';
import { areaTest, geoPointOf, isPlace } from '../geo/area.js';
import { type Analyzer, analyzerFor } from '../text/analyzer.js';
import { anyElement, inRange, isPresent, listTest, someValue } from './values.js';

/** A value as an index holds it: keywords, tokens and canonical UUIDs as text, numbers and microseconds, booleans. */
export type TermValue = string | number | bigint | boolean;
/** Geo indexes hold places. */
export type IndexTerm = TermValue | GeoPoint;

export type Mark = 'present' | 'null' | 'other' | 'indexed';

/** Marks in the order of their bits and codes. */
export const MARKS: readonly Mark[] = ['present', 'null', 'other', 'indexed'];

export type LookupPart =
  | { readonly kind: 'mark'; readonly mark: Mark }
  /** Rows with one of these terms. */
  | { readonly kind: 'values'; readonly values: readonly TermValue[] }
  /** Rows with each of these terms, of which there is at least one. */
  | { readonly kind: 'every'; readonly values: readonly TermValue[] }
  /** Rows with a term that is none of these. */
  | { readonly kind: 'except'; readonly values: readonly TermValue[] }
  /** Rows with a place in the area. */
  | { readonly kind: 'area'; readonly area: GeoArea }
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
      return schema.type === 'geo' ? exact({ kind: 'area', area: condition.area }) : superset(mark('other'));
    case 'datetimeRange':
      if (schema.type === 'datetime') return exact({ kind: 'range', range: condition.range });
      return superset(mark(schema.type === 'keyword' || schema.type === 'text' ? 'indexed' : 'other'));
    default:
      return unreachable(condition);
  }
}

/** The test that takes the place of a payload's own where the schema of the field's index rules; null where it does not. key: where the payload has it. */
export function ruledTest(schema: FieldSchema, condition: FieldCondition, key = condition.key): ((payload: JsonValue) => boolean) | null {
  const lookup = lookupFor(schema, condition);
  if (lookup?.exact) return lookupTest(schema, key, lookup);
  if (schema.type !== 'text' || condition.kind !== 'match' || condition.match.kind !== 'phrase') return null;
  const analyzer = analyzerOf(schema);
  const tokens = analyzer.query(condition.match.text);
  const path = pathOf(key);
  const test = anyElement((value) => typeof value === 'string' && analyzer.holdsPhrase(value, tokens));
  return (payload) => someValue(payload, path, test);
}

/** Whether a condition compares tokens where the field has a text index. */
export function comparesTokens(condition: FieldCondition): boolean {
  return (
    condition.kind === 'match' &&
    (condition.match.kind === 'text' || condition.match.kind === 'textAny' || condition.match.kind === 'phrase')
  );
}

/** The term of a value in an index of this type, but for text; undefined when it is of another type. */
function termOf(type: Exclude<FieldType, 'text'>, value: JsonValue): IndexTerm | undefined {
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
    case 'geo': {
      const point = geoPointOf(value);
      return point !== undefined && isPlace(point) ? point : undefined;
    }
    default:
      return unreachable(type);
  }
}

/** The terms of a value; undefined when it is not of the index's type. */
function termsOf(schema: FieldSchema, value: JsonValue): readonly IndexTerm[] | undefined {
  if (schema.type === 'text') return typeof value === 'string' ? analyzerOf(schema).document(value) : undefined;
  const term = termOf(schema.type, value);
  return term === undefined ? undefined : [term];
}

function analyzerOf(schema: FieldSchema): Analyzer {
  return analyzerFor((schema.params ?? {}) as TextParams);
}

/** Marks and terms of one row. */
export interface RowTerms {
  readonly present: boolean;
  readonly null: boolean;
  readonly other: boolean;
  readonly indexed: boolean;
  /** Without repetitions; in the order of the payload. */
  readonly terms: readonly IndexTerm[];
}

const NO_TERMS: RowTerms = { present: false, null: false, other: false, indexed: false, terms: [] };

/** What an index of this type at `path` holds of a payload. */
export function rowTerms(schema: FieldSchema, payload: JsonValue | undefined, path: JsonPath): RowTerms {
  if (payload === undefined) return NO_TERMS;
  const found = { present: false, null: false, other: false, indexed: false, terms: [] as IndexTerm[] };
  const take = (value: JsonValue): void => {
    if (value === null) {
      found.null = true;
      return;
    }
    const terms = termsOf(schema, value);
    if (terms === undefined) found.other = true;
    else {
      found.indexed = true;
      for (const term of terms) found.terms.push(term);
    }
  };
  someValue(payload, path, (value) => {
    if (isPresent(value)) found.present = true;
    if (Array.isArray(value)) value.forEach(take);
    else take(value);
    return false;
  });
  if (found.terms.length > 1) found.terms = distinct(found.terms);
  return found;
}

/** The values of a type that has no parameters and is not geo, without repetitions. */
export function scalarTerms(type: FieldType, payload: JsonValue | undefined, path: JsonPath): readonly TermValue[] {
  return rowTerms({ type }, payload, path).terms.filter((term) => typeof term !== 'object');
}

function distinct(terms: readonly IndexTerm[]): IndexTerm[] {
  return [...new Map(terms.map((term) => [typeof term === 'object' ? `${term.lon} ${term.lat}` : term, term])).values()];
}

/** The test of an exact lookup on single payloads. */
export function lookupTest(schema: FieldSchema, key: string, lookup: Lookup): (payload: JsonValue) => boolean {
  const path = pathOf(key);
  const tests = lookup.parts.map(partTest);
  return (payload) => {
    const row = rowTerms(schema, payload, path);
    return tests.some((test) => test(row)) !== lookup.complement;
  };
}

function partTest(part: LookupPart): (row: RowTerms) => boolean {
  switch (part.kind) {
    case 'mark':
      return (row) => row[part.mark];
    case 'values': {
      const listed = listTest(part.values);
      return (row) => row.terms.some((term) => typeof term !== 'object' && listed(term));
    }
    case 'except': {
      const listed = listTest(part.values);
      return (row) => row.terms.some((term) => typeof term !== 'object' && !listed(term));
    }
    case 'every':
      return (row) => part.values.every((value) => row.terms.includes(value));
    case 'area': {
      const isWithin = areaTest(part.area);
      return (row) => row.terms.some((term) => typeof term === 'object' && isWithin(term.lon, term.lat));
    }
    case 'range':
      return (row) => row.terms.some((term) => (typeof term === 'number' || typeof term === 'bigint') && inRange(term, part.range));
    default:
      return unreachable(part);
  }
}

// ------------------------------------------------------------------ conditions by index type

function matchLookup(schema: FieldSchema, match: Match): Lookup | null {
  if (match.kind === 'except') return exceptLookup(schema, match.values);
  if (match.kind !== 'value' && match.kind !== 'any') return schema.type === 'text' ? textLookup(schema, match) : stringsLookup(schema);
  const values = match.kind === 'value' ? [match.value] : match.values;
  if (schema.type === 'text') return wholeTextLookup(schema, values);
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

/** Full text on a text index: tokens of the query against tokens of the row. A query without tokens finds nothing. */
function textLookup(schema: FieldSchema, match: Extract<Match, { text: string }>): Lookup {
  const tokens = analyzerOf(schema).query(match.text);
  const values = [...new Set(tokens)];
  if (match.kind === 'textAny') return exact({ kind: 'values', values });
  const isPhrase = match.kind === 'phrase';
  if (tokens.length === 0 || (isPhrase && schema.params?.phrase_matching !== true)) return { parts: [], complement: false, exact: true };
  // A row that has the words of a phrase need not have them next to each other.
  return { parts: [{ kind: 'every', values }], complement: false, exact: !isPhrase || tokens.length === 1 };
}

/** Whole values on a text index: a text that is the value has the value's tokens. */
function wholeTextLookup(schema: FieldSchema, values: readonly MatchValue[]): Lookup {
  const parts = values.map((value): LookupPart => {
    if (typeof value !== 'string') return mark('other');
    const tokens = [...new Set(analyzerOf(schema).document(value))];
    return tokens.length > 0 ? { kind: 'every', values: tokens } : mark('indexed');
  });
  return { parts, complement: false, exact: values.length === 0 };
}

/** Rows that may hold strings. */
function stringsLookup(schema: FieldSchema): Lookup {
  const holdsStrings = schema.type === 'keyword' || schema.type === 'uuid' || schema.type === 'datetime';
  return { parts: holdsStrings ? [mark('indexed'), mark('other')] : [mark('other')], complement: false, exact: false };
}

/** The term that a value of a `match` looks for; undefined when no term can be that value. */
function conditionTerm(type: FieldType, value: MatchValue): TermValue | undefined {
  if (type === 'float' || type === 'integer') return typeof value === 'number' || typeof value === 'bigint' ? value : undefined;
  // No scalar is a place, and a text index is asked for tokens.
  return type === 'text' || type === 'geo' ? undefined : (termOf(type, value) as TermValue | undefined);
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
