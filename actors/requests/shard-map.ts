/**
 * Requests carry the shard map version that they were split by; a node with another version refuses them (Migr-D2 of cluster/README.md).
 */

import type { CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';

/** Checks the version that a request was split by. Errors: `conflict` (`shardMapChanged`). */
export function checkShardMapVersion({ shardMapVersion }: CollectionRecord, collection: string, asked: number): void {
  if (shardMapVersion === asked) return;
  const detail = `shard map version of collection ${collection} is ${shardMapVersion} on this node, and the request was spread by version ${asked}`;
  throw new TroupeError('conflict', detail, { reason: 'shardMapChanged' });
}

/** The error for a copy that arrives after a later one of its shard (Migr-D4 of actors/README.md). */
export function staleCopy(shardId: ShardId): TroupeError {
  const detail = `points of shard ${shardId} come late: later ones were copied already`;
  return new TroupeError('conflict', detail, { reason: 'staleCopy' });
}

/** The error for a write whose collection was resharded meanwhile. mayBeWritten: shards may have taken parts of it by the old shard map. */
export function resharded(collection: string, mayBeWritten: boolean): TroupeError {
  const detail = `collection ${collection} was resharded while it was written to; send the write again`;
  return new TroupeError('unavailable', detail, {
    retryAfterMs: 100,
    reason: 'shardMapChanged',
    outcome: mayBeWritten ? 'unknown' : 'none',
  });
}
