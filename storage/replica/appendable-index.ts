/**
 * The index of a payload field over the rows of an appendable segment, in LMDB: for each term and block of 4096 rows, the row numbers.
 * `storage/segment/index/terms.ts` defines the terms.
 *
 * Keys order by term, then block: zero bytes of a term are escaped (00 ff) and two zero bytes end it, so that no longer term with the same
 * beginning sorts between the blocks of a term.
 */

import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { FieldCondition } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import { fullBits, hasBit } from '../../query/filter/bits.js';
import type { Mark, TermValue } from '../../query/filter/lookup.js';
import type { FieldIndex } from '../../query/filter/source.js';
import { afterPrefix, type Environment, KEY_BYTES_MAX, type Reading } from '../disk/lmdb.js';
import { spend } from '../disk/meter.js';
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
import { CHECK_BYTES, checkInPlace, DELETED_BLOCK_ROWS, uncheck } from '../wal/records.js';

/** Rows of one record, as in `deleted`. */
const BLOCK_ROWS = DELETED_BLOCK_ROWS;
/** Most keys that an estimate looks at. */
const ESTIMATE_KEYS_MAX = 256;

/** Rows of a block to add under a term, as numbers within the block. */
interface Filing {
  readonly term: Term;
  readonly rows: number[];
}

/** Filings of a field in a segment, by block and term. */
type FieldFilings = Map<number, Map<TermKey, Filing>>;

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
  private readonly pending = new Map<number, Map<number, FieldFilings>>();

  /** Adds a row under the terms of its payload. Returns whether it has a value in the index. */
  add(
    segment: number,
    field: { readonly number: number; readonly name: string; readonly schema: FieldSchema },
    row: number,
    payload: Payload | undefined,
  ): boolean {
    const terms = fieldTerms(field.schema, payload, field.name);
    if (terms.length === 0) return false;
    const block = Math.floor(row / BLOCK_ROWS);
    const filings = madeIn(madeIn(madeIn(this.pending, segment), field.number), block);
    let indexed = false;
    for (const term of terms) {
      if (term.kind === 'mark' && term.mark === 'indexed') indexed = true;
      const key = keyOf(term);
      const known = filings.get(key);
      if (known === undefined) filings.set(key, { term, rows: [row % BLOCK_ROWS] });
      else known.rows.push(row % BLOCK_ROWS);
    }
    return indexed;
  }

  /** Writes the additions; within a transaction. */
  flush(environment: Environment): void {
    for (const [segment, fields] of this.pending) {
      for (const [field, blocks] of fields) {
        const prefix = fieldPrefix(segment, field);
        for (const [block, filings] of blocks)
          for (const { term, rows } of filings.values()) fileRows(environment, keyInRoom(prefix, encodeTerm(term), block), rows);
      }
    }
    this.pending.clear();
  }
}

/**
 * Adds rows to a record. It is put together in memory that all records share: a batch has some records for each point, and LMDB copies what
 * it is given.
 */
function fileRows(environment: Environment, key: Uint8Array, rows: readonly number[]): void {
  const known = environment.peek('index', key);
  const knownBytes = known === undefined ? 0 : known.length - CHECK_BYTES;
  const length = CHECK_BYTES + knownBytes + rows.length * 2;
  if (length > recordRoom.length) recordRoom = Buffer.alloc(length * 2);
  const record = recordRoom.subarray(0, length);
  if (known !== undefined) {
    record.set(known);
    spend('payload_index_io_read', known.length);
    uncheck(record.subarray(0, known.length), () => nameOf(key));
  }
  let at = CHECK_BYTES + knownBytes;
  for (const row of rows) at = record.writeUInt16LE(row, at);
  checkInPlace(record);
  environment.put('index', key, record);
  spend('payload_index_io_write', key.length + length);
}

let recordRoom = Buffer.alloc(CHECK_BYTES + BLOCK_ROWS * 2);
const keyRoom = Buffer.alloc(2 * KEY_BYTES_MAX);

/** The key of a term's record, in memory that the next call uses again. */
function keyInRoom(prefix: Uint8Array, term: Uint8Array, block: number): Uint8Array {
  keyRoom.set(prefix);
  const end = writeTermKey(term, keyRoom, prefix.length);
  return keyRoom.subarray(0, keyRoom.writeUInt32BE(block, end));
}

