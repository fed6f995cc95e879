/** How much disk and memory collections take on this node, and what readers keep of their filters. */

import type { ReplicaStats } from '../../storage/threads/messages.js';
import { type CacheFigures, NO_CACHE_FIGURES } from './filter-caches.js';

export interface CollectionSizes {
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly cache: CacheFigures;
}

export const NO_SIZES: CollectionSizes = { memoryBytes: 0, diskBytes: 0, cache: NO_CACHE_FIGURES };

/** With a series of their own in a database of metrics: those that take most. */
export const SIZES_SHOWN_MAX = 1000;

export function takenBy(replicas: readonly ReplicaStats[], cache: CacheFigures): CollectionSizes {
  let memoryBytes = 0;
  let diskBytes = 0;
  for (const { database, segments, walBytes } of replicas) {
    diskBytes += walBytes + (database?.bytes ?? 0);
    for (const segment of segments) {
      memoryBytes += segment.memoryBytes ?? 0;
      diskBytes += segment.diskBytes ?? 0;
    }
  }
  return { memoryBytes, diskBytes, cache };
}

/** The largest `countMax` by disk, largest first, and the sum of all others; null: there are none. */
export function largest<Sized extends CollectionSizes>(
  all: readonly Sized[],
  countMax: number,
): { readonly shown: readonly Sized[]; readonly others: CollectionSizes | null } {
  const sorted = [...all].sort((one, other) => other.diskBytes - one.diskBytes);
  const rest = sorted.slice(countMax);
  return { shown: sorted.slice(0, countMax), others: rest.length === 0 ? null : rest.reduce(together, NO_SIZES) };
}

function together(one: CollectionSizes, other: CollectionSizes): CollectionSizes {
  return {
    memoryBytes: one.memoryBytes + other.memoryBytes,
    diskBytes: one.diskBytes + other.diskBytes,
    cache: {
      bytes: one.cache.bytes + other.cache.bytes,
      hits: one.cache.hits + other.cache.hits,
      misses: one.cache.misses + other.cache.misses,
    },
  };
}
