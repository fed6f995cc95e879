/** What the doors call of a node that is part of a cluster. */

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

/** Log and transport are the caller's to close, after the node. */
export interface ClusterOptions {
  readonly store: ConsensusStore;
  readonly transport: PeerTransport;
  /** `--uri`; null: derived by the member that is asked to let this node in. */
  readonly uri: string | null;
  /** `--bootstrap`; null: found a cluster, unless this node is part of one. */
  readonly bootstrap: string | null;
  /** Of the internal door. */
  readonly port: number;
  /** Troupe's version. */
  readonly version: string;
  readonly tickMs: number;
  /** `cluster.consensus.compact_wal_entries`; 0: the log is never compacted. */
  readonly compactEntries: number;
  /** `storage.node_type: Listener`. Default: no. */
  readonly listens?: boolean;
  /** `storage.shard_transfer_method`: of transfers that name none. Default: `stream_records`. */
  readonly transferMethod?: TransferMethod | null;
  /** `storage.performance.*_shard_transfers_limit`: automatic transfers of one collection to a peer, and from one, at a time; null: any number. */
  readonly transferLimits?: TransferLimits;
  /** `cluster.digest_period_sec`: between two comparisons of a replica's digest with its leader's; 0: never. Default: ten minutes. */
  readonly comparePeriodMs?: number;
  /** `cluster.leader_spread_sec`: of rest, before leads of shards are spread over the nodes again; 0: never. Default: 30 seconds. */
  readonly restMs?: number;
  /** `cluster.survivor`: whether this node, one of two, may go on alone when the other one has ended (Raft-R11). Default: yes. */
  readonly survives?: boolean;
  /** Takes Raft's steps in the place of `cluster/raft/step.ts`: simulations break a rule on purpose. */
  readonly raftStep?: StepRaft;
}

export const TRANSFER_LIMITS: TransferLimits = { incoming: 1, outgoing: 1 };

export type StepRaft = (state: RaftState, input: RaftInput) => { readonly state: RaftState; readonly effects: readonly RaftEffect[] };

/** How consensus is set up, for those who look at it. */
export interface ClusterFigures {
  readonly tickMs: number;
  /** For one try of a joining node, and for other requests to a peer. */
  readonly joinMs: number;
  readonly requestMs: number;
  /** Messages that wait for one peer. */
  readonly queuedMessagesMax: number;
}

export interface ClusterApi {
  readonly config: ClusterFigures;
  /** Transfers that this node carries out, and what comparing digests has found. */
  readonly transfers: TransferBoard;
  readonly calls: PeerCallStats;
  /** As of now, on this node. */
  status(): ClusterStatus;
  /** Null until this node is part of a cluster. */
  state(): ClusterState | null;
  /** Errors: `unavailable` while a node that starts may know less than what was agreed before. */
  checkStarted(): void;
  /** Once everything that was committed anywhere before the call is applied here. Errors: `unavailable` without a leader, `timeout`. */
  barrier(timeoutMs: number): Promise<void>;
  /** True when the cluster has agreed. Errors: `notFound`; `wrongInput` while it holds shards, unless forced; `unavailable`, `timeout`. */
  removePeer(peerId: PeerId, force: boolean, timeoutMs: number): Promise<boolean>;
  /** True when the leader's state is installed here. Errors: `wrongInput` on the leader; `unavailable`, `timeout`. */
  recover(timeoutMs: number): Promise<boolean>;
  /** Errors: `notFound`, `wrongInput`, `conflict`, `unsupported`, `unavailable`, `timeout`. */
  updateCollectionCluster(collection: string, operation: CollectionClusterUpdate, timeoutMs: number): Promise<boolean>;
  /** Has the cluster agree on an operation, and carries it out. Errors: those of the operation, `unavailable`, `timeout`. */
  change(command: ClusterCommand, timeoutMs: number): Promise<boolean>;
  /** What each peer says of itself; null for one that does not answer in time. */
  describePeers(timeoutMs: number): Promise<ReadonlyMap<PeerId, PeerDetails | null>>;
}

export interface ClusterStatus {
  readonly peerId: PeerId;
  readonly phase: 'Starting' | 'Joining' | 'Member' | 'Removed' | 'Broken';
  /** Why it is not a member, or what is wrong; null when all is well. */
  readonly error: string | null;
  /** Null until its log is loaded. */
  readonly raft: RaftState | null;
  /** The other one of two, which has pledged to do nothing alone: if it ends now, this node goes on without it (Raft-R11). Null: none. */
  readonly pledgedBy: PeerId | null;
  /** Everything agreed up to this index is carried out on this node; 0 before. */
  readonly carriedOut: number;
  /** There was no leader for so long that requests which need one are refused. */
  readonly leaderless: boolean;
  /** It knows all that was agreed before its process started. */
  readonly caughtUp: boolean;
  /** Committed and not yet applied, or proposed here and not yet answered. */
  readonly pendingOperations: number;
  /** When it last took a step. */
  readonly lastUpdateMs: number;
  readonly connections: ReadonlyMap<PeerId, PeerConnection>;
  readonly internalPort: InternalPort;
}
