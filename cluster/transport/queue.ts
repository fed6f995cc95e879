/** What waits to be sent to one peer, within bounds. */

import type { PeerMessage } from '../peer-messages.js';
import { messageBytes } from './codec/frames.js';

/** Above what Raft has under way to one follower (`appendsInFlightMax` of `appendBytesMax`). Payloads are those of the log, no copies. */
const QUEUE_BYTES_MAX = 64 << 20;
export const QUEUE_MESSAGES_MAX = 8192;
/** A frame is full from here on; one larger message goes alone. With Raft's largest entry it stays well below FRAME_BYTES_MAX. */
const FRAME_BYTES = 1 << 20;

/** Largest frame or request that is taken from the wire. Above Raft's `entryBytesMax` of 4 MiB and a full frame before it. */
export const FRAME_BYTES_MAX = 16 << 20;

/** Largest call or answer of one: above what a request of a client may be (`service.max_request_size_mb`) on most nodes. */
export const CALL_BYTES_MAX = 1 << 30;

export class OutgoingQueue {
  private waiting: PeerMessage[] = [];
  private bytes = 0;

  get size(): number {
    return this.waiting.length;
  }

  /** How many of them did not find room: the last ones. */
  push(messages: readonly PeerMessage[]): number {
    for (const [at, message] of messages.entries()) {
      const bytes = messageBytes(message);
      const isFull = this.waiting.length >= QUEUE_MESSAGES_MAX || this.bytes + bytes > QUEUE_BYTES_MAX;
      if (isFull || bytes > FRAME_BYTES_MAX / 2) return messages.length - at;
      this.waiting.push(message);
      this.bytes += bytes;
    }
    return 0;
  }

  /** The next frame's messages, oldest first; empty when nothing waits. */
  takeFrame(): readonly PeerMessage[] {
    let count = 0;
    let bytes = 0;
    for (; count < this.waiting.length; count++) {
      const next = messageBytes(this.waiting[count] as PeerMessage);
      if (count > 0 && bytes + next > FRAME_BYTES) break;
      bytes += next;
    }
    this.bytes -= bytes;
    if (count === this.waiting.length) {
      const all = this.waiting;
      this.waiting = [];
      return all;
    }
    return this.waiting.splice(0, count);
  }

  /** Drops all that waits; how many that were. */
  clear(): number {
    const { length } = this.waiting;
    this.waiting = [];
    this.bytes = 0;
    return length;
  }
}
