/** Finds replicas that are agreed to be Active but cannot be used, before another replica is activated without them. */

import { LostAnswer, NotReached } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionClusterUpdate, PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PointsParts } from './points.js';
import type { Routes } from './routes.js';

const ASK_MS = 2000;

interface OneShard {
  readonly collection: string;
  readonly uid: number;
  readonly shards: readonly [ShardId];
}

/**
 * The command; an `activateReplica` gets the list of lost replicas. Errors: `unavailable` if a peer does not tell the state of its replica.
 */
export async function withLostReplicas(
  parts: Pick<PointsParts, 'find' | 'routes'>,
  collection: string,
  operation: CollectionClusterUpdate,
  timeoutMs: number,
): Promise<CollectionClusterUpdate> {
  if (operation.kind !== 'activateReplica') return operation;
  await parts.routes.barrier(timeoutMs);
  return { ...operation, lost: await lostPeers(parts, collection, operation) };
}

async function lostPeers(
  { find, routes }: Pick<PointsParts, 'find' | 'routes'>,
  collection: string,
  { shardId }: Extract<CollectionClusterUpdate, { kind: 'activateReplica' }>,
): Promise<PeerId[]> {
  const { name, record } = find(collection);
  const active = [...(record.shards.get(shardId)?.replicas ?? [])].filter(([, state]) => state === 'Active').map(([peer]) => peer);
  const asked = active.map(async (peer) =>
    (await isLost(routes, { collection: name, uid: record.uid, shards: [shardId] }, peer)) ? [peer] : [],
  );
  return (await Promise.all(asked)).flat();
}

/** Whether the peer says that its replica cannot be used, and why. A starting peer serves nothing either, but does not say this. */
async function isLost(routes: Routes, shard: OneShard, peer: PeerId): Promise<boolean> {
  try {
    const answer = await routes.call(peer, { kind: 'figures', ...shard }, ASK_MS);
    const isBroken = answer.kind === 'figures' && answer.figures.every(({ error, status }) => status === 'red' && error !== null);
    return isBroken && (await routes.call(peer, { kind: 'reached', ...shard }, ASK_MS).then(() => false, isRefused));
  } catch (error) {
    const detail = `peer ${peer} has the Active replica and does not say how it is: start it, or remove it with \`force\` where it is gone for good`;
    throw new TroupeError('unavailable', detail, { cause: error });
  }
}

/** Whether the peer refuses because of its replica. If only the optimizer failed, the replica still serves. */
function isRefused(error: unknown): boolean {
  if (error instanceof NotReached || error instanceof LostAnswer) throw error;
  return true;
}
