/** Messages that grow with the number of collections, encoded a part at a time. */

import type { LongWork } from '../../actors/runtime/long-works.js';
import { encodeMessage } from '../../protocols/grpc/encode.js';
import type { MessageType } from '../../protocols/grpc/schema.js';
import { LongList, type LongObject, plainCopy } from '../context/long-value.js';

/** Items of a list that are encoded in one step. */
const ITEMS_PER_PART = 64;

/**
 * The message in parts: the bytes of a message are those of its fields in any order, and of a repeated field its items one after the other.
 * value: the REST value in its place.
 */
export function* longMessage(type: MessageType, value: LongObject): LongWork<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for (const [name, member] of value.members) {
    if (!(member instanceof LongList)) {
      parts.push(encodeMessage(type, { [name]: yield* plainCopy(member) }));
      continue;
    }
    let items: unknown[] = [];
    for (const item of member.items) {
      items.push(yield* plainCopy(item));
      if (items.length < ITEMS_PER_PART) continue;
      parts.push(encodeMessage(type, { [name]: items }));
      items = [];
      yield;
    }
    parts.push(encodeMessage(type, { [name]: items }));
  }
  return parts;
}
