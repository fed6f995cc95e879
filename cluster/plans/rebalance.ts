/** Moves by which peers come to hold about equally much. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { PlannedMove } from '../state/commands.js';
import { hostsOf } from '../state/placement.js';
import type { ClusterState } from '../state/state.js';
import { Layout, type Sizes } from './layout.js';
import { type Plan, shardsOf } from './plan.js';

/** What a shard weighs beside its bytes: empty ones are spread, too. */
const SHARD_BYTES = 1 << 20;

/**
 * From the peer that holds most to one that holds less, the replica that brings both closest together, as long as there is one: so no
 * move is for nothing. Each replica moves once at most. Those of a collection that the giver has more of go first.
 */
export function planRebalance(state: ClusterState, sizes: Sizes): Plan {
  const layout = new Layout(state, sizes);
  const hosts = hostsOf(state, false);
  const movable = [...shardsOf(state)].flatMap(({ id, name, record, shard }) => {
    if (record.transfers.some(({ shardId }) => shardId === id)) return [];
    return [...shard.replicas].flatMap(([from, replica]) =>
      replica === 'Active' && hosts.includes(from) ? [{ collection: name, uid: record.uid, shardId: id, from }] : [],
    );
  });
  const left = new Set(movable);
  const moves: PlannedMove[] = [];
  for (let best = bestMove(layout, hosts, left); best !== null; best = bestMove(layout, hosts, left)) {
    left.delete(best.replica);
    const move = { ...best.replica, to: best.to };
    layout.apply(move);
    moves.push(move);
  }
  return { moves, stuck: [] };
}

type Movable = Omit<PlannedMove, 'from' | 'to'> & { readonly from: PeerId };

function bestMove(layout: Layout, hosts: readonly PeerId[], left: ReadonlySet<Movable>): { replica: Movable; to: PeerId } | null {
  let best: { replica: Movable; to: PeerId; gain: number; spreads: boolean } | null = null;
  for (const replica of left) {
    const { from, shardId, uid } = replica;
    const weight = layout.bytes(uid, shardId) + SHARD_BYTES;
    for (const to of hosts) {
      if (layout.holds(uid, shardId, to)) continue;
      const difference = weightOf(layout, from) - weightOf(layout, to);
      const gain = Math.min(weight, difference - weight);
      const spreads = layout.countOf(uid, from) > layout.countOf(uid, to);
      if (gain <= 0 || (best !== null && (spreads === best.spreads ? gain <= best.gain : best.spreads))) continue;
      best = { replica, to, gain, spreads };
    }
  }
  return best;
}

function weightOf(layout: Layout, peerId: PeerId): number {
  const { bytes, replicas } = layout.load(peerId);
  return bytes + replicas * SHARD_BYTES;
}
