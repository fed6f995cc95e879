/**
 * States of a node's consensus.
 *
 * - `Starting`: reads its log, or founds a cluster;
 * - `Joining`: asks a member to let this node in;
 * - `Member`: runs Raft, applies what is committed and has it carried out;
 * - `Removed`: the cluster has removed this peer; it serves what it has and changes nothing;
 * - `Broken`: its log cannot be read or written, or it may not start; to its peers it is as one that crashed. Tries again after a while.
 */

import type { PeerReply } from '../../cluster/peer-messages.js';
import type { MembershipChange, RequestId } from '../../cluster/raft/messages.js';
import type { RaftState } from '../../cluster/raft/state.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { ClusterState } from '../../cluster/state/state.js';
import type { TransferLimits } from '../../cluster/transfer/healing.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { Member, PeerId, TransferMethod } from '../../protocols/model/cluster.js';
import { type HardState, NOTHING_STORED, type PeerIdentity } from '../../protocols/model/consensus.js';
import type { CarriedOut, Desired, LocalData } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { CatchUp } from './agreed/catching-up.js';
import type { ClusterOptions, StepRaft } from './cluster-api.js';
import type { Survival } from './membership/survivor.js';
import type { ConsensusEffect, Drawn } from './messages.js';
import type { Submission } from './proposals/prepare.js';

export type ConsensusState = StartingConsensus | JoiningConsensus | MemberConsensus | RemovedConsensus | BrokenConsensus;

/** What this node was started with. */
export interface Settings
  extends Omit<ClusterOptions, 'store' | 'transport' | 'raftStep' | 'survives' | 'listens' | 'transferMethod' | 'transferLimits'> {
  readonly listens: boolean;
  readonly transferMethod: TransferMethod;
  readonly transferLimits: TransferLimits;
  readonly raftStep: StepRaft;
  readonly survives: boolean;
  /** What was on this node when it started. */
  readonly local: LocalData;
}

export interface StartingConsensus {
  readonly kind: 'Starting';
  readonly settings: Settings;
  /** Set while this node's collections become those of the cluster that it founds. */
  readonly founding: Drawn | null;
  /** Starts that failed one after the other. */
  readonly failures: number;
}

export interface JoiningConsensus {
  readonly kind: 'Joining';
  readonly settings: Settings;
  readonly identity: PeerIdentity;
  readonly seed: number;
  readonly outbox: Outbox;
  /** Tries that failed, and why the last one did. */
  readonly failures: number;
  readonly error: ErrorFacts | null;
  /** What the log was told last: a reason that stays is told once. */
  readonly logged: string | null;
}

export interface MemberConsensus {
  readonly kind: 'Member';
  readonly settings: Settings;
  readonly identity: PeerIdentity;
  readonly raft: RaftState;
  /** What the log's entries, as far as applied, have led to. */
  readonly agreed: ClusterState;
  readonly outbox: Outbox;
  /** The write that brings this session (`identity.starts`) to disk: nothing is proposed in it before (Cons-C2). */
  readonly sessionWrite: number;
  readonly carrying: Carrying;
  readonly calls: Calls;
  /** Null: this node knows all that was agreed before it started. */
  readonly catchUp: CatchUp | null;
  /** Ticks since the start. */
  readonly ticks: number;
  /** Ticks since a leader was known. */
  readonly leaderlessTicks: number;
  readonly connected: ReadonlySet<PeerId>;
  /** The tick at which each peer was heard of last. */
  readonly heardTicks: ReadonlyMap<PeerId, number>;
  /** Members that the transport was told of last. */
  readonly peers: readonly Member[];
  /** Payload bytes applied since the newest snapshot, and the bytes of that. */
  readonly logBytes: number;
  readonly snapshotBytes: number;
  readonly upkeep: Upkeep;
  readonly survival: Survival;
}

export interface RemovedConsensus {
  readonly kind: 'Removed';
  readonly settings: Settings;
  readonly identity: PeerIdentity;
  readonly agreed: ClusterState | null;
  readonly error: ErrorFacts;
}

export interface BrokenConsensus {
  readonly kind: 'Broken';
  readonly settings: Settings;
  readonly error: ErrorFacts;
  readonly failures: number;
}

/** Writes that are under way, oldest first, each with what waits for it (Raft-R1). */
export interface Outbox {
  /** Number of the last write. */
  readonly writes: number;
  readonly pending: readonly OutboxWrite[];
  /** As the last write leaves it on disk. */
  readonly hardState: HardState;
}

export interface OutboxWrite {
  readonly number: number;
  /** Raft's number of it; null for a write of the actor's own. */
  readonly raftWrite: number | null;
  readonly held: readonly ConsensusEffect[];
}

/** What the node actor was asked for, and how far it is. */
export interface Carrying {
  /** Asked for and not reported yet, oldest first. */
  readonly asked: readonly Desired[];
  /** Carried out last, but for `failures`. */
  readonly done: Desired | null;
  /** The collections and aliases that the newest of both was made of. */
  readonly source: Pick<ClusterState, 'collections' | 'aliases'> | null;
  /** The newest index whose state asks for the same as it. */
  readonly covers: number;
  /** Everything up to here is carried out, but for `failures`. */
  readonly carriedOut: number;
  readonly failures: CarriedOut['failures'];
  /** Peers that asked to be told, with the index. */
  readonly askers: ReadonlyMap<PeerId, number>;
}

