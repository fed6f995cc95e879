/**
 * The view that the HTTP and gRPC servers read without asking an actor: the collections, their replicas and their states. Each entry is
 * written by the one actor that it describes and read on the same thread, so a read request passes no mailbox.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { ReplicaState } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import type { CollectionMessage } from '../collection/messages.js';
import type { CollectionStore } from '../collection/store.js';
import type { OwnReplica } from '../consensus/messages.js';
import type { OptimizerStatus } from '../optimizer/status.js';
import type { ReplicaMessage } from '../replica/messages.js';
import type { ReplicaLife } from '../replica/state.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { ReplicationEntry } from '../shard-log/view.js';
import type { Belonging } from './desired.js';

export interface ReplicaEntry {
  readonly key: ReplicaKey;
  readonly actor: ActorRef<ReplicaMessage>;
  /** State of the replica on this node. Its agreed state is in `assignments`. */
  readonly state: ReplicaLife['kind'];
  /** Why it does not serve; null if it does. */
  readonly reason: ErrorFacts | null;
  /** How long it took to open its files, in milliseconds; absent before the first time. */
  readonly openedInMs?: number | undefined;
}

/** The API's states of a replica that is the only one of its shard, on a node without a cluster. */
export type StateAlone = Extract<ReplicaState, 'Initializing' | 'Active' | 'Dead'>;

export const STATE_ALONE: Readonly<Record<ReplicaLife['kind'], StateAlone>> = {
  Opening: 'Initializing',
  Serving: 'Active',
  Failed: 'Dead',
  Closing: 'Dead',
};

export interface CollectionEntry {
  readonly name: string;
  readonly folder: string;
  readonly actor: ActorRef<CollectionMessage>;
  /** Null if the configuration could not be read. */
  config: CollectionConfig | null;
  /** The collection's identity in its cluster, and its shards on this node; null outside of a cluster. */
  belonging: Belonging | null;
  /** Why the collection cannot be used; null if it can. */
  error: ErrorFacts | null;
  /** Replicas by shard id. */
  readonly replicas: Map<number, ReplicaEntry>;
  /** The replicas' parts in their shards' logs, by shard id; empty outside of a cluster. */
  readonly replications: Map<number, ReplicationEntry>;
  /** Optimizers by replica key. */
  readonly optimizers: Map<ReplicaKey, OptimizerStatus>;
  /** To be called after each change of the configuration, the error or the replicas, and with each reset of a log; set while the collection is listed. */
  onChange?: () => void;
}

/** Shows that a replica does not serve because its actor is gone. */
export function showFailed(entry: CollectionEntry, shardId: number, error: ErrorFacts): void {
  const replica = entry.replicas.get(shardId);
  if (replica === undefined) return;
  const reason: ErrorFacts = { code: 'unavailable', detail: `the replica is Dead: ${error.detail}` };
  entry.replicas.set(shardId, { ...replica, state: 'Failed', reason });
  entry.onChange?.();
  entry.optimizers.delete(replica.key);
}

/** Replicas that do not serve, of collections that belong to a cluster. */
export function deadReplicas(view: NodeView, store: Pick<CollectionStore, 'isAhead'>): OwnReplica[] {
  const dead: OwnReplica[] = [];
  for (const { belonging, folder, name, replicas, replications } of view.collections.values()) {
    if (belonging === null) continue;
    const { shards, since, uid } = belonging;
    for (const [shardId, { state }] of replicas)
      if (STATE_ALONE[state] === 'Dead') {
        // The actor of the replica's log may have ended already.
        const mayBeAhead = replications.get(shardId)?.mayBeAhead() ?? store.isAhead(folder, shardId);
        dead.push({ collection: name, uid, shardId, since: since?.[shards.indexOf(shardId)] ?? 0, mayBeAhead });
      }
  }
  return dead;
}

export class NodeView {
  readonly #collections = new Map<string, CollectionEntry>();
  #onChange: (collection: string | null) => void = () => {};
  #aliases: AliasMap = new Map();

  /** Collections by name, without those that are being created or deleted. */
  get collections(): ReadonlyMap<string, CollectionEntry> {
    return this.#collections;
  }

  get aliases(): AliasMap {
    return this.#aliases;
  }

  /** The collection of this name or alias. A collection's name has precedence over an alias. */
  find(name: string): CollectionEntry | undefined {
    const found = this.#collections.get(name);
    if (found !== undefined) return found;
    const collection = this.#aliases.get(name);
    return collection === undefined ? undefined : this.#collections.get(collection);
  }

  setAliases(aliases: AliasMap): void {
    this.#aliases = aliases;
    this.#onChange(null);
  }

  /**
   * Has the listener called in each change of a collection or a replica, with the collection's name, and of aliases, with null, before anything
   * else follows from the change.
   */
  watch(listener: (collection: string | null) => void): void {
    this.#onChange = listener;
  }

  list(entry: CollectionEntry): void {
    this.#collections.set(entry.name, entry);
    entry.onChange = () => this.#onChange(entry.name);
    this.#onChange(entry.name);
  }

  unlist(name: string): void {
    this.#collections.delete(name);
    this.#onChange(name);
  }
}
