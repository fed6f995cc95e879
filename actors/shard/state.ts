/**
 * The life of a shard on this node, where it has one replica. What the cluster agreed on for that replica (Active, Partial, Dead …) is
 * another matter: `ReplicaState`.
 *
 * - `Opening`: its replica is being opened for the first time;
 * - `Serving`: its replica is open;
 * - `Failed`: its replica failed and tries again;
 * - `Stopped`: its replica's actor crashed too often; nothing tries again before the node is restarted;
 * - `Closing`: ends when its replica has closed.
 */

import type { ErrorFacts } from '../../protocols/errors.js';

export type ShardState = OpeningShard | ServingShard | FailedShard | StoppedShard | ClosingShard;

export interface OpeningShard {
  readonly kind: 'Opening';
}

export interface ServingShard {
  readonly kind: 'Serving';
}

export interface FailedShard {
  readonly kind: 'Failed';
  readonly error: ErrorFacts;
}

export interface StoppedShard {
  readonly kind: 'Stopped';
  readonly error: ErrorFacts;
}

export interface ClosingShard {
  readonly kind: 'Closing';
}

export function openingShard(): OpeningShard {
  return { kind: 'Opening' };
}

export function servingShard(): ServingShard {
  return { kind: 'Serving' };
}

export function failedShard(error: ErrorFacts): FailedShard {
  return { kind: 'Failed', error };
}

export function stoppedShard(error: ErrorFacts): StoppedShard {
  return { kind: 'Stopped', error };
}

export function closingShard(): ClosingShard {
  return { kind: 'Closing' };
}
