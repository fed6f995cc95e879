/**
 * The bytes of a request as they come, in a buffer of their own that grows with them: a length that a client announces costs nothing before
 * its bytes are there. What the buffer takes is counted in the ledger, over all connections.
 */

import type { Ledger } from '../../storage/memory/shared-ledger.js';

/** Memory for more than this is only taken as bytes come. */
const FIRST_BYTES = 16_384;
/** A body is copied as often as it outgrows its buffer: with this factor a third of it in all. */
const GROWTH = 4;
/** Until something comes. It is never given away, as what is given to another thread is lost to this one. */
const NOTHING = Buffer.alloc(0);

export class GrowingBytes {
  /** Its first `filled` bytes have come. */
  buffer: Buffer<ArrayBuffer>;
  filled = 0;
  #reserved = 0;

  /** length: of the whole body in bytes, or the most that it may be. */
  constructor(
    private readonly ledger: Ledger,
    readonly length: number,
  ) {
    this.buffer = length === 0 ? Buffer.allocUnsafeSlow(0) : NOTHING;
  }

  get isWhole(): boolean {
    return this.filled === this.length;
  }

  /** Makes room for at least one more byte if the body is not whole. False: there is no memory for it. */
  makeRoom(): boolean {
    return this.isWhole || this.filled < this.buffer.length || this.#grow(this.filled + 1);
  }

  /** Copies bytes; what belongs to the body must have come whole before it is too long. False: there is no memory for them. */
  add(bytes: Uint8Array): boolean {
    const needed = this.filled + bytes.length;
    if (needed > this.buffer.length && !this.#grow(needed)) return false;
    this.buffer.set(bytes, this.filled);
    this.filled = needed;
    return true;
  }

  /** The bytes that have come, in a buffer that holds nothing else. */
  bytes(): Buffer {
    if (this.filled === this.buffer.length && this.buffer !== NOTHING) return this.buffer;
    const bytes = Buffer.allocUnsafeSlow(this.filled);
    this.buffer.copy(bytes, 0, 0, this.filled);
    return bytes;
  }

  /** The body is not needed any more, here or wherever it was given. */
  release(): void {
    this.ledger.release('bodies', this.#reserved);
    this.#reserved = 0;
    // Nothing where it was given to another thread.
    this.ledger.left.add(this.buffer.length);
    this.buffer = NOTHING;
  }

  #grow(needed: number): boolean {
    const size = Math.min(this.length, Math.max(needed, FIRST_BYTES, this.buffer.length * GROWTH));
    if (!this.ledger.reserve('bodies', size)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    this.buffer.copy(larger, 0, 0, this.filled);
    if (this.buffer !== NOTHING) freeNow(this.buffer.buffer);
    this.buffer = larger;
    this.ledger.release('bodies', this.#reserved);
    this.#reserved = size;
    return true;
  }
}

/** Frees memory that nobody uses any more, before a garbage collection would, where the runtime can. */
function freeNow(memory: ArrayBuffer): void {
  (memory as { transfer?(bytes: number): ArrayBuffer }).transfer?.(0);
}
