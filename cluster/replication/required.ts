/** Which replicas a shard's leader waits for. */

import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { ShardAssignment } from './messages.js';
import type { ReplicationState } from './state.js';

/**
 * yes: acknowledgements wait for it. target: of a transfer, which attaches it, and may have declared it required. no: it gets nothing.
 * Source: specification, States and transitions.
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

/** Agreed on, or declared by a transfer of this life. */
export function isRequired({ assignment, required }: Pick<ReplicationState, 'assignment' | 'required'>, peer: PeerId): boolean {
  return assignment !== null && (isAgreedRequired(assignment, peer) || (required.has(peer) && isTarget(assignment, peer)));
}

/** The others, in their agreed order. */
export function othersOf({ assignment, self }: Pick<ReplicationState, 'assignment' | 'self'>): PeerId[] {
  return assignment === null ? [] : [...assignment.replicas.keys()].filter((peer) => peer !== self);
}

/**
 * Targets that an earlier life of this leader in the same term may have declared required while the end of their transfer is on its
 * way to be agreed on: each of them whose log this one continues is waited for (Log-L5).
 */
export function inheritedTargets({ assignment, openedIn, self }: Pick<ReplicationState, 'assignment' | 'openedIn' | 'self'>): PeerId[] {
  if (assignment === null || assignment.term !== openedIn) return [];
  return othersOf({ assignment, self }).filter((peer) => isTarget(assignment, peer));
}

/** Replicas that hold what is acknowledged now: those that serve, and those that will as soon as that is agreed. */
export function serving(assignment: ShardAssignment): number {
  let count = 0;
  for (const state of assignment.replicas.values()) if (state === 'Active' || state === 'Initializing') count += 1;
  return count;
}

/** Whether what is waited for has to be applied there, not only on disk: a Listener applies when it comes to it. */
export function mustApply({ assignment }: Pick<ReplicationState, 'assignment'>, peer: PeerId): boolean {
  return assignment?.replicas.get(peer) !== 'Listener';
}
