/** The step of a peer's Raft. The rules have numbers (Raft-R1 ...), which `cluster/README.md` lists. */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { compact } from './compaction.js';
import { begin, finish, progressOf, type RaftDraft, type RaftStep, sendEarly, sendLate } from './draft.js';
import {
  considerVotes,
  mayCampaign,
  preCampaign,
  receivePreVote,
  receivePreVoteReply,
  receiveVote,
  receiveVoteReply,
  tickElection,
} from './election.js';
import { receiveAppend, receiveInstallSnapshot } from './following.js';
import { isSettled } from './log.js';
import type { RaftInput, RaftMessage } from './messages.js';
import { probing } from './progress.js';
import { countedVoters } from './quorum.js';
import { addVerdict, settleReads } from './read-index.js';
import { advanceCommit, receiveAppendReply } from './replication.js';
import {
  askAboutStranger,
  propose,
  readIndex,
  receivePropose,
  receiveProposeReply,
  receiveReadIndex,
  receiveReadIndexReply,
  tickForwarded,
} from './requests.js';
import { becomeFollower } from './roles.js';
import { heartbeat } from './sending.js';
import { receiveInstallSnapshotReply, receiveRequestSnapshot, sendWantedSnapshots, tickSnapshots } from './snapshot-sending.js';
import type { RaftState } from './state.js';
import { maybeLetSuccessorRun, receiveTimeoutNow, tickTransfer, transferLeadership } from './transfer.js';

type MessageInTerm = Exclude<RaftMessage, { kind: 'vote' | 'preVote' | 'notMember' }>;

/** The state after `input`, the same object if nothing changed, and the effects in order. */
export function stepRaft(state: RaftState, input: RaftInput): RaftStep {
  const draft = begin(state);
  handle(draft, input);
  if (draft.state.role.kind === 'Leader') advanceCommit(draft);
  if (draft.state.role.kind === 'Leader') settleReads(draft);
  return finish(draft);
}

function handle(draft: RaftDraft, input: RaftInput): void {
  switch (input.kind) {
    case 'tick':
      if (draft.state.role.kind === 'Leader') tickLeader(draft);
      else {
        tickForwarded(draft);
        tickElection(draft);
      }
      return;
    case 'receive':
      receive(draft, input.message);
      return;
    case 'persisted':
      persisted(draft, input.write);
      return;
    case 'propose':
      propose(draft, input.id, input.proposal);
      return;
    case 'readIndex':
      readIndex(draft, input.id);
      return;
    case 'transferLeadership':
      transferLeadership(draft, input.to);
      return;
    case 'campaign':
      if (draft.state.role.kind !== 'Leader' && mayCampaign(draft.state)) preCampaign(draft);
      return;
    case 'requestSnapshot': {
      const { leader, config } = draft.state;
      if (leader !== null && leader !== config.peerId) sendEarly(draft, leader, { kind: 'requestSnapshot' });
      return;
    }
    case 'compact':
      compact(draft, input.index, input.data);
      sendWantedSnapshots(draft);
      return;
    case 'gone':
      noteGone(draft, input.peer);
      return;
    case 'unreachable':
      unreachable(draft, input.peer);
      return;
  }
}

/** Sends heartbeats, and steps down if no quorum was heard within an election timeout (Raft-R10, section 6.2). */
function tickLeader(draft: RaftDraft): void {
  const state = draft.state;
  if (state.role.kind !== 'Leader') return;
  state.elapsedTicks++;
  if (state.elapsedTicks >= state.config.electionTicks) {
    state.elapsedTicks = 0;
    if (!heardOfQuorum(draft)) {
      becomeFollower(draft, state.term, null);
      return;
    }
  }
  tickTransfer(draft);
  tickSnapshots(draft);
  const heartbeatElapsed = state.role.heartbeatElapsed + 1;
  if (heartbeatElapsed >= state.config.heartbeatTicks) heartbeat(draft);
  else state.role = { ...state.role, heartbeatElapsed };
}

/** Whether a quorum was heard since the last check. Starts the next period. */
function heardOfQuorum(draft: RaftDraft): boolean {
  const { config } = draft.state;
  const progress = progressOf(draft);
  const voters = countedVoters(draft.state);
  const active = voters.filter(({ peerId }) => peerId === config.peerId || progress.get(peerId)?.recentlyActive === true).length;
  for (const [peer, figures] of progress) if (figures.recentlyActive) progress.set(peer, { ...figures, recentlyActive: false });
  return active > voters.length >> 1;
}

/** A write is on disk: the own vote counts, and entries may be committed and applied. */
function persisted(draft: RaftDraft, write: number): void {
  const state = draft.state;
  invariant(write <= state.writes, 'Raft-R1', () => `write ${write} is on disk, ${state.writes} were made`);
  if (write <= state.persistedWrites) return;
  state.persistedWrites = write;
  let done = 0;
  for (const { number, lastIndex } of state.writesUnderWay) {
    if (number > write) break;
    state.persistedIndex = lastIndex;
    done++;
  }
  state.writesUnderWay = state.writesUnderWay.slice(done);
  considerVotes(draft);
}

