/** Which node has which replica, as rows and columns, and what may be moved where. */

import type { CollectionCluster } from './api-types.js';

export interface MapReplica {
  readonly shardId: number;
  readonly shardKey: string | number | null;
  readonly peerId: number;
  readonly state: string;
  /** Only of replicas on the node that was asked. */
  readonly points: number | null;
}

export interface ShardRow {
  readonly shardId: number;
  readonly shardKey: string | number | null;
  readonly replicas: readonly MapReplica[];
}

export function replicasOf({ peer_id, local_shards, remote_shards }: CollectionCluster): MapReplica[] {
  const local = local_shards.map(({ shard_id, shard_key = null, state, points_count }): MapReplica => {
    return { shardId: shard_id, shardKey: shard_key, peerId: peer_id, state, points: points_count };
  });
  const remote = remote_shards.map(({ shard_id, shard_key = null, state, peer_id: peerId }): MapReplica => {
    return { shardId: shard_id, shardKey: shard_key, peerId, state, points: null };
  });
  return [...local, ...remote];
}

/** Sorted by shard. */
export function shardRows(cluster: CollectionCluster): ShardRow[] {
  const rows = new Map<number, MapReplica[]>();
  for (const replica of replicasOf(cluster)) rows.set(replica.shardId, [...(rows.get(replica.shardId) ?? []), replica]);
  return [...rows]
    .sort(([one], [other]) => one - other)
    .map(([shardId, replicas]) => ({ shardId, shardKey: (replicas[0] as MapReplica).shardKey, replicas }));
}

/** Why this replica cannot be moved to this peer; null: it can. */
export function moveRefusal(row: ShardRow, replica: MapReplica, peerId: number): string | null {
  if (replica.peerId === peerId) return 'It is there already.';
  if (row.replicas.some((other) => other.peerId === peerId)) return 'That node has a replica of this shard already.';
  if (replica.state !== 'Active') return `Only an Active replica can be moved; this one is ${replica.state}.`;
  return null;
}

/** "node 2" for the second of the peers, sorted by their address, so that everybody means the same one. */
export function peerNames(peers: Readonly<Record<string, { readonly uri: string }>>): Map<number, string> {
  const sorted = Object.entries(peers).sort(([, one], [, other]) => one.uri.localeCompare(other.uri, 'en', { numeric: true }));
  return new Map(sorted.map(([id], at) => [Number(id), `node ${at + 1}`]));
}
