/** Agreed states for tests about transfers. */

import {
  type ClusterState,
  type CollectionRecord,
  emptyState,
  type ShardRecord,
  type TransferRecord,
} from '../../../cluster/state/state.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';

/** Shards by their replicas; the first one of each leads unless said otherwise. */
export function stateOf(
  shards: readonly Readonly<Record<number, ReplicaState>>[],
  transfers: readonly Partial<TransferRecord>[] = [],
  leaders: Readonly<Record<number, number | null>> = {},
): ClusterState {
  const record = {
    uid: 5,
    shards: new Map(shards.map((replicas, shardId) => [shardId, shardOf(replicas, leaders[shardId])])),
    transfers: transfers.map(transferOf),
    resharding: null,
    keyCopy: null,
  } as unknown as CollectionRecord;
  return { ...emptyState('c'), collections: new Map([['cities', record]]) };
}

export function transferOf(given: Partial<TransferRecord>): TransferRecord {
  return { shardId: 0, from: 1, to: 2, toShardId: null, method: 'stream_records', sync: true, targetIsNew: true, startedAt: 10, ...given };
}

function shardOf(replicas: Readonly<Record<number, ReplicaState>>, leader: number | null | undefined): ShardRecord {
  const entries = Object.entries(replicas).map(([peer, state]) => [Number(peer), state] as const);
  const first = entries.find(([, state]) => state === 'Active')?.[0] ?? null;
  return { key: null, replicas: new Map(entries), leader: leader === undefined ? first : leader, term: 3, since: new Map() };
}
