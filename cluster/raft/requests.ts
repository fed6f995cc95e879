/** Proposals and reads: decided by the leader, forwarded to it by others. Source: dissertation, sections 4.1 and 6.2. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { type MessageBody, type MessageOf, type RaftDraft, sendEarly } from './draft.js';
import { isSettled, membershipAt } from './log.js';
import { changed, memberOf } from './membership.js';
import type { Proposal, ProposalOutcome, RefusalReason, RequestId } from './messages.js';
import { addRead } from './read-index.js';
import { appendOwn, hasCommittedInTerm } from './replication.js';
import { giveUp } from './roles.js';
import type { Forwarded, LeaderRole, RaftState } from './state.js';

/** Base of the ids for a follower's questions about peers outside the membership: above all ids that this peer's actors give. */
const NON_MEMBER_READ_BASE = 2 ** 48;

export function propose(draft: RaftDraft, id: RequestId, proposal: Proposal): void {
  const { role, leader } = draft.state;
  if (role.kind === 'Leader') draft.effects.push({ kind: 'proposed', id, outcome: proposeHere(draft, proposal) });
  else if (leader !== null) forward(draft, id, leader, { kind: 'propose', ticksLeft: ticksOf(draft) }, { kind: 'propose', id, proposal });
  else giveUp(draft, id, 'propose');
}

export function readIndex(draft: RaftDraft, id: RequestId): void {
  const { role, leader, config } = draft.state;
  if (role.kind === 'Leader') addRead(draft, id, config.peerId);
  else if (leader !== null) forward(draft, id, leader, { kind: 'readIndex', ticksLeft: ticksOf(draft) }, { kind: 'readIndex', id });
  else giveUp(draft, id, 'readIndex');
}

export function receivePropose(draft: RaftDraft, message: MessageOf<'propose'>): void {
  const outcome = draft.state.role.kind === 'Leader' ? proposeHere(draft, message.proposal) : refused('noLeader');
  sendEarly(draft, message.from, { kind: 'proposeReply', id: message.id, outcome });
}

export function receiveReadIndex(draft: RaftDraft, message: MessageOf<'readIndex'>): void {
  if (draft.state.role.kind === 'Leader') addRead(draft, message.id, message.from);
  else sendEarly(draft, message.from, { kind: 'readIndexReply', id: message.id, index: null });
}

export function receiveProposeReply(draft: RaftDraft, message: MessageOf<'proposeReply'>): void {
  if (answered(draft, message.id, 'propose')) draft.effects.push({ kind: 'proposed', id: message.id, outcome: message.outcome });
}

/**
 * Asks the leader, by a read (Raft-R7), about a peer outside the membership that asks this follower for a pre-vote. That peer may have been
 * removed while it was away, and may not know the leader that would tell it.
 */
export function askAboutStranger(draft: RaftDraft, message: MessageOf<'preVote'>): void {
  const { leader, role, membership, forwarded } = draft.state;
  const { from, lastIndex, lastTerm } = message;
  const id = NON_MEMBER_READ_BASE + from;
  if (role.kind !== 'Follower' || leader === null || forwarded.has(id) || memberOf(membership, from) !== undefined) return;
  const question = { kind: 'verdict', peer: from, lastIndex, lastTerm, index: null, ticksLeft: ticksOf(draft) } as const;
  forward(draft, id, leader, question, { kind: 'readIndex', id });
}

export function receiveReadIndexReply(draft: RaftDraft, message: MessageOf<'readIndexReply'>): void {
  const { forwarded } = draft.state;
  const asked = forwarded.get(message.id);
  if (asked?.kind === 'verdict' && message.index !== null) {
    draft.state.forwarded = new Map(forwarded).set(message.id, { ...asked, index: message.index });
    return;
  }
  if (answered(draft, message.id, 'readIndex')) draft.effects.push({ kind: 'readReady', id: message.id, index: message.index });
}

/** Counts a tick for forwarded requests and fails those that have waited too long: requests and answers may be lost. */
export function tickForwarded(draft: RaftDraft): void {
  const state = draft.state;
  if (state.forwarded.size === 0) return;
  const left = new Map<RequestId, Forwarded>();
  for (const [id, asked] of state.forwarded) {
    if (asked.kind === 'verdict' && isRipe(state, asked)) judge(draft, asked.peer);
    else if (asked.ticksLeft > 1) left.set(id, { ...asked, ticksLeft: asked.ticksLeft - 1 });
    else giveUp(draft, id, asked.kind);
  }
  state.forwarded = left;
}

/**
 * Whether a verdict may be given. The addition of the peer may still be under way, so the last entry of its log must be applied here or
 * lost for good.
 */
function isRipe(state: RaftState, asked: Extract<Forwarded, { kind: 'verdict' }>): boolean {
  return asked.index !== null && asked.index <= state.appliedIndex && isSettled(state.log, state.appliedIndex, asked);
}

function judge(draft: RaftDraft, stranger: PeerId): void {
  const { log, appliedIndex } = draft.state;
  const known = memberOf(membershipAt(log, appliedIndex).membership, stranger);
  if (known === undefined) sendEarly(draft, stranger, { kind: 'notMember' });
}

function forward(draft: RaftDraft, id: RequestId, to: PeerId, what: Forwarded, body: MessageBody): void {
  const state = draft.state;
  if (to === state.config.peerId) return;
  state.forwarded = new Map(state.forwarded).set(id, what);
  sendEarly(draft, to, body);
}

function ticksOf(draft: RaftDraft): number {
  return 2 * draft.state.config.electionTicks;
}

function answered(draft: RaftDraft, id: RequestId, kind: 'propose' | 'readIndex'): boolean {
  const state = draft.state;
  if (state.forwarded.get(id)?.kind !== kind) return false;
  const left = new Map(state.forwarded);
  left.delete(id);
  state.forwarded = left;
  return true;
}

function proposeHere(draft: RaftDraft, proposal: Proposal): ProposalOutcome {
  const { config, role, membership, membershipIndex, commitIndex } = draft.state;
  const { transfer, uncommittedBytes } = role as LeaderRole;
  if (transfer !== null) return refused('transferring');
  if (uncommittedBytes >= config.uncommittedBytesMax) return refused('busy');
  if (proposal.kind === 'operation') {
    if (proposal.bytes.length > config.entryBytesMax) return refused('tooLarge');
    return accepted(appendOwn(draft, proposal));
  }
  // One change at a time, and none before this leader knows everything that is committed (Raft-R6, Raft-R9).
  if (membershipIndex > commitIndex || !hasCommittedInTerm(draft)) return refused('membershipPending');
  const next = changed(membership, proposal.change);
  if (next === null) return refused('membershipInvalid');
  return accepted(appendOwn(draft, next === membership ? { kind: 'empty' } : { kind: 'membership', membership: next }));
}

function accepted(entry: { readonly index: number; readonly term: number }): ProposalOutcome {
  return { kind: 'accepted', index: entry.index, term: entry.term };
}

function refused(reason: RefusalReason): ProposalOutcome {
  return { kind: 'refused', reason };
}
