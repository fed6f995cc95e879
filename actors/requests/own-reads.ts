/** Which collections a reader's thread may read for clients without asking the main thread. */

import { hidingRing, servingShards } from '../../cluster/apply/resharding.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { OwnCollection, OwnReads, ReplicaKey } from '../../storage/threads/messages.js';
import { readable } from '../context/readable.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import type { Found, Names } from './collection-names.js';
import { limitOf } from './limits/limits.js';

type Agreed = Pick<NodeServices, 'assignments'>;

/**
 * The collections that limit no reads and all of whose shards can be read here, by name and alias: on a node without a cluster they serve,
 * and in a cluster they have Active replicas on this node, and no points move between shards. About all others the main thread decides.
 */
export function ownReads(names: Names, agreed: Agreed): OwnReads {
  const reads = new Map<string, OwnCollection>();
  for (const name of names.list()) {
    const own = ownCollection(names.find(name), names, agreed);
    if (own !== null) reads.set(name, own);
  }
  for (const [alias, name] of names.aliases()) {
    const own = reads.get(name);
    // A collection's name has precedence over an alias.
    if (own !== undefined && names.find(alias).name === name) reads.set(alias, own);
  }
  return reads;
}

function ownCollection({ entry, name, record }: Found, names: Names, agreed: Agreed): OwnCollection | null {
  if (entry === null || entry.config === null || limitOf(entry.config, 'read') !== null) return null;
  if (record === null) {
    // A node of a cluster that has not heard of it yet knows nothing.
    const isOwn = agreed.assignments.isAlone && entry.belonging === null;
    const replicas = isOwn ? servingKeys(names, name) : null;
    return replicas && { replicas, isOfCluster: false };
  }
  const replicas = hidingRing(record) === null ? readableKeys(agreed, entry, record.uid, servingShards(record).keys()) : null;
  return replicas && { replicas, isOfCluster: true };
}

/** The replicas of all shards; null if one does not serve. */
function servingKeys(names: Names, name: string): ReplicaKey[] | null {
  const { entry, shards } = names.points(name);
  const keys: ReplicaKey[] = [];
  for (const shardId of shards) {
    const replica = entry.replicas.get(shardId);
    if (replica?.state !== 'Serving') return null;
    keys.push(replica.key);
  }
  return keys.length === 0 ? null : keys;
}

/** This node's replicas of all shards of a cluster's collection; null if one may not be read. */
function readableKeys(agreed: Agreed, entry: CollectionEntry, uid: number, shards: Iterable<ShardId>): ReplicaKey[] | null {
  const keys: ReplicaKey[] = [];
  for (const shardId of shards) {
    const replica = readable(agreed, entry, uid, shardId);
    if (replica === null) return null;
    keys.push(replica.key);
  }
  return keys.length === 0 ? null : keys;
}
