/** Decides which replicas a shard's leader waits for. */

import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { ShardAssignment } from './messages.js';
import type { ReplicationState } from './state.js';

/**
 * yes: acknowledgements wait for the replica. target: it is the target of a transfer, which attaches it and may have declared it required.
 * no: it gets nothing. Source: specification, States and transitions.
 */
const NEEDS: Readonly<Record<ReplicaState, 'yes' | 'target' | 'no'>> = {
  Active: 'yes',
  Initializing: 'yes',
  Listener: 'yes',
  Resharding: 'yes',
  ReshardingScaleDown: 'yes',
  ActiveRead: 'yes',
  Partial: 'target',
  PartialSnapshot: 'target',
  Recovery: 'target',
  Dead: 'no',
  ManualRecovery: 'no',
};

export function isAgreedRequired(assignment: ShardAssignment, peer: PeerId): boolean {
  const state = assignment.replicas.get(peer);
  return state !== undefined && NEEDS[state] === 'yes';
}

export function isTarget(assignment: ShardAssignment, peer: PeerId): boolean {
  const state = assignment.replicas.get(peer);
  return state !== undefined && NEEDS[state] === 'target';
}

/** Whether acknowledgements wait for this replica: by agreement, or because a transfer declared it required since this start. */
export function isRequired({ assignment, required }: Pick<ReplicationState, 'assignment' | 'required'>, peer: PeerId): boolean {
  return assignment !== null && (isAgreedRequired(assignment, peer) || (required.has(peer) && isTarget(assignment, peer)));
}

/** The other peers with a replica of the shard, in their agreed order. */
export function othersOf({ assignment, self }: Pick<ReplicationState, 'assignment' | 'self'>): PeerId[] {
  return assignment === null ? [] : [...assignment.replicas.keys()].filter((peer) => peer !== self);
}

/**
 * Targets of transfers that this leader may have declared required in the same term before a restart, while the end of their transfer is on
 * its way to be agreed on. The leader waits for each of them whose log its own continues (Log-L5).
 */
export function inheritedTargets({ assignment, openedIn, self }: Pick<ReplicationState, 'assignment' | 'openedIn' | 'self'>): PeerId[] {
  if (assignment === null || assignment.term !== openedIn) return [];
  return othersOf({ assignment, self }).filter((peer) => isTarget(assignment, peer));
}

/**
 * The number of replicas that count for `write_consistency_factor`: those that serve, and those that will serve as soon as that is agreed.
 */
export function serving(assignment: ShardAssignment): number {
  let count = 0;
  for (const state of assignment.replicas.values()) if (state === 'Active' || state === 'Initializing') count += 1;
  return count;
}

/**
 * How many active replicas of a shard must have a write: as many as `write_consistency_factor` says, or all that the shard has where it has
 * fewer. A Dead replica is one of them, so writes are refused until it is back. A Listener is none, and neither is a replica in `added`,
 * which a transfer makes, so that a shard that moves takes writes.
 */
export function copiesNeeded(factor: number, replicas: ReadonlyMap<PeerId, ReplicaState>, added: readonly PeerId[]): number {
  let count = 0;
  for (const [peer, state] of replicas) if (state !== 'Listener' && !added.includes(peer)) count += 1;
  return Math.max(1, Math.min(factor, count));
}

/** Whether a write has to be applied on this replica before it counts as applied. A Listener only has to have it on disk. */
export function mustApply({ assignment }: Pick<ReplicationState, 'assignment'>, peer: PeerId): boolean {
  return assignment?.replicas.get(peer) !== 'Listener';
}
