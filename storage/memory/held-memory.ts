/** What a thread needs for the requests that it works on: counted in the ledger. */

import { noRoomForRead, noRoomForRequest } from './ledger.js';
import type { Ledger } from './shared-ledger.js';

/** The ledger is asked for so much at a time, and never by a read that holds less. */
const STEP_BYTES = 1 << 18;
/** One read may have this part of the memory for requests. A reader's heap has the size of all of it (Memory-M5). */
const READ_SHARE = 0.5;

/** What one read of a thread gathers before its answer is on its way, counted while it grows. */
export class HeldMemory {
  #bytes = 0;
  #reserved = 0;

  constructor(private readonly ledger: Pick<Ledger, 'budget' | 'release' | 'reserve'>) {}

  /** Called before the read takes so much more. Errors: `busy`. */
  take(bytes: number): void {
    this.#bytes += bytes;
    const steps = Math.floor(this.#bytes / STEP_BYTES) * STEP_BYTES;
    if (steps <= this.#reserved) return;
    if (this.#bytes > this.ledger.budget.requestBytes * READ_SHARE) throw noRoomForRead();
    if (!this.ledger.reserve('reads', steps - this.#reserved)) throw noRoomForRequest('busy');
    this.#reserved = steps;
  }

  /** So much of it is free. It stays reserved, for what the read takes next. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The read is over. Bytes that were reserved for it. */
  release(): number {
    const reserved = this.#reserved;
    this.ledger.release('reads', reserved);
    this.#bytes = 0;
    this.#reserved = 0;
    return reserved;
  }
}

/** What becomes of large bodies of one read, or of writes that are carried out together (Memory-M7). */
export class HeldValues {
  #reserved = 0;

  constructor(private readonly ledger: Pick<Ledger, 'release' | 'reserve'>) {}

  /** Called before a body is decoded that takes so much. Errors: the code. */
  take(bytes: number, code: Parameters<typeof noRoomForRequest>[0]): void {
    const steps = Math.ceil(bytes / STEP_BYTES) * STEP_BYTES;
    if (!this.ledger.reserve('values', steps)) throw noRoomForRequest(code);
    this.#reserved += steps;
  }

  /** Nothing of them is needed any more. Bytes that were reserved. */
  release(): number {
    const reserved = this.#reserved;
    this.ledger.release('values', reserved);
    this.#reserved = 0;
    return reserved;
  }
}
