/** Proposals and reads: decided by the leader, forwarded to it by others. Source: dissertation, sections 4.1 and 6.2. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { type Draft, type MessageOf, sendEarly } from './draft.js';
import { changed } from './membership.js';
import type { Proposal, ProposalOutcome, RefusalReason, RequestId } from './messages.js';
import { addRead } from './read-index.js';
import { appendOwn, hasCommittedInTerm } from './replication.js';
import { giveUp } from './roles.js';
import type { LeaderRole } from './state.js';

export function propose(draft: Draft, id: RequestId, proposal: Proposal): void {
  const { role, leader } = draft.state;
  if (role.kind === 'Leader') draft.effects.push({ kind: 'proposed', id, outcome: proposeHere(draft, proposal) });
  else if (leader !== null) forward(draft, id, leader, 'propose', () => sendEarly(draft, leader, { kind: 'propose', id, proposal }));
  else giveUp(draft, id, 'propose');
}

export function readIndex(draft: Draft, id: RequestId): void {
  const { role, leader, config } = draft.state;
  if (role.kind === 'Leader') addRead(draft, id, config.peerId);
  else if (leader !== null) forward(draft, id, leader, 'readIndex', () => sendEarly(draft, leader, { kind: 'readIndex', id }));
  else giveUp(draft, id, 'readIndex');
}

export function receivePropose(draft: Draft, message: MessageOf<'propose'>): void {
  const outcome = draft.state.role.kind === 'Leader' ? proposeHere(draft, message.proposal) : refused('noLeader');
  sendEarly(draft, message.from, { kind: 'proposeReply', id: message.id, outcome });
}

export function receiveReadIndex(draft: Draft, message: MessageOf<'readIndex'>): void {
  if (draft.state.role.kind === 'Leader') addRead(draft, message.id, message.from);
  else sendEarly(draft, message.from, { kind: 'readIndexReply', id: message.id, index: null });
}

export function receiveProposeReply(draft: Draft, message: MessageOf<'proposeReply'>): void {
  if (answered(draft, message.id, 'propose')) draft.effects.push({ kind: 'proposed', id: message.id, outcome: message.outcome });
}

export function receiveReadIndexReply(draft: Draft, message: MessageOf<'readIndexReply'>): void {
  if (answered(draft, message.id, 'readIndex')) draft.effects.push({ kind: 'readReady', id: message.id, index: message.index });
}

/** Requests and answers get lost: after a while each is given up. */
export function tickForwarded(draft: Draft): void {
  const state = draft.state;
  if (state.forwarded.size === 0) return;
  const left = new Map<RequestId, { readonly kind: 'propose' | 'readIndex'; readonly ticksLeft: number }>();
  for (const [id, { kind, ticksLeft }] of state.forwarded) {
    if (ticksLeft > 1) left.set(id, { kind, ticksLeft: ticksLeft - 1 });
    else giveUp(draft, id, kind);
  }
  state.forwarded = left;
}

function forward(draft: Draft, id: RequestId, to: PeerId, kind: 'propose' | 'readIndex', send: () => void): void {
  const state = draft.state;
  if (to === state.config.peerId) return;
  state.forwarded = new Map(state.forwarded).set(id, { kind, ticksLeft: 2 * state.config.electionTicks });
  send();
}

function answered(draft: Draft, id: RequestId, kind: 'propose' | 'readIndex'): boolean {
  const state = draft.state;
  if (state.forwarded.get(id)?.kind !== kind) return false;
  const left = new Map(state.forwarded);
  left.delete(id);
  state.forwarded = left;
  return true;
}

function proposeHere(draft: Draft, proposal: Proposal): ProposalOutcome {
  const { config, role, membership, membershipIndex, commitIndex } = draft.state;
  const { transfer, uncommittedBytes } = role as LeaderRole;
  if (transfer !== null) return refused('transferring');
  if (uncommittedBytes >= config.uncommittedBytesMax) return refused('busy');
  if (proposal.kind === 'operation') {
    if (proposal.bytes.length > config.entryBytesMax) return refused('tooLarge');
    return accepted(appendOwn(draft, proposal));
  }
  // One change at a time, and none before this leader knows what is committed (R9).
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
