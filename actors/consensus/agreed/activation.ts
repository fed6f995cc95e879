/**
 * Proposes that replicas which this node has made become Active, or Listener on a node that only listens: one proposal for all of them at a
 * time.
 */

import type { ReplicaChange } from '../../../cluster/state/commands.js';
import type { ClusterState, ShardRecord } from '../../../cluster/state/state.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isUnderWay, submit } from '../proposals/proposals.js';
import type { Carrying } from '../state.js';
import { type OwnPart, ownPart, sinceOf } from './local-replicas.js';

/** Deadline of a proposal; if it is not agreed on in time, the next check proposes again. */
const ACTIVATION_TICKS = 300;

/** Most changes in one proposal, as an entry has a limit; the rest follows when these are Active. */
const CHANGES_MAX = 2000;

export function maybeActivate(draft: ConsensusDraft): void {
  const { agreed, carrying, identity, settings, ticks, upkeep } = draft.member;
  if (ticks < upkeep.activateTick) return;
  if (isUnderWay(draft, 'activation')) return;
  const changes = activations(agreed, carrying, identity.peerId, settings.listens);
  if (changes.length === 0) return;
  const operation = { kind: 'setReplicaStates', changes } as const;
  submit(draft, { kind: 'operation', operation }, { kind: 'activation' }, ticks + ACTIVATION_TICKS);
}

/** Changes for replicas of this peer that were made and should be in another state. */
function activations(agreed: ClusterState, { done, failures }: Carrying, peerId: PeerId, listens: boolean): ReplicaChange[] {
  const changes: ReplicaChange[] = [];
  for (const [collection, record] of agreed.collections) {
    if (!mayChange(ownPart(record, peerId), listens)) continue;
    const { shards, uid } = record;
    const made = done?.collections.get(collection);
    if (made === undefined || made.uid !== uid) continue;
    for (const [shardId, shard] of shards) {
      const { replicas } = shard;
      const from = replicas.get(peerId);
      const to = wantedState(replicas, peerId, listens);
      if (from === undefined || to === null) continue;
      const at = made.shards.indexOf(shardId);
      // What was made may be an earlier replica of this shard.
      if (at < 0 || made.since[at] !== sinceOf(record, shard, peerId)) continue;
      if (failures.some((failure) => failure.uid === uid && (failure.shardId === null || failure.shardId === shardId))) continue;
      changes.push({ collection, uid, shardId, peerId, from, to, term: null });
      if (changes.length >= CHANGES_MAX) return changes;
    }
  }
  return changes;
}

function mayChange({ states }: OwnPart, listens: boolean): boolean {
  return states.has('Initializing') || states.has(listens ? 'Active' : 'Listener');
}

/**
 * The state that a replica should get; null if it keeps its state. A shard needs a serving replica, so a node that only listens serves
 * where no other node would.
 */
function wantedState(replicas: ShardRecord['replicas'], peerId: PeerId, listens: boolean): ReplicaState | null {
  const state = replicas.get(peerId);
  const others = [...replicas].filter(([peer]) => peer !== peerId).map(([, other]) => other);
  if (state === 'Initializing')
    return listens && others.some((other) => other === 'Active' || other === 'Initializing') ? 'Listener' : 'Active';
  if (state === 'Active' && listens) return others.includes('Active') ? 'Listener' : null;
  return state === 'Listener' && !listens ? 'Active' : null;
}
