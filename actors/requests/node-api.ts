/** What the doors call: one node, its collections, and their points. */

import type { AliasAction } from '../../protocols/model/alias.js';
import type { ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { PoolDepths } from '../../storage/pool/pool.js';
import type { RawRequest, ReadOperation, ReplicaStats, WriteOperation } from '../../storage/threads/messages.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import type { ActorTelemetry } from '../runtime/telemetry.js';
import type { ReplicationStatus } from '../shard-log/view.js';
import type { CollectionView, OptimizationsView } from './report.js';

export interface LocalShard {
  readonly points: number;
  /** Of the replica on this node, as if it were the only one of its shard. */
  readonly state: ReplicaState;
  /** Its part in the shard's log; left out outside of a cluster. mayBeAhead: see `ReplicationEntry`. */
  readonly replication?: ReplicationStatus & { readonly mayBeAhead: boolean };
}

export interface AliasView {
  readonly alias_name: string;
  readonly collection_name: string;
}

/**
 * Where a name of a collection is asked for, an alias serves as well, but to create or delete one. In a cluster, collections and
 * aliases are changed by agreement: answered when this node, and up to `timeoutMs` every peer that can be reached, has carried it
 * out. Errors then also: `unavailable` without a leader, `timeout`, after which it may still be carried out.
 */
export interface NodeApi {
  /** Null: a node of its own. */
  readonly cluster: ClusterApi | null;
  /** Names in the order of their code units. */
  listCollections(): string[];
  exists(name: string): boolean;
  /** True when it is on disk and takes requests. Errors: `conflict` when there is one of this name, `wrongInput` when an alias has it. */
  createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** True when the changed configuration is on disk. Errors: `notFound`; what `change` throws. */
  updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** True when it is gone for good, false when there was none. */
  deleteCollection(name: string, timeoutMs?: number): Promise<boolean>;
  /** Aliases in the order of their code units; of one collection by its own name, or of all (null). */
  aliases(collection: string | null): AliasView[];
  /** True when all actions are done and on disk. Errors: `notFound`, `conflict`; nothing has changed then. */
  changeAliases(actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean>;
  /** With the figures of the replicas on this node. Errors: `notFound`; `storage` when its configuration cannot be read. */
  info(name: string): CollectionView;
  /** With the figures of one replica of each shard; a shard that nobody tells of is left out, and the collection is not green then. Errors: as `info`. */
  wholeInfo(name: string): Promise<CollectionView>;
  optimizations(name: string): OptimizationsView;
  /** Figures of the collection's replicas on this node. */
  stats(name: string): readonly ReplicaStats[];
  /** The collection's shards on this node: their points, and states in the words of the API. */
  localShards(name: string): ReadonlyMap<ShardId, LocalShard>;
  /** JSON of the result. Errors: `notFound`, `unavailable` with the reason, `busy`, `timeout`, and those of the operation. */
  read(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array>;
  /**
   * JSON of the result. wait: answer when it is applied (for `createFieldIndex`: when every segment has the index), else when
   * it is safe on disk. The body is given away. Errors: as `read`.
   */
  write(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array>;
  /** What measured requests (`RawRequest.usage`) have cost since the start, by collection; others are left out. */
  hardware(): ReadonlyMap<string, HardwareUsage>;
  /** The tree of actors, from the node's. */
  telemetry(): ActorTelemetry;
  depths(): PoolDepths;
  /** Threads of running builds. */
  buildBudget(): { readonly threads: number; readonly threadsMax: number; readonly waiting: number };
  /** Resolves when every collection found at start is open or known not to be. */
  whenReady(): Promise<void>;
  /** Closes every collection: queued writes are done. The engine's workers are the caller's to close. */
  close(): Promise<void>;
}
