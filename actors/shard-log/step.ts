/** What a replication actor does: its messages become inputs of `cluster/replication`, which decides. */

import type { ReplicationInput } from '../../cluster/replication/messages.js';
import { startReplication } from '../../cluster/replication/state.js';
import { step as decide } from '../../cluster/replication/step.js';
import { become, type Step, unreachable } from '../runtime/behaviour.js';
import type { ReplicationActorEffect, ReplicationMessage } from './messages.js';
import { named, type ReplicationActorState } from './state.js';

type ReplicationStep = Step<ReplicationActorState, ReplicationActorEffect>;

export function startReplicationActor(): ReplicationStep {
  return become<ReplicationActorState, ReplicationActorEffect>(named(startReplication()), { kind: 'begin' });
}

export function stepReplication(state: ReplicationActorState, message: ReplicationMessage): ReplicationStep {
  const { effects, state: core } = decide(state.core, inputOf(message));
  return { state: named(core), effects };
}

/** Whoever asks is the caller of what it asks for. */
function inputOf(message: ReplicationMessage): ReplicationInput {
  switch (message.kind) {
    case 'opened':
    case 'closed':
    case 'assigned':
    case 'release':
    case 'resume':
      return message;
    case 'write': {
      const { replyTo, ...rest } = message;
      return { ...rest, caller: replyTo };
    }
    case 'missing':
      return { kind: 'missing', caller: message.replyTo, ids: message.ids, deadlineMs: message.deadlineMs };
    case 'call':
      return { kind: 'called', caller: message.replyTo, from: message.from, call: message.call };
    case 'attach':
      return { kind: 'attach', caller: message.replyTo, peer: message.peer, mayReset: message.mayReset };
    case 'compare':
      return { kind: 'compare', caller: message.replyTo, peer: message.peer };
    case 'fill':
      return { kind: 'fill', caller: message.replyTo, peer: message.peer, buckets: message.buckets };
    case 'require':
      return { kind: 'require', caller: message.replyTo, peer: message.peer };
    case 'pause':
      return { kind: 'pause', caller: message.replyTo };
    case 'happened':
      return message.input;
    default:
      return unreachable(message);
  }
}
