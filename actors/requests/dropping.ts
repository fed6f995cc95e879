/** A replica that leads its shard hands the lead over before it is dropped, so that no write is open then. */

import { heirOf } from '../../cluster/plans/leadership.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionClusterUpdate, PeerId } from '../../protocols/model/cluster.js';
import { recordOf } from '../consensus/proposals/prepare.js';
import { HAND_OVER_MS } from '../transfers/start.js';
import type { Routes } from './routes.js';

/** Hands the lead over before a `dropReplica`; does nothing for other commands. timeoutMs: of the whole request. */
export async function handOverFirst(
  routes: Routes,
  collection: string,
  operation: CollectionClusterUpdate,
  timeoutMs: number,
): Promise<void> {
  if (operation.kind === 'dropReplica') await handOver(routes, collection, operation, routes.clock.nowMs() + (2 * timeoutMs) / 3);
}

type Dropped = Extract<CollectionClusterUpdate, { kind: 'dropReplica' }>;

/** For a leader that does not answer. One that does is asked again until the end: its writes, or its followers, need more time. */
const TRIES = 2;
const AGAIN_MS = 50;

/** If the lead cannot be handed over until `endMs`, the replica is dropped all the same, and the outcome of writes under way is unknown. */
async function handOver(routes: Routes, collection: string, dropped: Dropped, endMs: number): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const leftMs = endMs - routes.clock.nowMs();
    if (leftMs <= AGAIN_MS) return;
    try {
      await tryHandOver(routes, collection, dropped, leftMs);
      return;
    } catch (error) {
      if (tries >= TRIES && !isRefusal(error)) return;
      await routes.pause(AGAIN_MS);
    }
  }
}

/** Whether the leader answers that it cannot hand over now. */
function isRefusal(error: unknown): boolean {
  return error instanceof TroupeError && (error.code === 'busy' || error.code === 'conflict');
}

/** Asks the leader once to hand over. Errors: `notFound`; those of the call. */
async function tryHandOver(routes: Routes, collection: string, { peerId, shardId }: Dropped, timeoutMs: number): Promise<void> {
  const { agreed, connected, full, peerId: self } = routes.assignments;
  if (agreed === null) return;
  const { name } = recordOf(collection, agreed);
  const isReachable = (peer: PeerId) => peer === self || connected.has(peer);
  const heir = heirOf(agreed, { collection: name, shardId }, isReachable, (peer) => full.has(peer));
  if (heir === null || heir.from !== peerId) return;
  const { term, to, uid } = heir;
  const shard = { collection: name, uid, shardId };
  await routes.call(peerId, { kind: 'handOver', shard, term, to }, Math.min(HAND_OVER_MS, timeoutMs));
}
