/** What a shard does about each message in each state. */

import { decide, ignore, type Of, type Table } from '../../protocols/machine.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { ShardEffect, ShardMessage } from './messages.js';
import {
  type ClosingShard,
  closingShard,
  failedShard,
  openingShard,
  type ShardState,
  type StoppedShard,
  servingShard,
  stoppedShard,
} from './state.js';

type ShardStep = Step<ShardState, ShardEffect>;

/** States × messages. */
export const SHARD_TABLE: Table<ShardState, ShardMessage, ShardStep> = {
  Opening: {
    replicaOpened: becomeServing,
    replicaFailed: becomeFailed,
    replicaStopped: becomeStopped,
    configure: configureReplica,
    close: closeReplica,
    replicaClosed: ignore,
  },
  Serving: {
    replicaOpened: ignore,
    replicaFailed: becomeFailed,
    replicaStopped: becomeStopped,
    configure: configureReplica,
    close: closeReplica,
    replicaClosed: ignore,
  },
  Failed: {
    replicaOpened: becomeServing,
    replicaFailed: becomeFailed,
    replicaStopped: becomeStopped,
    configure: configureReplica,
    close: closeReplica,
    replicaClosed: ignore,
  },
  Stopped: {
    replicaOpened: ignore,
    replicaFailed: ignore,
    replicaStopped: ignore,
    configure: answer,
    close: finish,
    replicaClosed: ignore,
  },
  Closing: {
    replicaOpened: ignore,
    replicaFailed: ignore,
    // It cannot close any more: the engine closes its files.
    replicaStopped: finish,
    configure: answer,
    close: ignore,
    replicaClosed: finish,
  },
};

export function startShard(): ShardStep {
  return become<ShardState, ShardEffect>(openingShard(), { kind: 'startReplica' });
}

export function stepShard(state: ShardState, message: ShardMessage): ShardStep {
  return decide(SHARD_TABLE, state, message);
}

function becomeServing(): ShardStep {
  return become<ShardState, ShardEffect>(servingShard(), { kind: 'tellOpened' });
}

function becomeFailed(_: ShardState, { error }: Of<ShardMessage, 'replicaFailed'>): ShardStep {
  return become<ShardState, ShardEffect>(failedShard(error), { kind: 'tellFailed', error });
}

function becomeStopped(_: ShardState, { error }: Of<ShardMessage, 'replicaStopped'>): ShardStep {
  return become<ShardState, ShardEffect>(stoppedShard(error), { kind: 'closeFiles', error }, { kind: 'tellFailed', error });
}

function configureReplica(state: ShardState, { config, replyTo }: Of<ShardMessage, 'configure'>): ShardStep {
  return become<ShardState, ShardEffect>(state, { kind: 'configureReplica', config, replyTo });
}

/** No replica has to take the configuration over. */
function answer(state: StoppedShard | ClosingShard, { replyTo }: Of<ShardMessage, 'configure'>): ShardStep {
  return become<ShardState, ShardEffect>(state, { kind: 'reply', replyTo });
}

function closeReplica(): ShardStep {
  return become<ShardState, ShardEffect>(closingShard(), { kind: 'closeReplica' });
}

function finish(): ShardStep {
  return become<ShardState, ShardEffect>(closingShard(), { kind: 'tellClosedAndStop' });
}
