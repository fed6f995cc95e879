/**
 * Answers that a client does not take: counted in the ledger, over all connections. A connection ends when there is no memory for what waits on
 * it, or when it waits for too long.
 */

import type { Ledger } from '../../storage/memory/shared-ledger.js';

/** A little is always on its way. */
const COUNTED_FROM = 65_536;
/** A client may take this long, and longer for more bytes. */
const PATIENCE_MS = 60_000;
const SLOWEST_BYTES_PER_MS = 32;

export class UnsentBytes {
  #bytes = 0;
  /** When they began to wait. */
  #sinceMs = 0;

  constructor(private readonly ledger: Ledger) {}

  /** bytes: that wait now. False: there is no memory for them, and the connection should end. */
  set(bytes: number, nowMs: number): boolean {
    const counted = bytes < COUNTED_FROM ? 0 : bytes;
    if (counted === this.#bytes) return true;
    if (this.#bytes === 0) this.#sinceMs = nowMs;
    this.ledger.release('answers', this.#bytes);
    this.#bytes = counted;
    if (counted === 0 || this.ledger.reserve('answers', counted)) return true;
    this.#bytes = 0;
    return false;
  }

  /** Whether the client has not taken them for longer than it may. */
  isLate(nowMs: number): boolean {
    return this.#bytes > 0 && nowMs - this.#sinceMs > PATIENCE_MS + this.#bytes / SLOWEST_BYTES_PER_MS;
  }
}
