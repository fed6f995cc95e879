/** The result of applying a command, and functions that build it. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { Outcome, TransferKey } from '../state/commands.js';
import type { ClusterState, CollectionRecord } from '../state/state.js';
import { collectionMissing } from './aliases.js';

export interface Change {
  readonly state: ClusterState;
  readonly outcome: Outcome;
}

export function done(state: ClusterState): Change {
  return { state, outcome: { kind: 'done', changed: true } };
}

/** The result of a command that changes nothing. */
export function unchanged(state: ClusterState): Change {
  return { state, outcome: { kind: 'done', changed: false } };
}

/** The result of a refused command: only the index has changed (State-S3). */
export function refused(state: ClusterState, error: ErrorFacts): Change {
  return { state, outcome: { kind: 'refused', error } };
}

export function wrongInput(detail: string): ErrorFacts {
  return { code: 'wrongInput', detail };
}

/** The error for a shard or peer that there is none of; for `code` and text see contract, scenario `cluster-one-node`. */
export function badRequest(detail: string): ErrorFacts {
  return { code: 'badRequest', detail };
}

export function peerMissing(peerId: PeerId): ErrorFacts {
  return badRequest(`Peer ${peerId} does not exist`);
}

export function shardMissing(collection: string, shardId: ShardId): ErrorFacts {
  return badRequest(`Shard ${shardId} of ${collection} does not exist`);
}

export function transferMissing(collection: string, { from, shardId, to, toShardId }: TransferKey): ErrorFacts {
  const shards = toShardId === null ? shardId : `${shardId} to ${toShardId}`;
  return { code: 'notFound', detail: `Shard transfer ${from} -> ${to} for collection ${collection}:${shards} does not exist` };
}

type Collections = Map<string, CollectionRecord>;

/** Maps that the batch under way has made and that no other code has seen. Null outside of a batch. */
let made: Set<unknown> | null = null;

/**
 * Runs `action`, which applies entries in order and gives away only its result. All states in between share one map of the collections,
 * which is copied once however many entries there are.
 */
export function asBatch<Result>(action: () => Result): Result {
  made = new Set();
  try {
    return action();
  } finally {
    made = null;
  }
}

/** The state with changed collections. `change` is never undone, so a refusal has to come before it (State-S3). */
export function withCollections(state: ClusterState, change: (collections: Collections) => void): ClusterState {
  const isOwn = made?.has(state.collections) === true;
  const collections = isOwn ? (state.collections as Collections) : new Map(state.collections);
  made?.add(collections);
  change(collections);
  return { ...state, collections };
}

export function withCollection(state: ClusterState, name: string, record: CollectionRecord): ClusterState {
  return withCollections(state, (collections) => collections.set(name, record));
}

/** Applies `change` to the collection called `name`, or refuses if there is none. */
export function onCollection(state: ClusterState, name: string, change: (record: CollectionRecord) => Change): Change {
  const record = state.collections.get(name);
  return record === undefined ? refused(state, collectionMissing(name)) : change(record);
}
