/**
 * Records of a replica's LMDB environment. A write transaction changes them together, so a reader's transaction is
 * a snapshot: it reads the state record, takes the segment set of that generation, and sees rows below the counts
 * and deletions up to the commit that stand there.
 *
 * | database  | key                                                      | value |
 * |-----------|----------------------------------------------------------|-------|
 * | `meta`    | `state`                                                  | state record (below), then its xxHash64 |
 * | `meta`    | `manifest`                                               | sealed JSON: segments, fields, next numbers (`manifest.ts`) |
 * | `meta`    | `unfinished`                                             | sealed JSON: an operation of which some slices are applied (`unfinished.ts`) |
 * | `meta`    | `log`                                                    | sealed JSON: whose operations the log has (`log-tags.ts`) |
 * | `wal`     | operation number u64 BE                                  | stored operation (`protocols/update-codec.ts`), in file `wal/<an operation>` |
 * | `ids`     | segment u32 BE, kind u8, id 16 bytes BE                  | row u32 LE (appendable segments; live points, and maybe deleted ones) |
 * | `rows`    | segment u32 BE, first row u32 BE                         | stored chunk of rows (`segment-rows.ts`): ids, versions, vectors (appendable), in file `rows/<segment>` |
 * | `payload` | segment u32 BE, first row u32 BE                         | payloads of rows (`payload-records.ts`): of those that have one, of appendable segments |
 * | `index`   | segment u32 BE, field number u16 BE, term, block u32 BE  | checked row numbers within the block, u16 LE, ascending (appendable) |
 * | `index`   | segment u32 BE, 0 u16, number u32 BE                     | what the newest rows are filed under, for all fields (`recent-filings.ts`) |
 * | `deleted` | segment u32 BE, block u32 BE                             | checked 512 bytes: bits of 4096 rows |
 *
 * `sealed`: u64 LE xxHash64 of what follows, then that. `checked`: u32 LE xxHash32 of what follows, then that.
 * `stored`: sealed u32 LE kind, u32 0, then the value (kind 0), or u64 LE each (kind 1): file number, offset, length and
 * xxHash64 of the value, which lies in that file (`stored-value.ts` says which values do). Kinds 2 and 3 are those of an operation whose time is
 * known: f64 LE stands before the rest, the date in milliseconds.
 * `ids` values need no checksum: the row they name holds the id again.
 */

import { TroupeError } from '../../protocols/errors.js';
import { idKind, type PointId, writeIdWords } from '../../protocols/model/point-id.js';
import type { Place } from '../disk/append-file.js';
import { checksum32, checksum64 } from '../disk/checksum.js';

/** The state record, which a reader needs at the start of every query: what readers see (Slice-S3). */
export interface StateRecord {
  readonly generation: number;
  /** Number of this commit since the environment was made. */
  readonly commit: number;
  readonly appliedOperation: number;
  /** Number of rows of each appendable segment, by its id. */
  readonly appendable: ReadonlyMap<number, number>;
}

/**
 * Encodes the state record: Float64 [4 + 2 × appendable segments]: generation, commit, applied operation, count, then id and rows of each.
 * A checksum of all that follows.
 */
export function encodeReplicaState(state: StateRecord): Uint8Array {
  const values = new Float64Array(5 + 2 * state.appendable.size);
  values[0] = state.generation;
  values[1] = state.commit;
  values[2] = state.appliedOperation;
  values[3] = state.appendable.size;
  let at = 4;
  for (const [id, rows] of state.appendable) {
    values[at++] = id;
    values[at++] = rows;
  }
  const bytes = new Uint8Array(values.buffer);
  new DataView(values.buffer).setBigUint64(at * 8, checksum64(bytes.subarray(0, at * 8)), true);
  return bytes;
}

/** Decodes the state record. `bytes` may lie at any offset (LMDB's do). Errors: `storage` if the checksum does not match. */
export function decodeReplicaState(bytes: Uint8Array): StateRecord {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - 8;
  if (end < 32 || checksum64(bytes.subarray(0, end)) !== view.getBigUint64(end, true)) throw damagedRecord('meta/state');
  const appendable = new Map<number, number>();
  const count = view.getFloat64(24, true);
  for (let i = 0; i < count; i++) appendable.set(view.getFloat64(32 + i * 16, true), view.getFloat64(40 + i * 16, true));
  return {
    generation: view.getFloat64(0, true),
    commit: view.getFloat64(8, true),
    appliedOperation: view.getFloat64(16, true),
    appendable,
  };
}

