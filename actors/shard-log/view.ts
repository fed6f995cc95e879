/** What doors and telemetry see of a replica's part in its shard's log. */

import type { ReplicationInput } from '../../cluster/replication/messages.js';
import { isRequired } from '../../cluster/replication/required.js';
import { type Phase, type ReplicationRole, type ReplicationState, startReplication } from '../../cluster/replication/state.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { ReplicationActorState } from './state.js';

export interface ReplicationEntry {
  readonly actor: ActorRef<ReplicationInput>;
  /** See `ReplicationState.resets`. */
  readonly resets: () => number;
  /** Log-L9: whether it may have acknowledged what other replicas lack, in this process or an earlier one. Who follows another one has not. */
  readonly mayBeAhead: () => boolean;
  readonly status: () => ReplicationStatus;
}

/** The newest state of a replication actor, for those who look at it from outside. */
export class ReplicationView {
  #newest: ReplicationState = startReplication();

  get resets(): number {
    return this.#newest.resets;
  }

  shown<Made extends { readonly state: ReplicationActorState }>(step: Made): Made {
    this.#newest = step.state.core;
    return step;
  }

  /** isAhead: what the disk says, as long as the actor has not heard it. */
  entry(actor: ActorRef<ReplicationInput>, isAhead: () => boolean): ReplicationEntry {
    return {
      actor,
      resets: () => this.#newest.resets,
      mayBeAhead: () => this.#newest.role.kind !== 'Following' && (this.#newest.ahead.isAhead ?? isAhead()),
      status: () => replicationStatusOf(this.#newest),
    };
  }
}

export interface ReplicationStatus {
  readonly role: ReplicationRole['kind'];
  readonly term: number;
  /** Of the newest operation that a leader knows to be on its disk; null for others, which the engine tells of. */
  readonly position: number | null;
  /** Writes that wait for this disk or another one. */
  readonly waiting: number;
  readonly followers: readonly FollowerStatus[];
}

export interface FollowerStatus {
  readonly peer: PeerId;
  readonly phase: Phase['kind'];
  readonly required: boolean;
  /** Of the newest operation that it is known to have; null: not known. */
  readonly position: number | null;
  readonly error: string | null;
}

export function replicationStatusOf(state: ReplicationState): ReplicationStatus {
  const { assignment, role } = state;
  const leading = role.kind === 'Leading' ? role : null;
  return {
    role: role.kind,
    term: assignment?.term ?? 0,
    position: leading?.last.index ?? null,
    waiting: leading === null ? 0 : leading.issued.length + leading.pending.length,
    followers: [...(leading?.channels.values() ?? [])].map(({ error, peer, phase }) => ({
      peer,
      phase: phase.kind,
      required: isRequired(state, peer),
      position: phase.kind === 'Streaming' ? phase.logged.index : null,
      error: error?.detail ?? null,
    })),
  };
}

/** The index up to which all replicas that the leader waits for have its log; null for others, and where one has not said so yet. */
export function heldOf({ followers, position }: ReplicationStatus): number | null {
  let held = position;
  for (const follower of followers) {
    if (!follower.required) continue;
    held = held === null || follower.position === null ? null : Math.min(held, follower.position);
  }
  return held;
}

/** Log-L9: whether a leader has nothing that another replica which it waits for lacks, as far as it knows. */
export function isHeldByAll(status: ReplicationStatus): boolean {
  return status.role === 'Leading' && heldOf(status) === status.position;
}
