/** Memory that went with replicas that were closed: small ones are collected together. */

import type { ReplicaStats } from '../threads/messages.js';

/** A collection that frees less is not worth its time (some milliseconds per 10 MB of heap, in every thread). */
const WORTH_BYTES = 8 << 20;
/** A segment's objects, and the pages that it has touched, beside its vectors. */
const SEGMENT_BYTES = 64 << 10;

export class FreedMemory {
  private bytes = 0;

  /** Whether a collection is worth its time, now that this replica goes too. stats: null for one that was never open. */
  isWorthCollecting(stats: ReplicaStats | null): boolean {
    for (const { vectorBytes } of stats?.segments ?? []) this.bytes += vectorBytes + SEGMENT_BYTES;
    if (this.bytes < WORTH_BYTES) return false;
    this.bytes = 0;
    return true;
  }
}
