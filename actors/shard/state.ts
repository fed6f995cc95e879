/**
 * States of a shard: what its replicas make of it. A single node holds one replica of each shard.
 *
 * - `Opening`: its replica is being opened for the first time;
 * - `Active`: a replica serves;
 * - `Dead`: none does, but one tries again;
 * - `Abandoned`: its replica's actor is gone for good;
 * - `Closing`: ends when its replica has closed.
 */

import type { ErrorFacts } from '../../protocols/errors.js';

export type ShardState =
  | { readonly kind: 'Opening' }
  | { readonly kind: 'Active' }
  | { readonly kind: 'Dead'; readonly error: ErrorFacts }
  | { readonly kind: 'Abandoned'; readonly error: ErrorFacts }
  | { readonly kind: 'Closing' };

export function opening(): ShardState {
  return { kind: 'Opening' };
}

export function active(): ShardState {
  return { kind: 'Active' };
}

export function dead(error: ErrorFacts): ShardState {
  return { kind: 'Dead', error };
}

export function abandoned(error: ErrorFacts): ShardState {
  return { kind: 'Abandoned', error };
}

export function closing(): ShardState {
  return { kind: 'Closing' };
}
