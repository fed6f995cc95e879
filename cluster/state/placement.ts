/** Chooses the peers of new shards' replicas. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { Placement } from './commands.js';
import { type ClusterState, NO_MARK } from './state.js';

export interface PlacementRequest {
  readonly shards: number;
  /** Replicas of each shard; if there are fewer peers, one on each peer. */
  readonly replicationFactor: number;
  /** Peers to choose from; null for all members. */
  readonly peers: readonly PeerId[] | null;
}

/** Peers that may get new replicas: all but those that leave. listens: true for peers that only listen, false for the others. */
export function hostsOf({ marks, membership }: Pick<ClusterState, 'marks' | 'membership'>, listens: boolean): PeerId[] {
  const hosts = membership.map(({ peerId }) => peerId);
  return hosts.filter((peerId) => {
    const mark = marks.get(peerId) ?? NO_MARK;
    return mark.leaving === null && mark.listens === listens;
  });
}

/**
 * The peers of each new shard, each peer at most once per shard. All peers get the same number of new replicas, plus or minus one; peers
 * with the fewest replicas in the cluster get the rest. Peers that only listen get a replica of every shard in addition.
 */
export function placeShards(
  state: Pick<ClusterState, 'collections' | 'marks' | 'membership'>,
  { peers, replicationFactor, shards }: PlacementRequest,
): Placement {
  const before = replicasByPeer(state);
  const isChosen = (peerId: PeerId) => peers === null || peers.includes(peerId);
  const candidates = hostsOf(state, false).filter(isChosen);
  const listeners = hostsOf(state, true).filter(isChosen);
  const loads = candidates.map((peerId) => ({ peerId, placed: 0, before: before.get(peerId) ?? 0 }));
  const replicas = Math.min(replicationFactor, loads.length);
  return Array.from({ length: shards }, () => {
    loads.sort((one, other) => one.placed - other.placed || one.before - other.before || one.peerId - other.peerId);
    const chosen = loads.slice(0, replicas);
    for (const load of chosen) load.placed += 1;
    return [...chosen.map(({ peerId }) => peerId), ...listeners];
  });
}

export function replicasByPeer({ collections }: Pick<ClusterState, 'collections'>): Map<PeerId, number> {
  const counts = new Map<PeerId, number>();
  for (const { shards } of collections.values())
    for (const { replicas } of shards.values()) for (const peerId of replicas.keys()) counts.set(peerId, (counts.get(peerId) ?? 0) + 1);
  return counts;
}