function receive(draft: RaftDraft, message: RaftMessage): void {
  const state = draft.state;
  if (message.to !== state.config.peerId) return;
  if (message.from === state.gone) state.gone = null;
  if (state.role.kind === 'Leader' && !hearPeer(draft, message)) return;
  switch (message.kind) {
    // Candidates name terms that may never begin, and some of their messages are ignored.
    case 'vote':
      receiveVote(draft, message);
      return;
    case 'preVote':
      askAboutStranger(draft, message);
      receivePreVote(draft, message);
      return;
    case 'notMember':
      draft.effects.push({ kind: 'removed' });
      return;
    default:
      receiveInTerm(draft, message);
  }
}

/** Messages of lower terms are late, or come from a peer that has to learn of this term; those of higher terms end this one. */
function receiveInTerm(draft: RaftDraft, message: MessageInTerm): void {
  const { term } = draft.state;
  if (message.term < term) {
    receiveLate(draft, message);
    return;
  }
  // A granted pre-vote names a term that may never begin.
  if (message.term > term && !(message.kind === 'preVoteReply' && message.granted)) {
    becomeFollower(draft, message.term, message.kind === 'append' || message.kind === 'installSnapshot' ? message.from : null);
  }
  receiveTimely(draft, message);
}

/**
 * Notes a message of a follower. Returns false for a peer outside the membership: one that asks for votes was removed, or belongs to a
 * leader that this peer does not know of.
 */
function hearPeer(draft: RaftDraft, message: RaftMessage): boolean {
  const { role } = draft.state;
  if (role.kind !== 'Leader') return true;
  const progress = role.progress.get(message.from);
  if (progress !== undefined) {
    if (!progress.recentlyActive) progressOf(draft).set(message.from, { ...progress, recentlyActive: true });
    return true;
  }
  switch (message.kind) {
    case 'append':
    case 'installSnapshot':
    case 'notMember':
      return true;
    // Its addition may be known to no leader yet: wait until the last entry of its log is committed here or lost for good.
    case 'preVote':
    case 'vote':
      if (isSettled(draft.state.log, draft.state.commitIndex, message)) addVerdict(draft, message.from);
      return false;
    default:
      return false;
  }
}

function receiveLate(draft: RaftDraft, message: MessageInTerm): void {
  switch (message.kind) {
    // A former leader learns from the answer's term that it leads no more.
    case 'append':
    case 'installSnapshot':
      sendLate(draft, message.from, { kind: 'appendReply', matched: false, index: 0, logTerm: 0, round: 0 });
      return;
    case 'propose':
      receivePropose(draft, message);
      return;
    case 'readIndex':
      receiveReadIndex(draft, message);
      return;
  }
}

function receiveTimely(draft: RaftDraft, message: MessageInTerm): void {
  switch (message.kind) {
    case 'append':
      receiveAppend(draft, message);
      return;
    case 'appendReply':
      receiveAppendReply(draft, message);
      maybeLetSuccessorRun(draft);
      return;
    case 'preVoteReply':
      receivePreVoteReply(draft, message);
      return;
    case 'voteReply':
      receiveVoteReply(draft, message);
      return;
    case 'installSnapshot':
      receiveInstallSnapshot(draft, message);
      return;
    case 'installSnapshotReply':
      receiveInstallSnapshotReply(draft, message);
      return;
    case 'timeoutNow':
      receiveTimeoutNow(draft);
      return;
    case 'propose':
      receivePropose(draft, message);
      return;
    case 'proposeReply':
      receiveProposeReply(draft, message);
      return;
    case 'readIndex':
      receiveReadIndex(draft, message);
      return;
    case 'readIndexReply':
      receiveReadIndexReply(draft, message);
      return;
    case 'requestSnapshot':
      receiveRequestSnapshot(draft, message);
      return;
  }
}

/**
 * Notes whether the other voter has ended. A peer that is left without other voters leads, and commits entries that are on its own disk
 * (Raft-R11).
 */
function noteGone(draft: RaftDraft, peer: PeerId | null): void {
  const state = draft.state;
  state.gone = peer;
  if (peer === null || countedVoters(state).length !== 1 || !mayCampaign(state)) return;
  if (state.role.kind === 'Candidate') considerVotes(draft);
  else if (state.role.kind !== 'Leader') preCampaign(draft);
}

/** Probes a peer that could not be reached: messages to it may be lost. */
function unreachable(draft: RaftDraft, peer: number): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader') return;
  const progress = role.progress.get(peer);
  if (progress?.mode.kind === 'Replicate') progressOf(draft).set(peer, probing(progress, progress.matchIndex + 1));
}
