/** What consensus does about each message in each state. */

import type { RaftMessage } from '../../cluster/raft/messages.js';
import { decodeCommand } from '../../cluster/state/command-codec.js';
import { type ErrorFacts, errorFacts, TroupeError } from '../../protocols/errors.js';
import { NO_WRITE } from '../../protocols/model/consensus.js';
import { become, type ReplyTo, type Step, unreachable } from '../runtime/behaviour.js';
import { noteAsked, noteCarriedOut } from './agreed/carrying.js';
import { goOnCatchingUp } from './agreed/catching-up.js';
import { noteDeadReplicas } from './agreed/health.js';
import { noticesOf } from './agreed/notices.js';
import { drive } from './drive.js';
import { takeRequest } from './membership/peer-requests.js';
import { handOver, removePeer } from './membership/remove-peer.js';
import { noteContact, noteEnd, notePledge } from './membership/survivor.js';
import { followMembership, tick } from './membership/upkeep.js';
import type { ConsensusEffect, ConsensusMessage } from './messages.js';
import { CONSENSUS_MOVES } from './moves.js';
import { Draft } from './proposals/draft.js';
import { settled } from './proposals/outbox.js';
import { propose, submit } from './proposals/proposals.js';
import { refusedNow } from './proposals/readiness.js';
import { read } from './proposals/reads.js';
import { noteApplied } from './proposals/settling.js';
import { askToJoin, becomeFounder, becomeJoined, begin } from './startup.js';
import {
  type BrokenConsensus,
  broken,
  type ConsensusState,
  type JoiningConsensus,
  type MemberConsensus,
  removed,
  type Settings,
  type StartingConsensus,
  starting,
} from './state.js';

type ConsensusStep = Step<ConsensusState, ConsensusEffect>;
type MessageOf<Kind extends ConsensusMessage['kind']> = Extract<ConsensusMessage, { kind: Kind }>;

export function startConsensus(settings: Settings): ConsensusStep {
  return become<ConsensusState, ConsensusEffect>(starting(settings), { kind: 'load' });
}

export function stepConsensus(state: ConsensusState, message: ConsensusMessage): ConsensusStep {
  const move = CONSENSUS_MOVES[state.kind][message.kind];
  switch (move) {
    case 'ignore':
      return become(state);
    case 'begin': {
      const { drawn, stored } = message as MessageOf<'loaded'>;
      return orBroken(state, () => begin(state as StartingConsensus, stored, drawn));
    }
    case 'found': {
      const { founding } = state as StartingConsensus;
      return founding === null ? become(state) : becomeFounder(state as StartingConsensus, founding);
    }
    case 'breakDown':
      return breakDown(state, (message as MessageOf<'loadFailed'>).error);
    case 'startAgain': {
      const { failures, settings } = state as BrokenConsensus;
      return become<ConsensusState, ConsensusEffect>(starting(settings, failures), { kind: 'load' });
    }
    case 'refuse':
      return become<ConsensusState, ConsensusEffect>(state, refusal(state, (message as MessageOf<'submit'>).replyTo));
    case 'noteWritten':
      return noteWritten(state as JoiningConsensus, (message as MessageOf<'written'>).number);
    case 'becomeJoined': {
      const { clusterId, members } = (message as MessageOf<'joined'>).reply;
      return becomeJoined(state as JoiningConsensus, clusterId, members);
    }
    case 'waitToJoin':
      return waitToJoin(state as JoiningConsensus, (message as MessageOf<'joinFailed'>).error);
    case 'askToJoin':
      return become<ConsensusState, ConsensusEffect>(state, askToJoin(state as JoiningConsensus));
    case 'member':
      return orBroken(state, () => memberStep(state as MemberConsensus, message));
    default:
      return unreachable(move);
  }
}

function memberStep(state: MemberConsensus, message: ConsensusMessage): ConsensusStep {
  const draft = new Draft(state, drive);
  takeMessage(draft, message);
  goOnCatchingUp(draft);
  followMembership(draft);
  draft.emit(...noticesOf(state, draft.member));
  if (draft.removed) return becomeRemoved(draft);
  return { state: draft.member, effects: draft.effects };
}

