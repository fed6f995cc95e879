/**
 * Who leads what, spread again: a node that was away leads nothing when it is back, as leaders stay as long as they can. A peer whose disk is
 * full leads nothing that another one could lead, as a leader refuses what it has no room for (Disk-D1).
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';
import { planDrain } from './drain.js';

/** The lead of a shard that goes from one peer to another. */
export interface HandOver {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly from: PeerId;
  readonly to: PeerId;
  /** Of the shard: refused in another one. */
  readonly term: number;
}

type IsPeer = (peerId: PeerId) => boolean;

const nobody: IsPeer = () => false;

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
export function planLeadership(state: ClusterState, isReachable: IsPeer, isFull: IsPeer = nobody): HandOver | null {
  const mayLead: IsPeer = (peerId) => isReachable(peerId) && !isFull(peerId);
  const ofAll = leadsOf(state.collections.values());
  let best: Candidate | null = null;
  for (const [collection, record] of state.collections) {
    const counts: LeadCounts = { ofAll, ofCollection: leadsOf([record]) };
    for (const [shardId, shard] of record.shards) {
      if (shard.leader === null || !isReachable(shard.leader)) continue;
      const candidate = bestOf(state, { collection, record, shardId, shard }, counts, mayLead);
      if (candidate === null || candidate.ofCollection < 0 || (candidate.ofCollection === 0 && candidate.ofAll <= 0)) continue;
      if (best === null || isBetter(candidate, best)) best = candidate;
    }
  }
  return best?.handOver ?? null;
}

/**
 * The hand-overs of shards whose leaders have full disks to peers that have room, so that their writes go on: `max` at most, and none that
 * `rests`, as it could not be handed over before. Shards that no other peer could lead stay where they are, so nothing is moved while all
 * are full. What was handed over comes back by `planLeadership` when there is room again.
 */
export function planFull(
  state: ClusterState,
  isReachable: IsPeer,
  isFull: IsPeer,
  max: number,
  rests: (handOver: HandOver) => boolean = () => false,
): HandOver[] {
  const mayLead: IsPeer = (peerId) => isReachable(peerId) && !isFull(peerId);
  const ofAll = leadsOf(state.collections.values());
  const handOvers: HandOver[] = [];
  for (const [collection, record] of state.collections) {
    const counts: LeadCounts = { ofAll, ofCollection: leadsOf([record]) };
    for (const [shardId, shard] of record.shards) {
      if (shard.leader === null || !isFull(shard.leader) || !isReachable(shard.leader)) continue;
      const handOver = bestOf(state, { collection, record, shardId, shard }, counts, mayLead)?.handOver;
      if (handOver === undefined || rests(handOver)) continue;
      if (handOvers.push(handOver) === max) return handOvers;
      // So that the next ones go to others.
      for (const each of [counts.ofAll, counts.ofCollection]) each.set(handOver.to, (each.get(handOver.to) ?? 0) + 1);
    }
  }
  return handOvers;
}

/**
 * Of a peer that is drained, the next shard that it leads and whose replica there is dropped, not moved; none that `rests`, as it could not be
 * handed over before. Null: there is none.
 */
export function planLeaving(
  state: ClusterState,
  isReachable: IsPeer,
  isFull: IsPeer = nobody,
  rests: (handOver: HandOver) => boolean = () => false,
): HandOver | null {
  for (const [peerId, { leaving }] of state.marks) {
    if (leaving !== 'drain' || !isReachable(peerId)) continue;
    for (const { collection, shardId, to } of planDrain(state, peerId).moves) {
      const handOver = to === null ? heirOf(state, { collection, shardId }, isReachable, isFull) : null;
      if (handOver?.from === peerId && !rests(handOver)) return handOver;
    }
  }
  return null;
}

/**
 * Who leads a shard best in the place of its leader: of the Active replicas' peers the one that leads least, and one with a full disk only where
 * all have. Null: nobody could.
 */
export function heirOf(
  state: ClusterState,
  { collection, shardId }: { readonly collection: string; readonly shardId: ShardId },
  isReachable: IsPeer,
  isFull: IsPeer = nobody,
): HandOver | null {
  const record = state.collections.get(collection);
  const shard = record?.shards.get(shardId);
  if (record === undefined || shard === undefined) return null;
  const counts = { ofAll: leadsOf(state.collections.values()), ofCollection: leadsOf([record]) };
  const bestBy = (mayLead: IsPeer) => bestOf(state, { collection, record, shardId, shard }, counts, mayLead);
  return (bestBy((peerId) => isReachable(peerId) && !isFull(peerId)) ?? bestBy(isReachable))?.handOver ?? null;
}

/** How many shards each peer leads. */
interface LeadCounts {
  readonly ofAll: Map<PeerId, number>;
  readonly ofCollection: Map<PeerId, number>;
}

/** With by how many more shards the giver leads than the taker would. */
interface Candidate {
  readonly handOver: HandOver;
  readonly ofAll: number;
  readonly ofCollection: number;
}

interface Place {
  readonly collection: string;
  readonly record: CollectionRecord;
  readonly shardId: ShardId;
  readonly shard: ShardRecord;
}

/** The peer that gains most by leading the shard; null: no other one can. */
function bestOf(
  { marks }: ClusterState,
  { collection, record, shard, shardId }: Place,
  { ofAll, ofCollection }: LeadCounts,
  mayLead: IsPeer,
): Candidate | null {
  const { leader: from, term } = shard;
  if (from === null) return null;
  const gain = (counts: ReadonlyMap<PeerId, number>, to: PeerId) => (counts.get(from) ?? 0) - (counts.get(to) ?? 0) - 1;
  let best: Candidate | null = null;
  for (const [to, replica] of shard.replicas) {
    if (to === from || replica !== 'Active' || !mayLead(to) || (marks.get(to)?.leaving ?? null) !== null) continue;
    const handOver = { collection, uid: record.uid, shardId, from, to, term };
    const candidate = { handOver, ofAll: gain(ofAll, to), ofCollection: gain(ofCollection, to) };
    if (best === null || isBetter(candidate, best)) best = candidate;
  }
  return best;
}

/** Equal ones in the order of their names, so that a plan does not hang on how the state came to be. */
function isBetter(one: Candidate, other: Candidate): boolean {
  if (one.ofCollection !== other.ofCollection) return one.ofCollection > other.ofCollection;
  if (one.ofAll !== other.ofAll) return one.ofAll > other.ofAll;
  const [mine, its] = [one.handOver, other.handOver];
  if (mine.collection !== its.collection) return mine.collection < its.collection;
  return mine.shardId === its.shardId ? mine.to < its.to : mine.shardId < its.shardId;
}

function leadsOf(records: Iterable<CollectionRecord>): Map<PeerId, number> {
  const counts = new Map<PeerId, number>();
  for (const { shards } of records) {
    for (const { leader } of shards.values()) if (leader !== null) counts.set(leader, (counts.get(leader) ?? 0) + 1);
  }
  return counts;
}
