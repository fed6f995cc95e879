/** `update_collection_cluster`: the steps that some operations need before and after the cluster agrees on them. */

import type { ClusterApi } from '../consensus/cluster-api.js';
import { handOverFirst } from './dropping.js';
import { withLostReplicas } from './lost-replicas.js';
import { type IndexingParts, indexNewShards } from './new-shards.js';
import { repairedInstead } from './repairing.js';

/**
 * Wraps `agree` with additional steps:
 *
 * - `replicate_shard` to a peer that has the shard already is no matter for an agreement: the leader compares and repairs that replica;
 * - `drop_replica`: the replica first hands the lead of its shard over;
 * - `activate_replica`: first finds out which replicas are lost;
 * - `create_shard_key`: afterwards gives the new shards the payload indexes of the others.
 *
 * Errors: as `agree`; `unavailable` if a peer does not tell the state of its replica, or if an index could not be made.
 */
export function clusterUpdateInSteps(
  agree: ClusterApi['updateCollectionCluster'],
  parts: IndexingParts,
): ClusterApi['updateCollectionCluster'] {
  const { clock } = parts.routes;
  return async (collection, operation, timeoutMs) => {
    const endMs = clock.nowMs() + timeoutMs;
    if (await repairedInstead(parts.routes, collection, operation, timeoutMs)) return true;
    await handOverFirst(parts.routes, collection, operation, timeoutMs);
    const known = await withLostReplicas(parts, collection, operation, timeoutMs);
    const done = await agree(collection, known, Math.max(1, endMs - clock.nowMs()));
    await indexNewShards(parts, collection, operation, endMs);
    return done;
  };
}
