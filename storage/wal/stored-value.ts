/**
 * Values of `rows` and `wal`: small ones lie in their record, large ones in a file that the record points at. A small value in a file would
 * cost a synchronisation of its own; a large value in LMDB makes LMDB's file grow for good.
 */

import type { AppendFolder } from '../disk/append-file.js';
import { decodeValue, headBytes, inlineValue, placedValue, VALUE_HEAD_BYTES } from './records.js';

/**
 * Larger operations go to the file, which is synchronised by itself: in LMDB a point of 1536 components took 1 ms to write, in files 2. An opening reads
 * all records of the log, which keeps operations for a long time.
 */
export const OPERATION_INLINE_BYTES_MAX = 8192;
/** Larger chunks of rows do; they are read by an opening wherever they are. Of 16 to 50 KB they take as much CPU either way, and larger ones less in files. */
export const ROWS_INLINE_BYTES_MAX = 65_536;

/** Larger values get a buffer of their own. */
const ROOM_BYTES_MAX = 8 * 2 ** 20;
let room = new Uint8Array(0);

/**
 * A buffer for a value of this many bytes, head included, with arbitrary content. Those that go to files share one buffer, as each is in its file
 * when `storeValue` returns: new memory for each would cost more than filling it. inlineBytesMax: as for `storeValue`.
 */
export function valueRoom(bytes: number, inlineBytesMax: number): Uint8Array {
  return bytes - VALUE_HEAD_BYTES <= inlineBytesMax ? new Uint8Array(bytes) : passingRoom(bytes);
}

/** A buffer that counts until the next one is asked for, with arbitrary content. */
export function passingRoom(bytes: number): Uint8Array {
  if (bytes > ROOM_BYTES_MAX) return new Uint8Array(bytes);
  if (bytes > room.length) room = new Uint8Array(Math.min(ROOM_BYTES_MAX, bytes * 2));
  return room.subarray(0, bytes);
}

/**
 * The record of a value; one of more than `inlineBytesMax` bytes is written to `file`. reserved: the value after as many free bytes as `headBytes` says.
 * timeMs: of an operation; null: the record has none. Errors: `storage`.
 */
export function storeValue(
  folder: AppendFolder,
  file: number,
  reserved: Uint8Array,
  inlineBytesMax: number,
  timeMs: number | null = null,
): Uint8Array {
  if (isInline(reserved, inlineBytesMax)) return inlineValue(reserved, timeMs);
  return placedValue(folder.append(file, reserved.subarray(headBytes(timeMs))), timeMs);
}

export function isInline(reserved: Uint8Array, inlineBytesMax: number): boolean {
  return reserved.length - VALUE_HEAD_BYTES <= inlineBytesMax;
}

/**
 * The value of a record. name: the record's name in errors. holds: the file's content in errors. Errors: `storage`, naming whichever of the
 * two is damaged. room: where a value from a file is read to.
 */
export function loadValue(
  folder: AppendFolder,
  record: Uint8Array,
  name: string,
  holds: string,
  room?: (bytes: number) => Uint8Array,
): Uint8Array {
  const value = decodeValue(record, name);
  if (value instanceof Uint8Array) return value;
  folder.claim(value);
  return folder.read(value, holds, room);
}
