/** Which follower's digest is compared with its leader's next, in the background or because somebody asked for it. */

import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterState } from '../state/state.js';
import { replicaName } from './healing.js';

/** Two Active replicas of a shard: the leader's is on this node. */
export interface Comparison {
  readonly name: string;
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly peerId: PeerId;
}

/** Ticks at which replicas were last compared, by name. */
export type ComparedAt = ReadonlyMap<string, number>;

/**
 * The one that waited longest, if it is due; null: none is. A replica that was never seen before is due after a period, from
 * `since`, as what was just made or brought over was compared then. Shards with a transfer are left to it.
 */
export function nextComparison(
  agreed: ClusterState,
  self: PeerId,
  compared: ComparedAt,
  periodTicks: number,
  tick: number,
): Comparison | null {
  let oldest: Comparison | null = null;
  let oldestTick = tick - periodTicks;
  for (const comparison of comparisons(agreed, self)) {
    const at = compared.get(comparison.name) ?? tick;
    if (at > oldestTick) continue;
    if (oldest !== null && at === oldestTick) continue;
    oldest = comparison;
    oldestTick = at;
  }
  return oldest;
}

/** `compared` with new replicas as of now, without those that are gone. */
export function followReplicas(agreed: ClusterState, self: PeerId, compared: ComparedAt, tick: number): ComparedAt {
  const next = new Map<string, number>();
  for (const { name } of comparisons(agreed, self)) next.set(name, compared.get(name) ?? tick);
  return next;
}

/**
 * What became of comparisons that were asked for, as `replicate_shard` to a peer that has the shard already does. asked: names, oldest
 * first. next: the first one that can be made now; null: none can. over: nobody has to make them here any more, as another peer leads the
 * shard, or as the replica is gone, or is Dead and gets a transfer.
 */
export function askedComparisons(
  agreed: ClusterState,
  self: PeerId,
  asked: ReadonlySet<string>,
): { readonly next: Comparison | null; readonly over: readonly string[] } {
  if (asked.size === 0) return { next: null, over: [] };
  const possible = new Map<string, Comparison | 'later'>();
  for (const [collection, { shards, transfers, uid }] of agreed.collections) {
    for (const [shardId, { leader, replicas }] of shards) {
      if (leader !== self) continue;
      const waits = transfers.some((transfer) => transfer.shardId === shardId);
      for (const [peerId, state] of replicas) {
        const name = replicaName(uid, shardId, peerId);
        if (asked.has(name) && peerId !== self && isComparable(state))
          possible.set(name, waits ? 'later' : { name, collection, uid, shardId, peerId });
      }
    }
  }
  const next = [...asked].map((name) => possible.get(name)).find((found) => found !== undefined && found !== 'later');
  return { next: next ?? null, over: [...asked].filter((name) => !possible.has(name)) };
}

/** Whether a replica gets every write, so that it can be compared with its leader's. */
export function isComparable(state: ReplicaState): boolean {
  return state === 'Active' || state === 'Listener';
}

function* comparisons(agreed: ClusterState, self: PeerId): Generator<Comparison> {
  for (const [collection, { shards, transfers, uid }] of agreed.collections) {
    for (const [shardId, { leader, replicas }] of shards) {
      if (leader !== self || transfers.some((transfer) => transfer.shardId === shardId)) continue;
      for (const [peerId, state] of replicas) {
        if (peerId === self || state !== 'Active') continue;
        yield { name: replicaName(uid, shardId, peerId), collection, uid, shardId, peerId };
      }
    }
  }
}
