/** Commands that change the cluster's state, as the log has them. They carry decisions (a placement, a time) and leave none open. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import type { PeerId, ReplicaState, ReshardingDirection, ShardId, ShardKey, TransferMethod } from '../../protocols/model/cluster.js';
import type { CollectionConfig, FieldSchema } from '../../protocols/model/collection.js';

/** For each new shard, the peers that hold a replica of it. */
export type Placement = readonly (readonly PeerId[])[];

/** Names a transfer within its collection. `toShardId` is another shard if points are copied to another key (see `KeyCopy`). */
export interface TransferKey {
  readonly shardId: ShardId;
  readonly from: PeerId;
  readonly to: PeerId;
  readonly toShardId: ShardId | null;
}

export interface ReplicaChange {
  readonly collection: string;
  /** The change is dropped if the collection of this name has another `uid` by now. */
  readonly uid: number;
  readonly shardId: ShardId;
  readonly peerId: PeerId;
  /** The change is refused if the replica is in another state by now; null allows any state. */
  readonly from: ReplicaState | null;
  readonly to: ReplicaState;
  /** Term of the shard: the change is refused as `conflict` if the shard has another one by now; null allows any term. */
  readonly term: number | null;
}

/** A replica that is dropped, added or moved. from: null if it is copied from the leader. to: null if it is dropped. */
export interface PlannedMove {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly from: PeerId | null;
  readonly to: PeerId | null;
}

/**
 * The stages of a migration. copying: points are copied while writes go on. switching: writes wait for the last copies. cleaning: points
 * that belong to another shard by now are removed.
 */
export const RESHARDING_STAGES = ['copying', 'switching', 'cleaning'] as const;

export type ReshardingStage = (typeof RESHARDING_STAGES)[number];

export type ClusterCommand =
  | { readonly kind: 'createCollection'; readonly name: string; readonly config: CollectionConfig; readonly placement: Placement }
  /** `config` was made from revision `basedOn`: refused as `conflict` if there is a newer one. */
  | { readonly kind: 'updateCollection'; readonly name: string; readonly config: CollectionConfig; readonly basedOn: number }
  | { readonly kind: 'deleteCollection'; readonly name: string }
  | { readonly kind: 'changeAliases'; readonly actions: readonly AliasAction[] }
  | {
      readonly kind: 'createShardKey';
      readonly collection: string;
      readonly key: ShardKey;
      readonly placement: Placement;
      readonly initialState: ReplicaState | null;
      /** See `CollectionRecord.closedKeys`. */
      readonly closed: boolean;
    }
  | { readonly kind: 'dropShardKey'; readonly collection: string; readonly key: ShardKey }
  /** Changes `CollectionRecord.payloadIndexes`. schema: null if the index is dropped. uid: as in `ReplicaChange`. */
  | {
      readonly kind: 'setPayloadIndex';
      readonly collection: string;
      readonly uid: number;
      readonly field: string;
      readonly schema: FieldSchema | null;
    }
  /** Changes `ClusterState.metadata`. value: null if the key is deleted. */
  | { readonly kind: 'setMetadata'; readonly key: string; readonly value: string | null }
  /** placement: one list of peers for the new shard (up), or empty (down). */
  | {
      readonly kind: 'startResharding';
      readonly collection: string;
      readonly direction: ReshardingDirection;
      readonly key: ShardKey | null;
      readonly placement: Placement;
    }
  /** See `KeyCopy`. */
  | {
      readonly kind: 'startKeyCopy';
      readonly collection: string;
      readonly source: ShardKey;
      readonly target: ShardKey;
      readonly filter: string | null;
    }
  /** A shard has finished its task in a stage. startedAt: as in `Resharding` or `KeyCopy`. term: as in `ReplicaChange`. */
  | {
      readonly kind: 'finishStage';
      readonly collection: string;
      readonly startedAt: number;
      readonly stage: ReshardingStage;
      readonly shardId: ShardId;
      readonly term: number;
    }
  | { readonly kind: 'abortResharding'; readonly collection: string }
  | { readonly kind: 'setReplicaStates'; readonly changes: readonly ReplicaChange[] }
  | { readonly kind: 'dropReplica'; readonly collection: string; readonly shardId: ShardId; readonly peerId: PeerId }
  /** Makes an empty replica for a shard that has none. */
  | { readonly kind: 'recreateShard'; readonly collection: string; readonly shardId: ShardId; readonly peerId: PeerId }
  /** Starts a transfer. sync: the source stays (`replicate_shard`); otherwise the replica moves (`move_shard`). */
  | {
      readonly kind: 'startTransfer';
      readonly collection: string;
      readonly transfer: TransferKey;
      readonly method: TransferMethod;
      readonly sync: boolean;
    }
  /** Starts a transfer again from its beginning, with another method. term: as in `ReplicaChange`. */
  | {
      readonly kind: 'restartTransfer';
      readonly collection: string;
      readonly transfer: TransferKey;
      readonly method: TransferMethod;
      readonly term: number | null;
    }
  | { readonly kind: 'finishTransfer'; readonly collection: string; readonly transfer: TransferKey; readonly term: number | null }
  | {
      readonly kind: 'abortTransfer';
      readonly collection: string;
      readonly transfer: TransferKey;
      readonly reason: string;
      readonly term: number | null;
    }
  /** Changes a `PeerMark`. listens, leaving: null leaves the field as it is; `stays` ends a peer's leaving. */
  | {
      readonly kind: 'markPeer';
      readonly peerId: PeerId;
      readonly listens: boolean | null;
      readonly leaving: 'removal' | 'drain' | 'stays' | null;
    }
  /** Replaces all planned moves. */
  | { readonly kind: 'planMoves'; readonly moves: readonly PlannedMove[] }
  /** See `CollectionRecord.autoReplication`. */
  | { readonly kind: 'setAutoReplication'; readonly collection: string; readonly enabled: boolean }
  /**
   * Gives the lead of a shard to another Active replica; its leader has stopped taking writes by then. uid, term: as in `ReplicaChange`.
   */
  | {
      readonly kind: 'changeLeader';
      readonly collection: string;
      readonly uid: number;
      readonly shardId: ShardId;
      readonly to: PeerId;
      readonly term: number;
    }
  /** Elects leaders for all shards that have none although they could: the peer whose turn was waited for may have left. */
  | { readonly kind: 'electLeaders' }
  /** Changes nothing; its index is one that all nodes agree on. */
  | { readonly kind: 'noop' };

export type CommandOf<Kind extends ClusterCommand['kind']> = Extract<ClusterCommand, { kind: Kind }>;

/**
 * A command with the name of its proposal, so that a command that was proposed twice is applied once. Source: dissertation, section 6.3; a
 * session is one start of the origin's process.
 */
export interface ProposedCommand {
  readonly origin: PeerId;
  readonly session: number;
  /** From 1, ascending within a session. */
  readonly sequence: number;
  /** The origin has the outcomes of all lower sequences: these may be forgotten. */
  readonly doneBelow: number;
  readonly command: ClusterCommand;
}

/** The outcome of applying a command, the same on every node. changed: false if the command changed nothing. */
export type Outcome = { readonly kind: 'done'; readonly changed: boolean } | { readonly kind: 'refused'; readonly error: ErrorFacts };
