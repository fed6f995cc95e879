/** The interface that the HTTP and gRPC servers call on a node of a cluster. */

import type { PeerDetails } from '../../cluster/peer-messages.js';
import type { InternalPort, PeerConnection, PeerTransport } from '../../cluster/ports.js';
import type { RaftEffect, RaftInput } from '../../cluster/raft/messages.js';
import type { RaftState } from '../../cluster/raft/state.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { ClusterState } from '../../cluster/state/state.js';
import type { TransferLimits } from '../../cluster/transfer/healing.js';
import type { CollectionClusterUpdate, PeerId, TransferMethod } from '../../protocols/model/cluster.js';
import type { ConsensusStore } from '../../protocols/model/consensus.js';
import type { PeerCallStats } from '../context/call-stats.js';
import type { TransferBoard } from '../transfers/board.js';

/** Options of a node in a cluster. The caller closes log and transport after the node. */
export interface ClusterOptions {
  readonly store: ConsensusStore;
  readonly transport: PeerTransport;
  /** `--uri`; null if the member that lets this node in derives it. */
  readonly uri: string | null;
  /** `--bootstrap`; null to found a cluster, unless this node is part of one. */
  readonly bootstrap: string | null;
  /** Port of the internal server. */
  readonly port: number;
  /** Troupe's version. */
  readonly version: string;
  readonly tickMs: number;
  /** `cluster.consensus.compact_wal_entries`; 0 if the log is never compacted. */
  readonly compactEntries: number;
  /** `storage.node_type: Listener`. Default: no. */
  readonly listens?: boolean;
  /** `storage.shard_transfer_method`, for transfers that name no method. Default: `stream_records`. */
  readonly transferMethod?: TransferMethod | null;
  /**
   * `storage.performance.*_shard_transfers_limit`: most automatic transfers of one collection at a time to a peer, and from one; null for
   * no limit.
   */
  readonly transferLimits?: TransferLimits;
  /** `cluster.digest_period_sec`: period of comparing a replica's digest with its leader's; 0 for never. Default: ten minutes. */
  readonly comparePeriodMs?: number;
  /**
   * `cluster.leader_spread_sec`: time without changes before leads of shards are spread over the nodes again; 0 for never. Default: 30
   * seconds.
   */
  readonly restMs?: number;
  /** `cluster.survivor`: whether this node, one of two, may go on alone when the other one has ended (Raft-R11). Default: yes. */
  readonly survives?: boolean;
  /** Called when this node cannot become a member before an operator has changed something; says what. */
  readonly onGivenUp?: (why: string) => void;
  /** Replaces `cluster/raft/step.ts` in simulations that break a rule on purpose. */
  readonly raftStep?: StepRaft;
}

export const TRANSFER_LIMITS: TransferLimits = { incoming: 1, outgoing: 1 };

export type StepRaft = (state: RaftState, input: RaftInput) => { readonly state: RaftState; readonly effects: readonly RaftEffect[] };

/** The settings of consensus, for reports. */
export interface ClusterFigures {
  readonly tickMs: number;
  /** joinMs: time limit of one try to join. requestMs: time limit of other requests to a peer. */
  readonly joinMs: number;
  readonly requestMs: number;
  /** Most messages that wait for one peer. */
  readonly queuedMessagesMax: number;
}

export interface ClusterApi {
  readonly config: ClusterFigures;
  /** Transfers that this node executes, and results of comparing digests. */
  readonly transfers: TransferBoard;
  readonly calls: PeerCallStats;
  /** The present status of this node. */
  status(): ClusterStatus;
  /** The agreed state; null until this node is part of a cluster. */
  state(): ClusterState | null;
  /** Checks that this node may serve. Errors: `unavailable` after a start, while it may know less than what was agreed before. */
  checkStarted(): void;
  /**
   * Null if this node may serve now. Else it resolves as soon as it may: requests are held for so long, at most ten seconds. Errors: as
   * `checkStarted`, when the time is over.
   */
  whenStarted(timeoutMs: number): Promise<void> | null;
  /** As `whenStarted`, once this node has read from its disk what it knew before it was started; that may be older than what is agreed. */
  whenRead(timeoutMs: number): Promise<void> | null;
  /**
   * Resolves once everything that was committed anywhere before the call is applied here. Errors: `unavailable` without a leader,
   * `timeout`.
   */
  barrier(timeoutMs: number): Promise<void>;
  /**
   * Removes a peer; resolves to true when the cluster has agreed, or if it is no member. Errors: `badRequest` while it holds shards, unless
   * forced; `wrongInput` for the last one with a vote; `unavailable`, `timeout`.
   */
  removePeer(peerId: PeerId, force: boolean, timeoutMs: number): Promise<boolean>;
  /**
   * Takes over the leader's state; resolves to true when it is installed here, on the leader at once. Errors: `conflict`, `unavailable`,
   * `timeout`.
   */
  recover(timeoutMs: number): Promise<boolean>;
  /**
   * Executes one operation of `update_collection_cluster`. Errors: `notFound`, `badRequest`, `wrongInput`, `conflict`, `unsupported`, `unavailable`,
   * `timeout`.
   */
  updateCollectionCluster(collection: string, operation: CollectionClusterUpdate, timeoutMs: number): Promise<boolean>;
  /**
   * Has a command agreed on. settles: resolves when this node and all others that can be reached have executed it (the default), not as soon
   * as it is agreed on. Errors: those of the command, `unavailable`, `timeout`.
   */
  change(command: ClusterCommand, timeoutMs: number, settles?: boolean): Promise<boolean>;
  /** Each peer's description of itself; null for a peer that does not answer in time. */
  describePeers(timeoutMs: number): Promise<ReadonlyMap<PeerId, PeerDetails | null>>;
}

export interface ClusterStatus {
  readonly peerId: PeerId;
  readonly phase: 'Starting' | 'Joining' | 'Member' | 'Removed' | 'Broken';
  /** Why it is not a member, or another error; null if there is none. */
  readonly error: string | null;
  /** Null until its log is loaded. */
  readonly raft: RaftState | null;
  /**
   * The other one of two nodes, if it has pledged to do nothing alone: if it ends now, this node goes on without it (Raft-R11). Null
   * otherwise.
   */
  readonly pledgedBy: PeerId | null;
  /** Index up to which the agreed state has been executed on this node; 0 at first. */
  readonly carriedOut: number;
  /** There has been no leader for so long that requests which need one are refused. */
  readonly leaderless: boolean;
  /** Peers whose disk is full, this one among them, as far as this node knows (Disk-D4). */
  readonly fullPeers: ReadonlySet<PeerId>;
  /** This node knows everything that was agreed before its process started. */
  readonly caughtUp: boolean;
  /** Number of operations that are committed and not yet applied, or proposed here and not yet answered. */
  readonly pendingOperations: number;
  /** Time of the last step. */
  readonly lastUpdateMs: number;
  readonly connections: ReadonlyMap<PeerId, PeerConnection>;
  readonly internalPort: InternalPort;
}
