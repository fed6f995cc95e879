/** Decides which replicas become Dead, so that the others go on without them. */

import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { ReplicaChange } from './commands.js';
import type { ClusterState, CollectionRecord, ShardRecord } from './state.js';

/** Whether a replica is lost: its peer is silent, or reports that the replica does not serve. */
export type IsLost = (collection: string, record: CollectionRecord, shardId: ShardId, peerId: PeerId) => boolean;

/**
 * Changes that make lost replicas Dead, at most `max` of them. A shard without an Active replica on a healthy peer stays as it is: only its
 * lost replicas have everything that was acknowledged, and they may come back with it.
 */
export function deathsOf(
  { collections }: Pick<ClusterState, 'collections'>,
  isLost: IsLost,
  max: number,
  isWell: (peerId: PeerId) => boolean = () => true,
): ReplicaChange[] {
  const changes: ReplicaChange[] = [];
  for (const [collection, record] of collections) {
    for (const [shardId, { replicas, term }] of record.shards) {
      const lost = [...replicas].filter(([peerId, state]) => state !== 'Dead' && isLost(collection, record, shardId, peerId));
      if (lost.length === 0 || !hasOtherActive(replicas, lost, isWell)) continue;
      for (const [peerId, from] of lost) {
        if (changes.length >= max) return changes;
        changes.push({ collection, uid: record.uid, shardId, peerId, from, to: 'Dead', term });
      }
    }
  }
  return changes;
}

function hasOtherActive(
  replicas: ShardRecord['replicas'],
  lost: readonly (readonly [PeerId, ReplicaState])[],
  isWell: (peerId: PeerId) => boolean,
): boolean {
  return [...replicas].some(([peerId, state]) => state === 'Active' && isWell(peerId) && lost.every(([other]) => other !== peerId));
}
