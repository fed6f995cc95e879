/**
 * Index terms as bytes, for the appendable segment's index in LMDB: each row is filed under its marks and its values,
 * in an order that makes a range of numbers a range of keys. `query/filter/lookup.ts` says what is looked up.
 *
 * | first byte | then                                                              |
 * |------------|-------------------------------------------------------------------|
 * | 0          | code of a mark                                                    |
 * | 1          | a value: number as sortable f64 (8 bytes BE), keyword or token as UTF-8, UUID as 16 bytes, boolean as one byte; a place as its cell (a number) and two f64 (BE) |
 * | 2          | a keyword or token longer than `KEYWORD_BYTES_MAX`: its first bytes and its SHA-256 |
 */

import { crypto } from '../../../protocols/late-modules.js';
import type { FieldSchema, FieldType } from '../../../protocols/model/collection.js';
import type { FieldCondition, GeoArea, GeoPoint, Range } from '../../../protocols/model/filter.js';
import { pathOf } from '../../../protocols/model/json-path.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { uuidFrom } from '../../../protocols/model/point-id.js';
import { emptyBits, intersect, invert, setBit, unite } from '../../../query/filter/bits.js';
import {
  type IndexTerm,
  type Lookup,
  type LookupPart,
  lookupFor,
  MARKS,
  type Mark,
  rowTerms,
  type TermValue,
} from '../../../query/filter/lookup.js';
import { areaTest } from '../../../query/geo/area.js';
import { areaCells, cellOf } from '../../../query/geo/cells.js';

/** What a row is filed under. UUIDs are text in canonical form, times microseconds. */
export type Term =
  | { readonly kind: 'mark'; readonly mark: Mark }
  | { readonly kind: 'value'; readonly type: FieldType; readonly value: IndexTerm };

/** Keys from <= key < to; of those, where `accepts` is given, the ones that it accepts. */
export interface TermRange {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly accepts?: (key: Uint8Array) => boolean;
}

/**
 * Rows under any of the ranges, which ascend and are apart or the same, and those under every key of a list of `every`; all rows but those where
 * `complement`.
 */
export interface TermPlan {
  readonly ranges: readonly TermRange[];
  readonly every: readonly (readonly TermRange[])[];
  readonly complement: boolean;
  /** These rows match, and no others; else they are a superset whose payloads decide. */
  readonly exact: boolean;
}

/** Longest keyword that is a key as it is. LMDB's keys have room for it beside segment and field. */
export const KEYWORD_BYTES_MAX = 400;
const KEYWORD_PREFIX_BYTES = 300;

const TAG_MARK = 0;
const TAG_VALUE = 1;
const TAG_LONG_KEYWORD = 2;
const TAG_END = 3;

/** Tag, cell, longitude, latitude. */
const PLACE_BYTES = 25;

/** From here on two integers may have one double. */
const EXACT_MAX = 2 ** 53;

/** The terms of a row. Rows without the field have none. */
export function fieldTerms(schema: FieldSchema, payload: Payload | undefined, key: string): Term[] {
  const { type } = schema;
  const row = rowTerms(schema, payload, pathOf(key));
  const terms: Term[] = [];
  if (row.present) terms.push({ kind: 'mark', mark: 'present' });
  if (row.null) terms.push({ kind: 'mark', mark: 'null' });
  if (row.other) terms.push({ kind: 'mark', mark: 'other' });
  if (row.indexed) terms.push({ kind: 'mark', mark: 'indexed' });
  for (const value of row.terms) terms.push({ kind: 'value', type, value });
  return terms;
}

/** Bytes of a term; bytes of values of one type order as the values do. */
export function encodeTerm(term: Term): Uint8Array {
  if (term.kind === 'mark') return Uint8Array.of(TAG_MARK, MARKS.indexOf(term.mark));
  return encodeValue(term.type, term.value);
}

/**
 * The value whose bytes `encodeTerm` made; undefined where they do not tell it (marks, long keywords, integers that may
 * have been rounded).
 */
export function decodeTerm(type: FieldType, term: Uint8Array): TermValue | undefined {
  if (term[0] !== TAG_VALUE) return undefined;
  switch (type) {
    case 'keyword':
      return Buffer.from(term).toString('utf8', 1);
    case 'uuid':
      return uuidFrom(Buffer.from(term).toString('hex', 1));
    case 'bool':
      return term[1] === 1;
    case 'integer':
    case 'float':
    case 'datetime': {
      const number = decodeNumber(term);
      return type !== 'float' && isLarge(number) ? undefined : number;
    }
    default:
      return undefined;
  }
}

