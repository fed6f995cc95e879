/** Commands: what changes the cluster's state, as it stands in the log. They carry decisions (a placement, a time), never ask for them. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import type { PeerId, ReplicaState, ReshardingDirection, ShardId, ShardKey, TransferMethod } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';

/** Peers that hold a replica of each of the new shards. */
export type Placement = readonly (readonly PeerId[])[];

/** Names a transfer within its collection. `toShardId` is another shard where points go to another key (see `KeyCopy`). */
export interface TransferKey {
  readonly shardId: ShardId;
  readonly from: PeerId;
  readonly to: PeerId;
  readonly toShardId: ShardId | null;
}

export interface ReplicaChange {
  readonly collection: string;
  /** The change is dropped when the collection of this name is another one by now. */
  readonly uid: number;
  readonly shardId: ShardId;
  readonly peerId: PeerId;
  /** Refused when it is in another state by now; null: whatever it is in. */
  readonly from: ReplicaState | null;
  readonly to: ReplicaState;
  /** Term of the shard: refused as `conflict` when it is another one by now; null: whichever it is. */
  readonly term: number | null;
}

/** A replica that goes, one that comes, or one that moves. from: null: it is copied from the leader; to: null: it is dropped. */
export interface PlannedMove {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly from: PeerId | null;
  readonly to: PeerId | null;
}

/**
 * copying: points are copied while writes go on. switching: writes wait for the last copies. cleaning: points that belong to another
 * shard by now are removed.
 */
export const RESHARDING_STAGES = ['copying', 'switching', 'cleaning'] as const;

export type ReshardingStage = (typeof RESHARDING_STAGES)[number];

export type ClusterCommand =
  | { readonly kind: 'createCollection'; readonly name: string; readonly config: CollectionConfig; readonly placement: Placement }
  /** `config` was made from revision `basedOn`: refused as `conflict` when there is a newer one. */
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
  /** placement: of the new shard (up); of none (down). */
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
  /** What a shard has to do in a stage is done. startedAt: as in `Resharding` or `KeyCopy`. term: as in `ReplicaChange`. */
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
  /** A replica with nothing for a shard that has none. */
  | { readonly kind: 'recreateShard'; readonly collection: string; readonly shardId: ShardId; readonly peerId: PeerId }
  /** sync: the source stays (`replicate_shard`); else the replica moves (`move_shard`). */
  | {
      readonly kind: 'startTransfer';
      readonly collection: string;
      readonly transfer: TransferKey;
      readonly method: TransferMethod;
      readonly sync: boolean;
    }
  /** The same transfer with another method, from its beginning. term: as in `ReplicaChange`. */
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
  /** See `PeerMark`. listens, leaving: null leaves it as it is; a peer that is not leaving any more `stays`. */
  | {
      readonly kind: 'markPeer';
      readonly peerId: PeerId;
      readonly listens: boolean | null;
      readonly leaving: 'removal' | 'drain' | 'stays' | null;
    }
  /** In the place of all that were planned before. */
  | { readonly kind: 'planMoves'; readonly moves: readonly PlannedMove[] }
  /** See `CollectionRecord.autoReplication`. */
  | { readonly kind: 'setAutoReplication'; readonly collection: string; readonly enabled: boolean }
  /** The lead of a shard goes to another Active replica: its leader has taken no more writes by then. uid, term: as in `ReplicaChange`. */
  | {
      readonly kind: 'changeLeader';
      readonly collection: string;
      readonly uid: number;
      readonly shardId: ShardId;
      readonly to: PeerId;
      readonly term: number;
    }
  /** Leaders for all shards that have an Active replica and no leader: those of earlier releases had none. */
  | { readonly kind: 'electLeaders' }
  /** Nothing but an index everyone agrees on. */
  | { readonly kind: 'noop' };

export type CommandOf<Kind extends ClusterCommand['kind']> = Extract<ClusterCommand, { kind: Kind }>;

/**
 * A command with the name of its proposal, by which one that was proposed twice is applied once. Source: dissertation,
 * section 6.3; a session is a start of the origin's process.
 */
export interface ProposedCommand {
  readonly origin: PeerId;
  readonly session: number;
  /** From 1, ascending within a session. */
  readonly sequence: number;
  /** The origin has the outcomes of everything below: they may be forgotten. */
  readonly doneBelow: number;
  readonly command: ClusterCommand;
}

/** What applying a command came to, the same on every node. changed: false where it asked for nothing new. */
export type Outcome = { readonly kind: 'done'; readonly changed: boolean } | { readonly kind: 'refused'; readonly error: ErrorFacts };
