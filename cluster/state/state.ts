/** What the nodes of a cluster agree on: the state that the log's entries lead to, the same on every node. */

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
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Outcome, PlannedMove, ReshardingStage, TransferKey } from './commands.js';

export interface ClusterState {
  /** Random, chosen by the founder. */
  readonly clusterId: string;
  /** Index of the last entry that led to it. */
  readonly appliedIndex: number;
  /** As committed. */
  readonly membership: Membership;
  readonly collections: ReadonlyMap<string, CollectionRecord>;
  readonly aliases: AliasMap;
  /** Of members that have something special about them. */
  readonly marks: ReadonlyMap<PeerId, PeerMark>;
  /** Moves that are still to be begun, in order (`POST /cluster/rebalance`). */
  readonly plannedMoves: readonly PlannedMove[];
  /** Proposals that were applied, by their origin. */
  readonly sessions: ReadonlyMap<PeerId, Session>;
}

/** What else is agreed about a member. Nothing of it: it has no mark. */
export interface PeerMark {
  /** Its node only listens (`storage.node_type`): its replicas take writes and serve no reads. */
  readonly listens: boolean;
  /** It gets no more replicas. `removal`: it is looked whether it holds any; `drain`: those that it has move away, then it is removed. */
  readonly leaving: 'removal' | 'drain' | null;
}

export const NO_MARK: PeerMark = { listens: false, leaving: null };

export interface CollectionRecord {
  /** Index of the entry that made it: a later collection of the same name has another one. */
  readonly uid: number;
  /** Index of the entry that last changed its configuration. */
  readonly revision: number;
  readonly config: CollectionConfig;
  readonly shards: ReadonlyMap<ShardId, ShardRecord>;
  /** Ids are not given twice. */
  readonly nextShardId: ShardId;
  readonly transfers: readonly TransferRecord[];
  /** The cluster makes and drops replicas so that there are `replication_factor` of them. */
  readonly autoReplication: boolean;
  /** Index of the entry that last changed which shard has which points: requests that were spread by another one are refused. */
  readonly shardMapVersion: number;
  /** A shard that comes or goes; null: none does. */
  readonly resharding: Resharding | null;
  /** Shard keys that wait for a copy to fill them (`initial_state: Partial`): until then their shards have no points for anybody. */
  readonly closedKeys: readonly ShardKey[];
  /** Points that are copied from one key to another; null: none are. */
  readonly keyCopy: KeyCopy | null;
}

/** Points of all shards of a key that are copied to the shards of another one (`replicate_points`), and stay. See `migration.ts`. */
export interface KeyCopy {
  readonly source: ShardKey;
  /** One that was closed is opened by the copy, at its end. */
  readonly target: ShardKey;
  /** JSON, as the API has filters; null: all points. */
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
  /** up: that comes. down: that goes. */
  readonly shardId: ShardId;
  /** Of its first replica. */
  readonly peerId: PeerId;
  /** Whose shards become one more or one less; null with automatic sharding. */
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
  /** Index of the entry that made each replica: a later one on the same peer is another one, which begins with nothing. */
  readonly since: ReadonlyMap<PeerId, number>;
  /** The Active replica that puts the shard's writes in order; null: none is there yet, or none is Active. See `leaders.ts`. */
  readonly leader: PeerId | null;
  /** How many leaders the shard has had: the term of what the present one writes. */
  readonly term: number;
}

export interface TransferRecord extends TransferKey {
  readonly method: TransferMethod;
  readonly sync: boolean;
  /** The target had no replica of the shard before: without success it has none after. */
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
    sessions: new Map(),
  };
}
