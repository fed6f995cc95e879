/** The moves of a member, one for each message. */

import type { RaftMessage } from '../../cluster/raft/messages.js';
import { decodeCommand } from '../../cluster/state/command-codec.js';
import { errorFacts } from '../../protocols/errors.js';
import { decideInRow, ignore, type Of, type Row } from '../../protocols/machine.js';
import type { Step } from '../runtime/behaviour.js';
import { noteAsked, noteCarriedOut } from './agreed/carrying.js';
import { goOnCatchingUp } from './agreed/catching-up.js';
import { noteDeadReplicas } from './agreed/health.js';
import { noticesOf } from './agreed/notices.js';
import { DRAFT_ACTS } from './drive.js';
import { becomeRemoved, breakDown } from './leaving.js';
import { noteDiskFull, noteOwnDiskFull } from './membership/full-disks.js';
import { takeRequest } from './membership/peer-requests.js';
import { handOverLeadership, removePeerIfEmpty } from './membership/remove-peer.js';
import { noteContact, noteEnd, notePledge } from './membership/survivor.js';
import { followMembership, tick } from './membership/upkeep.js';
import type { ConsensusEffect, ConsensusMessage } from './messages.js';
import { ConsensusDraft } from './proposals/draft.js';
import { settled } from './proposals/outbox.js';
import { proposeWaiting, submit } from './proposals/proposals.js';
import { refusedNow } from './proposals/readiness.js';
import { read } from './proposals/reads.js';
import { noteApplied } from './proposals/settling.js';
import type { ConsensusState, MemberConsensus } from './state.js';

type ConsensusStep = Step<ConsensusState, ConsensusEffect>;
type MessageOf<Kind extends ConsensusMessage['kind']> = Of<ConsensusMessage, Kind>;

/** The row of `Member` in the table of `step.ts`. */
export const MEMBER_ROW: Row<ConsensusMessage, ConsensusDraft, void> = {
  loaded: ignore,
  loadFailed: ignore,
  adopted: ignore,
  adoptFailed: ignore,
  joined: ignore,
  joinFailed: ignore,
  retry: ignore,
  listenFailed: fail,
  writeFailed: fail,
  tick: takeTick,
  received: takeReceived,
  connectionChanged: noteConnection,
  peerUnreachable: noteUnreachable,
  pledged: notePledge,
  ended: noteEnd,
  requested: takeRequest,
  written: noteWritten,
  carriedOut: noteCarriedOut,
  replicasDied: noteDeadReplicas,
  diskFilled: noteOwnDiskFull,
  announceAnswered: noteAnnounceAnswer,
  handOver: (draft) => handOverLeadership(draft),
  submit: submitForCaller,
  barrier: readForCaller,
  removePeer: removeForCaller,
  recover,
};

export function stepMember(state: MemberConsensus, message: ConsensusMessage): ConsensusStep {
  const draft = new ConsensusDraft(state, DRAFT_ACTS);
  decideInRow(MEMBER_ROW, draft, message);
  if (draft.failure !== null) return breakDown(state, { error: draft.failure });
  goOnCatchingUp(draft);
  followMembership(draft);
  draft.emit(...noticesOf(state, draft.member));
  if (draft.removed) return becomeRemoved(draft);
  return { state: draft.member, effects: draft.effects };
}

function fail(draft: ConsensusDraft, { error }: MessageOf<'listenFailed' | 'writeFailed'>): void {
  draft.failure = error;
}

function takeTick(draft: ConsensusDraft): void {
  tick(draft);
  draft.emit({ kind: 'tickLater' });
}

function takeReceived(draft: ConsensusDraft, { from, messages }: MessageOf<'received'>): void {
  const { heardTicks, ticks } = draft.member;
  if (heardTicks.get(from) !== ticks) draft.change({ heardTicks: new Map(heardTicks).set(from, ticks) });
  for (const message of messages) {
    if (message.kind === 'raft') takeRaft(draft, message.message);
    else if (message.kind === 'awaitApplied') noteAsked(draft, from, message.index);
    else if (message.kind === 'applied') noteApplied(draft, from, message.index);
    else noteDiskFull(draft, from);
  }
}

/**
 * Takes a message of Raft. A command that this node cannot read stays out of its log: once agreed on, it would stop every node that applies
 * it, for good.
 */
function takeRaft(draft: ConsensusDraft, message: RaftMessage): void {
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

function noteConnection(draft: ConsensusDraft, { connected, peer }: MessageOf<'connectionChanged'>): void {
  const peers = new Set(draft.member.connected);
  if (connected) peers.add(peer);
  else peers.delete(peer);
  draft.change({ connected: peers });
  noteContact(draft, peer, connected);
  if (!connected) draft.raft({ kind: 'unreachable', peer });
}

function noteUnreachable(draft: ConsensusDraft, { peer }: MessageOf<'peerUnreachable'>): void {
  draft.raft({ kind: 'unreachable', peer });
}

function noteWritten(draft: ConsensusDraft, { number }: MessageOf<'written'>): void {
  const written = settled(draft.member.outbox, number);
  draft.go(written);
  // The first write of a session allows its proposals.
  if (number === draft.member.sessionWrite) proposeWaiting(draft);
  if (written.raftWrite !== null) draft.raft({ kind: 'persisted', write: written.raftWrite });
}

function noteAnnounceAnswer(draft: ConsensusDraft, { error }: MessageOf<'announceAnswered'>): void {
  if (error?.code === 'notFound') draft.removed = true;
}

function recover(draft: ConsensusDraft, { replyTo, timeoutMs }: MessageOf<'recover'>): void {
  if (draft.member.raft.role.kind === 'Leader') {
    // Its state is the one that the others take over: there is nothing to do. Source: contract, scenario `cluster-one-node`.
    draft.reply(replyTo, true);
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

function submitForCaller(draft: ConsensusDraft, { replyTo, settles, submission, timeoutMs }: MessageOf<'submit'>): void {
  submit(draft, submission, { kind: 'caller', replyTo, settles }, deadline(draft, timeoutMs));
}

function readForCaller(draft: ConsensusDraft, { replyTo, timeoutMs }: MessageOf<'barrier'>): void {
  read(draft, replyTo, deadline(draft, timeoutMs), { kind: 'answer' });
}

function removeForCaller(draft: ConsensusDraft, message: MessageOf<'removePeer'>): void {
  removePeerIfEmpty(draft, message, deadline(draft, message.timeoutMs));
}

/** The deadline in ticks, so that a process that stalled does not time out its callers; the last whole one, so that they hear in time. */
function deadline({ member }: ConsensusDraft, timeoutMs: number): number {
  return member.ticks + Math.max(1, Math.floor(timeoutMs / member.settings.tickMs));
}
