/** Memory that went with replicas that were closed: small ones are collected together. */

import type { ReplicaStats } from '../threads/messages.js';

/** A collection that frees less is not worth its time (some milliseconds per 10 MB of heap, in every thread). */
const WORTH_BYTES = 8 << 20;
/** A sealed segment's objects, and the pages that it has touched, beside its vectors. */
const SEALED_BYTES = 64 << 10;
/** The objects of an appendable one: its memory is used again if it is small (`segment/shared-memory.ts`). */
const APPENDABLE_BYTES = 2 << 10;

export class FreedMemory {
  private bytes = 0;

  /** Whether a collection is worth its time, now that this replica goes too. stats: null for one that was never open. */
  isWorthCollecting(stats: ReplicaStats | null): boolean {
    for (const { kind, vectorBytes } of stats?.segments ?? [])
      this.bytes += vectorBytes + (kind === 'sealed' ? SEALED_BYTES : APPENDABLE_BYTES);
    if (this.bytes < WORTH_BYTES) return false;
    this.bytes = 0;
    return true;
  }
}
