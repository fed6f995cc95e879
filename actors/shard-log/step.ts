/** The step of a replication actor, decided by `cluster/replication`. Its mailbox takes that machine's inputs as they are. */

import type { ReplicationStep } from '../../cluster/replication/draft.js';
import type { ReplicationEffect, ReplicationInput } from '../../cluster/replication/messages.js';
import { startReplication } from '../../cluster/replication/state.js';
import { stepReplication } from '../../cluster/replication/step.js';
import type { Step } from '../runtime/behaviour.js';
import type { ReplicationActorState } from './state.js';

/** begin: watches the agreed state and reads the note on disk. */
export type ReplicationActorEffect = { readonly kind: 'begin' } | ReplicationEffect;

type ReplicationActorStep = Step<ReplicationActorState, ReplicationActorEffect>;

/** The first state and effects. resets: see `startReplication`. */
export function startReplicationActor(resets: number): ReplicationActorStep {
  return named({ state: startReplication(resets), effects: [{ kind: 'begin' }] });
}

export function stepReplicationActor({ core }: ReplicationActorState, input: ReplicationInput): ReplicationActorStep {
  return named(stepReplication(core, input));
}

function named({
  effects,
  state,
}: Omit<ReplicationStep, 'effects'> & { readonly effects: readonly ReplicationActorEffect[] }): ReplicationActorStep {
  return { state: { kind: state.role.kind, core: state }, effects };
}
