/**
 * States of a node's consensus.
 *
 * - `Starting`: reads its log, or founds a cluster;
 * - `Joining`: asks a member to let this node in;
 * - `Member`: runs Raft, applies committed entries and has the agreed state executed;
 * - `Removed`: the cluster has removed this peer; it serves the points that it has and changes nothing;
 * - `Broken`: its log cannot be read or written, or it may not start; peers see it as crashed. It tries again after a while.
 */

import type { PeerReply } from '../../cluster/peer-messages.js';
import type { MembershipChange, RequestId } from '../../cluster/raft/messages.js';
import type { RaftState } from '../../cluster/raft/state.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { Leads } from '../../cluster/state/giving-back.js';
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

/** The settings that this node was started with. */
export interface Settings
  extends Omit<
    ClusterOptions,
    'store' | 'transport' | 'raftStep' | 'onGivenUp' | 'survives' | 'listens' | 'transferMethod' | 'transferLimits'
  > {
  readonly listens: boolean;
  readonly transferMethod: TransferMethod;
  readonly transferLimits: TransferLimits;
  readonly raftStep: StepRaft;
  readonly survives: boolean;
  /** The collections that were on this node when it started. */
  readonly local: LocalData;
}

export interface StartingConsensus {
  readonly kind: 'Starting';
  readonly settings: Settings;
  /** Set while this node's collections become those of the cluster that it founds. */
  readonly founding: Drawn | null;
  /** Number of consecutive failed starts. */
  readonly failures: number;
}

export interface JoiningConsensus {
  readonly kind: 'Joining';
  readonly settings: Settings;
  readonly identity: PeerIdentity;
  readonly seed: number;
  readonly outbox: Outbox;
  /** failures: number of failed tries. error: the error of the last one. */
  readonly failures: number;
  readonly error: ErrorFacts | null;
  /** The reason that was logged last, so that it is logged once while it stays the same. */
  readonly logged: string | null;
}

export interface MemberConsensus {
  readonly kind: 'Member';
  readonly settings: Settings;
  readonly identity: PeerIdentity;
  readonly raft: RaftState;
  /** The agreed state by the applied entries. */
  readonly agreed: ClusterState;
  readonly outbox: Outbox;
  /** The write that brings this session (`identity.starts`) to disk: nothing is proposed in it before (Cons-C2). */
  readonly sessionWrite: number;
  readonly carrying: Carrying;
  readonly calls: Calls;
  /** Index of the last entry that was in the log when it was loaded. */
  readonly loadedIndex: number;
  /** The leads of other peers as of that index (`giving-back.ts`); null until it is applied. */
  readonly loadedLeads: Leads | null;
  /** Progress of catching up; null once this node knows everything that was agreed before it started. */
  readonly catchUp: CatchUp | null;
  /** Ticks since the start. */
  readonly ticks: number;
  /** Ticks since a leader was last known. */
  readonly leaderlessTicks: number;
  readonly connected: ReadonlySet<PeerId>;
  /** For each peer, the tick at which it was last heard. */
  readonly heardTicks: ReadonlyMap<PeerId, number>;
  /** For each peer that has said that its disk is full, and for this one, the tick at which it was said last. */
  readonly fullTicks: ReadonlyMap<PeerId, number>;
  /** The members that the transport was given last. */
  readonly peers: readonly Member[];
  /** logBytes: payload bytes applied since the newest snapshot. snapshotBytes: bytes of that snapshot. */
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

/** Writes under way, oldest first, each with the effects that wait for it (Raft-R1). */
export interface Outbox {
  /** Number of the last write. */
  readonly writes: number;
  readonly pending: readonly OutboxWrite[];
  /** The hard state after the last write. */
  readonly hardState: HardState;
}

export interface OutboxWrite {
  readonly number: number;
  /** Raft's number of the write; null for a write of the actor itself. */
  readonly raftWrite: number | null;
  readonly held: readonly ConsensusEffect[];
}

/** The states given to the node actor, and its progress. */
export interface Carrying {
  /** States that were given and not reported on yet, oldest first. */
  readonly asked: readonly Desired[];
  /** The state executed last, except for `failures`. */
  readonly done: Desired | null;
  /** The collections and aliases of the newest state that was given. */
  readonly source: Pick<ClusterState, 'collections' | 'aliases'> | null;
  /** The newest index whose state asks for the same as the newest given one. */
  readonly covers: number;
  /** Index up to which everything is executed, except for `failures`. */
  readonly carriedOut: number;
  readonly failures: CarriedOut['failures'];
  /** Peers that wait for this node's progress, and the index that each waits for. */
  readonly askers: ReadonlyMap<PeerId, number>;
}

/** Requests that are not answered yet. */
export interface Calls {
  /** The last number handed to Raft. */
  readonly lastRequest: RequestId;
  /** The last sequence of this session. */
  readonly lastSequence: number;
  /**
   * The last sequence of a proposal that ended with its outcome unknown and may take a lead from this node (Log-L9); 0 if there is none.
   */
  readonly lastOpen: number;
  readonly proposals: readonly ProposalCall[];
  readonly settling: readonly SettlingCall[];
  readonly reads: readonly ReadCall[];
  readonly recovery: { readonly replyTo: ReplyTo<boolean>; readonly deadlineTick: number } | null;
}

/** The caller of a proposal. */
export type ProposalCaller =
  /** settles: answered when the command is executed, not as soon as it is agreed on. */
  | { readonly kind: 'caller'; readonly replyTo: ReplyTo<boolean>; readonly settles: boolean }
  | {
      readonly kind: 'peer';
      readonly replyTo: ReplyTo<PeerReply>;
      readonly reply: 'joined' | 'announced';
      readonly member: Omit<Member, 'voter'>;
    }
  /** Proposed a mark: once it is agreed on, the peer is removed if it holds nothing. */
  | { readonly kind: 'removal'; readonly replyTo: ReplyTo<boolean>; readonly peerId: PeerId }
  /** As `removal`, of a peer at whose address another one asks to join; that one asks again. */
  | { readonly kind: 'replacement'; readonly peerId: PeerId }
  /** Consensus itself, which sees by the state whether the proposal is still needed. */
  | { readonly kind: OwnProposal };

/** Goes on once a peer's mark is agreed on. */
export type RemovalCaller = Extract<ProposalCaller, { kind: 'removal' | 'replacement' }>;

/**
 * Proposals of consensus itself: for replicas of this node, the membership, replicas that do not serve, shards without a leader, this
 * node's own mark, plans, and fences (see `membership/alone.ts`).
 */
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
  /** The try under way; null while it waits for `retryTick`. */
  readonly attempt: ProposalAttempt | null;
  readonly retryTick: number;
  /** An earlier try may have reached a leader, whatever its answer: the command may be applied although its caller gets an error. */
  readonly uncertain: boolean;
}