/** The bytes of the mark that every row with a value in the index has: to count points. */
export const INDEXED_TERM: Uint8Array = encodeTerm({ kind: 'mark', mark: 'indexed' });

/** The keys that answer a condition; null when the index cannot narrow it down. */
export function conditionTerms(schema: FieldSchema, condition: FieldCondition): TermPlan | null {
  const lookup = lookupFor(schema, condition);
  return lookup === null ? null : planOf(schema.type, lookup);
}

/**
 * Answers a condition as `FieldIndex.match` does. `scan` calls `visit` with the rows filed under the keys of some ranges, which ascend and are apart or the same.
 * bits: u32 words for `rows` rows, zero before; rows behind them are left out.
 */
export function matchTerms(
  schema: FieldSchema,
  condition: FieldCondition,
  bits: Uint32Array,
  rows: number,
  scan: (ranges: readonly TermRange[], visit: (row: number) => void) => void,
): 'exact' | 'superset' | 'unable' {
  const plan = conditionTerms(schema, condition);
  if (plan === null) return 'unable';
  const collect = (ranges: readonly TermRange[], target: Uint32Array): Uint32Array => {
    scan(ranges, (row) => {
      if (row < rows) setBit(target, row);
    });
    return target;
  };
  collect(plan.ranges, bits);
  for (const keys of plan.every) {
    const sets = keys.map((range) => collect([range], emptyBits(rows)));
    const left = sets[0] as Uint32Array;
    for (const set of sets) intersect(left, set);
    unite(bits, left);
  }
  if (plan.complement) invert(bits, rows);
  return plan.exact ? 'exact' : 'superset';
}

function planOf(type: FieldType, lookup: Lookup): TermPlan {
  let rounds = false;
  const ranges: TermRange[] = [];
  const every: TermRange[][] = [];
  for (const part of lookup.parts) {
    if (part.kind === 'every') {
      every.push(sorted(type, part.values).map(only));
      continue;
    }
    rounds ||= partRounds(part);
    for (const range of partRanges(type, part)) ranges.push(range);
  }
  if (lookup.parts.length > 1) ranges.sort((one, other) => Buffer.compare(one.from, other.from));
  return { ranges, every, complement: lookup.complement, exact: lookup.exact && !rounds };
}

type RangesPart = Exclude<LookupPart, { kind: 'every' }>;

/** Whether the part names a number that an integer in the index may have been rounded to. */
function partRounds(part: RangesPart): boolean {
  if (part.kind === 'mark' || part.kind === 'area') return false;
  if (part.kind === 'range') return [part.range.lt, part.range.lte, part.range.gt, part.range.gte].some(isLarge);
  return part.values.some((value) => (typeof value === 'number' || typeof value === 'bigint') && isLarge(value));
}

function isLarge(value: number | bigint | undefined): boolean {
  return value !== undefined && (value >= EXACT_MAX || value <= -EXACT_MAX);
}

function partRanges(type: FieldType, part: RangesPart): TermRange[] {
  switch (part.kind) {
    case 'mark':
      return [only(encodeTerm({ kind: 'mark', mark: part.mark }))];
    case 'values':
      return sorted(type, part.values).map(only);
    case 'except':
      return partRounds(part) ? [ALL_VALUES] : gaps(sorted(type, part.values));
    case 'range':
      return numberRange(type, part.range, partRounds(part));
    case 'area':
      return areaRanges(part.area);
  }
}

function areaRanges(area: GeoArea): TermRange[] {
  const isWithin = areaTest(area);
  const accepts = (key: Uint8Array): boolean => {
    const view = new DataView(key.buffer, key.byteOffset, PLACE_BYTES);
    return isWithin(view.getFloat64(9), view.getFloat64(17));
  };
  // The bytes of a number begin those of the places in its cell.
  return areaCells(area).map(({ gte, lt }) => ({ from: encodeNumber(gte as number), to: encodeNumber(lt as number), accepts }));
}

/** Every value, and no mark. */
export const ALL_VALUES: TermRange = { from: Uint8Array.of(TAG_VALUE), to: Uint8Array.of(TAG_END) };

