/** A replica that leads its shard hands the lead over before it is dropped, so that no write is open then. */

import { heirOf } from '../../cluster/plans/leadership.js';
import type { ClusterSetup } from '../../protocols/model/cluster.js';
import type { ClusterApi } from '../cluster-api.js';
import { recordOf } from '../consensus/prepare.js';
import { HAND_OVER_MS } from '../transfers/start.js';
import type { Routes } from './routes.js';

/** The same as `api`, but for that. */
export function handingOverFirst(api: ClusterApi, routes: Routes): ClusterApi {
  return {
    ...api,
    setUp: async (collection, setup, timeoutMs) => {
      const endMs = routes.clock.nowMs() + timeoutMs;
      // Where it cannot hand over it is dropped all the same, and writes that are under way are open.
      if (setup.kind === 'dropReplica') await handOver(routes, collection, setup, timeoutMs).catch(() => {});
      return api.setUp(collection, setup, Math.max(1, endMs - routes.clock.nowMs()));
    },
  };
}

type Dropped = Extract<ClusterSetup, { kind: 'dropReplica' }>;

async function handOver(routes: Routes, collection: string, { peerId, shardId }: Dropped, timeoutMs: number): Promise<void> {
  const { agreed, connected, peerId: self } = routes.assignments;
  if (agreed === null) return;
  const { name } = recordOf(collection, agreed);
  const heir = heirOf(agreed, { collection: name, shardId }, (peer) => peer === self || connected.has(peer));
  if (heir === null || heir.from !== peerId) return;
  const { clock, to, uid } = heir;
  const shard = { collection: name, uid, shardId };
  await routes.call(peerId, { kind: 'handOver', shard, clock, to }, Math.min(HAND_OVER_MS, timeoutMs / 2));
}
