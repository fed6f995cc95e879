/** Replicas of this node that are there become Active: one proposal for all of them at a time. */

import type { ReplicaChange } from '../../cluster/operations.js';
import type { ClusterState } from '../../cluster/state.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Draft } from './draft.js';
import { ownPart } from './own-part.js';
import { submit } from './proposals.js';
import type { Carrying } from './state.js';

/** The node knows at the next chance when this was not agreed in time. */
const ACTIVATION_TICKS = 300;

/** What is left is looked at when these are Active: one proposal of them all could be larger than an entry may be. */
const CHANGES_MAX = 2000;

export function maybeActivate(draft: Draft): void {
  const { agreed, calls, carrying, identity, ticks, upkeep } = draft.member;
  if (ticks < upkeep.activateTick) return;
  if (calls.proposals.some(({ caller }) => caller.kind === 'activation')) return;
  const changes = activations(agreed, carrying, identity.peerId);
  if (changes.length === 0) return;
  const operation = { kind: 'setReplicaStates', changes } as const;
  submit(draft, { kind: 'operation', operation }, { kind: 'activation' }, ticks + ACTIVATION_TICKS);
}

/** Initializing replicas of this peer that were made. */
function activations(agreed: ClusterState, { done, failures }: Carrying, peerId: PeerId): ReplicaChange[] {
  const changes: ReplicaChange[] = [];
  for (const [collection, record] of agreed.collections) {
    if (!ownPart(record, peerId).isInitializing) continue;
    const { shards, uid } = record;
    const made = done?.collections.get(collection);
    if (made === undefined || made.uid !== uid) continue;
    for (const [shardId, { replicas }] of shards) {
      if (replicas.get(peerId) !== 'Initializing' || !made.shards.includes(shardId)) continue;
      if (failures.some((failure) => failure.uid === uid && (failure.shardId === null || failure.shardId === shardId))) continue;
      changes.push({ collection, uid, shardId, peerId, from: 'Initializing', to: 'Active', clock: null });
      if (changes.length >= CHANGES_MAX) return changes;
    }
  }
  return changes;
}
