/**
 * The leader's side of replication: it takes followers' answers and decides when an entry is committed. Source: dissertation, sections 3.5,
 * 3.6 and 10.2.
 */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Entry, EntryPayload } from '../../protocols/model/consensus.js';
import { changeLeaderRole, type MessageOf, progressOf, type RaftDraft, sendEarly, writeEntries } from './draft.js';
import { between, entryBytes, lastIndex, lastOfTerm, membershipAt, termAt } from './log.js';
import { isVoter, memberOf } from './membership.js';
import { matched, probing, unknownProgress } from './progress.js';
import { countedVoters, reachedByMajority } from './quorum.js';
import { becomeFollower, restartElectionTimer } from './roles.js';
import { heartbeat, sendEntries, sendHeartbeat } from './sending.js';
import type { LeaderRole, Progress } from './state.js';

export function becomeLeader(draft: RaftDraft): void {
  const state = draft.state;
  const { role } = state;
  invariant(
    role.kind === 'Candidate' && role.voteWrite <= state.persistedWrites,
    'Raft-R2',
    () => `a ${role.kind} becomes the leader of term ${state.term}, with writes to ${state.persistedWrites} on disk`,
  );
  const next = lastIndex(state.log) + 1;
  const progress = new Map<PeerId, Progress>();
  for (const { peerId } of state.membership) if (peerId !== state.config.peerId) progress.set(peerId, unknownProgress(next));
  let uncommittedBytes = 0;
  for (const entry of between(state.log, state.commitIndex + 1, next - 1)) uncommittedBytes += entryBytes(entry);
  state.role = { kind: 'Leader', progress, round: 0, heartbeatElapsed: 0, reads: [], uncommittedBytes, transfer: null };
  draft.ownsProgress = true;
  state.leader = state.config.peerId;
  restartElectionTimer(draft);
  // Entries of earlier terms are committed with this one (Raft-R3).
  appendOwn(draft, { kind: 'empty' });
  heartbeat(draft);
}

/** Appends a new entry to the leader's log and sends it to all followers. */
export function appendOwn(draft: RaftDraft, payload: EntryPayload): Entry {
  const state = draft.state;
  const entry: Entry = { index: lastIndex(state.log) + 1, term: state.term, payload };
  writeEntries(draft, [entry]);
  changeLeaderRole(draft, { uncommittedBytes: (state.role as LeaderRole).uncommittedBytes + entryBytes(entry) });
  if (payload.kind === 'membership') followMembership(draft);
  for (const peer of progressOf(draft).keys()) sendEntries(draft, peer);
  return entry;
}

/** Starts to send to peers that are new in the membership, and ends sending to those that left it. */
function followMembership(draft: RaftDraft): void {
  const { membership, config, log } = draft.state;
  const progress = progressOf(draft);
  for (const { peerId } of membership) {
    if (peerId !== config.peerId && !progress.has(peerId)) progress.set(peerId, unknownProgress(lastIndex(log)));
  }
  for (const peerId of progress.keys()) if (memberOf(membership, peerId) === undefined) progress.delete(peerId);
}

export function receiveAppendReply(draft: RaftDraft, message: MessageOf<'appendReply'>): void {
  const { role, log } = draft.state;
  if (role.kind !== 'Leader') return;
  const before = role.progress.get(message.from);
  if (before === undefined) return;
  const heard = before.round >= message.round ? before : { ...before, round: message.round };
  const after = message.matched ? matched(heard, Math.min(message.index, lastIndex(log))) : rejected(draft, heard, message);
  if (after !== before) progressOf(draft).set(message.from, after);
  sendEntries(draft, message.from);
}

/**
 * Probes an earlier entry, where the logs may agree according to the follower's hint and this log: at most one step per term (section 3.5).
 */
function rejected(draft: RaftDraft, progress: Progress, hint: MessageOf<'appendReply'>): Progress {
  if (progress.mode.kind === 'Snapshot') return progress;
  const at = lastOfTerm(draft.state.log, Math.min(hint.index, progress.nextIndex - 2), hint.logTerm);
  return probing(progress, at + 1);
}

/**
 * Commits entries: an entry of the leader's term that a majority has on disk, and all before it (Raft-R3, Raft-R4). Followers are told at
 * once. A leader whose own removal is committed steps down.
 */
export function advanceCommit(draft: RaftDraft): void {
  const state = draft.state;
  const index = majorityIndex(draft);
  if (index <= state.commitIndex || termAt(state.log, index) !== state.term) return;
  const before = state.commitIndex;
  let bytes = (state.role as LeaderRole).uncommittedBytes;
  for (const entry of between(state.log, before + 1, index)) bytes -= entryBytes(entry);
  state.commitIndex = index;
  changeLeaderRole(draft, { uncommittedBytes: bytes });
  for (const [peer, progress] of progressOf(draft)) if (progress.mode.kind === 'Replicate') sendHeartbeat(draft, peer);
  if (state.membershipIndex > before && state.membershipIndex <= index) membershipCommitted(draft);
}

/** Tells removed peers of their removal. This needs no further question, as the entry of the removal is committed. */
function membershipCommitted(draft: RaftDraft): void {
  const { log, membership, membershipIndex, config, term, role } = draft.state;
  for (const { peerId } of membershipAt(log, membershipIndex - 1).membership) {
    if (peerId !== config.peerId && memberOf(membership, peerId) === undefined) sendEarly(draft, peerId, { kind: 'notMember' });
  }
  if (isVoter(membership, config.peerId)) return;
  // The follower with the longest log may be elected at once.
  let best: PeerId | null = null;
  let match = -1;
  for (const [peer, progress] of (role as LeaderRole).progress) {
    if (!isVoter(membership, peer) || progress.matchIndex <= match) continue;
    best = peer;
    match = progress.matchIndex;
  }
  if (best !== null) sendEarly(draft, best, { kind: 'timeoutNow' });
  becomeFollower(draft, term, null);
}

function majorityIndex(draft: RaftDraft): number {
  const { config, persistedIndex, role } = draft.state;
  const { progress } = role as LeaderRole;
  return reachedByMajority(
    countedVoters(draft.state).map(({ peerId }) => (peerId === config.peerId ? persistedIndex : (progress.get(peerId)?.matchIndex ?? 0))),
  );
}

/** Whether the leader has committed an entry of its term: from then on it knows everything that is committed (Raft-R6). */
export function hasCommittedInTerm(draft: RaftDraft): boolean {
  const { log, commitIndex, term } = draft.state;
  return termAt(log, commitIndex) === term;
}
