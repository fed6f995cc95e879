/** Who leads what, spread again: a node that was away leads nothing when it is back, as leaders stay as long as they can. */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state.js';
import { planDrain } from './drain.js';
import { othersActive, shardsOf } from './plan.js';

/** The lead of a shard that goes from one peer to another. */
export interface HandOver {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly from: PeerId;
  readonly to: PeerId;
  /** Of the shard: refused in another one. */
  readonly clock: number;
}

/** Whether nothing goes on by which points, and with them leaders, come to other peers. */
export function isAtRest({ collections, marks, plannedMoves }: ClusterState): boolean {
  if (plannedMoves.length > 0) return false;
  for (const { leaving } of marks.values()) if (leaving !== null) return false;
  for (const { keyCopy, resharding, transfers } of collections.values())
    if (keyCopy !== null || resharding !== null || transfers.length > 0) return false;
  return true;
}

/**
 * The hand-over that brings peers closest to leading equally many shards of a collection, and where no collection gains, of all: null
 * when none brings two peers closer. Each is a step of its own, after which the next one is found anew: so there is an end to it.
 */
export function planLeadership(state: ClusterState, isReachable: (peerId: PeerId) => boolean): HandOver | null {
  const counts = new LeadCounts(state);
  let best: { readonly handOver: HandOver; readonly gain: Gain } | null = null;
  for (const { id, name, record, shard } of shardsOf(state)) {
    const { leader: from } = shard;
    if (from === null || !isReachable(from)) continue;
    for (const to of heirs(state, shard, isReachable)) {
      const gain = counts.gainOf(record, from, to);
      if (gain.ofCollection < 0 || (gain.ofCollection === 0 && gain.ofAll <= 0)) continue;
      if (best !== null && !isMore(gain, best.gain)) continue;
      best = { handOver: { collection: name, uid: record.uid, shardId: id, from, to, clock: shard.term }, gain };
    }
  }
  return best?.handOver ?? null;
}

/** Of a peer that is drained, the next shard that it leads and whose replica there is dropped, not moved. Null: there is none. */
export function planLeaving(state: ClusterState, isReachable: (peerId: PeerId) => boolean): HandOver | null {
  for (const [peerId, { leaving }] of state.marks) {
    if (leaving !== 'drain' || !isReachable(peerId)) continue;
    for (const { collection, shardId, to } of planDrain(state, peerId).moves) {
      const handOver = to === null ? heirOf(state, { collection, shardId }, isReachable) : null;
      if (handOver?.from === peerId) return handOver;
    }
  }
  return null;
}

/** Who leads a shard best in the place of its leader: of the Active replicas' peers the one that leads least. Null: nobody could. */
export function heirOf(
  state: ClusterState,
  { collection, shardId }: { readonly collection: string; readonly shardId: ShardId },
  isReachable: (peerId: PeerId) => boolean,
): HandOver | null {
  const record = state.collections.get(collection);
  const shard = record?.shards.get(shardId);
  if (record === undefined || shard === undefined || shard.leader === null) return null;
  const from = shard.leader;
  const counts = new LeadCounts(state);
  let best: { readonly to: PeerId; readonly gain: Gain } | null = null;
  for (const to of heirs(state, shard, isReachable)) {
    const gain = counts.gainOf(record, from, to);
    if (best === null || isMore(gain, best.gain)) best = { to, gain };
  }
  return best === null ? null : { collection, uid: record.uid, shardId, from, to: best.to, clock: shard.term };
}

/** By how many more shards the giver leads than the taker would. */
interface Gain {
  readonly ofCollection: number;
  readonly ofAll: number;
}

function isMore(one: Gain, other: Gain): boolean {
  return one.ofCollection - other.ofCollection > 0 || (one.ofCollection === other.ofCollection && one.ofAll > other.ofAll);
}

/** In the order of their ids, so that a plan does not hang on how the state came to be. */
function heirs({ marks }: ClusterState, shard: ShardRecord, isReachable: (peerId: PeerId) => boolean): PeerId[] {
  if (shard.leader === null) return [];
  return othersActive(shard, shard.leader)
    .filter((peerId) => isReachable(peerId) && (marks.get(peerId)?.leaving ?? null) === null)
    .sort((one, other) => one - other);
}

/** How many shards each peer leads, in each collection and in all. */
class LeadCounts {
  readonly #ofAll = new Map<PeerId, number>();
  readonly #ofCollection = new Map<number, Map<PeerId, number>>();

  constructor({ collections }: ClusterState) {
    for (const { shards, uid } of collections.values()) {
      const counts = new Map<PeerId, number>();
      for (const { leader } of shards.values()) {
        if (leader === null) continue;
        counts.set(leader, (counts.get(leader) ?? 0) + 1);
        this.#ofAll.set(leader, (this.#ofAll.get(leader) ?? 0) + 1);
      }
      this.#ofCollection.set(uid, counts);
    }
  }

  gainOf({ uid }: CollectionRecord, from: PeerId, to: PeerId): Gain {
    const gain = (counts: ReadonlyMap<PeerId, number>) => (counts.get(from) ?? 0) - (counts.get(to) ?? 0) - 1;
    return { ofCollection: gain(this.#ofCollection.get(uid) ?? new Map()), ofAll: gain(this.#ofAll) };
  }
}
