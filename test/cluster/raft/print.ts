/** Raft's states, messages and effects as lines to read and compare. An entry is `index/term`, then what it says. */

import type { Proposal, ProposalOutcome, RaftEffect, RaftMessage } from '../../../cluster/raft/messages.js';
import type { PendingRead, Progress, RaftState } from '../../../cluster/raft/state.js';
import type { Membership } from '../../../protocols/model/cluster.js';
import type { ConsensusWrite, Entry, EntryPayload } from '../../../protocols/model/consensus.js';
import type { Stepped } from './network.js';

const decoder = new TextDecoder();
const TEXT_LENGTH_MAX = 24;

/** Role, term and how far it is, on one line. */
export function printedRole(state: RaftState): string {
  const vote = state.votedFor === null ? '' : `, voted for ${state.votedFor}`;
  const leader = state.leader === null ? ', no leader' : state.leader === state.config.peerId ? '' : `, leader ${state.leader}`;
  return `${state.role.kind} of term ${state.term}${vote}${leader}, committed ${state.commitIndex}, applied ${state.appliedIndex}`;
}

/** All that matters of a state, over several lines. */
export function printedState(state: RaftState): string[] {
  const { snapshot, entries } = state.log;
  const begin = snapshot === null ? [] : [`snapshot ${snapshot.index}/${snapshot.term}`];
  const lines = [
    printedRole(state),
    `log: ${[...begin, ...entries.map(printedEntry)].join(', ') || 'empty'}; on disk to ${state.persistedIndex}`,
    `members: ${printedMembership(state.membership)}, of entry ${state.membershipIndex}`,
  ];
  const { role } = state;
  if (role.kind === 'Leader') {
    for (const [peerId, progress] of role.progress) lines.push(`${peerId}: ${printedProgress(progress)}`);
    if (role.reads.length > 0) lines.push(`waits for a quorum: ${role.reads.map(printedRead).join(', ')}`);
    if (role.transfer !== null) lines.push(`hands over to ${role.transfer.to}`);
  } else if (role.kind !== 'Follower') {
    lines.push(`votes: ${[...role.votes].map(([peerId, granted]) => `${peerId} ${granted ? 'yes' : 'no'}`).join(', ')}`);
  }
  return lines;
}

function printedRead(read: PendingRead): string {
  if (read.kind === 'verdict') return `whether ${read.peer} was removed, round ${read.round}`;
  return `read ${read.id} of ${read.from}${read.index === null ? '' : ` at ${read.index}`}, round ${read.round}`;
}

export function printedProgress(progress: Progress): string {
  const { mode } = progress;
  const how = () => {
    switch (mode.kind) {
      case 'Probe':
        return mode.waiting ? 'Probe, one under way' : 'Probe';
      case 'Replicate':
        return mode.inFlight.length === 0 ? 'Replicate' : `Replicate, under way to ${mode.inFlight.join(' ')}`;
      case 'Snapshot':
        return `Snapshot ${mode.snapshot.index} from byte ${mode.offset}${mode.forced ? ', forced' : ''}`;
      default:
        return mode satisfies never;
    }
  };
  return `match ${progress.matchIndex}, next ${progress.nextIndex}, ${how()}`;
}

/** What a step changed and caused. `waits`: what is sent waits for the disk. */
export function printedStep({ peer, before, state, effects }: Stepped, waits: boolean): string[] {
  const id = peer.config.peerId;
  const lines = decisive(before) === decisive(state) ? [] : [`${id} is ${printedRole(state)}`];
  for (const effect of effects) {
    const late = waits && effect.kind === 'send' && peer.unsynced.some((write) => write.number !== null);
    lines.push(...printedEffect(effect).map((line) => `${id} ${late ? 'once it is on disk, ' : ''}${line}`));
  }
  return lines;
}

/** What is worth a line when it changes. */
function decisive({ role, term, votedFor, leader, commitIndex }: RaftState): string {
  return [role.kind, term, votedFor, leader, commitIndex].join();
}

/** Without sender and receiver. */
export function printedMessage(message: RaftMessage): string {
  return `${message.kind} of term ${message.term}${printedContent(message)}`;
}

