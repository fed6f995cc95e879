/** Plans of where replicas go: pure functions of the agreed state. A plan says what it leads to, so that it can be looked at first. */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PlannedMove } from '../state/commands.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';
import { Layout, type PeerLoad, type Sizes } from './layout.js';

export interface Plan {
  readonly moves: readonly PlannedMove[];
  /** Replicas that have to go and cannot. */
  readonly stuck: readonly { readonly collection: string; readonly shardId: ShardId; readonly reason: string }[];
}

/** What each member holds before and after a plan. */
export interface Balance {
  readonly before: ReadonlyMap<PeerId, PeerLoad>;
  readonly after: ReadonlyMap<PeerId, PeerLoad>;
}

export function balanceOf(state: ClusterState, plan: Plan, sizes: Sizes): Balance {
  const layout = new Layout(state, sizes);
  const loads = () => new Map(state.membership.map(({ peerId }) => [peerId, layout.load(peerId)]));
  const before = loads();
  for (const move of plan.moves) layout.apply(move);
  return { before, after: loads() };
}

/** All shards, collections by name: the order of plans. */
export function* shardsOf({
  collections,
}: ClusterState): Iterable<{ name: string; record: CollectionRecord; id: ShardId; shard: ShardRecord }> {
  const names = [...collections.keys()].sort();
  for (const name of names) {
    const record = collections.get(name) as CollectionRecord;
    for (const [id, shard] of record.shards) yield { name, record, id, shard };
  }
}

/** Peers whose replicas of the shard are Active, but for one. */
export function othersActive({ replicas }: ShardRecord, peerId: PeerId): PeerId[] {
  return [...replicas].filter(([other, state]) => other !== peerId && state === 'Active').map(([other]) => other);
}
