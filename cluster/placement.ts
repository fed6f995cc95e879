/** Where the replicas of new shards go. */

import type { PeerId } from '../protocols/model/cluster.js';
import type { Placement } from './operations.js';
import type { ClusterState } from './state.js';

export interface PlacementRequest {
  readonly shards: number;
  /** Replicas of each shard; as many as there are peers where there are fewer. */
  readonly replicationFactor: number;
  /** Peers to choose from; null: all members. */
  readonly peers: readonly PeerId[] | null;
}

/**
 * The peers of each of the new shards, each peer once per shard. Peers get equally many of the new replicas, give or take one;
 * those with the fewest so far in the whole cluster get the ones that are left over.
 */
export function placeShards(
  state: Pick<ClusterState, 'collections' | 'membership'>,
  { peers, replicationFactor, shards }: PlacementRequest,
): Placement {
  const before = replicasByPeer(state);
  const candidates = peers ?? state.membership.map(({ peerId }) => peerId);
  const loads = candidates.map((peerId) => ({ peerId, placed: 0, before: before.get(peerId) ?? 0 }));
  const replicas = Math.min(replicationFactor, loads.length);
  return Array.from({ length: shards }, () => {
    loads.sort((one, other) => one.placed - other.placed || one.before - other.before || one.peerId - other.peerId);
    const chosen = loads.slice(0, replicas);
    for (const load of chosen) load.placed += 1;
    return chosen.map(({ peerId }) => peerId);
  });
}

function replicasByPeer({ collections }: Pick<ClusterState, 'collections'>): Map<PeerId, number> {
  const counts = new Map<PeerId, number>();
  for (const { shards } of collections.values())
    for (const { replicas } of shards.values()) for (const peerId of replicas.keys()) counts.set(peerId, (counts.get(peerId) ?? 0) + 1);
  return counts;
}
