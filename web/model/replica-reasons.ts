/** Why a replica does not serve, in a sentence. */

import type { ShardTransfer } from './api-types.js';
import type { MapReplica } from './cluster-map.js';

export interface ReasonFacts {
  /** The other replicas of its shard. */
  readonly others: readonly Pick<MapReplica, 'state' | 'peerId'>[];
  /** Of its collection. */
  readonly transfers: readonly ShardTransfer[];
  /** Why its peer cannot be reached; null: it can, or nobody has tried. */
  readonly peerFailure: string | null;
  readonly nameOf: (peerId: number) => string;
}

/** Null for a replica that serves. */
export function replicaReason({ peerId, shardId, state }: MapReplica, facts: ReasonFacts): string | null {
  const { nameOf, others, peerFailure, transfers } = facts;
  const what = `Shard ${shardId} on ${nameOf(peerId)}`;
  if (state === 'Active') return null;
  if (state === 'Listener') return `${what} takes all writes and serves no reads: its node only listens.`;
  if (state === 'ActiveRead') return `${what} serves reads; its writes are not waited for yet.`;
  const transfer = transfers.find(({ shard_id, to }) => shard_id === shardId && to === peerId);
  if (transfer !== undefined) return `${what} is being filled from ${nameOf(transfer.from)}: ${howFar(transfer)}.`;
  if (peerFailure !== null)
    return `${what} is ${state}: its node cannot be reached (${peerFailure}). It gets what it lacks when the node is back.`;
  if (!others.some((other) => other.state === 'Active'))
    return state === 'Initializing'
      ? `${what} is being made or opened.`
      : `${what} is ${state}, and no replica of the shard is Active: nothing can fill it, and its points can be neither read nor written.`;
  switch (state) {
    case 'Dead':
      return `${what} is Dead, and its node is there: it waits for its turn to be filled, one transfer at a time goes to a node.`;
    case 'Initializing':
      return `${what} is being made or opened.`;
    case 'Resharding':
    case 'ReshardingScaleDown':
      return `${what} takes part in a change of the number of shards.`;
    default:
      return `${what} is ${state}: it has taken writes since its transfer began, and serves no reads until it has the rest.`;
  }
}

function howFar({ comment, method }: ShardTransfer): string {
  const by = method === undefined ? '' : `by ${method}, `;
  return `${by}${comment ?? 'the node that sends says how far it is'}`;
}
