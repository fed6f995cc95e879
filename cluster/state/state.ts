/** The state that the nodes of a cluster agree on. It follows from the log's entries, so it is the same on every node. */

import type { AliasMap } from '../../protocols/model/alias.js';
import type {
  Membership,
  PeerId,
  ReplicaState,
  ReshardingDirection,
  ShardId,
  ShardKey,
  TransferMethod,
} from '../../protocols/model/cluster.js';
import type { CollectionConfig, FieldSchema } from '../../protocols/model/collection.js';
import type { Outcome, PlannedMove, ReshardingStage, TransferKey } from './commands.js';

export interface ClusterState {
  /** A random UUID, chosen by the founder. */
  readonly clusterId: string;
  /** Index of the last applied entry. */
  readonly appliedIndex: number;
  /** The committed membership. */
  readonly membership: Membership;
  readonly collections: ReadonlyMap<string, CollectionRecord>;
  readonly aliases: AliasMap;
  /** Marks of members; a member without a mark is an ordinary one. */
  readonly marks: ReadonlyMap<PeerId, PeerMark>;
  /** Moves that have not been started yet, in order (`POST /cluster/rebalance`). */
  readonly plannedMoves: readonly PlannedMove[];
  /** Small values that users keep under keys (`/cluster/metadata/keys`), as JSON. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Applied proposals, by their origin. */
  readonly sessions: ReadonlyMap<PeerId, Session>;
}

/** Attributes of a member beyond its membership. A member without any has no mark. */
export interface PeerMark {
  /** Its node only listens (`storage.node_type`): its replicas take writes and serve no reads. */
  readonly listens: boolean;
  /**
   * Set if the peer gets no more replicas. `removal`: the cluster is checking whether it still holds any; `drain`: its replicas move away,
   * then it is removed. Null if it stays.
   */
  readonly leaving: 'removal' | 'drain' | null;
}

export const NO_MARK: PeerMark = { listens: false, leaving: null };

export interface CollectionRecord {
  /** Index of the entry that made the collection: a later collection of the same name has another one. */
  readonly uid: number;
  /** Index of the entry that last changed the collection's configuration. */
  readonly revision: number;
  readonly config: CollectionConfig;
  readonly shards: ReadonlyMap<ShardId, ShardRecord>;
  /** The id of the next new shard; ids are never given twice. */
  readonly nextShardId: ShardId;
  readonly transfers: readonly TransferRecord[];
  /** The cluster makes and drops replicas so that each shard has `replication_factor` of them. */
  readonly autoReplication: boolean;
  /** Index of the entry that last changed which shard has which points. Requests that were made with another version are refused. */
  readonly shardMapVersion: number;
  /** The resharding under way; null if there is none. */
  readonly resharding: Resharding | null;
  /** Shard keys that wait for a copy to fill them (`initial_state: Partial`). Until then no request sees points in their shards. */
  readonly closedKeys: readonly ShardKey[];
  /** The copy from one shard key to another that is under way; null if there is none. */
  readonly keyCopy: KeyCopy | null;
  /**
   * Payload indexes of a collection with shard keys, for the shards of keys that come. Those that were made by earlier releases are in the
   * shards alone.
   */
  readonly payloadIndexes: ReadonlyMap<string, FieldSchema>;
}

/**
 * A copy of points from all shards of one key to the shards of another (`replicate_points`); the source keeps its points. See
 * `migration.ts`.
 */
export interface KeyCopy {
  readonly source: ShardKey;
  /** A key that is closed is opened at the end of the copy. */
  readonly target: ShardKey;
  /** The filter as JSON in the API's form; null for all points. */
  readonly filter: string | null;
  readonly stage: Exclude<ReshardingStage, 'cleaning'>;
  /** Shards of the source that have finished the stage. */
  readonly done: readonly ShardId[];
  /** Index of the entry that started it, or restarted it last. */
  readonly startedAt: number;
}

/** See `migration.ts`. */
export interface Resharding {
  readonly direction: ReshardingDirection;
  /** up: the new shard. down: the shard that is removed. */
  readonly shardId: ShardId;
  /** Peer of the shard's first replica. */
  readonly peerId: PeerId;
  /** The shard key whose number of shards changes; null with automatic sharding. */
  readonly key: ShardKey | null;
  readonly stage: ReshardingStage;
  /** Shards that have finished the stage. */
  readonly done: readonly ShardId[];
  /** Index of the entry that started it. */
  readonly startedAt: number;
}

export interface ShardRecord {
  /** Null with automatic sharding. */
  readonly key: ShardKey | null;
  readonly replicas: ReadonlyMap<PeerId, ReplicaState>;
  /** For each replica, the index of the entry that made it. A later replica on the same peer has another index and begins empty. */
  readonly since: ReadonlyMap<PeerId, number>;
  /**
   * The peer of the Active replica that orders the shard's writes; null if no leader has been elected yet, or if no replica is Active. See
   * `leaders.ts`.
   */
  readonly leader: PeerId | null;
  /** The number of leaders that the shard has had, which is the present leader's term. */
  readonly term: number;
}

export interface TransferRecord extends TransferKey {
  readonly method: TransferMethod;
  readonly sync: boolean;
  /** The transfer made the target's replica: if it fails, the replica is dropped. */
  readonly targetIsNew: boolean;
  /** Index of the entry that started it, or restarted it last. */
  readonly startedAt: number;
}

export interface Session {
  readonly session: number;
  readonly doneBelow: number;
  readonly outcomes: ReadonlyMap<number, Outcome>;
}

/** The state before the first entry. */
export function emptyState(clusterId: string): ClusterState {
  return {
    clusterId,
    appliedIndex: 0,
    membership: [],
    collections: new Map(),
    aliases: new Map(),
    marks: new Map(),
    plannedMoves: [],
    metadata: new Map(),
    sessions: new Map(),
  };
}
