/** Reads that are handed on as heavy, until their clients go away. */

import type { HeavyRead } from '../../storage/threads/messages.js';

export function heavyRead(): HeavyRead {
  return { gone: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) };
}

/** The thread that does the read stops soon, or does not begin. */
export function tellGone({ gone }: HeavyRead): void {
  Atomics.store(gone, 0, 1);
}
