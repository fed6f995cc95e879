/**
 * Barriers: everything that was committed anywhere before the question has been executed here before the answer. Source: dissertation,
 * section 6.4.
 */

import type { RequestId } from '../../../cluster/raft/messages.js';
import type { ReplyTo } from '../../runtime/behaviour.js';
import type { AfterRead } from '../state.js';
import type { ConsensusDraft } from './draft.js';
import { isLeaderless, noLeader, tooMany } from './readiness.js';

/** A leader that could not be confirmed is asked again, or the next one. */
const ASK_AGAIN_TICKS = 2;

/** Begins a barrier. next: the action once everything is executed. */
export function read(draft: ConsensusDraft, replyTo: ReplyTo<never>, deadlineTick: number, next: AfterRead): void {
  const { calls, ticks } = draft.member;
  const refused = isLeaderless(draft.member) ? noLeader() : tooMany(calls);
  if (refused !== null) {
    draft.refuse(replyTo, refused);
    return;
  }
  draft.changeCalls({ reads: [...calls.reads, { replyTo, deadlineTick, id: null, retryTick: ticks, index: null, next }] });
  askReads(draft);
}

/** Asks the leader for the indexes of barriers that have no question under way. */
export function askReads(draft: ConsensusDraft): void {
  const { raft, ticks } = draft.member;
  if (raft.leader === null) return;
  for (const call of draft.member.calls.reads) {
    if (call.id !== null || call.index !== null || call.retryTick > ticks) continue;
    const id = draft.member.calls.lastRequest + 1;
    draft.changeCalls({ lastRequest: id, reads: draft.member.calls.reads.map((other) => (other === call ? { ...call, id } : other)) });
    draft.raft({ kind: 'readIndex', id });
  }
}

export function noteReadReady(draft: ConsensusDraft, id: RequestId, index: number | null): void {
  const { calls, ticks } = draft.member;
  const reads = calls.reads.map((call) => {
    if (call.id !== id) return call;
    return { ...call, id: null, index, retryTick: ticks + ASK_AGAIN_TICKS };
  });
  draft.changeCalls({ reads });
  maybeAnswerReads(draft);
}

export function maybeAnswerReads(draft: ConsensusDraft): void {
  const { agreed, calls, carrying } = draft.member;
  // While the leader's state is being taken over, the agreed state is older than what was executed.
  const reached = Math.min(agreed.appliedIndex, carrying.carriedOut);
  const ready = calls.reads.filter(({ index }) => index !== null && index <= reached);
  if (ready.length === 0) return;
  draft.changeCalls({ reads: calls.reads.filter((call) => !ready.includes(call)) });
  for (const call of ready) draft.acts.afterRead(draft, call);
}

/** Refuses barriers whose time is over. */
export function dropLateReads(draft: ConsensusDraft): void {
  const { calls, raft, ticks } = draft.member;
  const late = calls.reads.filter(({ deadlineTick }) => deadlineTick <= ticks || isLeaderless(draft.member));
  if (late.length === 0) return;
  draft.changeCalls({ reads: calls.reads.filter((call) => !late.includes(call)) });
  for (const { replyTo } of late) {
    draft.refuse(
      replyTo,
      raft.leader === null
        ? noLeader()
        : { code: 'timeout', detail: 'this node has not received the newest state of the cluster within the timeout: retry' },
    );
  }
}
