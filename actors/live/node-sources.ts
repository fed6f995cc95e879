/** What of a node can be followed live, read from what its actors show. */

import type { ClusterState, CollectionRecord } from '../../cluster/state/state.js';
import { errorFacts } from '../../protocols/errors.js';
import type { NodeApi } from '../requests/node-api.js';
import type { ActorEvent, ActorSystem } from '../runtime/actor.js';
import type { Clock } from '../runtime/ports.js';
import type { Assignments } from '../shard-log/assignments.js';
import type { LiveSignal, LiveSources, Topic } from './topics.js';

export interface NodeToFollow {
  readonly api: Pick<NodeApi, 'cluster' | 'exists' | 'info' | 'listCollections' | 'localShards' | 'optimizations'>;
  readonly system: Pick<ActorSystem, 'follow'>;
  readonly assignments: Pick<Assignments, 'agreed' | 'watchAll'>;
  readonly clock: Clock;
}

/** What a message of an actor of this kind may have changed of its collection; of a kind that is left out, nothing that is shown. */
const OF_COLLECTION: Readonly<Record<string, readonly Topic[]>> = {
  collection: ['collections', 'replicas'],
  shard: ['collections', 'replicas'],
  replica: ['collections', 'replicas'],
  optimizer: ['collections', 'optimizations'],
};
const OF_AGREEMENT: readonly Topic[] = ['collections', 'replicas', 'transfers'];

export class NodeSources implements LiveSources {
  /** The last event of each actor whose state has changed. */
  readonly #actors = new Map<string, ActorEvent>();

  constructor(private readonly node: NodeToFollow) {}

  watch(listener: (signal: LiveSignal) => void): () => void {
    const { assignments, system } = this.node;
    const stop = system.follow((event) => this.#onActor(event, listener));
    let known: ClusterState['collections'] = assignments.agreed?.collections ?? NO_COLLECTIONS;
    const cancel = assignments.watchAll(() => {
      const agreed = assignments.agreed?.collections ?? NO_COLLECTIONS;
      for (const name of changedRecords(known, agreed)) for (const topic of OF_AGREEMENT) listener({ topic, group: name });
      known = agreed;
    });
    return () => {
      stop();
      cancel();
      this.#actors.clear();
    };
  }

  groups(topic: Topic): Iterable<string> {
    return topic === 'actors' ? [] : this.node.api.listCollections();
  }

  read({ group, topic }: LiveSignal): readonly object[] {
    if (topic === 'actors') return this.#readActor(group);
    if (!this.node.api.exists(group)) return [];
    switch (topic) {
      case 'collections':
        return [this.#readCollection(group)];
      case 'replicas':
        return this.#readReplicas(group);
      case 'transfers':
        return this.#readTransfers(group);
      case 'optimizations':
        return this.#readOptimizations(group);
      default:
        return topic satisfies never;
    }
  }

  #onActor(event: ActorEvent, listener: (signal: LiveSignal) => void): void {
    const { isChanged, kind, path } = event;
    if (isChanged) {
      this.#actors.set(path, event);
      listener({ topic: 'actors', group: path });
    }
    const topics = OF_COLLECTION[kind];
    if (topics !== undefined) {
      const [, , collection] = path.split('/');
      if (collection !== undefined) for (const topic of topics) listener({ topic, group: collection });
      return;
    }
    if (kind !== 'transfer' && kind !== 'migration') return;
    const board = this.node.api.cluster?.transfers;
    for (const { run } of board?.running.values() ?? []) listener({ topic: 'transfers', group: run.collection });
    for (const { task } of board?.migrations.values() ?? []) listener({ topic: 'transfers', group: task.collection });
  }

  #readActor(path: string): readonly object[] {
    const event = this.#actors.get(path);
    if (event === undefined || event.state === null) {
      this.#actors.delete(path);
      return [];
    }
    const { error, kind, restarts, state } = event;
    return [{ path, kind, state, restarts, last_error: error }];
  }

  #readCollection(name: string): object {
    try {
      const { indexed_vectors_count, optimizer_status, points_count, segments_count, status } = this.node.api.info(name);
      return { name, status, optimizer_status, points_count, indexed_vectors_count, segments_count };
    } catch (error) {
      return { name, status: 'red', optimizer_status: { error: errorFacts(error).detail } };
    }
  }

  #readReplicas(name: string): readonly object[] {
    const record = this.#record(name);
    if (record === undefined)
      return [...this.node.api.localShards(name)].map(([shard_id, { state }]) => ({ shard_id, peer_id: null, state, leads: true }));
    return [...record.shards].flatMap(([shard_id, { leader, replicas }]) =>
      [...replicas].map(([peer_id, state]) => ({ shard_id, peer_id, state, leads: peer_id === leader })),
    );
  }

  #readTransfers(name: string): readonly object[] {
    const board = this.node.api.cluster?.transfers;
    return (this.#record(name)?.transfers ?? []).map((transfer) => {
      const { from, method, shardId, sync, to, toShardId } = transfer;
      const comment = board?.comment(name, transfer, this.node.clock.nowMs()) ?? null;
      return { shard_id: shardId, to_shard_id: toShardId, from, to, sync, method, comment };
    });
  }

  #readOptimizations(name: string): readonly object[] {
    const { completed, running, summary } = this.node.api.optimizations(name);
    const shown = running.map(({ optimizer, progress, segments, uuid }) => {
      const { done, name: stage, total } = progress;
      return { uuid, optimizer, stage, done, total, points: segments.reduce((sum, { points_count }) => sum + points_count, 0) };
    });
    return [{ running: shown, queued: summary.queued_optimizations, last: completed[0]?.uuid ?? null }];
  }

  #record(name: string): CollectionRecord | undefined {
    return this.node.assignments.agreed?.collections.get(name);
  }
}

const NO_COLLECTIONS: ClusterState['collections'] = new Map();

/** Names of collections that are not as they were. */
function* changedRecords(before: ClusterState['collections'], now: ClusterState['collections']): Iterable<string> {
  for (const [name, record] of now) if (before.get(name) !== record) yield name;
  for (const name of before.keys()) if (!now.has(name)) yield name;
}
