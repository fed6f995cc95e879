/** What the Raft of one peer hears and what it causes. */

import type { Member, PeerId } from '../../protocols/model/cluster.js';
import type { ConsensusWrite, Entry, EntryPayload, Snapshot } from '../../protocols/model/consensus.js';

interface FromTo {
  readonly from: PeerId;
  readonly to: PeerId;
  /** Term of the sender (pre-votes: the term it would campaign in). */
  readonly term: number;
}

/** Names a request of this peer until its answer comes; unique within a start of the process. */
export type RequestId = number;

/** Between peers. Unknown kinds are dropped by the receiver, so that later releases can add some. */
export type RaftMessage = FromTo &
  (
    | { readonly kind: 'preVote'; readonly lastIndex: number; readonly lastTerm: number; readonly transfer: boolean }
    | { readonly kind: 'preVoteReply'; readonly granted: boolean }
    /** transfer: the leader asked for this election, so its lease does not count (section 3.10). */
    | { readonly kind: 'vote'; readonly lastIndex: number; readonly lastTerm: number; readonly transfer: boolean }
    | { readonly kind: 'voteReply'; readonly granted: boolean }
    /** Also the heartbeat, without entries. `round` numbers the leader's heartbeats: an answer of it confirms the leader (section 6.4). */
    | {
        readonly kind: 'append';
        readonly prevIndex: number;
        readonly prevTerm: number;
        readonly entries: readonly Entry[];
        readonly commit: number;
        readonly round: number;
      }
    /** matched: the log agrees with the leader's up to `index`. Otherwise `index` and `logTerm` hint where it may agree. */
    | { readonly kind: 'appendReply'; readonly matched: boolean; readonly index: number; readonly logTerm: number; readonly round: number }
    /** A part of a snapshot's data from `offset` on. forced: takes the place of state that is as new (`POST /cluster/recover`). */
    | {
        readonly kind: 'installSnapshot';
        readonly snapshot: Omit<Snapshot, 'data'>;
        readonly offset: number;
        readonly totalBytes: number;
        readonly chunk: Uint8Array;
        readonly forced: boolean;
        readonly round: number;
      }
    /** nextOffset: bytes that are there; `done` when it is installed and on disk. */
    | {
        readonly kind: 'installSnapshotReply';
        readonly index: number;
        readonly nextOffset: number;
        readonly done: boolean;
        readonly round: number;
      }
    | { readonly kind: 'timeoutNow' }
    /** To the leader. */
    | { readonly kind: 'propose'; readonly id: RequestId; readonly proposal: Proposal }
    | { readonly kind: 'proposeReply'; readonly id: RequestId; readonly outcome: ProposalOutcome }
    | { readonly kind: 'readIndex'; readonly id: RequestId }
    /** index: null when the receiver is not (any more) the leader. */
    | { readonly kind: 'readIndexReply'; readonly id: RequestId; readonly index: number | null }
    | { readonly kind: 'requestSnapshot' }
    /** The receiver was removed: the leader has committed a membership without it, and a quorum confirmed that leader after it was asked. Of whatever term. */
    | { readonly kind: 'notMember' }
  );

export type Proposal =
  | { readonly kind: 'operation'; readonly bytes: Uint8Array }
  | { readonly kind: 'membership'; readonly change: MembershipChange };

/** One peer at a time (section 4.1). What is already so changes nothing and is accepted. */
export type MembershipChange =
  | { readonly kind: 'addLearner'; readonly member: Omit<Member, 'voter'> }
  | { readonly kind: 'promote'; readonly peerId: PeerId }
  | { readonly kind: 'remove'; readonly peerId: PeerId }
  /** New address or version of a peer. */
  | { readonly kind: 'announce'; readonly member: Omit<Member, 'voter'> };

export type ProposalOutcome =
  /** In the leader's log; committed once an entry of this index and term is applied, lost once one of another term is. */
  | { readonly kind: 'accepted'; readonly index: number; readonly term: number }
  | { readonly kind: 'refused'; readonly reason: RefusalReason };

export type RefusalReason =
  /** No leader is known, or the one asked is none any more. */
  | 'noLeader'
  /** Too much waits to be committed. */
  | 'busy'
  | 'tooLarge'
  /** Another change of the membership is under way, or the leader is too new for one. */
  | 'membershipPending'
  /** The change names a peer that is not there, or would leave no voter. */
  | 'membershipInvalid'
  /** Leadership is being handed over. */
  | 'transferring';

export type RaftInput =
  /** One `tick_period_ms` has passed. */
  | { readonly kind: 'tick' }
  | { readonly kind: 'receive'; readonly message: RaftMessage }
  /** The write of this number, and all before it, are on disk. */
  | { readonly kind: 'persisted'; readonly write: number }
  | { readonly kind: 'propose'; readonly id: RequestId; readonly proposal: Proposal }
  | { readonly kind: 'readIndex'; readonly id: RequestId }
  | { readonly kind: 'transferLeadership'; readonly to: PeerId }
  | { readonly kind: 'campaign' }
  /** Ask the leader for its state. */
  | { readonly kind: 'requestSnapshot' }
  /** `data` is the state after `index`, which is applied: entries before it may go, but for some that late followers may need. Also the answer to `snapshotWanted`. */
  | { readonly kind: 'compact'; readonly index: number; readonly data: Uint8Array }
  /** Raft-R11: the process of the only other voter has ended, and has promised nobody else anything; null: it is back, or may be. */
  | { readonly kind: 'gone'; readonly peer: PeerId | null }
  /** The transport could not deliver to this peer. */
  | { readonly kind: 'unreachable'; readonly peer: PeerId };

export type RaftEffect =
  /** Numbered from 1 and carried out in this order; answered by `persisted`. */
  | { readonly kind: 'persist'; readonly number: number; readonly write: ConsensusWrite }
  /** Once every `persist` before it is on disk (Raft-R1). */
  | { readonly kind: 'send'; readonly messages: readonly RaftMessage[] }
  /** At once: a leader's entries may travel while it writes them itself (section 10.2.1). */
  | { readonly kind: 'sendEarly'; readonly messages: readonly RaftMessage[] }
  /** Committed entries that are on this peer's disk, in order, each one once. */
  | { readonly kind: 'apply'; readonly entries: readonly Entry[] }
  /** The state becomes that of the snapshot; `apply` goes on behind it, with entries once more if it goes back. */
  | { readonly kind: 'restore'; readonly snapshot: Snapshot }
  | { readonly kind: 'proposed'; readonly id: RequestId; readonly outcome: ProposalOutcome }
  /** A state with everything up to `index` applied may answer the read; null: no leader confirmed it. */
  | { readonly kind: 'readReady'; readonly id: RequestId; readonly index: number | null }
  /** Role, leader or term is another one. */
  | { readonly kind: 'roleChanged' }
  /** A peer asks for this leader's state: give it by `compact`, as new as it is. */
  | { readonly kind: 'snapshotWanted' }
  /** This peer was removed: the leader says so, or it applied its own removal. */
  | { readonly kind: 'removed' };

export type EntryOf<Kind extends EntryPayload['kind']> = Entry & { readonly payload: Extract<EntryPayload, { kind: Kind }> };
