/** Requests are spread over shards by a layout, and are refused by who knows another one (D2 of cluster/apply/point-flow.ts). */

import type { CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';

const OTHER_LAYOUT = 'is spread over other shards than';

/** Errors: `conflict`. */
export function checkLayout({ layout }: CollectionRecord, collection: string, asked: number): void {
  if (layout === asked) return;
  throw new TroupeError('conflict', `collection ${collection} ${OTHER_LAYOUT} the caller knows (${layout}, ${asked})`);
}

/** Whether somebody knows another layout: nothing was done, and what is agreed will be the same for both soon. */
export function isOtherLayout(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'conflict' && error.detail.includes(OTHER_LAYOUT);
}

/** A copy that comes behind a later one of its shard (D4 of actors/migration/mover.ts). */
export function lateCopy(shardId: ShardId): TroupeError {
  return new TroupeError('conflict', `points of shard ${shardId} ${LATE}`);
}

export function isLateCopy(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'conflict' && error.detail.endsWith(LATE);
}

const LATE = 'come late: others were copied since';

/** Parts of a request may have been carried out by a layout that is over: only its client can know whether to do it again. */
export class LayoutChanged extends TroupeError {
  constructor(collection: string) {
    const detail = `collection ${collection} was resharded in this moment; parts of the write may have been carried out: do it again`;
    super('unavailable', detail, { retryAfterMs: 100 });
    this.name = 'LayoutChanged';
  }
}