export interface ProposalAttempt {
  readonly id: RequestId;
  /** The place of its entry in the leader's log; null if it is not known. */
  readonly accepted: { readonly index: number; readonly term: number } | null;
}

/** A call that is agreed on and being executed. */
export interface SettlingCall {
  readonly index: number;
  readonly replyTo: ReplyTo<boolean>;
  readonly answer: boolean;
  readonly deadlineTick: number;
  /** The collection of the command; null if it has none. */
  readonly collection: string | null;
  /** The call is answered only after its new replicas are Active. */
  readonly awaitsReplicas: boolean;
  /** The ticks at which the peers were asked first and last. */
  readonly sinceTick: number;
  readonly askedTick: number;
  /** The progress that peers have reported. */
  readonly heard: ReadonlyMap<PeerId, number>;
}

export interface ReadCall {
  readonly replyTo: ReplyTo<never>;
  readonly deadlineTick: number;
  /** Raft's id of the question under way; null if it is asked again at `retryTick`. */
  readonly id: RequestId | null;
  readonly retryTick: number;
  /** The index to wait for; null until a quorum has confirmed it. */
  readonly index: number | null;
  readonly next: AfterRead;
}

/** The action after a barrier. */
export type AfterRead =
  /** The caller is answered with true. */
  | { readonly kind: 'answer' }
  /** The request is submitted again: the state here was too old for it. */
  | { readonly kind: 'submit'; readonly submission: Submission; readonly caller: Extract<ProposalCaller, { kind: 'caller' }> }
  | { readonly kind: 'announce'; readonly caller: Extract<ProposalCaller, { kind: 'peer' }> };

/** The actor's own regular work. */
export interface Upkeep {
  /** activateTick, announceTick: the earliest ticks of the next try. */
  readonly activateTick: number;
  readonly announceTick: number;
  /** The tick since which this peer leads; the present tick if it does not. */
  readonly leadsSinceTick: number;
  /** The state with which a health check found nothing to do; null if none was made. */
  readonly wellWith: { readonly collections: ClusterState['collections']; readonly silent: string } | null;
  /** The member that was asked last. */
  readonly announceTurn: number;
}

export const EMPTY_OUTBOX: Outbox = { writes: 0, pending: [], hardState: NOTHING_STORED.hardState };
/** Each session numbers its requests in a range of its own: late answers from an earlier session match no request. */
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

/** The first value. covers: states with a lower index are never asked for. */
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