function sorted(type: FieldType, values: readonly TermValue[]): Uint8Array[] {
  const keys = values.map((value) => encodeValue(type, value)).sort(Buffer.compare);
  return keys.filter((key, at) => at === 0 || Buffer.compare(key, keys[at - 1] as Uint8Array) !== 0);
}

function gaps(keys: readonly Uint8Array[]): TermRange[] {
  const ranges: TermRange[] = [];
  let from = ALL_VALUES.from;
  for (const key of keys) {
    ranges.push({ from, to: key });
    from = after(key);
  }
  ranges.push({ from, to: ALL_VALUES.to });
  return ranges;
}

/** `inclusive`: an open bound counts as closed, since rounded integers may lie on it. */
function numberRange(type: FieldType, range: Range, inclusive: boolean): TermRange[] {
  let from = encodeValue(type, Number.NEGATIVE_INFINITY);
  let to = after(encodeValue(type, Number.POSITIVE_INFINITY));
  const raise = (key: Uint8Array): void => {
    if (Buffer.compare(key, from) > 0) from = key;
  };
  const lower = (key: Uint8Array): void => {
    if (Buffer.compare(key, to) < 0) to = key;
  };
  if (range.gt !== undefined) raise(inclusive ? encodeValue(type, range.gt) : after(encodeValue(type, range.gt)));
  if (range.gte !== undefined) raise(encodeValue(type, range.gte));
  if (range.lt !== undefined) lower(inclusive ? after(encodeValue(type, range.lt)) : encodeValue(type, range.lt));
  if (range.lte !== undefined) lower(after(encodeValue(type, range.lte)));
  return Buffer.compare(from, to) < 0 ? [{ from, to }] : [];
}

function only(key: Uint8Array): TermRange {
  return { from: key, to: after(key) };
}

/** The smallest key behind `key`. */
function after(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

function encodeValue(type: FieldType, value: IndexTerm): Uint8Array {
  if (typeof value === 'object') return encodePlace(value);
  switch (type) {
    case 'keyword':
    case 'text':
      return encodeKeyword(String(value));
    case 'uuid':
      return Buffer.concat([Uint8Array.of(TAG_VALUE), Buffer.from(String(value).replaceAll('-', ''), 'hex')]);
    case 'bool':
      return Uint8Array.of(TAG_VALUE, value === true ? 1 : 0);
    default:
      return encodeNumber(Number(value));
  }
}

function encodeKeyword(value: string): Uint8Array {
  const text = Buffer.from(value, 'utf8');
  if (text.length <= KEYWORD_BYTES_MAX) return Buffer.concat([Uint8Array.of(TAG_VALUE), text]);
  const digest = crypto().createHash('sha256').update(text).digest();
  return Buffer.concat([Uint8Array.of(TAG_LONG_KEYWORD), text.subarray(0, KEYWORD_PREFIX_BYTES), digest]);
}

function encodePlace(place: GeoPoint): Uint8Array {
  const bytes = new Uint8Array(PLACE_BYTES);
  bytes.set(encodeNumber(cellOf(place)));
  const view = new DataView(bytes.buffer);
  view.setFloat64(9, place.lon);
  view.setFloat64(17, place.lat);
  return bytes;
}

/** IEEE 754 orders like sign and magnitude: flip the sign of positive numbers, and all bits of negative ones. */
function encodeNumber(value: number): Uint8Array {
  const view = numberRoom;
  // Minus zero is zero.
  view.setFloat64(1, value === 0 ? 0 : value);
  const high = view.getUint32(1);
  if (high >>> 31 === 0) {
    view.setUint32(1, (high | 0x8000_0000) >>> 0);
  } else {
    view.setUint32(1, ~high >>> 0);
    view.setUint32(5, ~view.getUint32(5) >>> 0);
  }
  return numberBytes.slice();
}

const numberBytes = Uint8Array.of(TAG_VALUE, 0, 0, 0, 0, 0, 0, 0, 0);
const numberRoom = new DataView(numberBytes.buffer);

/** The number whose bytes `encodeNumber` made. */
function decodeNumber(term: Uint8Array): number {
  const view = new DataView(new ArrayBuffer(8));
  for (let at = 0; at < 8; at++) view.setUint8(at, term[at + 1] as number);
  const high = view.getUint32(0);
  if (high >>> 31 === 1) {
    view.setUint32(0, high & 0x7fff_ffff);
  } else {
    view.setUint32(0, ~high >>> 0);
    view.setUint32(4, ~view.getUint32(4) >>> 0);
  }
  return view.getFloat64(0);
}
