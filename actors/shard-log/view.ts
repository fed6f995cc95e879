/** The view of a replica's part in its shard's log, for requests and telemetry. */

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
  /**
   * Whether this replica may have acknowledged writes that other replicas lack, in this process or an earlier one (Log-L9). Always false
   * for a follower.
   */
  readonly mayBeAhead: () => boolean;
  readonly status: () => ReplicationStatus;
}

/** The newest state of a replication actor, for readers outside of it. */
export class ReplicationView {
  #newest: ReplicationState = startReplication();
  #wasReset: () => void = () => {};

  get resets(): number {
    return this.#newest.resets;
  }

  shown<Made extends { readonly state: ReplicationActorState }>(step: Made): Made {
    const before = this.#newest;
    this.#newest = step.state.core;
    // The step's effects have not begun.
    if (before.resets !== this.#newest.resets) this.#wasReset();
    return step;
  }

  /** isAhead: the note on disk, used until the actor has read it. wasReset: called with each reset, before it is carried out. */
  entry(actor: ActorRef<ReplicationInput>, isAhead: () => boolean, wasReset: () => void): ReplicationEntry {
    this.#wasReset = wasReset;
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
  /** On a leader, the index of the newest operation on its disk; null for other roles, whose position the engine tells. */
  readonly position: number | null;
  /** Number of writes that wait for this disk or another one. */
  readonly waiting: number;
  readonly followers: readonly FollowerStatus[];
}

export interface FollowerStatus {
  readonly peer: PeerId;
  readonly phase: Phase['kind'];
  readonly required: boolean;
  /** Index of the newest operation that it is known to have; null if not known. */
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

/**
 * The index up to which all replicas that the leader waits for have its log; null for other roles, and if a replica's position is not known
 * yet.
 */
export function heldOf({ followers, position }: ReplicationStatus): number | null {
  let held = position;
  for (const follower of followers) {
    if (!follower.required) continue;
    held = held === null || follower.position === null ? null : Math.min(held, follower.position);
  }
  return held;
}

/** Whether this replica leads and every replica that it waits for has its whole log, as far as it knows (Log-L9). */
export function isHeldByAll(status: ReplicationStatus): boolean {
  return status.role === 'Leading' && heldOf(status) === status.position;
}
