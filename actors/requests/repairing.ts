/** `replicate_shard` to a peer that has the shard already: its replica is compared with the leader's, and what differs is repaired. */

import { isComparable } from '../../cluster/transfer/comparing.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionClusterUpdate } from '../../protocols/model/cluster.js';
import { recordOf } from '../consensus/proposals/prepare.js';
import type { Routes } from './routes.js';

/** Longer than a leader needs to note what it is asked for. */
const ASK_MS = 5000;

/**
 * Whether the operation was such a request, and the leader is going to carry it out. False: it is another one, or one that the cluster has
 * to refuse. The replica keeps serving meanwhile: a transfer would take it out of service, though nothing may be wrong with it.
 *
 * Errors: `wrongInput` if the replica is the leader's, with which all others are compared; those of the call.
 */
export async function repairedInstead(
  routes: Pick<Routes, 'assignments' | 'call'>,
  collection: string,
  operation: CollectionClusterUpdate,
  timeoutMs: number,
): Promise<boolean> {
  const { agreed } = routes.assignments;
  if (agreed === null || operation.kind !== 'replicateShard') return false;
  const { from, method, shardId, to, toShardId } = operation;
  if (toShardId !== null || from === to || method === 'resharding_stream_records') return false;
  const { name, record } = recordOf(collection, agreed);
  const shard = record.shards.get(shardId);
  const target = shard?.replicas.get(to);
  if (shard === undefined || target === undefined || !isComparable(target) || shard.replicas.get(from) !== 'Active') return false;
  const { leader, term } = shard;
  if (leader === null) throw new TroupeError('unavailable', `shard ${shardId} of collection ${name} has no leader now: repeat the request`);
  if (leader === to) {
    const detail = `the replica of shard ${shardId} on peer ${to} leads the shard, and all others are compared with it`;
    throw new TroupeError(
      'wrongInput',
      `${detail}: to fill it from another one, drop it with \`drop_replica\` first, then replicate the shard`,
    );
  }
  const address = { collection: name, uid: record.uid, shardId };
  await routes.call(leader, { kind: 'compareReplica', shard: address, term, peerId: to }, Math.min(ASK_MS, timeoutMs));
  return true;
}
