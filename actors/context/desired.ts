/** The collections that the cluster wants on this node; the node changes its own until they match. */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';

export interface Desired {
  /** Index of the last entry of Raft's log that this state includes. */
  readonly index: number;
  readonly clusterId: string;
  /** Peer id of this node. */
  readonly peerId: PeerId;
  readonly collections: ReadonlyMap<string, DesiredCollection>;
  readonly aliases: AliasMap;
}

export interface DesiredCollection {
  /** See `CollectionRecord`. */
  readonly uid: number;
  readonly revision: number;
  readonly config: CollectionConfig;
  /** Shards with a replica on this node, ascending; may be empty. */
  readonly shards: readonly ShardId[];
  /** `ShardRecord.since` of this node's replica of each of `shards`. */
  readonly since: readonly number[];
}

/** The part of a collection's `config.json` about the cluster that it belongs to. */
export interface Belonging {
  readonly clusterId: string;
  /** Peer id of the node that holds it. A node that was removed and joins again is another peer, and its old data do not belong to it. */
  readonly peerId: PeerId;
  readonly uid: number;
  readonly revision: number;
  readonly shards: readonly ShardId[];
  /** `since` of each of `shards`; 0 if it is not known, which matches any. Absent in files of earlier releases: none is known. */
  readonly since?: readonly number[];
  /** Index of the `Desired` that this was made for: an earlier one, from before a crash, does not undo it. */
  readonly index: number;
}

/** Whether a shard's files are those of the wanted replica, not of an earlier one on this node. */
export function isSameLife(
  belonging: Pick<Belonging, 'shards' | 'since'>,
  wanted: Required<Pick<Belonging, 'shards' | 'since'>>,
  shardId: ShardId,
): boolean {
  const here = belonging.since?.[belonging.shards.indexOf(shardId)] ?? 0;
  return here === 0 || here === wanted.since[wanted.shards.indexOf(shardId)];
}

/** `uid` of collections that a founder brought into its cluster: whole ones, and those of which it had only some shards. */
export const ADOPTED = 1;
export const ADOPTED_IN_PART = 0;

/**
 * Shards that a cluster has placed on other peers, as far as this node's own files tell. Empty for the files of a node without a cluster
 * (earlier releases held all points in shard 0, whatever `shard_number` said), and with shard keys, whose shards the files don't tell.
 */
export function shardsElsewhere(belonging: Belonging | null, { params }: CollectionConfig): ShardId[] {
  if (belonging === null || belonging.uid === ADOPTED || params.sharding_method === 'custom') return [];
  return Array.from({ length: params.shard_number }, (_, shardId) => shardId).filter((shardId) => !belonging.shards.includes(shardId));
}

/** The collections of this node when consensus starts: a founder takes them into the cluster. */
export interface LocalData {
  /** The collections whose `config.json` can be read. */
  readonly collections: readonly LocalCollection[];
  readonly aliases: AliasMap;
}

export interface LocalCollection {
  readonly name: string;
  readonly config: CollectionConfig;
  /** Null if the node had no cluster; then all shards are here. */
  readonly belonging: Belonging | null;
}

/** Collections of this node, by name, that become part of a cluster which it founds. */
export type Adoption = ReadonlyMap<string, Belonging>;

/** Messages of the node to consensus. */
export type NodeNews = { readonly kind: 'carriedOut' } & CarriedOut;

/**
 * Everything desired at `index` is in place, except for the failures. shardId: the replica that does not serve, or not yet, while the rest
 * of the collection is as desired; null if the collection is not as desired.
 */
export interface CarriedOut {
  readonly index: number;
  readonly failures: readonly {
    readonly collection: string;
    readonly uid: number;
    readonly shardId: ShardId | null;
    readonly detail: string;
  }[];
}