function takeMessage(draft: Draft, message: ConsensusMessage): void {
  switch (message.kind) {
    case 'tick':
      tick(draft);
      draft.emit({ kind: 'tickLater' });
      break;
    case 'received':
      takeReceived(draft, message);
      break;
    case 'connectionChanged':
      noteConnection(draft, message);
      break;
    case 'peerUnreachable':
      draft.raft({ kind: 'unreachable', peer: message.peer });
      break;
    case 'pledged':
      notePledge(draft, message);
      break;
    case 'ended':
      noteEnd(draft, message);
      break;
    case 'requested':
      takeRequest(draft, message.request, message.address, message.replyTo);
      break;
    case 'written': {
      const written = settled(draft.member.outbox, message.number);
      draft.go(written);
      // The first of a session lets its proposals go.
      if (message.number === draft.member.sessionWrite) propose(draft);
      if (written.raftWrite !== null) draft.raft({ kind: 'persisted', write: written.raftWrite });
      break;
    }
    case 'carriedOut':
      noteCarriedOut(draft, message);
      break;
    case 'replicasDied':
      noteDeadReplicas(draft, message.replicas);
      break;
    case 'announceAnswered':
      if (message.error?.code === 'notFound') draft.removed = true;
      break;
    case 'handOver':
      handOver(draft);
      break;
    case 'submit':
      submit(
        draft,
        message.submission,
        { kind: 'caller', replyTo: message.replyTo, settles: message.settles },
        deadline(draft, message.timeoutMs),
      );
      break;
    case 'barrier':
      read(draft, message.replyTo, deadline(draft, message.timeoutMs), null);
      break;
    case 'removePeer':
      removePeer(draft, message, deadline(draft, message.timeoutMs));
      break;
    case 'recover':
      recover(draft, message);
      break;
    default:
  }
}

function takeReceived(draft: Draft, { from, messages }: MessageOf<'received'>): void {
  const { heardTicks, ticks } = draft.member;
  if (heardTicks.get(from) !== ticks) draft.change({ heardTicks: new Map(heardTicks).set(from, ticks) });
  for (const message of messages) {
    if (message.kind === 'raft') takeRaft(draft, message.message);
    else if (message.kind === 'awaitApplied') noteAsked(draft, from, message.index);
    else noteApplied(draft, from, message.index);
  }
}

/** An operation that this node cannot read stays out of its log: agreed on, it would stop every node that applies it, for good. */
function takeRaft(draft: Draft, message: RaftMessage): void {
  const unreadable = message.kind === 'propose' && message.proposal.kind === 'operation' ? whyUnreadable(message.proposal.bytes) : null;
  if (unreadable === null) draft.raft({ kind: 'receive', message });
  else draft.emit({ kind: 'log', level: 'warn', text: `what peer ${message.from} proposes is left out: ${unreadable}` });
}

function whyUnreadable(bytes: Uint8Array): string | null {
  try {
    decodeCommand(bytes);
    return null;
  } catch (error) {
    return errorFacts(error).detail;
  }
}

function noteConnection(draft: Draft, { connected, peer }: MessageOf<'connectionChanged'>): void {
  const peers = new Set(draft.member.connected);
  if (connected) peers.add(peer);
  else peers.delete(peer);
  draft.change({ connected: peers });
  noteContact(draft, peer, connected);
  if (!connected) draft.raft({ kind: 'unreachable', peer });
}

function recover(draft: Draft, { replyTo, timeoutMs }: MessageOf<'recover'>): void {
  if (draft.member.raft.role.kind === 'Leader') {
    draft.refuse(replyTo, { code: 'wrongInput', detail: 'this node is the leader: its state is what the others can take over' });
    return;
  }
  if (draft.member.calls.recovery !== null) {
    draft.refuse(replyTo, { code: 'conflict', detail: "this node is taking over the leader's state already" });
    return;
  }
  const refused = refusedNow(draft.member);
  if (refused !== null) {
    draft.refuse(replyTo, refused);
    return;
  }
  draft.changeCalls({ recovery: { replyTo, deadlineTick: deadline(draft, timeoutMs) } });
  draft.raft({ kind: 'requestSnapshot' });
}

/** In ticks: a process that stalled does not make its callers late. */
function deadline({ member }: Draft, timeoutMs: number): number {
  return member.ticks + Math.max(1, Math.ceil(timeoutMs / member.settings.tickMs));
}

function noteWritten(state: JoiningConsensus, number: number): ConsensusStep {
  const { effects, outbox } = settled(state.outbox, number);
  const next = { ...state, outbox };
  const asked = outbox.pending.length === 0 ? [askToJoin(next)] : [];
  return become<ConsensusState, ConsensusEffect>(next, ...effects, ...asked);
}

const JOIN_RETRY_MS_MIN = 250;
const JOIN_RETRY_MS_MAX = 4000;
const RELOAD_MS_MIN = 1000;
const RELOAD_MS_MAX = 30_000;