function nameOf(key: Uint8Array): string {
  return `index/${Buffer.from(key).toString('hex')}`;
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

/** The index of a field over the first `rows` rows of a segment, as `reading` sees it. */
export function appendableFieldIndex(
  reading: Reading,
  segment: number,
  fieldNumber: number,
  schema: FieldSchema,
  rows: number,
): FieldIndex {
  const prefix = fieldPrefix(segment, fieldNumber);
  return {
    match(condition, bits) {
      return matchTerms(schema, condition, bits, rows, (range, visit) => {
        for (const { first, offsets } of postings(reading, prefix, range)) for (const offset of offsets) visit(first + offset);
      });
    },
    cardinality(condition) {
      return estimate(reading, prefix, schema, condition, rows);
    },
    countValues(bits, add) {
      return countValues(reading, prefix, schema.type, bits ?? fullBits(rows), add);
    },
    visitInOrder(direction, start, visit) {
      return visitInOrder(reading, prefix, schema.type, direction, start, visit);
    },
  };
}

/** Calls `visit` with every row below `rows` that has a value in the index. Errors: `storage` for any damaged record of the field. */
export function visitIndexedRows(reading: Reading, segment: number, fieldNumber: number, visit: (row: number) => void): void {
  const prefix = fieldPrefix(segment, fieldNumber);
  const end = new Uint8Array(INDEXED_TERM.length + 1);
  end.set(INDEXED_TERM);
  for (const { first, offsets } of postings(reading, prefix, { from: INDEXED_TERM, to: end }))
    for (const offset of offsets) visit(first + offset);
}

/** Reads every record of the field in a segment. Errors: `storage` for a damaged one. */
export function verifyFieldIndex(reading: Reading, segment: number, fieldNumber: number): void {
  const prefix = fieldPrefix(segment, fieldNumber);
  for (const { key, value } of reading.range('index', prefix, afterPrefix(prefix))) rowsOf(value, key);
}

/** Start of the keys of a field in a segment. */
export function fieldPrefix(segment: number, fieldNumber: number): Buffer {
  const key = Buffer.allocUnsafe(6);
  key.writeUInt32BE(segment, 0);
  key.writeUInt16BE(fieldNumber, 4);
  return key;
}

/** Rows under the keys of a range: `first + offset` for each offset. term: as `termKey` made it. */
function* postings(
  reading: Reading,
  prefix: Uint8Array,
  range: TermRange,
): Generator<{ term: Uint8Array; first: number; offsets: Uint16Array }> {
  const from = Buffer.concat([prefix, termKey(range.from)]);
  const to = Buffer.concat([prefix, termKey(range.to)]);
  for (const { key, value } of reading.range('index', from, to)) {
    const term = key.subarray(prefix.length, key.length - 4);
    if (range.accepts !== undefined && !range.accepts(plainTerm(term))) continue;
    const block = new DataView(key.buffer, key.byteOffset + key.length - 4, 4).getUint32(0);
    yield { term, first: block * BLOCK_ROWS, offsets: rowsOf(value, key) };
  }
}

/** As `FieldIndex.countValues`; every value is decoded before the first one is returned. */
function countValues(
  reading: Reading,
  prefix: Uint8Array,
  type: FieldType,
  bits: Uint32Array,
  add: (value: TermValue, count: number) => void,
): boolean {
  const found: { readonly value: TermValue; readonly count: number }[] = [];
  for (const { term, first, offsets } of postings(reading, prefix, ALL_VALUES)) {
    const value = decodeTerm(type, plainTerm(term));
    if (value === undefined) return false;
    let count = 0;
    for (const offset of offsets) if (hasBit(bits, first + offset)) count++;
    if (count > 0) found.push({ value, count });
  }
  for (const { value, count } of found) add(value, count);
  return true;
}

/** As `FieldIndex.visitInOrder`; the whole field is read before the first visit. */
function visitInOrder(
  reading: Reading,
  prefix: Uint8Array,
  type: FieldType,
  direction: 'asc' | 'desc',
  start: number | null,
  visit: (value: number, row: number) => boolean,
): boolean {
  const found: { readonly value: number; readonly row: number }[] = [];
  for (const { term, first, offsets } of postings(reading, prefix, ALL_VALUES)) {
    const value = decodeTerm(type, plainTerm(term));
    if (typeof value !== 'number') return false;
    if (start !== null && (direction === 'asc' ? value < start : value > start)) continue;
    for (const offset of offsets) found.push({ value, row: first + offset });
  }
  if (direction === 'desc') found.reverse();
  for (const { value, row } of found) if (!visit(value, row)) break;
  return true;
}

function estimate(
  reading: Reading,
  prefix: Uint8Array,
  schema: FieldSchema,
  condition: FieldCondition,
  rows: number,
): { min: number; max: number } | null {
  const plan = conditionTerms(schema, condition);
  if (plan === null) return null;
  let keys = 0;
  let sum = 0;
  let largest = 0;
  for (const range of plan.ranges) {
    let inRange = 0;
    for (const { offsets } of postings(reading, prefix, range)) {
      if (++keys > ESTIMATE_KEYS_MAX) return null;
      // Several records of a block may have the same row, so only the largest record surely counts each row once.
      inRange = Math.max(inRange, offsets.length);
      sum += offsets.length;
    }
    largest = Math.max(largest, inRange);
  }
  for (const ranges of plan.every) {
    let fewest = rows;
    for (const range of ranges) {
      let here = 0;
      for (const { offsets } of postings(reading, prefix, range)) {
        if (++keys > ESTIMATE_KEYS_MAX) return null;
        here += offsets.length;
      }
      fewest = Math.min(fewest, here);
    }
    sum += fewest;
  }
  const max = Math.min(sum, rows);
  const min = Math.min(largest, max);
  if (plan.complement) return { min: plan.exact ? rows - max : 0, max: rows - min };
  return { min: plan.exact ? min : 0, max };
}

/** A term's bytes in the form that keys have, with their end mark. */
function termKey(term: Uint8Array): Uint8Array {
  const key = new Uint8Array(2 * term.length + 2);
  return key.subarray(0, writeTermKey(term, key, 0));
}

/** Writes what `termKey` returns to `key`, from `start` on. Returns its end. */
function writeTermKey(term: Uint8Array, key: Uint8Array, start: number): number {
  let at = start;
  for (const byte of term) {
    key[at++] = byte;
    if (byte === 0) key[at++] = 0xff;
  }
  key[at++] = 0;
  key[at++] = 0;
  return at;
}

/** The term that `termKey` encoded. */
function plainTerm(key: Uint8Array): Uint8Array {
  const term: number[] = [];
  for (let at = 0; at < key.length - 2; at++) {
    const byte = key[at] as number;
    term.push(byte);
    if (byte === 0) at++;
  }
  return Uint8Array.from(term);
}

function rowsOf(record: Uint8Array, key: Uint8Array): Uint16Array {
  spend('payload_index_io_read', record.length);
  const body = uncheck(record, () => nameOf(key));
  // A copy, as the body may lie at an odd offset and `slice` of a Buffer does not copy.
  return new Uint16Array(new Uint8Array(body).buffer);
}
