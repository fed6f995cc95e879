/**
 * Where the parts of a sealed field index lie in its bytes, which are the same in the file and in memory.
 *
 * | part        | type                  | of                                                        |
 * |-------------|-----------------------|-----------------------------------------------------------|
 * | head        | u32 [16]              | version, type, flags, rows, points, entries, terms, text bytes |
 * | marks       | u32 words [4, rows/32]| bitsets of the marks of `query/filter/lookup.ts`, in their order |
 * | postings    | u32 [entries]         | rows, term after term in term order, ascending within a term |
 * | starts      | u32 [terms + 1]       | first posting of each term (keyword, text, uuid, bool)      |
 * | textOffsets | u32 [terms + 1]       | first byte of each keyword or token                         |
 * | text        | u8                    | keywords or tokens as UTF-8, sorted by bytes                |
 * | uuids       | u32 [terms, 4]        | words of each UUID, most significant first, sorted          |
 * | numbers     | f64 [entries]         | value of each posting, ascending (integer, float, datetime); of geo ones the cell (`query/geo/cells.ts`) |
 * | places      | f64 [entries, 2]      | longitude and latitude of each posting (geo)                |
 */

import type { FieldType } from '../../protocols/model/collection.js';
import { wordCount } from '../../query/filter/bits.js';
import { MARKS } from '../../query/filter/lookup.js';

export const INDEX_VERSION = 1;
export const HEAD_WORDS = 16;

/** Codes of the types in the head. */
export const TYPE_CODES: Record<FieldType, number> = { keyword: 1, integer: 2, float: 3, bool: 4, datetime: 5, uuid: 6, text: 7, geo: 8 };

/** Integers were rounded to doubles: equality at 2^53 and beyond is no proof. */
export const FLAG_ROUNDED = 1;

export interface IndexSizes {
  readonly type: FieldType;
  readonly rows: number;
  readonly entries: number;
  readonly terms: number;
  readonly textBytes: number;
}

export interface IndexLayout {
  readonly marks: number;
  readonly markWords: number;
  readonly postings: number;
  readonly starts: number;
  readonly textOffsets: number;
  readonly text: number;
  readonly uuids: number;
  readonly numbers: number;
  readonly places: number;
  readonly bytes: number;
}

/** Bytes that are in memory whatever `on_disk` says: head and marks, the first ones. buffer: a whole index. */
export function residentBytes(buffer: SharedArrayBuffer): number {
  if (buffer.byteLength < HEAD_WORDS * 4) return buffer.byteLength;
  const rows = new Uint32Array(buffer, 0, HEAD_WORDS)[3] as number;
  // Where they end depends on the number of rows alone.
  return Math.min(buffer.byteLength, indexLayout({ type: 'bool', rows, entries: 0, terms: 0, textBytes: 0 }).postings);
}

/** Offsets in bytes; parts that a type does not have are empty. */
export function indexLayout(sizes: IndexSizes): IndexLayout {
  let at = HEAD_WORDS * 4;
  const take = (bytes: number): number => {
    const offset = at;
    at += Math.ceil(bytes / 8) * 8;
    return offset;
  };
  const { type, terms } = sizes;
  const byTerm = isNumeric(type) ? 0 : (terms + 1) * 4;
  const markWords = wordCount(sizes.rows);
  const marks = take(markWords * 4 * MARKS.length);
  const postings = take(sizes.entries * 4);
  const starts = take(byTerm);
  const textOffsets = take(hasText(type) ? byTerm : 0);
  const text = take(hasText(type) ? sizes.textBytes : 0);
  const uuids = take(type === 'uuid' ? terms * 16 : 0);
  const numbers = take(isNumeric(type) ? sizes.entries * 8 : 0);
  const places = take(type === 'geo' ? sizes.entries * 16 : 0);
  return { marks, markWords, postings, starts, textOffsets, text, uuids, numbers, places, bytes: at };
}

/** Whether terms are numbers, one per posting, instead of a dictionary. */
export function isNumeric(type: FieldType): boolean {
  return type === 'integer' || type === 'float' || type === 'datetime' || type === 'geo';
}

/** Whether terms are texts. */
export function hasText(type: FieldType): boolean {
  return type === 'keyword' || type === 'text';
}
