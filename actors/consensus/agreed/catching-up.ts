/**
 * A node that starts knows no more than was on its disk: what is agreed may be newer. Once, when there is a leader, it finds out how far
 * the cluster is, and it serves nothing before it is as far (Cons-C12).
 */

import type { RequestId } from '../../../cluster/raft/messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isLeaderless } from '../proposals/readiness.js';
import type { MemberConsensus } from '../state.js';

/** How far a node has to come that has just started. */
export interface CatchUp {
  /** Raft's newest question under way; null: none is. */
  readonly id: RequestId | null;
  /** When it is asked next. */
  readonly retryTick: number;
  /** Everything that was agreed before this start; null: not known yet. */
  readonly index: number | null;
}

export const NOT_CAUGHT_UP: CatchUp = { id: null, retryTick: 0, index: null };

/** A leader that could not be confirmed is asked again, or the next one. */
const ASK_AGAIN_TICKS = 1;
/** A question may be lost: connections of a node that starts come one after the other. */
const LOST_TICKS = 5;

/** After each message. */
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

/** Of any question, as all are asked after the start. index: null where the leader could not be confirmed. */
export function noteCatchUpIndex(draft: ConsensusDraft, id: RequestId, index: number | null): void {
  const { catchUp, ticks } = draft.member;
  if (catchUp === null || catchUp.index !== null || (index === null && catchUp.id !== id)) return;
  draft.change({ catchUp: { id: null, index, retryTick: ticks + ASK_AGAIN_TICKS } });
}

/** Whether what a node knows is good enough to be served. Without a leader there is nobody who knows more. */
export function mayServe(member: Pick<MemberConsensus, 'catchUp' | 'leaderlessTicks' | 'raft'>): boolean {
  return member.catchUp === null || isLeaderless(member);
}
