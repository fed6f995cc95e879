/** `update_collection_cluster`: what some of its operations need before and after the cluster has agreed on them. */

import type { ClusterApi } from '../consensus/cluster-api.js';
import { handOverFirst } from './dropping.js';
import { withLostReplicas } from './lost-replicas.js';
import { type IndexingParts, indexNewShards } from './new-shards.js';

/**
 * - `drop_replica`: the replica hands the lead of its shard over first;
 * - `activate_replica`: it is found out first which replicas are lost;
 * - `create_shard_key`: the new shards get the payload indexes of the others afterwards.
 *
 * Errors: as `agree`; `unavailable` where a peer does not say how its replica is, and where an index could not be made.
 */
export function clusterUpdateInSteps(
  agree: ClusterApi['updateCollectionCluster'],
  parts: IndexingParts,
): ClusterApi['updateCollectionCluster'] {
  const { clock } = parts.routes;
  return async (collection, operation, timeoutMs) => {
    const endMs = clock.nowMs() + timeoutMs;
    await handOverFirst(parts.routes, collection, operation, timeoutMs);
    const known = await withLostReplicas(parts, collection, operation, timeoutMs);
    const done = await agree(collection, known, Math.max(1, endMs - clock.nowMs()));
    await indexNewShards(parts, collection, operation, endMs);
    return done;
  };
}
