/** What nodes of a cluster agree on, in the words of the API: peers, shards, replicas and transfers. */

/** A node in its cluster: 1 to 2^47, chosen at random when it founds or joins one. */
export type PeerId = number;

/** Within its collection, from 0. */
export type ShardId = number;

/** Label of shards that users name. An integer is unsigned with 64 bits, a bigint beyond 2^53. */
export type ShardKey = string | number | bigint;

/** The keys whose shards a request is for. */
export type ShardKeySelector =
  /** At least one. */
  | { readonly kind: 'keys'; readonly keys: readonly ShardKey[] }
  /** The target's shards when all of them serve, else the fallback's. */
  | { readonly kind: 'fallback'; readonly target: ShardKey; readonly fallback: ShardKey };

/** A shard as keys select it. */
export interface KeyedShard {
  readonly id: ShardId;
  /** Null with automatic sharding. */
  readonly key: ShardKey | null;
  /** Whether some replica of it is Active. Left out: it is. */
  readonly active?: boolean;
  /** Its key waits to be filled (`initial_state: Partial`): nobody reads or writes it by its key. Left out: no. */
  readonly closed?: boolean;
}

/** In the order of their numbers in gRPC. Source: contract, `ReplicaState`. */
export const REPLICA_STATES = [
  'Active',
  'Dead',
  'Partial',
  'Initializing',
  'Listener',
  'PartialSnapshot',
  'Recovery',
  'Resharding',
  'ReshardingScaleDown',
  'ActiveRead',
  'ManualRecovery',
] as const;

export type ReplicaState = (typeof REPLICA_STATES)[number];

/** In the order of their numbers in gRPC. Source: contract, `ShardTransferMethod`. */
export const TRANSFER_METHODS = ['stream_records', 'snapshot', 'wal_delta', 'resharding_stream_records'] as const;

export type TransferMethod = (typeof TRANSFER_METHODS)[number];

/** In the order of their numbers in gRPC. Source: contract, `ReshardingDirection`. */
export const RESHARDING_DIRECTIONS = ['up', 'down'] as const;

/** up: one more shard. down: one less. */
export type ReshardingDirection = (typeof RESHARDING_DIRECTIONS)[number];

/** How many replicas of each shard a read takes into account. Source: contract, `ReadConsistency`. */
export type ReadConsistency = number | 'majority' | 'quorum' | 'all';

/** A peer as the cluster's membership has it. */
export interface Member {
  readonly peerId: PeerId;
  /** Address of its internal port: `http://host:port`. */
  readonly uri: string;
  /** Troupe's version that it ran when it last said so. */
  readonly version: string;
  /** A learner (false) gets the log and has no vote. */
  readonly voter: boolean;
}

/** All peers of a cluster, by ascending peer id. */
export type Membership = readonly Member[];

/** `POST /collections/{name}/cluster` and the routes of shard keys. Source: contract, `ClusterOperations`. */
export type CollectionClusterUpdate =
  | {
      readonly kind: 'moveShard' | 'replicateShard';
      readonly shardId: ShardId;
      readonly toShardId: ShardId | null;
      readonly from: PeerId;
      readonly to: PeerId;
      readonly method: TransferMethod | null;
    }
  | {
      readonly kind: 'abortTransfer';
      readonly shardId: ShardId;
      readonly toShardId: ShardId | null;
      readonly from: PeerId;
      readonly to: PeerId;
    }
  | {
      readonly kind: 'restartTransfer';
      readonly shardId: ShardId;
      readonly toShardId: ShardId | null;
      readonly from: PeerId;
      readonly to: PeerId;
      readonly method: TransferMethod;
    }
  | { readonly kind: 'dropReplica'; readonly shardId: ShardId; readonly peerId: PeerId }
  /**
   * Troupe's own: a shard without an Active replica goes on with this one, or with nothing where it has none.
   * lost: peers whose replica is agreed to be Active, and cannot be used; a node finds out.
   */
  | { readonly kind: 'activateReplica'; readonly shardId: ShardId; readonly peerId: PeerId; readonly lost: readonly PeerId[] }
  | {
      readonly kind: 'createShardKey';
      readonly key: ShardKey;
      readonly shardsNumber: number | null;
      readonly replicationFactor: number | null;
      /** Peers that may hold replicas; null: all. */
      readonly placement: readonly PeerId[] | null;
      readonly initialState: ReplicaState | null;
    }
  | { readonly kind: 'dropShardKey'; readonly key: ShardKey }
  /** filter: JSON, as the API has filters, checked; null: all points. */
  | { readonly kind: 'replicatePoints'; readonly source: ShardKey; readonly target: ShardKey; readonly filter: string | null }
  /** peerId: where the new shard's first replica goes; null: wherever there is most room. */
  | {
      readonly kind: 'startResharding';
      readonly direction: ReshardingDirection;
      readonly peerId: PeerId | null;
      readonly key: ShardKey | null;
    }
  | { readonly kind: 'abortResharding' }
  /** Troupe's own: whether `replication_factor` is carried out, also when it changes or a peer is removed. */
  | { readonly kind: 'autoReplication'; readonly enabled: boolean };
