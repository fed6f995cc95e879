/**
 * Values of `rows` and `wal`: small ones lie in their record, large ones in a file that the record points at. A small
 * one would cost a synchronisation of its own in a file; a large one in LMDB makes its file grow for good.
 */

import type { AppendFolder } from '../disk/append-file.js';
import { decodeValue, inlineValue, placedValue, VALUE_HEAD_BYTES } from './records.js';

/**
 * Larger values go to the file. A point of 1536 components still lies in LMDB: one durable write of a point took 1 ms so,
 * and 2 ms where two more files had to be synchronised.
 */
const INLINE_BYTES_MAX = 8192;

/** Larger values get memory of their own. */
const ROOM_BYTES_MAX = 8 * 2 ** 20;
let room = new Uint8Array(0);

/**
 * A buffer for a value of so many bytes, head included; it may hold anything. Those of large values are one and the same,
 * as each is in its file when `storeValue` returns: fresh memory for each would cost more than filling it.
 */
export function valueRoom(bytes: number): Uint8Array {
  if (bytes - VALUE_HEAD_BYTES <= INLINE_BYTES_MAX || bytes > ROOM_BYTES_MAX) return new Uint8Array(bytes);
  if (bytes > room.length) room = new Uint8Array(Math.min(ROOM_BYTES_MAX, bytes * 2));
  return room.subarray(0, bytes);
}

/** The record of a value, which is written to `file` when it is large. reserved: the value behind `VALUE_HEAD_BYTES` free bytes. Errors: `storage`. */
export function storeValue(folder: AppendFolder, file: number, reserved: Uint8Array): Uint8Array {
  if (isInline(reserved)) return inlineValue(reserved);
  return placedValue(folder.append(file, reserved.subarray(VALUE_HEAD_BYTES)));
}

export function isInline(reserved: Uint8Array): boolean {
  return reserved.length - VALUE_HEAD_BYTES <= INLINE_BYTES_MAX;
}

/** The value of a record. name: what errors call the record; holds: what the file has of it. Errors: `storage`, naming the damaged one of the two. */
export function loadValue(folder: AppendFolder, record: Uint8Array, name: string, holds: string): Uint8Array {
  const value = decodeValue(record, name);
  if (value instanceof Uint8Array) return value;
  folder.claim(value);
  return folder.read(value, holds);
}
