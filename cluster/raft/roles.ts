/** Turns a peer into a follower and fails its forwarded requests. */

import type { PeerId } from '../../protocols/model/cluster.js';
import { type RaftDraft, sendEarly } from './draft.js';
import type { RequestId } from './messages.js';
import { draw } from './random.js';
import type { FollowerRole, Forwarded } from './state.js';

export const FOLLOWER: FollowerRole = { kind: 'Follower' };

/** Becomes a follower. term: the own term or a later one. leader: the leader of that term; null if it is not known. */
export function becomeFollower(draft: RaftDraft, term: number, leader: PeerId | null): void {
  const state = draft.state;
  if (state.role.kind === 'Leader') failReads(draft);
  if (leader !== state.leader || term !== state.term) failForwarded(draft);
  if (term !== state.term) {
    state.term = term;
    state.votedFor = null;
  }
  // A later term alone is no sign of a leader, so the election timer runs on.
  if (state.role.kind !== 'Follower' || state.leader !== null || leader !== null) restartElectionTimer(draft);
  state.role = FOLLOWER;
  state.leader = leader;
}

export function restartElectionTimer(draft: RaftDraft): void {
  const state = draft.state;
  const { electionTicks, electionTicksSpread } = state.config;
  const { value, next } = draw(state.randomState, electionTicksSpread + 1);
  state.randomState = next;
  state.elapsedTicks = 0;
  state.electionAfterTicks = electionTicks + value;
}

/**
 * Shortens the wait for the next campaign. Most likely two peers campaigned at once; then perhaps none wins, and no lease has to end before
 * the next attempt.
 */
export function shortenElectionTimer(draft: RaftDraft): void {
  const state = draft.state;
  if (state.role.kind === 'Leader') return;
  const { value, next } = draw(state.randomState, state.config.electionTicksSpread + 1);
  state.randomState = next;
  state.electionAfterTicks = Math.min(state.electionAfterTicks, state.elapsedTicks + 1 + value);
}

/** Fails the forwarded requests: the leader that was asked answers them no more. */
export function failForwarded(draft: RaftDraft): void {
  const state = draft.state;
  if (state.forwarded.size === 0) return;
  for (const [id, request] of state.forwarded) giveUp(draft, id, request.kind);
  state.forwarded = new Map();
}

export function giveUp(draft: RaftDraft, id: RequestId, kind: Forwarded['kind']): void {
  if (kind === 'propose') draft.effects.push({ kind: 'proposed', id, outcome: { kind: 'refused', reason: 'noLeader' } });
  else if (kind === 'readIndex') draft.effects.push({ kind: 'readReady', id, index: null });
}

function failReads(draft: RaftDraft): void {
  const state = draft.state;
  if (state.role.kind !== 'Leader') return;
  for (const read of state.role.reads) {
    if (read.kind === 'verdict') continue;
    if (read.from === state.config.peerId) draft.effects.push({ kind: 'readReady', id: read.id, index: null });
    else sendEarly(draft, read.from, { kind: 'readIndexReply', id: read.id, index: null });
  }
}
