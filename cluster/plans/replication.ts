/** Copies that are missing, or too many, where the cluster keeps the number of replicas by itself (`auto_replication`). */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { PlannedMove } from '../state/commands.js';
import { hostsOf } from '../state/placement.js';
import type { ClusterState, ShardRecord } from '../state/state.js';
import { Layout } from './layout.js';
import { othersActive, type Plan, shardsOf } from './plan.js';

/**
 * A step for each shard that has too few replicas or too many. A Dead one counts until its peer is lost: it is healed where it is.
 * isGone: peers that do not answer now. isLost: those that have not for long; a restart is no reason to copy everything elsewhere.
 */
export function planReplication(state: ClusterState, isGone: (peerId: PeerId) => boolean, isLost: (peerId: PeerId) => boolean): Plan {
  const moves: PlannedMove[] = [];
  // Looked at once a second, however many collections there are.
  if (![...state.collections.values()].some(({ autoReplication }) => autoReplication)) return { moves, stuck: [] };
  const layout = new Layout(state, new Map());
  const hosts = hostsOf(state, false);
  for (const { id, name, record, shard } of shardsOf(state)) {
    if (!record.autoReplication || shard.leader === null || record.transfers.some(({ shardId }) => shardId === id)) continue;
    const factor = Math.min(record.config.params.replication_factor, hosts.length);
    const counted = [...shard.replicas].filter(([peerId, replica]) => hosts.includes(peerId) && !(replica === 'Dead' && isLost(peerId)));
    const move = { collection: name, uid: record.uid, shardId: id };
    let planned: PlannedMove | null = null;
    if (counted.length < factor) {
      const target = layout.emptiest(hosts, record.uid, id);
      if (target !== null && !isGone(target)) planned = { ...move, from: null, to: target };
    } else {
      const goes = superfluous(shard, hosts, factor, layout);
      if (goes !== null) planned = { ...move, from: goes, to: null };
    }
    if (planned === null) continue;
    layout.apply(planned);
    moves.push(planned);
  }
  return { moves, stuck: [] };
}

/** A Dead replica goes first, then the one whose peer has most, the leader last of all. Null: none is too many. */
function superfluous(shard: ShardRecord, hosts: readonly PeerId[], factor: number, layout: Layout): PeerId | null {
  const held = [...shard.replicas].filter(([peerId]) => hosts.includes(peerId));
  const active = held.filter(([, replica]) => replica === 'Active');
  if (held.length <= factor || active.length < factor) return null;
  const rank = ([peerId, replica]: (typeof held)[number]) => (replica !== 'Active' ? 0 : peerId === shard.leader ? 2 : 1);
  held.sort((one, other) => rank(one) - rank(other) || layout.load(other[0]).replicas - layout.load(one[0]).replicas || one[0] - other[0]);
  const goes = held[0]?.[0];
  return goes !== undefined && othersActive(shard, goes).length > 0 ? goes : null;
}
