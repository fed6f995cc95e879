/** Which collections' points this node can serve by itself. */

import type { ClusterState } from '../../cluster/state.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';

/** Null: those of one shard without a key and with one replica, on this node, and what the cluster knows nothing of. */
export function refusedPoints(agreed: ClusterState, self: PeerId, name: string): ErrorFacts | null {
  const own = agreed.collections.has(name) ? name : agreed.aliases.get(name);
  const record = own === undefined ? undefined : agreed.collections.get(own);
  if (record === undefined) return null;
  const { config, shards } = record;
  if (shards.size === 0) {
    return { code: 'wrongInput', detail: `collection ${own} has no shards: create a shard key first` };
  }
  const [first] = shards.values();
  const custom = config.params.sharding_method === 'custom';
  if (!custom && shards.size === 1 && first?.replicas.size === 1 && first.replicas.has(self)) return null;
  const where = [...shards].map(([shardId, { replicas }]) => `shard ${shardId} on ${[...replicas.keys()].join(' and ') || 'no peer'}`);
  const detail =
    `points of collection ${own}, which ${custom ? 'has shard keys' : 'is spread over peers'}: ${where.join(', ')}. ` +
    'This release serves collections with one shard and one replica, on the peer that holds it; spreading points comes with the next one';
  return { code: 'unsupported', detail };
}
