/** Puts together the one message of a unary call from the parts of its body. Source: gRPC over HTTP/2, «Length-Prefixed-Message». */

import type { Ledger } from '../../storage/memory/shared-ledger.js';
import { GrowingBytes } from '../context/growing-bytes.js';

/** One byte that says whether the message is compressed, four of its length. */
export const PREFIX_BYTES = 5;
export type MessageProblem =
  /** Its length, in bytes. */
  { readonly kind: 'tooLarge'; readonly bytes: number } | { readonly kind: 'second' } | { readonly kind: 'noRoom' };

export class MessageReader {
  compressed = false;
  private readonly prefix = Buffer.alloc(PREFIX_BYTES);
  private prefixBytes = 0;
  private body: GrowingBytes | null = null;

  constructor(private readonly ledger: Ledger) {}

  /** The message in a buffer of its own; null while it is not whole. */
  get message(): Buffer | null {
    return this.body?.isWhole === true ? this.body.buffer : null;
  }

  /** Takes a part, which is copied. */
  add(part: Buffer, bytesMax: number): MessageProblem | null {
    let at = 0;
    while (at < part.length) {
      if (this.prefixBytes < PREFIX_BYTES) {
        this.prefix[this.prefixBytes++] = part[at++] as number;
        if (this.prefixBytes < PREFIX_BYTES) continue;
        this.compressed = this.prefix[0] === 1;
        const length = this.prefix.readUInt32BE(1);
        if (length > bytesMax) return { kind: 'tooLarge', bytes: length };
        this.body = new GrowingBytes(this.ledger, length);
        continue;
      }
      const body = this.body as GrowingBytes;
      const bytes = Math.min(part.length - at, body.length - body.filled);
      if (bytes === 0) return { kind: 'second' };
      if (!body.add(part.subarray(at, at + bytes))) return { kind: 'noRoom' };
      at += bytes;
    }
    return null;
  }

  /** The message is not needed any more, here or wherever it was given. */
  release(): void {
    this.body?.release();
    this.body = null;
  }
}
