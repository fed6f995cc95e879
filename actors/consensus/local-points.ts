/** Which collections' points this node can serve by itself. */

import type { ClusterState } from '../../cluster/state.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';

/** Null: those whose shards have no keys and one replica each, on this node, and what the cluster knows nothing of. */
export function refusedPoints(agreed: ClusterState, self: PeerId, name: string): ErrorFacts | null {
  const own = agreed.collections.has(name) ? name : agreed.aliases.get(name);
  const record = own === undefined ? undefined : agreed.collections.get(own);
  if (record === undefined) return null;
  const { config, shards } = record;
  if (shards.size === 0) {
    return { code: 'wrongInput', detail: `collection ${own} has no shards: create a shard key first` };
  }
  const custom = config.params.sharding_method === 'custom';
  const all = [...shards.values()];
  if (!custom && all.every(({ replicas }) => replicas.size === 1 && replicas.has(self))) return null;
  const lost = [...shards].flatMap(([shardId, { replicas }]) => (replicas.size === 0 ? [shardId] : []));
  if (lost.length > 0) {
    const which = lost.length === 1 ? `shard ${lost[0]} is` : `shards ${lost.join(', ')} are`;
    const detail = `collection ${own} is not whole: its ${which} on no peer of the cluster. Delete it and upload its points again`;
    return { code: 'unavailable', detail };
  }
  const uris = new Map(agreed.membership.map(({ peerId, uri }) => [peerId, uri]));
  const peers = (ids: Iterable<PeerId>): string => [...ids].map((id) => `peer ${id} (${uris.get(id)})`).join(' and ') || 'no peer';
  const held = [...shards].map(([shardId, { replicas }]) => `shard ${shardId} on ${peers(replicas.keys())}`).join(', ');
  const [holder] = all[0]?.replicas.keys() ?? [];
  const simple = !custom && all.every(({ replicas }) => replicas.size === 1 && replicas.has(holder as PeerId));
  const detail = simple
    ? `collection ${own} has its points elsewhere: ${held}. Ask that peer; requests are passed on between peers in the next release`
    : `points of collection ${own}, which ${custom ? 'has shard keys' : 'is spread over peers'}: ${held}. This release serves points where a ` +
      'collection has all its shards on one peer, with one replica each (create it with "shard_number": 1, "replication_factor": 1), on that peer';
  return { code: 'unsupported', detail };
}
