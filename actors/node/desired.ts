/** What the cluster wants of this node's collections: where it differs from what is there, the node makes it so. */

import type { AliasMap } from '../../protocols/model/alias.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';

export interface Desired {
  /** Index of the log's entry that this is the state after. */
  readonly index: number;
  readonly clusterId: string;
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
}

/** What a collection's `config.json` says of the cluster that it belongs to. */
export interface Belonging {
  readonly clusterId: string;
  readonly uid: number;
  readonly revision: number;
  readonly shards: readonly ShardId[];
}

/** Everything desired at `index` is there, but for these. */
export interface CarriedOut {
  readonly index: number;
  readonly failures: readonly {
    readonly collection: string;
    readonly uid: number;
    readonly shardId: ShardId | null;
    readonly detail: string;
  }[];
}
