/** What the Raft of one peer knows. Values are never changed in place. */

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
  /** Handed out by `apply` or `restore`. */
  readonly appliedIndex: number;
  /** The newest membership in the log or snapshot, committed or not, and the index of its entry. */
  readonly membership: Membership;
  readonly membershipIndex: number;
  /** Ticks since the leader was heard (leader: since its last check for a quorum). */
  readonly elapsedTicks: number;
  /** Drawn anew at each new term or role. */
  readonly electionAfterTicks: number;
  /** State of the generator that draws it. */
  readonly randomState: number;
  /** Number of the last `persist`. */
  readonly writes: number;
  /** Number of the last write that is on disk. */
  readonly persistedWrites: number;
  /** Last entry of this log as of each write that is under way, oldest first: what the leader may count for itself. */
  readonly writesUnderWay: readonly { readonly number: number; readonly lastIndex: number }[];
  /** Last entry of this log that is on disk. */
  readonly persistedIndex: number;
  /** A snapshot in the log that is not handed out yet, and the write that brings it to disk. */
  readonly pendingRestore: { readonly snapshot: Snapshot; readonly write: number } | null;
  /** The applied membership had this peer: one without it means that it was removed. */
  readonly belonged: boolean;
  /** Parts of a snapshot that is coming in. */
  readonly incoming: IncomingSnapshot | null;
  /** The only other voter, whose process is known to have ended: nothing waits for it (Raft-R11). Null: not known of any. */
  readonly gone: PeerId | null;
  /** What went to the leader and is given up some ticks later. */
  readonly forwarded: ReadonlyMap<RequestId, Forwarded>;
}

export type Forwarded =
  | { readonly kind: 'propose' | 'readIndex'; readonly ticksLeft: number }
  /** Whether a stranger, whose log ends so, was removed. index: the leader's answer, to be applied first. */
  | {
      readonly kind: 'verdict';
      readonly peer: PeerId;
      readonly lastIndex: number;
      readonly lastTerm: number;
      readonly index: number | null;
      readonly ticksLeft: number;
    };

export interface RaftLog {
  /** Null: the log begins with entry 1. */
  readonly snapshot: Snapshot | null;
  /** Consecutive. They begin at most one behind the snapshot, or before its end: entries kept for late followers. */
  readonly entries: readonly Entry[];
  /** Term of the entry before the first of `entries` (0 before entry 1). */
  readonly termBefore: number;
}

export type RaftRole = FollowerRole | PreCandidateRole | CandidateRole | LeaderRole;

/** Also a learner, and a peer that is in no cluster yet. */
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
  /** The write of its own vote: only on disk does it count. */
  readonly voteWrite: number;
  readonly transfer: boolean;
}

export interface LeaderRole {
  readonly kind: 'Leader';
  readonly progress: ReadonlyMap<PeerId, Progress>;
  /** Number of the last heartbeat. */
  readonly round: number;
  readonly heartbeatElapsed: number;
  /** What waits for a quorum to answer heartbeat `round`, by ascending round. */
  readonly reads: readonly PendingRead[];
  /** Bytes of the entries behind the commit index. */
  readonly uncommittedBytes: number;
  readonly transfer: { readonly to: PeerId; readonly ticksLeft: number } | null;
}

/** Wants to know that this peer was still the leader after the question. */
export type PendingRead =
  /** from: whose read it is. index: what must be applied for it; null until this leader has committed in its term. */
  | { readonly kind: 'read'; readonly id: RequestId; readonly from: PeerId; readonly index: number | null; readonly round: number }
  /** Whether `peer`, which is not in the membership, was removed. */
  | { readonly kind: 'verdict'; readonly peer: PeerId; readonly round: number };

/** What the leader knows of a follower. Source: the modes are the dissertation's sections 10.2 and 5; flow control as `appendsInFlightMax`. */
export interface Progress {
  /** Its log agrees with the leader's up to here. */
  readonly matchIndex: number;
  readonly nextIndex: number;
  readonly mode: /** One `append` at a time, until it is known where the logs agree. `waiting`: one is under way. */
    | { readonly kind: 'Probe'; readonly waiting: boolean }
    /** Entries are sent as they come; last index of each `append` under way. */
    | { readonly kind: 'Replicate'; readonly inFlight: readonly number[] }
    | {
        readonly kind: 'Snapshot';
        readonly snapshot: Snapshot;
        readonly offset: number;
        readonly forced: boolean;
        readonly ticksWaiting: number;
      };
  /** Newest heartbeat that it answered. */
  readonly round: number;
  /** Heard of since the last check for a quorum. */
  readonly recentlyActive: boolean;
  /** It asked for this leader's state, which is not there yet. */
  readonly snapshotWanted: boolean;
}

export interface IncomingSnapshot {
  readonly from: PeerId;
  readonly term: number;
  readonly index: number;
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
}