/** Requests that are not answered yet. */
export interface Calls {
  /** The last number handed to Raft. */
  readonly lastRequest: RequestId;
  /** The last sequence of this session. */
  readonly lastSequence: number;
  /** The last sequence of what ended with its outcome open, and may take a lead from this node (Log-L9); 0: none. */
  readonly lastOpen: number;
  readonly proposals: readonly ProposalCall[];
  readonly settling: readonly SettlingCall[];
  readonly reads: readonly ReadCall[];
  readonly recovery: { readonly replyTo: ReplyTo<boolean>; readonly deadlineTick: number } | null;
}

/** Who waits for a proposal. */
export type ProposalCaller =
  /** settles: answered when it is carried out, not as soon as it is agreed. */
  | { readonly kind: 'caller'; readonly replyTo: ReplyTo<boolean>; readonly settles: boolean }
  | {
      readonly kind: 'peer';
      readonly replyTo: ReplyTo<PeerReply>;
      readonly reply: 'joined' | 'announced';
      readonly member: Omit<Member, 'voter'>;
    }
  /** Of a mark: once it is agreed, the peer is removed if it holds nothing. */
  | { readonly kind: 'removal'; readonly replyTo: ReplyTo<boolean>; readonly peerId: PeerId }
  /** Consensus itself, which sees by the state whether it is still needed. */
  | { readonly kind: OwnProposal };

/** For replicas of this node, the membership, replicas that do not serve, shards without a leader, this node's own mark, and plans. */
export type OwnProposal = 'activation' | 'upkeep' | 'health' | 'election' | 'mark' | 'plan' | 'fence';

export type ProposalWhat =
  | {
      readonly kind: 'operation';
      readonly submission: Submission;
      readonly operation: ClusterCommand;
      readonly sequence: number;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'membership'; readonly change: MembershipChange };

/** A proposal from its beginning until it is applied. */
export interface ProposalCall {
  readonly what: ProposalWhat;
  readonly caller: ProposalCaller;
  readonly deadlineTick: number;
  /** The try under way; null: it waits for `retryTick`. */
  readonly attempt: ProposalAttempt | null;
  readonly retryTick: number;
  /** An earlier try may have reached a leader, whatever was heard of it: it may be carried out although its caller hears of an error. */
  readonly uncertain: boolean;
}

export interface ProposalAttempt {
  readonly id: RequestId;
  /** Where the leader has put it. */
  readonly accepted: { readonly index: number; readonly term: number } | null;
}

/** Agreed, and being carried out. */
export interface SettlingCall {
  readonly index: number;
  readonly replyTo: ReplyTo<boolean>;
  readonly answer: boolean;
  readonly deadlineTick: number;
  /** Whose it is; null: no collection's. */
  readonly collection: string | null;
  /** New replicas become Active before it is answered. */
  readonly awaitsReplicas: boolean;
  /** When the peers were asked first, and last. */
  readonly sinceTick: number;
  readonly askedTick: number;
  /** Peers that have said how far they are. */
  readonly heard: ReadonlyMap<PeerId, number>;
}

export interface ReadCall {
  readonly replyTo: ReplyTo<never>;
  readonly deadlineTick: number;
  /** Raft's question under way; null: it is asked anew at `retryTick`. */
  readonly id: RequestId | null;
  readonly retryTick: number;
  /** Known once a quorum has confirmed it. */
  readonly index: number | null;
  readonly next: AfterRead;
}

/** What a barrier was for. */
export type AfterRead =
  /** The caller is answered with true. */
  | { readonly kind: 'answer' }
  /** What this node did not find, or found otherwise, is looked for again. */
  | { readonly kind: 'submit'; readonly submission: Submission; readonly caller: Extract<ProposalCaller, { kind: 'caller' }> }
  | { readonly kind: 'announce'; readonly caller: Extract<ProposalCaller, { kind: 'peer' }> };

/** What the actor itself has in hand. */
export interface Upkeep {
  /** Not before this tick. */
  readonly activateTick: number;
  readonly announceTick: number;
  /** Since when this peer leads; the present tick where it does not. */
  readonly leadsSinceTick: number;
  /** Nothing was left to do about replicas' health with these; null: it was not looked at. */
  readonly wellWith: { readonly collections: ClusterState['collections']; readonly silent: string } | null;
  /** Member that was asked last. */
  readonly announceTurn: number;
}

export const EMPTY_OUTBOX: Outbox = { writes: 0, pending: [], hardState: NOTHING_STORED.hardState };
/** Numbers of a session's requests are its own: an answer to an earlier one, which comes late, is nobody's. */
const REQUESTS_PER_SESSION = 2 ** 24;

export function noCalls(session: number): Calls {
  return {
    lastRequest: session * REQUESTS_PER_SESSION,
    lastSequence: 0,
    lastOpen: 0,
    proposals: [],
    settling: [],
    reads: [],
    recovery: null,
  };
}

/** covers: an older state than that of this index is never asked for. */
export function nothingCarried(covers: number): Carrying {
  return { asked: [], done: null, source: null, covers, carriedOut: 0, failures: [], askers: new Map() };
}

export function startingConsensus(settings: Settings, failures = 0): StartingConsensus {
  return { kind: 'Starting', settings, founding: null, failures };
}

export function removed(settings: Settings, identity: PeerIdentity, agreed: ClusterState | null): RemovedConsensus {
  const again = settings.bootstrap === null ? 'start it with --bootstrap' : 'start it once more';
  const detail = `the cluster has removed this peer; ${again} to join as a new one, or with --reinit and --uri to found a cluster of its own`;
  return { kind: 'Removed', settings, identity, agreed, error: { code: 'unavailable', detail } };
}

export function broken(settings: Settings, error: ErrorFacts, failures: number): BrokenConsensus {
  return { kind: 'Broken', settings, error, failures };
}
