/** What a shard does about each message in each state. */

import { become, type Step, unreachable } from '../runtime/behaviour.js';
import type { ShardEffect, ShardMessage } from './messages.js';
import { abandoned, active, closing, dead, opening, type ShardState } from './state.js';

type ShardStep = Step<ShardState, ShardEffect>;
type MessageOf<Kind extends ShardMessage['kind']> = Extract<ShardMessage, { kind: Kind }>;

export type ShardMove = 'ignore' | 'becomeActive' | 'becomeDead' | 'becomeAbandoned' | 'configure' | 'answer' | 'close' | 'finish';

/** States × messages. */
export const SHARD_MOVES: Readonly<Record<ShardState['kind'], Readonly<Record<ShardMessage['kind'], ShardMove>>>> = {
  Opening: {
    replicaOpened: 'becomeActive',
    replicaDied: 'becomeDead',
    replicaGaveUp: 'becomeAbandoned',
    configure: 'configure',
    close: 'close',
    replicaClosed: 'ignore',
  },
  Active: {
    replicaOpened: 'ignore',
    replicaDied: 'becomeDead',
    replicaGaveUp: 'becomeAbandoned',
    configure: 'configure',
    close: 'close',
    replicaClosed: 'ignore',
  },
  Dead: {
    replicaOpened: 'becomeActive',
    replicaDied: 'becomeDead',
    replicaGaveUp: 'becomeAbandoned',
    configure: 'configure',
    close: 'close',
    replicaClosed: 'ignore',
  },
  Abandoned: {
    replicaOpened: 'ignore',
    replicaDied: 'ignore',
    replicaGaveUp: 'ignore',
    configure: 'answer',
    close: 'finish',
    replicaClosed: 'ignore',
  },
  Closing: {
    replicaOpened: 'ignore',
    replicaDied: 'ignore',
    // It cannot close any more; its files are let go of.
    replicaGaveUp: 'finish',
    configure: 'answer',
    close: 'ignore',
    replicaClosed: 'finish',
  },
};

export function startShard(): ShardStep {
  return become<ShardState, ShardEffect>(opening(), { kind: 'startReplica' });
}

export function stepShard(state: ShardState, message: ShardMessage): ShardStep {
  const move = SHARD_MOVES[state.kind][message.kind];
  switch (move) {
    case 'ignore':
      return become(state);
    case 'becomeActive':
      return become<ShardState, ShardEffect>(active(), { kind: 'tellOpened' });
    case 'becomeDead': {
      const { error } = message as MessageOf<'replicaDied'>;
      return become<ShardState, ShardEffect>(dead(error), { kind: 'tellDied', error });
    }
    case 'becomeAbandoned': {
      const { error } = message as MessageOf<'replicaGaveUp'>;
      return become<ShardState, ShardEffect>(abandoned(error), { kind: 'abandonReplica', error }, { kind: 'tellDied', error });
    }
    case 'configure': {
      const { config, replyTo } = message as MessageOf<'configure'>;
      return become<ShardState, ShardEffect>(state, { kind: 'configureReplica', config, replyTo });
    }
    case 'answer':
      return become<ShardState, ShardEffect>(state, { kind: 'reply', replyTo: (message as MessageOf<'configure'>).replyTo });
    case 'close':
      return become<ShardState, ShardEffect>(closing(), { kind: 'closeReplica' });
    case 'finish':
      return become<ShardState, ShardEffect>(closing(), { kind: 'tellClosedAndStop' });
    default:
      return unreachable(move);
  }
}
