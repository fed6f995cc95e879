/** What all messages of protocols/peer/peer.proto are read and written with. */

import { BYTES, brokenMessage, VARINT, type WireReader } from '../../../protocols/grpc/wire-reader.js';
import type { WireWriter } from '../../../protocols/grpc/wire-writer.js';

/** Tags as the reader gives them: a field's number with its wire type. */
export const intTag = (field: number): number => field * 8 + VARINT;
export const bytesTag = (field: number): number => field * 8 + BYTES;

/** Reads the fields of a message up to the reader's end. read: false for a tag it doesn't know, whose value is stepped over. */
export function readFields(reader: WireReader, read: (tag: number) => boolean): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (!read(tag)) reader.skip(tag & 7);
  }
}

/** What `read` makes of the message at the cursor, which the cursor then stands behind. */
export function readMessage<T>(reader: WireReader, read: (reader: WireReader) => T): T {
  const to = reader.length();
  const { end } = reader;
  reader.end = to;
  const value = read(reader);
  reader.end = end;
  return value;
}

/** An empty message: later releases may fill it. */
export function readEmpty(reader: WireReader): void {
  readFields(reader, () => false);
}

/** An unsigned integer up to 2^53 - 1: all that peers count and name. */
export function readInt(reader: WireReader): number {
  const value = reader.uint64();
  if (typeof value !== 'number') throw brokenMessage('a number is beyond 2^53 - 1');
  return value;
}

/** Calls `write` for the fields, last to first. */
export function writeMessage(writer: WireWriter, field: number, write: () => void): void {
  const end = writer.endOf();
  write();
  writer.message(field, end);
}

export function writeEmpty(writer: WireWriter, field: number): void {
  writer.message(field, writer.endOf());
}

/** Writes a repeated field, last item to first. */
export function writeEach<T>(writer: WireWriter, field: number, items: readonly T[], write: (item: T) => void): void {
  for (let i = items.length - 1; i >= 0; i--) writeMessage(writer, field, () => write(items[i] as T));
}
