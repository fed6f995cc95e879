/**
 * What the newest rows of an appendable segment are filed under, for all fields together, before they are merged into the index of each field
 * (`index-leaves.ts`). A batch of points brings some new terms with each point, all over the index: to change a record for each of them costs
 * more than the rest of an upload. So they wait here until there are many.
 *
 * Key in `index`: segment u32 BE, 0 u16 (no field has this number), number of the record u32 BE, ascending from 0 without a gap.
 * Value, checked: number of the record u32 LE, bytes of all records before it u32 LE, then sections: field number u16 LE, bytes u32 LE of what
 * follows, then terms (`filed-terms.ts`) in any order. Rows under a term ascend from section to section.
 */

import type { Environment } from '../disk/lmdb.js';
import { afterPrefix, type Reading } from '../disk/lmdb-tables.js';
import { spend } from '../disk/meter.js';
import { encodeTerm, type Term } from '../segment/index/terms.js';
import { CHECK_BYTES, checkInPlace, damagedRecord, uncheck } from '../wal/records.js';
import { filedBytes, filedEnd, writeFiled } from './filed-terms.js';

/** Rows under a term, ascending. */
export interface Filing {
  readonly term: Term;
  readonly rows: number[];
}

/** A field number that no field has. */
const NO_FIELD = 0;
/** A shorter last record is written again with what comes next: a point that comes alone does not get a record of its own. */
const RECORD_BYTES_MIN = 4096;
/** Most bytes of all records of a segment, as a condition on a field goes through all of them. */
const RECENT_BYTES_MAX = 64 * 1024;
const HEAD_BYTES = 8;
const SECTION_HEAD_BYTES = 6;

/** Filed terms (`filed-terms.ts`) of a field, in the order of their addition. at: where each begins. */
export interface FiledTerms {
  readonly bytes: Uint8Array;
  readonly at: number[];
}

/**
 * Adds what rows are filed under to the records of a segment; within a transaction. Returns null; or, if there is too much by now, all that the
 * records held and what was to be added, by field: the records are gone, and the caller merges it into the indexes. Errors: `storage` for a
 * damaged record.
 */
export function addRecent(
  environment: Environment,
  segment: number,
  fields: ReadonlyMap<number, Iterable<Filing>>,
): ReadonlyMap<number, FiledTerms> | null {
  const last = lastRecord(environment, segment);
  const continues = last !== null && last.body.length < RECORD_BYTES_MIN;
  const start = CHECK_BYTES + (continues ? last.body.length : HEAD_BYTES);
  const end = writeSections(fields, start);
  const bytesBefore = last === null ? 0 : last.bytesBefore + (continues ? 0 : last.body.length);
  if (bytesBefore + end > RECENT_BYTES_MAX) {
    const bodies = recordsOf(environment, segment);
    removeRecent(environment, segment);
    return filedOf([...bodies.map((body) => ({ body, at: HEAD_BYTES })), { body: room.subarray(0, end), at: start }]);
  }
  if (continues) room.set(last.body, CHECK_BYTES);
  else {
    room.writeUInt32LE(last === null ? 0 : last.number + 1, CHECK_BYTES);
    room.writeUInt32LE(bytesBefore, CHECK_BYTES + 4);
  }
  const key = recordKey(segment, room.readUInt32LE(CHECK_BYTES));
  environment.put('index', key, checkInPlace(room.subarray(0, end)));
  spend('payload_index_io_write', key.length + end);
  return null;
}

/** What the newest rows are filed under in a field: filed terms one after the other, in each part. Errors: `storage` for a damaged record. */
export function recentOf(reading: Reading, segment: number, field: number): Uint8Array[] {
  return recordsOf(reading, segment).flatMap((body) =>
    sectionsOf(body, HEAD_BYTES).flatMap((section) => (section.field === field ? [body.subarray(section.start, section.end)] : [])),
  );
}

// ------------------------------------------------------------------ records

interface RecentRecord {
  readonly number: number;
  /** Of all records before it. */
  readonly bytesBefore: number;
  readonly body: Uint8Array;
}

/** Where records are put together, as LMDB copies what it is given. */
let room = Buffer.alloc(CHECK_BYTES + RECENT_BYTES_MAX);

