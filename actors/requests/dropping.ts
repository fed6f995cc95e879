/** A replica that leads its shard hands the lead over before it is dropped, so that no write is open then. */

import { heirOf } from '../../cluster/plans/leadership.js';
import type { CollectionClusterUpdate } from '../../protocols/model/cluster.js';
import { recordOf } from '../consensus/proposals/prepare.js';
import { HAND_OVER_MS } from '../transfers/start.js';
import type { Routes } from './routes.js';

/** Of `dropReplica`; nothing happens for other operations. timeoutMs: of the whole operation. */
export async function handOverFirst(
  routes: Routes,
  collection: string,
  operation: CollectionClusterUpdate,
  timeoutMs: number,
): Promise<void> {
  if (operation.kind === 'dropReplica') await handOver(routes, collection, operation, routes.clock.nowMs() + (2 * timeoutMs) / 3);
}

type Dropped = Extract<CollectionClusterUpdate, { kind: 'dropReplica' }>;

const TRIES = 2;
const AGAIN_MS = 50;

/** Where it cannot hand over until `endMs` its replica is dropped all the same, and writes that are under way are open. */
async function handOver(routes: Routes, collection: string, dropped: Dropped, endMs: number): Promise<void> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const leftMs = endMs - routes.clock.nowMs();
    if (leftMs <= AGAIN_MS) return;
    try {
      await tryHandOver(routes, collection, dropped, leftMs);
      return;
    } catch {
      await routes.pause(AGAIN_MS);
    }
  }
}

/** Errors: `notFound`; those of the call. */
async function tryHandOver(routes: Routes, collection: string, { peerId, shardId }: Dropped, timeoutMs: number): Promise<void> {
  const { agreed, connected, peerId: self } = routes.assignments;
  if (agreed === null) return;
  const { name } = recordOf(collection, agreed);
  const heir = heirOf(agreed, { collection: name, shardId }, (peer) => peer === self || connected.has(peer));
  if (heir === null || heir.from !== peerId) return;
  const { term, to, uid } = heir;
  const shard = { collection: name, uid, shardId };
  await routes.call(peerId, { kind: 'handOver', shard, term, to }, Math.min(HAND_OVER_MS, timeoutMs));
}
