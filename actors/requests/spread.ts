/** Chooses the peers that a read asks, and the shards of each. */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';

export interface Share {
  readonly peer: PeerId;
  readonly shards: readonly ShardId[];
}

/**
 * Assigns each shard to one peer, with few peers in all: to `first` (this node) what it has, then repeatedly to the peer that has most of
 * the rest. candidates: the peers that may be asked for each shard, at least one. drawn: a random number from 0 to 1, which chooses among
 * equals.
 */
export function spread(candidates: ReadonlyMap<ShardId, readonly PeerId[]>, first: PeerId, drawn: () => number): Share[] {
  const shares: Share[] = [];
  const left = new Map(candidates);
  while (left.size > 0) {
    const counts = new Map<PeerId, number>();
    for (const peers of left.values()) for (const peer of peers) counts.set(peer, (counts.get(peer) ?? 0) + 1);
    const peer = counts.has(first) ? first : most(counts, drawn);
    if (peer === null) break;
    const shards = [...left].filter(([, peers]) => peers.includes(peer)).map(([shardId]) => shardId);
    for (const shardId of shards) left.delete(shardId);
    shares.push({ peer, shards });
  }
  return shares;
}

function most(counts: ReadonlyMap<PeerId, number>, drawn: () => number): PeerId | null {
  const largest = Math.max(0, ...counts.values());
  const equals = [...counts.keys()].filter((peer) => counts.get(peer) === largest).sort((one, other) => one - other);
  return equals[Math.floor(drawn() * equals.length)] ?? null;
}

/** `count` items at random, in any order; all if there are fewer. drawn: a random number from 0 to 1. */
export function some<T>(all: readonly T[], count: number, drawn: () => number): T[] {
  const left = [...all];
  const chosen: T[] = [];
  while (chosen.length < count && left.length > 0) chosen.push(...left.splice(Math.floor(drawn() * left.length), 1));
  return chosen;
}
