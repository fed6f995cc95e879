/**
 * Payload texts of a sealed segment: one record per row, u32 LE xxHash32 of the text and then the text (JSON, UTF-8);
 * an empty payload is a record of no bytes. Offsets of the records stand in the handle; the records are read by
 * position, or from memory where the collection keeps payloads there.
 */

import fs from 'node:fs';
import path from 'node:path';
import { checksum32 } from '../disk/checksum.js';
import { DamagedFile, openPlainFile, readFully, readSegmentFile, SegmentFileWriter } from '../disk/file.js';
import type { SegmentHandle } from './handle.js';
import { closeVectorFiles } from './vector-file.js';

const CHECK_BYTES = 4;
const EMPTY: Uint8Array = new TextEncoder().encode('{}');
const WRITE_BUFFER_BYTES = 1 << 20;
const READ_AHEAD_BYTES = 1 << 18;
/** A record that starts this close behind the last one is taken for the next step of a scan. */
const SCAN_GAP_BYTES = 1 << 12;
/** A row and its place in a list make one number. */
const PLACES_MAX = 2 ** 20;

export function payloadFile(folder: string): string {
  return path.join(folder, 'payload');
}

/**
 * Writes the payload file of `rows` rows and returns the offsets for the handle: f64 [rows + 1] in shared memory.
 * textOf: the row's JSON text, empty or `{}` for none; asked once for each row, in order.
 */
export function writePayloadFile(folder: string, segment: number, rows: number, textOf: (row: number) => Uint8Array): SharedArrayBuffer {
  const shared = new SharedArrayBuffer((rows + 1) * 8);
  const offsets = new Float64Array(shared);
  const writer = new SegmentFileWriter(payloadFile(folder), 'payload', { segment, rows }, ['data', 'offsets']);
  try {
    writer.section('data', records(rows, textOf, offsets, writer.offset));
    writer.section('offsets', [new Uint8Array(shared)]);
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.finish();
  return shared;
}

/**
 * The JSON text of a row's payload, `{}` for an empty one; the caller must not change it.
 * Errors: `storage` when the record does not match its checksum.
 */
export function readPayloadText(handle: SegmentHandle, row: number): Uint8Array {
  const offsets = offsetsOf(handle);
  const from = offsets[row] as number;
  const to = offsets[row + 1] as number;
  if (from === to) return EMPTY;
  if (handle.payloadBytes !== null) {
    const start = offsets[0] as number;
    // Copied, as text decoders refuse shared memory. It was verified when it was read into memory.
    return new Uint8Array(handle.payloadBytes, from - start + CHECK_BYTES, to - from - CHECK_BYTES).slice();
  }
  return verifiedText(handle, row, openPayload(handle).read(from, to));
}

/** Texts by place in a list of rows. Each is valid until the next is asked for; empty for an empty payload. */
export type PayloadTexts = (place: number) => Uint8Array;

/** Bytes of a row's payload in its file. */
export function payloadBytesOf(handle: SegmentHandle, row: number): number {
  const offsets = offsetsOf(handle);
  return (offsets[row + 1] as number) - (offsets[row] as number);
}

/**
 * The texts of some rows of a sealed segment whose payloads are in its file, fewer than 2^20: read in the order of the file, near ones at once, and kept
 * together. One by one, rows that lie in another order took 5 µs each: an eighth of what it costs to merge segments.
 * Errors: as `readPayloadText`.
 */
export function readPayloadTexts(handle: SegmentHandle, rows: Uint32Array): PayloadTexts {
  const offsets = offsetsOf(handle);
  const starts = new Float64Array(rows.length + 1);
  rows.forEach((row, place) => {
    const bytes = (offsets[row + 1] as number) - (offsets[row] as number);
    starts[place + 1] = (starts[place] as number) + Math.max(0, bytes - CHECK_BYTES);
  });
  const texts = Buffer.allocUnsafeSlow(starts[rows.length] as number);
  const places = placesByRow(rows);
  const file = openPayload(handle);
  let room = Buffer.allocUnsafeSlow(READ_AHEAD_BYTES);
  for (let at = 0; at < places.length; ) {
    const rowAt = (index: number): number => rows[places[index] as number] as number;
    const from = offsets[rowAt(at)] as number;
    let to = offsets[rowAt(at) + 1] as number;
    let end = at + 1;
    for (; end < places.length; end++) {
      const row = rowAt(end);
      if ((offsets[row] as number) - to >= SCAN_GAP_BYTES || (offsets[row + 1] as number) - from > READ_AHEAD_BYTES) break;
      to = offsets[row + 1] as number;
    }
    if (room.length < to - from) room = Buffer.allocUnsafeSlow(to - from);
    const block = room.subarray(0, to - from);
    file.readInto(block, from);
    for (; at < end; at++) {
      const row = rowAt(at);
      const record = block.subarray((offsets[row] as number) - from, (offsets[row + 1] as number) - from);
      if (record.length > 0) texts.set(verifiedText(handle, row, record), starts[places[at] as number] as number);
    }
  }
  return (place) => texts.subarray(starts[place], starts[place + 1]);
}

/** The places of a list, in the order of the rows that it has there; fewer than 2^20. */
export function placesByRow(rows: Uint32Array): Uint32Array {
  const sorted = Float64Array.from(rows, (row, place) => row * PLACES_MAX + place).sort();
  return Uint32Array.from(sorted, (each) => each % PLACES_MAX);
}

/** Errors: `storage` where it does not match the checksum before it. */
function verifiedText(handle: SegmentHandle, row: number, record: Uint8Array): Uint8Array {
  const text = record.subarray(CHECK_BYTES);
  const stored =
    ((record[0] as number) | ((record[1] as number) << 8) | ((record[2] as number) << 16) | ((record[3] as number) << 24)) >>> 0;
  if (checksum32(text) !== stored)
    throw new DamagedFile(payloadFile(handle.folder as string), `checksum of the payload of row ${row} does not match`);
  return text;
}

/** The payloads of a sealed segment, for `SegmentHandle.payloadBytes`. folder: the segment's. Errors: `storage`. */
export function readPayloadBytes(folder: string): SharedArrayBuffer {
  return readSegmentFile(payloadFile(folder), 'payload', (reader) => reader.readShared('data'));
}

/** Closes what this thread has open of the segment; its files can go afterwards. */
export function closeSegmentFiles(handle: SegmentHandle): void {
  closeVectorFiles(handle);
  if (handle.payloadOffsets === null) return;
  const key = fileKey(handle);
  openFiles.get(key)?.close();
  openFiles.delete(key);
}

/** Payload files this thread has open. */
const openFiles = new Map<string, OpenPayload>();

/** An open payload file that reads ahead while records are asked for one after the other. */
class OpenPayload {
  private readonly fd: number;
  private block: Buffer = Buffer.alloc(0);
  private blockAt = 0;
  private lastEnd = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly file: string,
    private readonly dataEnd: number,
  ) {
    this.fd = openPlainFile(file);
  }

  read(from: number, to: number): Uint8Array {
    const scanning = from >= this.lastEnd && from - this.lastEnd < SCAN_GAP_BYTES;
    this.lastEnd = to;
    if (from >= this.blockAt && to <= this.blockAt + this.block.length) return this.block.subarray(from - this.blockAt, to - this.blockAt);
    const record = Buffer.allocUnsafe(scanning ? Math.min(Math.max(READ_AHEAD_BYTES, to - from), this.dataEnd - from) : to - from);
    readFully(this.fd, record, from, this.file);
    if (!scanning) return record;
    this.block = record;
    this.blockAt = from;
    return record.subarray(0, to - from);
  }

  readInto(target: Uint8Array, from: number): void {
    readFully(this.fd, target, from, this.file);
  }

  close(): void {
    fs.closeSync(this.fd);
  }
}