function waitToJoin(state: JoiningConsensus, error: ErrorFacts): ConsensusStep {
  const failures = state.failures + 1;
  const next = { ...state, failures, error };
  // Once per reason, as the tries go on until somebody does something about it.
  const told: ConsensusEffect[] =
    state.error?.detail === error.detail
      ? []
      : [{ kind: 'log', level: 'warn', text: `cannot join the cluster yet, and goes on trying (--bootstrap): ${error.detail}` }];
  return become<ConsensusState, ConsensusEffect>(next, ...told, {
    kind: 'retryLater',
    delayMs: backOff(failures, JOIN_RETRY_MS_MIN, JOIN_RETRY_MS_MAX),
  });
}

/** Volatile state is gone as in a crash; what is on disk is read again. */
function breakDown(state: ConsensusState, error: ErrorFacts): ConsensusStep {
  const failures = state.kind === 'Starting' ? state.failures + 1 : 1;
  const next = broken(state.settings, error, failures);
  return become<ConsensusState, ConsensusEffect>(
    next,
    { kind: 'log', level: 'error', text: `this node cannot take part in the cluster: ${error.detail}` },
    ...dismissed(state, { code: 'unavailable', detail: error.detail }),
    { kind: 'retryLater', delayMs: backOff(failures, RELOAD_MS_MIN, RELOAD_MS_MAX) },
  );
}

function becomeRemoved(draft: Draft): ConsensusStep {
  const { agreed, settings } = draft.member;
  const identity = { ...draft.member.identity, removed: true };
  const own = { kind: 'remove', peerId: identity.peerId } as const;
  for (const { caller, what } of draft.member.calls.proposals) {
    if (what.kind === 'membership' && what.change.kind === 'remove' && what.change.peerId === own.peerId && caller.kind === 'caller')
      draft.reply(caller.replyTo, true);
  }
  draft.write({ ...NO_WRITE, identity }, null);
  const next = removed(settings, identity, agreed);
  draft.emit(...dismissed(draft.member, next.error), { kind: 'setPeers', uris: new Map() });
  draft.emit({ kind: 'log', level: 'warn', text: next.error.detail });
  return { state: next, effects: draft.effects };
}

/** Refuses everybody who waits. Nothing happens to those who have an answer. */
function dismissed(state: ConsensusState, error: ErrorFacts): ConsensusEffect[] {
  if (state.kind !== 'Member') return [];
  const { proposals, reads, recovery, settling } = state.calls;
  const open: ErrorFacts = { ...error, detail: `${error.detail}; it may still be carried out` };
  const effects: ConsensusEffect[] = [];
  for (const { replyTo } of settling) effects.push({ kind: 'refuse', replyTo, error: open });
  for (const { replyTo } of reads) effects.push({ kind: 'refuse', replyTo, error });
  for (const { attempt, caller, uncertain } of proposals) {
    const isOpen = attempt !== null || uncertain;
    if ('replyTo' in caller) effects.push({ kind: 'refuse', replyTo: caller.replyTo, error: isOpen ? open : error });
  }
  if (recovery !== null) effects.push({ kind: 'refuse', replyTo: recovery.replyTo, error });
  return effects;
}

/** This release cannot read what is stored or sent: the node does not go on with half of it. */
function orBroken(state: ConsensusState, run: () => ConsensusStep): ConsensusStep {
  try {
    return run();
  } catch (error) {
    if (error instanceof TroupeError) return breakDown(state, errorFacts(error));
    throw error;
  }
}

function refusal(state: ConsensusState, replyTo: ReplyTo<never>): ConsensusEffect {
  return { kind: 'refuse', replyTo, error: whyNot(state) };
}

/** Why a node that is no member changes nothing. */
function whyNot(state: ConsensusState): ErrorFacts {
  switch (state.kind) {
    case 'Starting':
      return { code: 'unavailable', detail: 'the node is starting', retryAfterMs: 1000 };
    case 'Joining': {
      const why = state.error === null ? '' : `: ${state.error.detail}`;
      return { code: 'unavailable', detail: `the node is joining a cluster through ${state.settings.bootstrap}${why}`, retryAfterMs: 1000 };
    }
    case 'Removed':
      return state.error;
    case 'Broken':
      return { code: 'unavailable', detail: `the node cannot take part in its cluster: ${state.error.detail}`, retryAfterMs: 1000 };
    case 'Member':
      return { code: 'internal', detail: 'a member refuses nothing' };
    default:
      return unreachable(state);
  }
}

function backOff(failures: number, min: number, max: number): number {
  return Math.min(max, min * 2 ** (failures - 1));
}
