/** The interface that the HTTP and gRPC servers call: one node, its collections, and their points. */

import type { AliasAction } from '../../protocols/model/alias.js';
import type { ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { OptimizationsView } from '../../protocols/model/optimizations.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { PoolDepths } from '../../storage/pool/pool.js';
import type { OwnReadsChange, RawRequest, ReadOperation, ReplicaStats, WriteOperation } from '../../storage/threads/messages.js';
import type { BackupBoard } from '../backups/board.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import type { LiveChange, LiveGroup, Topic } from '../live/topics.js';
import type { Cancel } from '../runtime/ports.js';
import type { ActorTelemetry } from '../runtime/telemetry.js';
import type { ReplicationStatus } from '../shard-log/view.js';
import type { SnapshotApi } from '../snapshots/snapshot-api.js';
import type { BuildView, CollectionView, ReplicaFacts } from './report.js';

export interface LocalShard {
  readonly points: number;
  /** State of the replica on this node, as if it were the only one of its shard. */
  readonly state: ReplicaState;
  /** Its part in the shard's log; absent outside of a cluster. mayBeAhead: see `ReplicationEntry`. */
  readonly replication?: ReplicationStatus & { readonly mayBeAhead: boolean };
}

/** A replica on this node. */
export interface ReplicaReport extends ReplicaFacts {
  readonly status: CollectionView['status'];
  /** Newest first, a bounded number. */
  readonly builds: readonly BuildView[];
}

export interface AliasView {
  readonly alias_name: string;
  readonly collection_name: string;
}

/** What changes on a node. */
export interface LiveStreams {
  /** Calls the listener with changes, of each topic two a second at most, until it is cancelled. */
  subscribe(listener: (change: LiveChange) => void): Cancel;
  /** What a topic has now, each group read when it is asked for. */
  snapshot(topic: Topic): Iterable<LiveGroup>;
}

/**
 * One node's operations. An alias may be given in place of a collection's name, except to create or delete a collection. In a cluster,
 * collections and aliases are changed by agreement: the answer comes when this node and, within `timeoutMs`, every reachable peer has
 * executed the change. Additional errors then: `unavailable` without a leader; `timeout`, after which the change may still be executed.
 */
export interface NodeApi {
  /** Null on a node without a cluster. */
  readonly cluster: ClusterApi | null;
  readonly snapshots: SnapshotApi;
  readonly backups: BackupBoard;
  /** Names of all collections, in the order of their code units. */
  listCollections(): string[];
  exists(name: string): boolean;
  /**
   * Resolves to true when the collection is on disk and takes requests. Errors: `conflict` if a collection has this name, `wrongInput` if
   * an alias has it.
   */
  createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** Resolves to true when the changed configuration is on disk. Errors: `notFound`; whatever `change` throws. */
  updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** Resolves to true when the collection is deleted for good, to false if there was none. */
  deleteCollection(name: string, timeoutMs?: number): Promise<boolean>;
  /** Aliases in the order of their code units. collection: the collection's own name; null for the aliases of all collections. */
  aliases(collection: string | null): AliasView[];
  /** Resolves to true when all actions are done and on disk. Errors: `notFound`, `conflict`; nothing has changed then. */
  changeAliases(actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean>;
  /** The collection with the figures of the replicas on this node. Errors: `notFound`; `storage` if its configuration cannot be read. */
  info(name: string): CollectionView;
  /**
   * The collection with the figures of one replica of each shard. A shard whose replicas don't answer is left out, and the collection is
   * not green then. Errors: as `info`.
   */
  wholeInfo(name: string, timeoutMs?: number): Promise<CollectionView>;
  /**
   * Has the listener called in each change of what readers may read for clients without asking the main thread; it may call `take` later, which
   * returns all that has changed since it was called last.
   */
  watchOwnReads(listener: (take: () => OwnReadsChange) => void): void;
  /** What the optimizers of the collection's replicas on this node do. Errors: as `info`. */
  optimizations(name: string): OptimizationsView;
  /** The same of the replicas on all nodes; those that don't answer are left out. Errors: as `info`. */
  wholeOptimizations(name: string, timeoutMs?: number): Promise<OptimizationsView>;
  /** Figures of the collection's replicas on this node. */
  stats(name: string): readonly ReplicaStats[];
  /** The collection's replicas on this node, with their states in the words of the API. Errors: as `info`. */
  replicas(name: string): readonly ReplicaReport[];
  /** The collection's shards on this node: their points, and states in the words of the API. */
  localShards(name: string): ReadonlyMap<ShardId, LocalShard>;
  /** The result as JSON. Errors: `notFound`, `unavailable` with the reason, `busy`, `timeout`, and those of the operation. */
  read(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array>;
  /**
   * The result as JSON. wait: true to answer when the write is applied (`createFieldIndex`: when every segment has the index), false to
   * answer when it is durable. The caller must not use the body any more. Errors: as `read`.
   */
  write(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array>;
  /** The cost of measured requests (`RawRequest.usage`) since the start, by collection; collections without any are left out. Each is made when it is read. */
  hardware(): Iterable<readonly [collection: string, usage: HardwareUsage]>;
  /** The tree of actors, from the node actor on. */
  telemetry(): ActorTelemetry;
  /** What changes on this node, to be followed; loaded when it is first asked for. */
  live(): Promise<LiveStreams>;
  depths(): PoolDepths;
  /** threads: threads of running builds. */
  buildBudget(): { readonly threads: number; readonly threadsMax: number; readonly waiting: number };
  /** Resolves when every collection found at start is open or has failed to open. */
  whenReady(): Promise<void>;
  /** Closes every collection after its queued writes. The caller closes the engine's workers. */
  close(): Promise<void>;
}
