/** Which collections a reader's thread may read for clients without asking the main thread. */

import type { OwnReads } from '../../storage/threads/messages.js';
import type { NodeView } from '../context/view.js';
import type { Names } from './collection-names.js';
import { limitOf } from './limits/limits.js';

/**
 * The collections of a node without a cluster of which every shard serves, and that limit no reads, by name and alias. About all others the
 * main thread decides.
 */
export function ownReads(names: Names, view: NodeView): OwnReads {
  const reads = new Map<string, readonly string[]>();
  for (const { belonging, config, name } of view.collections.values()) {
    const isOwn = config !== null && belonging === null && limitOf(config, 'read') === null;
    const keys = isOwn ? servingKeys(names, name) : null;
    if (keys !== null) reads.set(name, keys);
  }
  for (const [alias, name] of view.aliases) {
    const keys = reads.get(name);
    // A collection's name has precedence over an alias.
    if (keys !== undefined && !view.collections.has(alias)) reads.set(alias, keys);
  }
  return reads;
}

/** The replicas of all shards; null if one does not serve. */
function servingKeys(names: Names, name: string): string[] | null {
  const { entry, shards } = names.points(name);
  const keys: string[] = [];
  for (const shardId of shards) {
    const replica = entry.replicas.get(shardId);
    if (replica?.state !== 'Serving') return null;
    keys.push(replica.key);
  }
  return keys.length === 0 ? null : keys;
}
