/** What has to move away from a peer that is to leave. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { PlannedMove } from '../state/commands.js';
import { hostsOf } from '../state/placement.js';
import type { ClusterState } from '../state/state.js';
import { Layout } from './layout.js';
import { othersActive, type Plan, shardsOf } from './plan.js';

/**
 * Each replica moves to the peer with the fewest. Where no peer is without its shard it is dropped: there are as many as there can be.
 * One that is not Active is copied from the others where there would be too few of them, and dropped.
 */
export function planDrain(state: ClusterState, peerId: PeerId): Plan {
  const layout = new Layout(state, new Map());
  const hosts = hostsOf(state, false).filter((host) => host !== peerId);
  const moves: PlannedMove[] = [];
  const stuck: Plan['stuck'][number][] = [];
  for (const { id, name, record, shard } of shardsOf(state)) {
    const held = shard.replicas.get(peerId);
    if (held === undefined || record.transfers.some(({ shardId, sync, from }) => shardId === id && (sync || from === peerId))) continue;
    const others = othersActive(shard, peerId);
    const target = layout.emptiest(hosts, record.uid, id);
    const enough =
      others.filter((other) => hosts.includes(other)).length >= Math.min(record.config.params.replication_factor, hosts.length);
    const move = { collection: name, uid: record.uid, shardId: id };
    let planned: PlannedMove | null = null;
    if (held === 'Active' && target !== null) planned = { ...move, from: peerId, to: target };
    else if (others.length > 0)
      planned = enough || target === null ? { ...move, from: peerId, to: null } : { ...move, from: null, to: target };
    if (planned === null) stuck.push({ collection: name, shardId: id, reason: whyStuck(held === 'Active') });
    else {
      layout.apply(planned);
      moves.push(planned);
    }
  }
  return { moves, stuck };
}

function whyStuck(isActive: boolean): string {
  return isActive ? 'no other peer can take it: let one join first' : 'none of its replicas is Active: nobody has all of its points';
}
