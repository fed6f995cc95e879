/** Messages, inputs and effects of one peer's Raft. */

import type { Member, PeerId } from '../../protocols/model/cluster.js';
import type { ConsensusWrite, Entry, Snapshot } from '../../protocols/model/consensus.js';

interface FromTo {
  readonly from: PeerId;
  readonly to: PeerId;
  /** Term of the sender (pre-votes: the term it would campaign in). */
  readonly term: number;
}

/** Names a request of this peer until its answer comes. Unique within one start of the process. */
export type RequestId = number;

/** Messages between peers. A receiver drops unknown kinds, so that later releases can add some. */
export type RaftMessage = FromTo &
  (
    | { readonly kind: 'preVote'; readonly lastIndex: number; readonly lastTerm: number; readonly transfer: boolean }
    | { readonly kind: 'preVoteReply'; readonly granted: boolean }
    /** transfer: the leader asked for this election, so its lease does not count (section 3.10). */
    | { readonly kind: 'vote'; readonly lastIndex: number; readonly lastTerm: number; readonly transfer: boolean }
    | { readonly kind: 'voteReply'; readonly granted: boolean }
    /**
     * Entries; without entries it is a heartbeat. `round` numbers the leader's heartbeats: an answer to it confirms the leader (section
     * 6.4).
     */
    | {
        readonly kind: 'append';
        readonly prevIndex: number;
        readonly prevTerm: number;
        readonly entries: readonly Entry[];
        readonly commit: number;
        readonly round: number;
      }
    /**
     * matched: the follower's log agrees with the leader's up to `index`. Otherwise `index` and `logTerm` hint at where the logs may agree.
     */
    | { readonly kind: 'appendReply'; readonly matched: boolean; readonly index: number; readonly logTerm: number; readonly round: number }
    /** A part of a snapshot's data from `offset` on. forced: it replaces a state that is as new (`POST /cluster/recover`). */
    | {
        readonly kind: 'installSnapshot';
        readonly snapshot: Omit<Snapshot, 'data'>;
        readonly offset: number;
        readonly totalBytes: number;
        readonly chunk: Uint8Array;
        readonly forced: boolean;
        readonly round: number;
      }
    /** nextOffset: number of bytes that have arrived. done: the snapshot is installed and on disk. */
    | {
        readonly kind: 'installSnapshotReply';
        readonly index: number;
        readonly nextOffset: number;
        readonly done: boolean;
        readonly round: number;
      }
    | { readonly kind: 'timeoutNow' }
    /** A proposal that is forwarded to the leader. */
    | { readonly kind: 'propose'; readonly id: RequestId; readonly proposal: Proposal }
    | { readonly kind: 'proposeReply'; readonly id: RequestId; readonly outcome: ProposalOutcome }
    | { readonly kind: 'readIndex'; readonly id: RequestId }
    /** index: null if the answering peer does not lead. */
    | { readonly kind: 'readIndexReply'; readonly id: RequestId; readonly index: number | null }
    | { readonly kind: 'requestSnapshot' }
    /**
     * Tells the receiver that it was removed: the leader has committed a membership without it, and a quorum has confirmed that leader
     * since it was asked. The term does not matter.
     */
    | { readonly kind: 'notMember' }
  );

export type Proposal =
  | { readonly kind: 'operation'; readonly bytes: Uint8Array }
  | { readonly kind: 'membership'; readonly change: MembershipChange };

/** A change of one peer (section 4.1). A change that is in force already is accepted and does nothing. */
export type MembershipChange =
  | { readonly kind: 'addLearner'; readonly member: Omit<Member, 'voter'> }
  | { readonly kind: 'promote'; readonly peerId: PeerId }
  | { readonly kind: 'remove'; readonly peerId: PeerId }
  /** A peer has a new address or version. */
  | { readonly kind: 'announce'; readonly member: Omit<Member, 'voter'> };

export type ProposalOutcome =
  /**
   * The entry is in the leader's log. It is committed once an entry of this index and term is applied, and lost once one of another term
   * is.
   */
  | { readonly kind: 'accepted'; readonly index: number; readonly term: number }
  | { readonly kind: 'refused'; readonly reason: RefusalReason };

export type RefusalReason =
  /** No leader is known, or the peer that was asked leads no more. */
  | 'noLeader'
  /** Too many bytes wait to be committed. */
  | 'busy'
  | 'tooLarge'
  /** Another change of the membership is under way, or the leader is too new for one. */
  | 'membershipPending'
  /** The change names a peer that is not a member, or would leave no voter. */
  | 'membershipInvalid'
  /** Leadership is being handed over. */
  | 'transferring';

export type RaftInput =
  /** One `tick_period_ms` has passed. */
  | { readonly kind: 'tick' }
  | { readonly kind: 'receive'; readonly message: RaftMessage }
  /** The write of this number, and all earlier writes, are on disk. */
  | { readonly kind: 'persisted'; readonly write: number }
  | { readonly kind: 'propose'; readonly id: RequestId; readonly proposal: Proposal }
  | { readonly kind: 'readIndex'; readonly id: RequestId }
  | { readonly kind: 'transferLeadership'; readonly to: PeerId }
  | { readonly kind: 'campaign' }
  /** Asks the leader for its state. */
  | { readonly kind: 'requestSnapshot' }
  /**
   * Replaces entries by the state after `index`, which is applied. Some entries before it stay for followers that lag. Also the answer to
   * `snapshotWanted`.
   */
  | { readonly kind: 'compact'; readonly index: number; readonly data: Uint8Array }
  /**
   * The process of the only other voter has ended, and had not made a promise to any other peer (Raft-R11). peer: null if it is back, or
   * may be.
   */
  | { readonly kind: 'gone'; readonly peer: PeerId | null }
  /** The transport could not deliver to this peer. */
  | { readonly kind: 'unreachable'; readonly peer: PeerId };

export type RaftEffect =
  /** A write to disk. Writes are numbered from 1 and made in this order; each is answered by `persisted`. */
  | { readonly kind: 'persist'; readonly number: number; readonly write: ConsensusWrite }
  /** Messages to send once every earlier `persist` is on disk (Raft-R1). */
  | { readonly kind: 'send'; readonly messages: readonly RaftMessage[] }
  /** Messages to send at once: a leader's entries may travel while it writes them itself (section 10.2.1). */
  | { readonly kind: 'sendEarly'; readonly messages: readonly RaftMessage[] }
  /** Committed entries that are on this peer's disk, in order, each exactly once. */
  | { readonly kind: 'apply'; readonly entries: readonly Entry[] }
  /** Replaces the state by that of the snapshot. `apply` continues after it and, if the snapshot goes back, gives entries again. */
  | { readonly kind: 'restore'; readonly snapshot: Snapshot }
  | { readonly kind: 'proposed'; readonly id: RequestId; readonly outcome: ProposalOutcome }
  /** A state that has applied everything up to `index` may answer the read. index: null if no leader confirmed it. */
  | { readonly kind: 'readReady'; readonly id: RequestId; readonly index: number | null }
  /** The role, the leader or the term has changed. */
  | { readonly kind: 'roleChanged' }
  /** A peer asks for this leader's state: answer by `compact` with the newest state. */
  | { readonly kind: 'snapshotWanted' }
  /** This peer was removed: the leader says so, or this peer applied its own removal. */
  | { readonly kind: 'removed' };
