/** Decides which replicas of this node may be read, and whether a finished read counts. */

import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import { isSameLife } from './desired.js';
import type { NodeServices } from './services.js';
import { type CollectionEntry, STATE_ALONE } from './view.js';

export interface Readable {
  readonly key: ReplicaKey;
  /** See `ReplicationEntry.resets`. */
  readonly resets: number;
}

/**
 * Checks that a replica is the one that is meant. A replica that was dropped here and made again is another one: data for the old one's
 * files would be lost with them. since: of the replica that is meant. Errors: `conflict`.
 */
export function checkLife({ belonging, name }: Pick<CollectionEntry, 'belonging' | 'name'>, shardId: ShardId, since: number): void {
  if (belonging !== null && isSameLife(belonging, { shards: [shardId], since: [since] }, shardId)) return;
  throw new TroupeError('conflict', `the replica of shard ${shardId} of collection ${name} that is meant is not on this node, or not yet`, {
    reason: 'replicaNotHere',
  });
}

type Agreed = Pick<NodeServices, 'assignments'>;

/**
 * This node's replica of a shard, if it is Active here and in the agreed state; otherwise it may lack acknowledged operations, and the
 * result is null.
 */
export function readable({ assignments }: Agreed, entry: CollectionEntry, uid: number, shardId: ShardId): Readable | null {
  const replica = entry.replicas.get(shardId);
  if (replica?.state !== 'Serving' || !assignments.serves) return null;
  const agreed = assignments.of({ collection: entry.name, uid, shardId })?.replicas.get(assignments.peerId);
  return agreed === 'Active' ? { key: replica.key, resets: entry.replications.get(shardId)?.resets() ?? 0 } : null;
}

/**
 * This node's replicas of these shards. Errors: `unavailable` with the reason if one is Dead on this node; `conflict` if one is not
 * readable for now.
 */
export function readables(agreed: Agreed, entry: CollectionEntry, uid: number, shards: readonly ShardId[]): Readable[] {
  return shards.map((shardId) => {
    const found = readable(agreed, entry, uid, shardId);
    if (found !== null) return found;
    const where = `shard ${shardId} of collection ${entry.name}`;
    const replica = entry.replicas.get(shardId);
    if (replica !== undefined && replica.reason !== null && STATE_ALONE[replica.state] === 'Dead')
      throw new TroupeError('unavailable', `${where} on peer ${agreed.assignments.peerId}: ${replica.reason.detail}`);
    throw new TroupeError('conflict', `${where} serves no reads on this node now`, { reason: 'replicaNotServing' });
  });
}

/**
 * Checks replicas after they were read. While a read waited for a thread, a replica may have become Dead and been reset to a newer position
 * in the log to be filled; then it has less than its position says. Errors: `conflict`.
 */
export function checkRead(
  agreed: Agreed,
  entry: CollectionEntry,
  uid: number,
  shards: readonly ShardId[],
  before: readonly Readable[],
): void {
  readables(agreed, entry, uid, shards).forEach(({ key, resets }, at) => {
    if (before[at]?.key === key && before[at].resets === resets) return;
    throw new TroupeError('conflict', `shard ${shards[at]} of collection ${entry.name} was replaced on this node during the read: retry`, {
      reason: 'replicaNotServing',
    });
  });
}