function openPayload(handle: SegmentHandle): OpenPayload {
  const key = fileKey(handle);
  const known = openFiles.get(key);
  if (known !== undefined) return known;
  const opened = new OpenPayload(payloadFile(handle.folder as string), offsetsOf(handle)[handle.rows] as number);
  openFiles.set(key, opened);
  return opened;
}

/** Folders of a collection that was deleted and made again have the same names, so the size is part of the key. */
function fileKey(handle: SegmentHandle): string {
  return `${handle.folder} ${handle.rows} ${offsetsOf(handle)[handle.rows]}`;
}

function* records(rows: number, textOf: (row: number) => Uint8Array, offsets: Float64Array, start: number): Generator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(WRITE_BUFFER_BYTES);
  let filled = 0;
  let at = start;
  for (let row = 0; row < rows; row++) {
    offsets[row] = at;
    const text = textOf(row);
    if (isEmpty(text)) continue;
    const bytes = CHECK_BYTES + text.length;
    if (filled + bytes > buffer.length) {
      yield buffer.subarray(0, filled);
      filled = 0;
    }
    const check = checksum32(text);
    if (bytes > buffer.length) {
      const head = Buffer.alloc(CHECK_BYTES);
      head.writeUInt32LE(check);
      yield head;
      yield text;
    } else {
      buffer.writeUInt32LE(check, filled);
      buffer.set(text, filled + CHECK_BYTES);
      filled += bytes;
    }
    at += bytes;
  }
  offsets[rows] = at;
  yield buffer.subarray(0, filled);
}

function isEmpty(text: Uint8Array): boolean {
  return text.length === 0 || (text.length === 2 && text[0] === 0x7b && text[1] === 0x7d);
}

/** Views are made once per handle and thread. */
const offsetViews = new WeakMap<SegmentHandle, Float64Array>();

function offsetsOf(handle: SegmentHandle): Float64Array {
  const known = offsetViews.get(handle);
  if (known !== undefined) return known;
  if (handle.payloadOffsets === null) throw new Error(`segment ${handle.id} has no payload file`);
  const view = new Float64Array(handle.payloadOffsets);
  offsetViews.set(handle, view);
  return view;
}
