/**
 * The text of a collection's `config.json`: `{"format":1,"checksum":"…","collection":{"name":…,"config":…,"belonging":…}}`; outside
 * of a cluster with `"shards":[…]` instead of `belonging`. Earlier releases wrote neither, and kept all points in shard 0.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { decodeChecked, encodeChecked } from '../../storage/disk/checked-file.js';
import type { Belonging } from '../context/desired.js';

export interface StoredCollection {
  readonly name: string;
  readonly config: CollectionConfig;
  /** The collection's identity in its cluster. Absent if it belongs to none; then all its shards are here. */
  readonly belonging?: Belonging | undefined;
}

export function encodeConfigFile(collection: StoredCollection): Uint8Array {
  const { name, config, belonging } = collection;
  return encodeChecked('collection', { name, config, ...(belonging === undefined ? { shards: ownShards(config) } : { belonging }) });
}

/** Decodes what `encodeConfigFile` wrote. Errors: `storage`, naming `path`, if a byte is missing or wrong or the format is another one. */
export function decodeConfigFile(bytes: Uint8Array, path: string): StoredCollection {
  const stored = decodeChecked(bytes, 'collection', path, "a collection's configuration") as StoredCollection & Partial<Shards>;
  const { belonging, config, name, shards } = stored;
  if (belonging !== undefined) return { name, config, belonging };
  return shards === undefined ? { name, config: { ...config, params: { ...config.params, shard_number: 1 } } } : { name, config };
}

/** The shards of a collection on a node without a cluster. It has no shard keys, so with custom sharding one shard has all points. */
export function ownShards({ params }: CollectionConfig): number[] {
  return Array.from({ length: params.sharding_method === 'custom' ? 1 : params.shard_number }, (_, shard) => shard);
}

interface Shards {
  readonly shards: readonly ShardId[];
}