function printedContent(message: RaftMessage): string {
  switch (message.kind) {
    case 'preVote':
    case 'vote':
      return `, log to ${message.lastIndex}/${message.lastTerm}${message.transfer ? ', asked by the leader' : ''}`;
    case 'preVoteReply':
    case 'voteReply':
      return message.granted ? ': yes' : ': no';
    case 'append':
      return ` behind ${message.prevIndex}/${message.prevTerm}: ${printedEntries(message.entries)}; committed ${message.commit}, round ${message.round}`;
    case 'appendReply':
      return message.matched
        ? `: matched to ${message.index}, round ${message.round}`
        : `: no match, try ${message.index}/${message.logTerm}, round ${message.round}`;
    case 'installSnapshot': {
      const { snapshot, offset, chunk, totalBytes } = message;
      const part = `bytes ${offset} to ${offset + chunk.length} of ${totalBytes}`;
      return `: ${snapshot.index}/${snapshot.term}, ${part}, members ${printedMembership(snapshot.membership)}${message.forced ? ', forced' : ''}`;
    }
    case 'installSnapshotReply':
      return `: ${message.index}, ${message.done ? 'installed' : `next byte ${message.nextOffset}`}`;
    case 'propose':
      return `: ${message.id}, ${printedProposal(message.proposal)}`;
    case 'proposeReply':
      return `: ${message.id} ${printedOutcome(message.outcome)}`;
    case 'readIndex':
      return `: ${message.id}`;
    case 'readIndexReply':
      return `: ${message.id} ${message.index ?? 'refused'}`;
    case 'timeoutNow':
    case 'requestSnapshot':
    case 'notMember':
      return '';
    default:
      return message satisfies never;
  }
}

/** One line, or one for each message; `roleChanged` shows in the state and has none. */
export function printedEffect(effect: RaftEffect): string[] {
  switch (effect.kind) {
    case 'persist':
      return [`persists ${effect.number}: ${printedWrite(effect.write)}`];
    case 'send':
      return effect.messages.map((message) => `to ${message.to}: ${printedMessage(message)}`);
    case 'sendEarly':
      return effect.messages.map((message) => `early to ${message.to}: ${printedMessage(message)}`);
    case 'apply':
      return [`applies ${printedEntries(effect.entries)}`];
    case 'restore':
      return [`becomes the snapshot of ${effect.snapshot.index}/${effect.snapshot.term}`];
    case 'proposed':
      return [`proposal ${effect.id}: ${printedOutcome(effect.outcome)}`];
    case 'readReady':
      return [`read ${effect.id}: ${effect.index === null ? 'refused' : `ready at ${effect.index}`}`];
    case 'roleChanged':
      return [];
    case 'removed':
      return ['has been removed'];
    case 'snapshotWanted':
      return ['wants a snapshot of its state'];
    default:
      return effect satisfies never;
  }
}

export function printedWrite(write: ConsensusWrite): string {
  const parts: string[] = [];
  if (write.hardState !== null) {
    const { term, votedFor, commit } = write.hardState;
    parts.push(`term ${term}, vote ${votedFor ?? 'none'}, committed ${commit}`);
  }
  if (write.snapshot !== null) parts.push(`snapshot ${write.snapshot.index}/${write.snapshot.term}`);
  if (write.clearEntries) parts.push('no entries');
  if (write.firstIndex !== null) parts.push(`entries from ${write.firstIndex}`);
  if (write.entries.length > 0) parts.push(printedEntries(write.entries));
  if (write.applied !== null) parts.push(`applied ${write.applied}`);
  return parts.join('; ') || 'nothing';
}

export function printedOutcome(outcome: ProposalOutcome): string {
  return outcome.kind === 'accepted' ? `accepted as ${outcome.index}/${outcome.term}` : `refused, ${outcome.reason}`;
}

/** Voters, then learners in brackets. */
export function printedMembership(membership: Membership): string {
  return membership.map(({ peerId, voter }) => (voter ? `${peerId}` : `(${peerId})`)).join(' ') || 'none';
}

export function printedEntries(entries: readonly Entry[]): string {
  return entries.map(printedEntry).join(', ') || 'no entries';
}

export function printedEntry({ index, term, payload }: Entry): string {
  return `${index}/${term} ${printedPayload(payload)}`;
}

function printedPayload(payload: EntryPayload): string {
  switch (payload.kind) {
    case 'empty':
      return 'empty';
    case 'membership':
      return `members ${printedMembership(payload.membership)}`;
    case 'operation':
      return printedBytes(payload.bytes);
    default:
      return payload satisfies never;
  }
}

function printedProposal(proposal: Proposal): string {
  if (proposal.kind === 'operation') return printedBytes(proposal.bytes);
  const { change } = proposal;
  return `${change.kind} ${'member' in change ? change.member.peerId : change.peerId}`;
}

function printedBytes(bytes: Uint8Array): string {
  const text = decoder.decode(bytes.subarray(0, TEXT_LENGTH_MAX));
  return bytes.length > TEXT_LENGTH_MAX ? `${text}… (${bytes.length} bytes)` : text;
}
