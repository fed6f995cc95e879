/** How much disk and memory collections take on this node. */

import type { ReplicaStats } from '../../storage/threads/messages.js';

export interface CollectionSizes {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** With a series of their own in a database of metrics: those that take most. */
export const SIZES_SHOWN_MAX = 1000;

export function takenBy(replicas: readonly ReplicaStats[]): CollectionSizes {
  let memoryBytes = 0;
  let diskBytes = 0;
  for (const { database, segments, walBytes } of replicas) {
    diskBytes += walBytes + (database?.bytes ?? 0);
    for (const segment of segments) {
      memoryBytes += segment.memoryBytes ?? 0;
      diskBytes += segment.diskBytes ?? 0;
    }
  }
  return { memoryBytes, diskBytes };
}

/** The largest `countMax` by disk, largest first, and the sum of all others; null: there are none. */
export function largest<Sized extends CollectionSizes>(
  all: readonly Sized[],
  countMax: number,
): { readonly shown: readonly Sized[]; readonly others: CollectionSizes | null } {
  const sorted = [...all].sort((one, other) => other.diskBytes - one.diskBytes);
  const rest = sorted.slice(countMax);
  const sum = (of: (sizes: CollectionSizes) => number) => rest.reduce((total, sizes) => total + of(sizes), 0);
  const others = { memoryBytes: sum(({ memoryBytes }) => memoryBytes), diskBytes: sum(({ diskBytes }) => diskBytes) };
  return { shown: sorted.slice(0, countMax), others: rest.length === 0 ? null : others };
}
