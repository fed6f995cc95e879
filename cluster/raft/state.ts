/** The state of one peer's Raft. Values are never changed in place. */

import type { Membership, PeerId } from '../../protocols/model/cluster.js';
import type { Entry, Snapshot } from '../../protocols/model/consensus.js';
import type { RaftConfig } from './config.js';
import type { RequestId } from './messages.js';

export interface RaftState {
  readonly config: RaftConfig;
  readonly term: number;
  readonly votedFor: PeerId | null;
  readonly leader: PeerId | null;
  readonly role: RaftRole;
  readonly log: RaftLog;
  readonly commitIndex: number;
  /** Index up to which entries have been handed out by `apply` or `restore`. */
  readonly appliedIndex: number;
  /** The newest membership in the log or snapshot, committed or not, and the index of its entry. */
  readonly membership: Membership;
  readonly membershipIndex: number;
  /** Ticks since the leader was heard; on the leader, since its last check for a quorum. */
  readonly elapsedTicks: number;
  /** Ticks after which this peer campaigns; drawn at each new term or role. */
  readonly electionAfterTicks: number;
  /** State of the generator that draws `electionAfterTicks`. */
  readonly randomState: number;
  /** Number of the last `persist`. */
  readonly writes: number;
  /** Number of the last write that is on disk. */
  readonly persistedWrites: number;
  /**
   * For each write under way, oldest first, the last entry of this log as of that write. A leader counts its own log up to there when the
   * write is on disk.
   */
  readonly writesUnderWay: readonly { readonly number: number; readonly lastIndex: number }[];
  /** Index of the last entry of this log that is on disk. */
  readonly persistedIndex: number;
  /** A snapshot in the log that has not been handed out yet, and the write that brings it to disk; null if there is none. */
  readonly pendingRestore: { readonly snapshot: Snapshot; readonly write: number } | null;
  /** The last applied membership included this peer: one without it means that it was removed. */
  readonly belonged: boolean;
  /** The parts of a snapshot that is being received; null if none is. */
  readonly incoming: IncomingSnapshot | null;
  /** The only other voter, if its process is known to have ended: nothing waits for it (Raft-R11). Null otherwise. */
  readonly gone: PeerId | null;
  /** Requests that were forwarded to the leader; they fail some ticks later. */
  readonly forwarded: ReadonlyMap<RequestId, Forwarded>;
}

export type Forwarded =
  | { readonly kind: 'propose' | 'readIndex'; readonly ticksLeft: number }
  /**
   * Whether `peer`, which is not a member and whose log ends with `lastIndex` and `lastTerm`, was removed. index: the leader's answer,
   * which has to be applied first; null until it has come.
   */
  | {
      readonly kind: 'verdict';
      readonly peer: PeerId;
      readonly lastIndex: number;
      readonly lastTerm: number;
      readonly index: number | null;
      readonly ticksLeft: number;
    };

export interface RaftLog {
  /** The snapshot before the log; null if the log begins with entry 1. */
  readonly snapshot: Snapshot | null;
  /** Consecutive entries. They begin right after the snapshot's end or before it, as some entries are kept for followers that lag. */
  readonly entries: readonly Entry[];
  /** Term of the entry before the first of `entries` (0 before entry 1). */
  readonly termBefore: number;
}

export type RaftRole = FollowerRole | PreCandidateRole | CandidateRole | LeaderRole;

/** A follower, a learner, or a peer that is in no cluster yet. */
export interface FollowerRole {
  readonly kind: 'Follower';
}

export interface PreCandidateRole {
  readonly kind: 'PreCandidate';
  readonly votes: ReadonlyMap<PeerId, boolean>;
}

export interface CandidateRole {
  readonly kind: 'Candidate';
  readonly votes: ReadonlyMap<PeerId, boolean>;
  /** Number of the write of its own vote, which counts only once it is on disk. */
  readonly voteWrite: number;
  readonly transfer: boolean;
}

export interface LeaderRole {
  readonly kind: 'Leader';
  readonly progress: ReadonlyMap<PeerId, Progress>;
  /** Number of the last heartbeat. */
  readonly round: number;
  readonly heartbeatElapsed: number;
  /** Questions that wait for a quorum to answer a heartbeat, by ascending round. */
  readonly reads: readonly PendingRead[];
  /** Bytes of the entries after the commit index. */
  readonly uncommittedBytes: number;
  readonly transfer: { readonly to: PeerId; readonly ticksLeft: number } | null;
}

/** A question that is answered once this peer is known to have led after it was asked. */
export type PendingRead =
  /** from: the peer that reads. index: the index that must be applied before the read; null until this leader has committed in its term. */
  | { readonly kind: 'read'; readonly id: RequestId; readonly from: PeerId; readonly index: number | null; readonly round: number }
  /** Whether `peer`, which is not in the membership, was removed. */
  | { readonly kind: 'verdict'; readonly peer: PeerId; readonly round: number };

/** The leader's knowledge of a follower. Source: dissertation, sections 10.2 and 5, for the modes; flow control is `appendsInFlightMax`. */
export interface Progress {
  /** The follower's log agrees with the leader's up to this index. */
  readonly matchIndex: number;
  readonly nextIndex: number;
  readonly mode: /** Sends one `append` at a time, until the index where the logs agree is known. waiting: one is under way. */
    | { readonly kind: 'Probe'; readonly waiting: boolean }
    /** Sends entries as they come. inFlight: last index of each `append` under way. */
    | { readonly kind: 'Replicate'; readonly inFlight: readonly number[] }
    | {
        readonly kind: 'Snapshot';
        readonly snapshot: Snapshot;
        readonly offset: number;
        readonly forced: boolean;
        readonly ticksWaiting: number;
      };
  /** Number of the newest heartbeat that the follower has answered. */
  readonly round: number;
  /** The follower was heard since the last check for a quorum. */
  readonly recentlyActive: boolean;
  /** The follower has asked for this leader's state, which is not available yet. */
  readonly snapshotWanted: boolean;
}

export interface IncomingSnapshot {
  readonly from: PeerId;
  readonly term: number;
  readonly index: number;
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
}
