/** Elections: pre-vote, vote, the lease that keeps candidates away from a leader that works. Source: dissertation, sections 3.4, 9.6 and 4.2.3. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { type MessageOf, type RaftDraft, sendEarly, sendLate, writeNumber } from './draft.js';
import { lastIndex, lastTerm, membershipAt } from './log.js';
import { isVoter, memberOf } from './membership.js';
import { countedVoters, tally } from './quorum.js';
import { becomeLeader } from './replication.js';
import { becomeFollower, failForwarded, restartElectionTimer, shortenElectionTimer } from './roles.js';
import type { RaftState } from './state.js';

/** Counts a tick without a leader, and campaigns when the election timeout has passed. */
export function tickElection(draft: RaftDraft): void {
  const state = draft.state;
  state.elapsedTicks++;
  if (state.elapsedTicks < state.electionAfterTicks) return;
  if (mayCampaign(state)) preCampaign(draft);
  else askForLeader(draft);
}

/**
 * Whether this peer may campaign: it is a voter, or it was one before an uncommitted membership. In the second case it may hold the only
 * copy of that entry, without which no peer could be elected (section 4.2.2).
 */
export function mayCampaign(state: RaftState): boolean {
  if (isVoter(state.membership, state.config.peerId)) return true;
  if (state.membershipIndex <= state.commitIndex) return false;
  return isVoter(membershipAt(state.log, state.membershipIndex - 1).membership, state.config.peerId);
}

/** Starts a pre-vote: asks whether this peer could win, before it raises its term (section 9.6). */
export function preCampaign(draft: RaftDraft): void {
  const state = draft.state;
  const self = state.config.peerId;
  becomeFollower(draft, state.term, null);
  restartElectionTimer(draft);
  state.role = { kind: 'PreCandidate', votes: new Map([[self, true]]) };
  if (countVotes(state, state.role.votes) === 'won') campaign(draft, false);
  else askPreVotes(draft);
}

/** Starts an election in the next term. transfer: the leader has asked for it. */
export function campaign(draft: RaftDraft, transfer: boolean): void {
  const state = draft.state;
  const self = state.config.peerId;
  failForwarded(draft);
  state.term++;
  state.votedFor = self;
  state.leader = null;
  state.role = { kind: 'Candidate', votes: new Map([[self, true]]), voteWrite: writeNumber(draft), transfer };
  restartElectionTimer(draft);
  for (const to of otherVoters(state)) {
    sendLate(draft, to, { kind: 'vote', lastIndex: lastIndex(state.log), lastTerm: lastTerm(state.log), transfer });
  }
}

/** Counts the votes again; the own vote counts once it is on disk (Raft-R2). */
export function considerVotes(draft: RaftDraft): void {
  const { role } = draft.state;
  if (role.kind !== 'Candidate' || role.voteWrite > draft.state.persistedWrites) return;
  const result = countVotes(draft.state, role.votes);
  if (result === 'won') becomeLeader(draft);
  else if (result === 'lost') becomeFollower(draft, draft.state.term, null);
}

export function receivePreVote(draft: RaftDraft, message: MessageOf<'preVote'>): void {
  const state = draft.state;
  if (!message.transfer && hasLease(state)) return;
  const granted = message.term > state.term && isUpToDate(state, message);
  sendEarly(draft, message.from, { kind: 'preVoteReply', granted }, granted ? message.term : state.term);
}

export function receivePreVoteReply(draft: RaftDraft, message: MessageOf<'preVoteReply'>): void {
  const state = draft.state;
  if (message.granted ? message.term !== state.term + 1 : message.term < state.term) return;
  if (state.role.kind !== 'PreCandidate') return;
  const votes = new Map(state.role.votes).set(message.from, message.granted);
  state.role = { kind: 'PreCandidate', votes };
  const result = countVotes(state, votes);
  if (result === 'won') campaign(draft, false);
  else if (result === 'lost') becomeFollower(draft, state.term, null);
}

/** Grants one vote per term, to the first candidate whose log is at least as new. The vote is on disk before it is told (Raft-R1). */
export function receiveVote(draft: RaftDraft, message: MessageOf<'vote'>): void {
  const state = draft.state;
  if (!message.transfer && hasLease(state)) return;
  if (message.term > state.term) becomeFollower(draft, message.term, null);
  const free = state.votedFor === message.from || (state.votedFor === null && state.leader === null);
  const granted = message.term === state.term && free && isUpToDate(state, message);
  if (granted) {
    state.votedFor = message.from;
    state.elapsedTicks = 0;
  }
  sendLate(draft, message.from, { kind: 'voteReply', granted });
}

export function receiveVoteReply(draft: RaftDraft, message: MessageOf<'voteReply'>): void {
  const { role } = draft.state;
  if (role.kind !== 'Candidate') return;
  const refusals = [...role.votes.values()].includes(false);
  draft.state.role = { ...role, votes: new Map(role.votes).set(message.from, message.granted) };
  considerVotes(draft);
  if (!message.granted && !refusals) shortenElectionTimer(draft);
}

/** Whether a leader was heard within the shortest election timeout; until it has passed, votes are refused (Raft-R10, section 4.2.3). */
export function hasLease(state: RaftState): boolean {
  return state.leader !== null && state.elapsedTicks < state.config.electionTicks;
}

function isUpToDate(state: RaftState, candidate: { readonly lastIndex: number; readonly lastTerm: number }): boolean {
  const own = lastTerm(state.log);
  return candidate.lastTerm > own || (candidate.lastTerm === own && candidate.lastIndex >= lastIndex(state.log));
}

/** Sends a pre-vote as a learner, and ignores the grants: if the learner was removed, the answer tells it so. */
function askForLeader(draft: RaftDraft): void {
  const state = draft.state;
  becomeFollower(draft, state.term, null);
  restartElectionTimer(draft);
  if (memberOf(state.membership, state.config.peerId) !== undefined) askPreVotes(draft);
}

function askPreVotes(draft: RaftDraft): void {
  const state = draft.state;
  const { log } = state;
  for (const to of otherVoters(state)) {
    sendEarly(draft, to, { kind: 'preVote', lastIndex: lastIndex(log), lastTerm: lastTerm(log), transfer: false }, state.term + 1);
  }
}

function otherVoters(state: RaftState): PeerId[] {
  const voters: PeerId[] = [];
  for (const member of state.membership) if (member.voter && member.peerId !== state.config.peerId) voters.push(member.peerId);
  return voters;
}

function countVotes(state: RaftState, votes: ReadonlyMap<PeerId, boolean>): 'won' | 'lost' | 'open' {
  const voters = countedVoters(state);
  let yes = 0;
  let no = 0;
  for (const { peerId } of voters) {
    const vote = votes.get(peerId);
    if (vote === true) yes++;
    else if (vote === false) no++;
  }
  return tally(yes, no, voters.length);
}
