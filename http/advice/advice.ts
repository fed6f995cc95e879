/** The issues of a node: what readers and requests told, and what is found by looking at figures now and then. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { vectorsByName } from '../../protocols/model/collection.js';
import type { Caller } from '../access/caller.js';
import { grantsOf } from '../access/decide.js';
import type { DoorServices } from '../context/services.js';
import {
  balanceIssues,
  type CollectionMemory,
  type DeadReplica,
  deadIssues,
  diskIssues,
  type FoundIssue,
  fullPeerIssues,
  memoryIssues,
  replicaLoads,
} from './found-issues.js';
import type { Issue } from './issue.js';
import { UnindexedFields } from './unindexed-fields.js';

export interface AdviceFacts extends Pick<DoorServices, 'memory' | 'disk' | 'unknownFields' | 'dateMs' | 'monotonicMs'> {
  readonly node: Pick<NodeApi, 'cluster' | 'exists' | 'info' | 'listCollections' | 'localShards' | 'stats'>;
}

interface Dead {
  readonly collection: string;
  readonly shardId: number;
  readonly peerId: number;
  readonly sinceMs: number;
}

export class Advice {
  readonly unindexed: UnindexedFields;
  /** When each issue that is found by figures was first found, as a date. */
  readonly #found = new Map<string, number>();
  /** Dead replicas of the cluster, and since when, by the clock that is never set. */
  #dead = new Map<string, Dead>();
  #seenCollections: ClusterState['collections'] | null = null;

  constructor(private readonly facts: AdviceFacts) {
    this.unindexed = new UnindexedFields(facts.dateMs);
  }

  /** Notes which replicas are Dead; to be called now and then, so that it is known for how long. Costs little where nothing has changed. */
  look(): void {
    const collections = this.facts.node.cluster?.state()?.collections ?? null;
    if (collections === null || collections === this.#seenCollections) return;
    this.#seenCollections = collections;
    const dead = new Map<string, Dead>();
    const nowMs = this.facts.monotonicMs();
    for (const [collection, { shards, uid }] of collections)
      for (const [shardId, { replicas, since }] of shards)
        for (const [peerId, state] of replicas) {
          if (state !== 'Dead') continue;
          const key = `${uid} ${shardId} ${peerId} ${since.get(peerId)}`;
          dead.set(key, this.#dead.get(key) ?? { collection, shardId, peerId, sinceMs: nowMs });
        }
    this.#dead = dead;
  }

  /** As far as the caller may know: about a token's collections alone, where it is limited to some. */
  issues(caller: Caller): Issue[] {
    this.look();
    const grants = grantsOf(caller);
    const all = [...this.unindexed.issues((collection, field) => this.#hasIndex(collection, field)), ...this.#dated(this.#findIssues())];
    if (grants === null) return [...all, ...this.facts.unknownFields.issues()];
    // A token that is bound to some points learns nothing of the others.
    return all.filter(({ collection }) => collection !== undefined && grants.get(collection)?.tenant === null);
  }

  /** Forgets what was seen. What still is so is found again. */
  clear(): void {
    this.unindexed.clear();
    this.facts.unknownFields.clear();
    this.#found.clear();
  }

  #hasIndex(collection: string, field: string): boolean | null {
    const { node } = this.facts;
    if (!node.exists(collection)) return null;
    return Object.hasOwn(node.info(collection).payload_schema, field);
  }

  #findIssues(): FoundIssue[] {
    const { disk, memory, node } = this.facts;
    const { budget, usedBytes } = memory.report();
    const state = node.cluster?.state() ?? null;
    return [
      ...deadIssues(this.#deadReplicas()),
      ...diskIssues(disk.report()),
      ...fullPeerIssues(node.cluster?.status() ?? null),
      ...memoryIssues({ budgetBytes: budget.bytes, usedBytes }, () => this.#memoryOfCollections()),
      ...(state === null ? [] : balanceIssues(replicaLoads(state), movesOf(state))),
    ];
  }

  /** With the date when each was first found. */
  #dated(found: readonly FoundIssue[]): Issue[] {
    const ids = new Set(found.map(({ id }) => id));
    for (const id of [...this.#found.keys()]) if (!ids.has(id)) this.#found.delete(id);
    return found.map((issue) => {
      const sinceMs = this.#found.get(issue.id) ?? this.facts.dateMs();
      this.#found.set(issue.id, sinceMs);
      return { ...issue, timestamp: new Date(sinceMs).toISOString() };
    });
  }

  #deadReplicas(): DeadReplica[] {
    const { cluster } = this.facts.node;
    const state = cluster?.state() ?? null;
    if (cluster === null || state === null) return [];
    const { connections, peerId: self } = cluster.status();
    const nowMs = this.facts.monotonicMs();
    return [...this.#dead.values()].map(({ collection, peerId, shardId, sinceMs }) => {
      const replicas = state.collections.get(collection)?.shards.get(shardId)?.replicas ?? new Map();
      const connection = connections.get(peerId);
      return {
        collection,
        shardId,
        peerId,
        deadMs: nowMs - sinceMs,
        peerConnected: peerId === self || connection?.connected === true,
        others: [...replicas].filter(([other]) => other !== peerId).map(([, other]) => other),
        reason: connection?.connected === false ? connection.lastError : null,
      };
    });
  }

  *#memoryOfCollections(): Iterable<CollectionMemory> {
    const { node } = this.facts;
    for (const name of node.listCollections()) {
      try {
        const segments = node.stats(name).flatMap((replica) => replica.segments);
        const { config } = node.info(name);
        const vectors = [...vectorsByName(config.params.vectors).values()];
        yield {
          name,
          vectorBytes: segments.reduce((sum, segment) => sum + segment.vectorBytes, 0),
          inMemory: vectors.some(({ on_disk }) => on_disk !== true),
          quantized:
            (config.quantization_config ?? null) !== null || vectors.some(({ quantization_config }) => quantization_config != null),
        };
      } catch {
        // Its configuration cannot be read, or it has just been deleted.
      }
    }
  }
}

/** Moves that are planned or under way. */
function movesOf({ collections, plannedMoves }: ClusterState): number {
  let running = 0;
  for (const { transfers } of collections.values()) running += transfers.length;
  return plannedMoves.length + running;
}
