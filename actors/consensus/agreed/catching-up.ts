/**
 * Catching up after a start: the agreed state may be newer than what was on this node's disk. Once a leader is there, the node asks how far
 * the cluster is, and serves nothing until it has come as far (Cons-C12).
 */

import type { RequestId } from '../../../cluster/raft/messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isLeaderless } from '../proposals/readiness.js';
import type { MemberConsensus } from '../state.js';

/** The progress of a node that has just started. */
export interface CatchUp {
  /** Raft's id of the newest question under way; null if none is. */
  readonly id: RequestId | null;
  /** The tick of the next question. */
  readonly retryTick: number;
  /** Index that covers everything agreed before this start; null until it is known. */
  readonly index: number | null;
}

export const NOT_CAUGHT_UP: CatchUp = { id: null, retryTick: 0, index: null };

/** A leader that could not be confirmed is asked again, or the next one. */
const ASK_AGAIN_TICKS = 1;
/** A question without an answer is asked again, as it may be lost while connections are being made. */
const LOST_TICKS = 5;

/** Continues catching up. Called after each message. */
export function goOnCatchingUp(draft: ConsensusDraft): void {
  const { agreed, catchUp, raft, ticks } = draft.member;
  if (catchUp === null) return;
  if (catchUp.index !== null) {
    if (agreed.appliedIndex >= catchUp.index) draft.change({ catchUp: null });
    return;
  }
  if (raft.leader === null || ticks < catchUp.retryTick) return;
  const id = draft.member.calls.lastRequest + 1;
  draft.changeCalls({ lastRequest: id });
  draft.change({ catchUp: { ...catchUp, id, retryTick: ticks + LOST_TICKS } });
  draft.raft({ kind: 'readIndex', id });
}

/** Takes the index from the answer to any question, as all are asked after the start. index: null if the leader could not be confirmed. */
export function noteCatchUpIndex(draft: ConsensusDraft, id: RequestId, index: number | null): void {
  const { catchUp, ticks } = draft.member;
  if (catchUp === null || catchUp.index !== null || (index === null && catchUp.id !== id)) return;
  draft.change({ catchUp: { id: null, index, retryTick: ticks + ASK_AGAIN_TICKS } });
}

/** Whether a node may serve by what it knows. Without a leader no other node can be asked. */
export function mayServe(member: Pick<MemberConsensus, 'catchUp' | 'leaderlessTicks' | 'raft'>): boolean {
  return member.catchUp === null || isLeaderless(member);
}
