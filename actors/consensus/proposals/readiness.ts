/** Decides when a member refuses at once, because it knows too little of the cluster. */

import type { ErrorFacts } from '../../../protocols/errors.js';
import type { Calls, MemberConsensus } from '../state.js';

/** About two elections at default settings: a new leader is usually there before. */
const LEADERLESS_TICKS_MAX = 30;

/** Whether there has been no leader for so long that waiting for one is pointless. */
export function isLeaderless({ leaderlessTicks, raft }: Pick<MemberConsensus, 'leaderlessTicks' | 'raft'>): boolean {
  // A leader may be heard before the next tick is counted.
  return raft.leader === null && leaderlessTicks >= LEADERLESS_TICKS_MAX;
}

/** The error if waiting for the cluster is pointless, else null. */
export function refusedNow(member: MemberConsensus): ErrorFacts | null {
  const { agreed, identity } = member;
  // A node that has just joined may know nothing yet: it must not decide placements or names.
  if (!agreed.membership.some(({ peerId }) => peerId === identity.peerId)) {
    return { code: 'unavailable', detail: 'the node is joining its cluster: retry when `GET /readyz` succeeds', retryAfterMs: 1000 };
  }
  return isLeaderless(member) ? noLeader() : tooMany(member.calls);
}

/** Most waiting requests, and most bytes of their proposals: they pile up while there is no leader, or a slow one. */
const CALLS_MAX = 4096;
const PROPOSED_BYTES_MAX = 64 << 20;

/** The error if no further request may wait, else null. */
export function tooMany({ proposals, reads, settling }: Calls): ErrorFacts | null {
  let bytes = 0;
  for (const { what } of proposals) if (what.kind === 'operation') bytes += what.bytes.length;
  if (proposals.length + reads.length + settling.length < CALLS_MAX && bytes < PROPOSED_BYTES_MAX) return null;
  return { code: 'busy', detail: 'too many changes of the cluster are pending on this node: retry later', retryAfterMs: 1000 };
}

export function noLeader(): ErrorFacts {
  const detail = 'the cluster has no leader, for which more than half of its peers must reach each other';
  return { code: 'unavailable', detail, retryAfterMs: 1000 };
}