/** Key of a segment's row (or first row, or block) in `rows`, `payload` and `deleted`. */
export function rowKey(segment: number, row: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeUInt32BE(segment, 0);
  key.writeUInt32BE(row, 4);
  return key;
}

/** The row of such a key. */
export function rowOfKey(key: Uint8Array): number {
  return new DataView(key.buffer, key.byteOffset, 8).getUint32(4);
}

/** Rows in one block of deleted bits. */
export const DELETED_BLOCK_ROWS = 4096;

/** Key of the state record and of the manifest in `meta`. */
export const STATE_KEY = Buffer.from('state');
export const MANIFEST_KEY = Buffer.from('manifest');

/** In place of the state record in a file that another one has replaced (Room-R10); never in a file that can still be found. */
export const LEFT_STATE = Uint8Array.of(0);

export function isLeftState(record: Uint8Array): boolean {
  return record.length === LEFT_STATE.length;
}

/** Start of the keys of a segment in every database but `wal` and `meta`. */
export function segmentPrefix(segment: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(segment, 0);
  return key;
}

/** The segment of a key in any database but `wal` and `meta`. */
export function segmentOfKey(key: Uint8Array): number {
  return new DataView(key.buffer, key.byteOffset, 4).getUint32(0);
}

/** Key of an operation in `wal`. */
export function operationKey(operation: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(BigInt(operation), 0);
  return key;
}

export function operationOfKey(key: Uint8Array): number {
  return Number(new DataView(key.buffer, key.byteOffset, 8).getBigUint64(0));
}

/** Bytes of a key in `ids`. */
export const ID_KEY_BYTES = 21;

const idWords = new Uint32Array(4);

/** Writes the key of a point id in `ids` to `key` [21]. */
export function writeIdKey(segment: number, id: PointId, key: Buffer): void {
  writeIdWords(id, idWords, 0);
  key.writeUInt32BE(segment, 0);
  key[4] = idKind(id);
  for (let i = 0; i < 4; i++) key.writeUInt32BE(idWords[i] as number, 5 + i * 4);
}

// ------------------------------------------------------------------ checksums

/** Bytes that `seal` needs in front of a record's body. */
export const SEAL_BYTES = 8;

/** Writes the checksum of everything after the first 8 bytes of `record` into those bytes. */
export function seal(record: Uint8Array): Uint8Array {
  new DataView(record.buffer, record.byteOffset, SEAL_BYTES).setBigUint64(0, checksum64(record.subarray(SEAL_BYTES)), true);
  return record;
}

/** A sealed record of `body`. */
export function sealBody(body: Uint8Array): Uint8Array {
  const record = new Uint8Array(SEAL_BYTES + body.length);
  record.set(body, SEAL_BYTES);
  return seal(record);
}

/** The body of a sealed record, a view on it. name: the record's name in errors, see `uncheck`. Errors: `storage`. */
export function unseal(record: Uint8Array, name: string | (() => string)): Uint8Array {
  if (record.length < SEAL_BYTES) throw damagedRecord(name);
  const body = record.subarray(SEAL_BYTES);
  if (new DataView(record.buffer, record.byteOffset, SEAL_BYTES).getBigUint64(0, true) !== checksum64(body)) throw damagedRecord(name);
  return body;
}

// ------------------------------------------------------------------ stored values

/** Bytes that `inlineValue` needs in front of a value. */
export const VALUE_HEAD_BYTES = SEAL_BYTES + 8;

/** And in front of one with a time. */
export const TIMED_HEAD_BYTES = VALUE_HEAD_BYTES + 8;

const INLINE = 0;
const PLACED = 1;
/** Added to either. */
const TIMED = 2;
const PLACED_BYTES = 32;

/** Bytes in front of a value, or of its place. timeMs: null: the record has no time. */
export function headBytes(timeMs: number | null): number {
  return timeMs === null ? VALUE_HEAD_BYTES : TIMED_HEAD_BYTES;
}

/** The record of an inline value. reserved: the value after as many free bytes as `headBytes` says. */
export function inlineValue(reserved: Uint8Array, timeMs: number | null = null): Uint8Array {
  writeHead(new DataView(reserved.buffer, reserved.byteOffset, reserved.byteLength), INLINE, timeMs);
  return seal(reserved);
}

