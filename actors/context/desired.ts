/** What the cluster wants of this node's collections: where it differs from what is there, the node makes it so. */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';

export interface Desired {
  /** Index of the log's entry that this is the state after. */
  readonly index: number;
  readonly clusterId: string;
  /** Of this node. */
  readonly peerId: PeerId;
  readonly collections: ReadonlyMap<string, DesiredCollection>;
  readonly aliases: AliasMap;
}

export interface DesiredCollection {
  /** See `CollectionRecord`. */
  readonly uid: number;
  readonly revision: number;
  readonly config: CollectionConfig;
  /** Shards with a replica on this node, ascending; none is fine. */
  readonly shards: readonly ShardId[];
  /** `ShardRecord.since` of each of them on this node. */
  readonly since: readonly number[];
}

/** What a collection's `config.json` says of the cluster that it belongs to. */
export interface Belonging {
  readonly clusterId: string;
  /** Of the node that holds it: one that was removed and joins afresh is another peer, and its old data are foreign to it. */
  readonly peerId: PeerId;
  readonly uid: number;
  readonly revision: number;
  readonly shards: readonly ShardId[];
  /** Of each of them; 0: not known, and taken for the one that is wanted. Left out by earlier releases: none is known. */
  readonly since?: readonly number[];
  /** Index of the `Desired` that made it so: an earlier one, from before a crash, does not turn it back. */
  readonly index: number;
}

/** Whether files of a shard are those of the replica that is wanted, not of one that was on this node before. */
export function isSameLife(
  belonging: Pick<Belonging, 'shards' | 'since'>,
  wanted: Required<Pick<Belonging, 'shards' | 'since'>>,
  shardId: ShardId,
): boolean {
  const here = belonging.since?.[belonging.shards.indexOf(shardId)] ?? 0;
  return here === 0 || here === wanted.since[wanted.shards.indexOf(shardId)];
}

/** `uid` of what a founder brought with it: whole collections, and those of which it had some shards only. */
export const ADOPTED = 1;
export const ADOPTED_IN_PART = 0;

/**
 * Shards that a cluster has spread over other peers, as far as this node's own files tell: none where it is a node's of its own
 * (earlier releases held all of it as shard 0 whatever `shard_number` said), and none with shard keys, which they don't tell.
 */
export function shardsElsewhere(belonging: Belonging | null, { params }: CollectionConfig): ShardId[] {
  if (belonging === null || belonging.uid === ADOPTED || params.sharding_method === 'custom') return [];
  return Array.from({ length: params.shard_number }, (_, shardId) => shardId).filter((shardId) => !belonging.shards.includes(shardId));
}

/** What this node has when consensus starts: a founder takes it into the cluster. */
export interface LocalData {
  /** Those whose `config.json` can be read. */
  readonly collections: readonly LocalCollection[];
  readonly aliases: AliasMap;
}

export interface LocalCollection {
  readonly name: string;
  readonly config: CollectionConfig;
  /** Null: of a node of its own, with all its shards. */
  readonly belonging: Belonging | null;
}

/** Collections of this node, by name, that become those of a cluster which it founds. */
export type Adoption = ReadonlyMap<string, Belonging>;

/** What the node tells consensus. */
export type NodeNews = { readonly kind: 'carriedOut' } & CarriedOut;

/**
 * Everything desired at `index` is there, but for these. shardId: its replica does not serve, or not yet, and all else of the
 * collection is as desired; null: the collection is not.
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
