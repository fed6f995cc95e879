/** Which of a shard's nodes saves it, so that each shard is saved once at each turn of a plan. */

import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';

/**
 * The peer whose backups have a shard; null: nobody has it whole. By the shard's holders and not by its leader: a change of leader between the turns of two
 * nodes could leave a shard out. Shards of equal holders are spread over these. isReachable: whether this node knows the peer to run. Nodes that
 * differ about a peer save the shard twice; one that ended before its turn makes that up.
 */
export function backupHolder(
  shardId: ShardId,
  replicas: ReadonlyMap<PeerId, ReplicaState>,
  isReachable: (peer: PeerId) => boolean,
): PeerId | null {
  const holders = [...replicas.keys()].sort((one, other) => one - other);
  const first = holders.length === 0 ? 0 : shardId % holders.length;
  const inTurn = [...holders.slice(first), ...holders.slice(0, first)];
  return inTurn.find((peer) => replicas.get(peer) === 'Active' && isReachable(peer)) ?? null;
}
