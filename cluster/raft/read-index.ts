/**
 * Reads that see everything committed before them, and verdicts on peers outside the membership. Both need a quorum's confirmation that
 * this peer still leads. Source: dissertation, section 6.4.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import { changeLeaderRole, type RaftDraft, sendEarly } from './draft.js';
import { memberOf } from './membership.js';
import type { RequestId } from './messages.js';
import { countedVoters, reachedByMajority } from './quorum.js';
import { hasCommittedInTerm } from './replication.js';
import { heartbeat } from './sending.js';
import type { LeaderRole, PendingRead } from './state.js';

/** Most reads that wait. More are answered at once as not confirmed, and their callers ask again. */
const READS_MAX = 16_384;

/** Adds a read that waits for a quorum. from: the peer that reads. */
export function addRead(draft: RaftDraft, id: RequestId, from: PeerId): void {
  if ((draft.state.role as LeaderRole).reads.length >= READS_MAX) {
    answer(draft, id, from, null);
    return;
  }
  const index = hasCommittedInTerm(draft) ? draft.state.commitIndex : null;
  add(draft, (round) => ({ kind: 'read', id, from, index, round }));
}

/** Adds the question whether `peer`, which is not a member but sends messages, was removed. */
export function addVerdict(draft: RaftDraft, peer: PeerId): void {
  const { reads } = draft.state.role as LeaderRole;
  if (!reads.some((read) => read.kind === 'verdict' && read.peer === peer)) add(draft, (round) => ({ kind: 'verdict', peer, round }));
}

/**
 * Adds a question to the next round: a heartbeat's answer counts for questions asked before it was sent. While a round is under way,
 * questions gather for the next one.
 */
function add(draft: RaftDraft, read: (round: number) => PendingRead): void {
  const role = draft.state.role as LeaderRole;
  const underWay = role.reads.some(({ round }) => round === role.round);
  changeLeaderRole(draft, { reads: [...role.reads, read(role.round + 1)] });
  if (!underWay) heartbeat(draft);
}

/** Answers the reads and verdicts that a majority has confirmed (Raft-R7). */
export function settleReads(draft: RaftDraft): void {
  const { reads, round } = draft.state.role as LeaderRole;
  if (reads.length === 0) return;
  const confirmed = confirmedRound(draft);
  const left = reads.filter((read) => read.round > confirmed || !settle(draft, read));
  if (left.length < reads.length) changeLeaderRole(draft, { reads: left });
  if (confirmed >= round && left.some((read) => read.round > round)) {
    heartbeat(draft);
    // The only voter confirms itself.
    if (confirmedRound(draft) > round) settleReads(draft);
  }
}

/** Answers one confirmed question. Returns false while it has to wait for a commit. */
function settle(draft: RaftDraft, read: PendingRead): boolean {
  const { membership, membershipIndex, commitIndex } = draft.state;
  const committed = hasCommittedInTerm(draft);
  if (read.kind === 'verdict') {
    if (memberOf(membership, read.peer) !== undefined) return true;
    if (!committed || membershipIndex > commitIndex) return false;
    sendEarly(draft, read.peer, { kind: 'notMember' });
    return true;
  }
  const index = read.index ?? (committed ? commitIndex : null);
  if (index === null) return false;
  answer(draft, read.id, read.from, index);
  return true;
}

function answer(draft: RaftDraft, id: RequestId, from: PeerId, index: number | null): void {
  if (from === draft.state.config.peerId) draft.effects.push({ kind: 'readReady', id, index });
  else sendEarly(draft, from, { kind: 'readIndexReply', id, index });
}

/** The newest heartbeat that a majority has answered; this peer counts as having answered. */
function confirmedRound(draft: RaftDraft): number {
  const { config, role } = draft.state;
  const { progress, round } = role as LeaderRole;
  return reachedByMajority(
    countedVoters(draft.state).map(({ peerId }) => (peerId === config.peerId ? round : (progress.get(peerId)?.round ?? 0))),
  );
}
