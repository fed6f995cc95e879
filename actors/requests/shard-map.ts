/** Requests carry the shard map version that they were spread by; a node that knows another version refuses them (Migr-D2 of cluster/apply/migration.ts). */

import type { CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';

const OTHER_SHARD_MAP = 'is spread over other shards than';

/** Errors: `conflict`. */
export function checkShardMapVersion({ shardMapVersion }: CollectionRecord, collection: string, asked: number): void {
  if (shardMapVersion === asked) return;
  throw new TroupeError('conflict', `collection ${collection} ${OTHER_SHARD_MAP} the caller knows (${shardMapVersion}, ${asked})`);
}

/** Whether the asked node knows another shard map version: nothing was done, and both nodes will soon know the same one. */
export function isShardMapChanged(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'conflict' && error.detail.includes(OTHER_SHARD_MAP);
}

/** A copy that comes behind a later one of its shard (Migr-D4 of actors/migration/mover.ts). */
export function lateCopy(shardId: ShardId): TroupeError {
  return new TroupeError('conflict', `points of shard ${shardId} ${LATE}`);
}

export function isLateCopy(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'conflict' && error.detail.endsWith(LATE);
}

const LATE = 'come late: others were copied since';

/** Parts of a request may have been carried out by an old shard map version: only the client can know whether to do it again. */
export class ShardMapChanged extends TroupeError {
  constructor(collection: string) {
    const detail = `collection ${collection} was resharded in this moment; parts of the write may have been carried out: do it again`;
    super('unavailable', detail, { retryAfterMs: 100 });
    this.name = 'ShardMapChanged';
  }
}
