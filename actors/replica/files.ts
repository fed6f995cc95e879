/**
 * Opens and closes replicas' files, one thing at a time for each replica, also when actors come and go meanwhile:
 * a replica is closed only when its opening has ended and no build reads or writes its folder any more.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { BuildOrder, BuildProgress } from '../../storage/pool/pool.js';
import type { BuildReport, ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import type { VerifiedReplicas } from '../context/verified-replicas.js';
import type { EnginePort } from '../runtime/ports.js';
import type { AssignedShard } from '../shard-log/assignments.js';

/** Key of a shard's local replica. */
export function replicaKey(collection: string, shardId: ShardId): ReplicaKey {
  return `${keysBegin(collection)}${shardId}`;
}

/** What the keys of a collection's replicas begin with, and no others. */
function keysBegin(collection: string): string {
  return `${collection}/`;
}

export class ReplicaFiles {
  /** The last thing that was begun, by replica; it never rejects. */
  readonly #last = new Map<ReplicaKey, Promise<void>>();
  readonly #builds = new Map<ReplicaKey, Set<Promise<unknown>>>();
  /** Replicas that were open in this process. */
  readonly #opened = new Set<ReplicaKey>();
  readonly #lost = new Map<ReplicaKey, AssignedShard>();

  constructor(
    readonly engine: EnginePort,
    readonly verified: VerifiedReplicas,
  ) {}

  /** Checks the files and opens them; what an earlier life left open is closed first. */
  open(key: ReplicaKey, folder: string, config: () => CollectionConfig): Promise<ReplicaStats> {
    return this.#inTurn(key, async () => {
      await this.#close(key).catch(() => {});
      const check = () => this.verified.check(folder);
      const asleep = await this.engine.openAsleep({ key, folder, config: config() }, check);
      return asleep ?? this.engine.openReplica({ key, folder, config: config() }, await check());
    }).then((stats) => this.#noteOpened(key, stats));
  }

  /** Closes the files, lets `exchange` put others in their place, and opens those. */
  reopen(key: ReplicaKey, folder: string, config: () => CollectionConfig, exchange: () => Promise<void>): Promise<ReplicaStats> {
    return this.#inTurn(key, async () => {
      await this.#close(key);
      await exchange();
      const damaged = await this.verified.check(folder);
      return this.engine.openReplica({ key, folder, config: config() }, damaged);
    }).then((stats) => this.#noteOpened(key, stats));
  }

  /** Shards of which this process has never had a replica open, as its files were gone when it began. */
  get lost(): Iterable<AssignedShard> {
    return this.#lost.values();
  }

  /** Notes that the files of a replica that the cluster counts on are gone. */
  noteLost(key: ReplicaKey, shard: AssignedShard): void {
    if (!this.#opened.has(key)) this.#lost.set(key, shard);
  }

  /** The files of a collection, or of one of its shards, are deleted: what comes later under its name is another one. */
  forget(collection: string, shardId: ShardId | null): void {
    const isIts = (key: ReplicaKey) => (shardId === null ? key.startsWith(keysBegin(collection)) : key === replicaKey(collection, shardId));
    for (const keys of [this.#opened, this.#lost]) for (const key of keys.keys()) if (isIts(key)) keys.delete(key);
  }

  /** When it resolves no thread has a file of the replica open. Builds must have been given up before: it waits for their end. */
  close(key: ReplicaKey): Promise<void> {
    return this.#inTurn(key, () => this.#close(key));
  }

  build(key: ReplicaKey, plan: BuildOrder, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport> {
    const build = this.engine.build(key, plan, onProgress, signal);
    const running = this.#builds.get(key) ?? new Set();
    this.#builds.set(key, running.add(build));
    const forget = () => {
      running.delete(build);
      if (running.size === 0 && this.#builds.get(key) === running) this.#builds.delete(key);
    };
    build.then(forget, forget);
    return build;
  }

  #noteOpened(key: ReplicaKey, stats: ReplicaStats): ReplicaStats {
    this.#opened.add(key);
    this.#lost.delete(key);
    return stats;
  }

  async #close(key: ReplicaKey): Promise<void> {
    await Promise.allSettled([...(this.#builds.get(key) ?? [])]);
    await this.engine.closeReplica(key);
  }

  #inTurn<Value>(key: ReplicaKey, run: () => Promise<Value>): Promise<Value> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(run);
    const ended = result.then(
      () => {},
      () => {},
    );
    this.#last.set(key, ended);
    ended.then(() => {
      if (this.#last.get(key) === ended) this.#last.delete(key);
    });
    return result;
  }
}
