/** The part of a collection that a read is for, where it names shard keys. */

import { TroupeError } from '../../../protocols/errors.js';
import type { KeyedShard, ShardKeySelector } from '../../../protocols/model/cluster.js';
import { selectShards } from '../../sharding/keys.js';
import type { ReplicaSnapshot } from './snapshot-view.js';

/**
 * Snapshots of the chosen shards among those of all. keyed: the collection's shards with their keys; undefined: it has no keys.
 * Errors: `badRequest` for a key that no shard has; `unavailable` when a chosen shard is not here.
 */
export function chosenSnapshots(
  snapshots: readonly ReplicaSnapshot[],
  keyed: readonly KeyedShard[] | undefined,
  selector: ShardKeySelector | undefined,
): readonly ReplicaSnapshot[] {
  if (selector === undefined) return snapshots;
  const chosen = new Set(selectShards(keyed ?? snapshots.map(({ shardId }) => ({ id: shardId, key: null })), selector));
  const here = snapshots.filter(({ shardId }) => chosen.has(shardId));
  if (here.length < chosen.size) {
    throw new TroupeError('unavailable', 'the shards of these shard keys are not open on this node: retry', { retryAfterMs: 1000 });
  }
  return here;
}