/** The record of a value that lies in a file. */
export function placedValue({ file, offset, length, checksum }: Place, timeMs: number | null = null): Uint8Array {
  const head = headBytes(timeMs);
  const record = new Uint8Array(head + PLACED_BYTES);
  const view = new DataView(record.buffer);
  writeHead(view, PLACED, timeMs);
  view.setBigUint64(head, BigInt(file), true);
  view.setBigUint64(head + 8, BigInt(offset), true);
  view.setBigUint64(head + 16, BigInt(length), true);
  view.setBigUint64(head + 24, checksum, true);
  return seal(record);
}

function writeHead(record: DataView, kind: number, timeMs: number | null): void {
  record.setUint32(SEAL_BYTES, timeMs === null ? kind : kind + TIMED, true);
  record.setUint32(SEAL_BYTES + 4, 0, true);
  if (timeMs !== null) record.setFloat64(VALUE_HEAD_BYTES, timeMs, true);
}

/** The value of a record (a view on it), or its place in a file. Errors: `storage`. */
export function decodeValue(record: Uint8Array, name: string): Uint8Array | Place {
  const { body, isPlaced } = openValue(record, name);
  if (!isPlaced) return body;
  if (body.length !== PLACED_BYTES) throw damagedRecord(name);
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  return {
    file: Number(view.getBigUint64(0, true)),
    offset: Number(view.getBigUint64(8, true)),
    length: Number(view.getBigUint64(16, true)),
    checksum: view.getBigUint64(24, true),
  };
}

/** The time in a record, a date in milliseconds; null: an earlier release wrote it. Errors: `storage`. */
export function timeOfValue(record: Uint8Array, name: string): number | null {
  return openValue(record, name).timeMs;
}

interface OpenedValue {
  /** Behind the head. */
  readonly body: Uint8Array;
  readonly isPlaced: boolean;
  readonly timeMs: number | null;
}

function openValue(record: Uint8Array, name: string): OpenedValue {
  const body = unseal(record, name);
  if (body.length < 8) throw damagedRecord(name);
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const kind = view.getUint32(0, true);
  const isPlaced = kind === PLACED || kind === PLACED + TIMED;
  if (kind === INLINE || kind === PLACED) return { body: body.subarray(8), isPlaced, timeMs: null };
  if (kind > PLACED + TIMED || body.length < 16) throw damagedRecord(name);
  return { body: body.subarray(16), isPlaced, timeMs: view.getFloat64(8, true) };
}

// ------------------------------------------------------------------ small checksums

/** Bytes that `checkInPlace` needs in front of a record's body. */
export const CHECK_BYTES = 4;

/** A larger body gets memory of its own. */
const ROOM_BYTES_MAX = 1 << 20;

/** A checked record of `body`. */
export function check(body: Uint8Array): Uint8Array {
  const record = Buffer.allocUnsafe(CHECK_BYTES + body.length);
  record.set(body, CHECK_BYTES);
  return checkInPlace(record);
}

let checkRoom = Buffer.alloc(4096);

/** As `check`, in memory that the next call uses again: for records by the thousand, as LMDB copies what it is given. */
export function checkInRoom(body: Uint8Array): Uint8Array {
  const length = CHECK_BYTES + body.length;
  if (length > ROOM_BYTES_MAX) return check(body);
  if (length > checkRoom.length) checkRoom = Buffer.alloc(Math.min(ROOM_BYTES_MAX, length * 2));
  checkRoom.set(body, CHECK_BYTES);
  return checkInPlace(checkRoom.subarray(0, length));
}

/** Makes a checked record of a body that lies after `CHECK_BYTES` free bytes. */
export function checkInPlace(record: Buffer): Uint8Array {
  record.writeUInt32LE(checksum32(record.subarray(CHECK_BYTES)), 0);
  return record;
}

/** The body of a checked record, a view on it. name: a function if making the name would cost more than the rest. Errors: `storage`. */
export function uncheck(record: Uint8Array, name: string | (() => string)): Uint8Array {
  if (record.length < CHECK_BYTES) throw damagedRecord(name);
  const body = record.subarray(CHECK_BYTES);
  if (new DataView(record.buffer, record.byteOffset, CHECK_BYTES).getUint32(0, true) !== checksum32(body)) throw damagedRecord(name);
  return body;
}

/** The error for a damaged record. name: `rows/3/256`, or any other text that identifies the record. */
export function damagedRecord(name: string | (() => string)): TroupeError {
  return new TroupeError('storage', `lmdb/data.mdb: record \`${typeof name === 'string' ? name : name()}\` is damaged`, {
    reason: 'damaged',
  });
}
