/** The last field of an answer's message: the time it took. */

import type { MessageType } from '../../protocols/grpc/schema.js';

const FIXED64 = 1;

/** The tag of the answer's `time`; null when it has none. */
export function timeTag(type: MessageType): number | null {
  const field = type.fields.find(({ name }) => name === 'time');
  return field === undefined ? null : (field.number << 3) | FIXED64;
}

/** The answer's time in seconds, as its last field: fields may come in any order. */
export function timeField(tag: number, milliseconds: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(9);
  bytes[0] = tag;
  bytes.writeDoubleLE(milliseconds / 1000, 1);
  return bytes;
}