function recordPrefix(segment: number): Buffer {
  const key = Buffer.alloc(6);
  key.writeUInt32BE(segment, 0);
  key.writeUInt16BE(NO_FIELD, 4);
  return key;
}

function recordKey(segment: number, number: number): Buffer {
  const key = Buffer.concat([recordPrefix(segment), Buffer.alloc(4)]);
  key.writeUInt32BE(number, 6);
  return key;
}

function lastRecord(environment: Environment, segment: number): RecentRecord | null {
  const last = environment.floor('index', recordPrefix(segment), recordKey(segment, 0xffffffff));
  return last === undefined ? null : recordOf(segment, last.key, last.value);
}

/** The bodies of all records of a segment, in their order. */
function recordsOf(reading: Reading, segment: number): Uint8Array[] {
  const prefix = recordPrefix(segment);
  const bodies: Uint8Array[] = [];
  let bytes = 0;
  for (const { key, value } of reading.range('index', prefix, afterPrefix(prefix))) {
    const { number, bytesBefore, body } = recordOf(segment, key, value);
    if (number !== bodies.length || bytesBefore !== bytes) throw damagedRecord(nameOf(segment, bodies.length));
    bodies.push(body);
    bytes += body.length;
  }
  return bodies;
}

function recordOf(segment: number, key: Uint8Array, value: Uint8Array): RecentRecord {
  spend('payload_index_io_read', value.length);
  const number = new DataView(key.buffer, key.byteOffset, key.length).getUint32(6);
  const body = uncheck(value, () => nameOf(segment, number));
  const head = new DataView(body.buffer, body.byteOffset, HEAD_BYTES);
  if (head.getUint32(0, true) !== number) throw damagedRecord(nameOf(segment, number));
  return { number, bytesBefore: head.getUint32(4, true), body };
}

function nameOf(segment: number, number: number): string {
  return `index/${segment}/recent/${number}`;
}

function removeRecent(environment: Environment, segment: number): void {
  const prefix = recordPrefix(segment);
  environment.removeRange('index', prefix, afterPrefix(prefix), Number.MAX_SAFE_INTEGER);
}

// ------------------------------------------------------------------ sections

/** Bytes `start` to `end` of a record are terms of a field. */
interface Section {
  readonly field: number;
  readonly start: number;
  readonly end: number;
}

/** The sections of a record from `at` on. */
function sectionsOf(body: Uint8Array, first: number): Section[] {
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const sections: Section[] = [];
  for (let at = first; at < body.length; ) {
    const start = at + SECTION_HEAD_BYTES;
    const end = start + view.getUint32(at + 2, true);
    sections.push({ field: view.getUint16(at, true), start, end });
    at = end;
  }
  return sections;
}

/** The filed terms of all sections from `at` on in each body, copied, by field. */
function filedOf(bodies: readonly { readonly body: Uint8Array; readonly at: number }[]): Map<number, FiledTerms> {
  const parts = new Map<number, Uint8Array[]>();
  for (const { body, at } of bodies) {
    for (const { field, start, end } of sectionsOf(body, at)) {
      const part = body.subarray(start, end);
      const known = parts.get(field);
      if (known === undefined) parts.set(field, [part]);
      else known.push(part);
    }
  }
  return new Map([...parts].map(([field, of]) => [field, filedIn(Buffer.concat(of))]));
}

function filedIn(bytes: Uint8Array): FiledTerms {
  const at: number[] = [];
  for (let next = 0; next < bytes.length; next = filedEnd(bytes, next)) at.push(next);
  return { bytes, at };
}

/** Writes a section for each field to `room`, from `start` on. Returns its end. */
function writeSections(fields: ReadonlyMap<number, Iterable<Filing>>, start: number): number {
  let at = start;
  for (const [field, filings] of fields) {
    const section = at;
    at += SECTION_HEAD_BYTES;
    for (const { term, rows } of filings) {
      const bytes = encodeTerm(term);
      growRoom(at + filedBytes(bytes.length, rows.length));
      at = writeFiled(room, at, bytes, rows);
    }
    growRoom(at);
    room.writeUInt16LE(field, section);
    room.writeUInt32LE(at - section - SECTION_HEAD_BYTES, section + 2);
  }
  return at;
}

function growRoom(bytes: number): void {
  if (bytes > room.length) room = Buffer.concat([room, Buffer.alloc(bytes)]);
}
