/** When a member refuses at once: what it knows of the cluster is not enough to go on. */

import type { ErrorFacts } from '../../../protocols/errors.js';
import type { Calls, MemberConsensus } from '../state.js';

/** About two elections at default settings: a new leader is usually there before. */
const LEADERLESS_TICKS_MAX = 30;

/** There was no leader for so long that nobody should wait for one. */
export function isLeaderless({ leaderlessTicks, raft }: Pick<MemberConsensus, 'leaderlessTicks' | 'raft'>): boolean {
  // Ticks are counted later than a leader is heard of.
  return raft.leader === null && leaderlessTicks >= LEADERLESS_TICKS_MAX;
}

/** Why nobody should wait here for the cluster; null where it is worth it. */
export function refusedNow(member: MemberConsensus): ErrorFacts | null {
  const { agreed, identity } = member;
  // What a node that was let in a moment ago knows may be nothing at all: no placement and no name is decided on that.
  if (!agreed.membership.some(({ peerId }) => peerId === identity.peerId)) {
    return { code: 'unavailable', detail: 'the node is joining its cluster and has not heard of it yet', retryAfterMs: 1000 };
  }
  return isLeaderless(member) ? noLeader() : tooMany(member.calls);
}

/** Requests that wait here, and the bytes of what they propose: they pile up while there is no leader, or a slow one. */
const CALLS_MAX = 4096;
const PROPOSED_BYTES_MAX = 64 << 20;

/** Null while there is room for one more. */
export function tooMany({ proposals, reads, settling }: Calls): ErrorFacts | null {
  let bytes = 0;
  for (const { what } of proposals) if (what.kind === 'operation') bytes += what.bytes.length;
  if (proposals.length + reads.length + settling.length < CALLS_MAX && bytes < PROPOSED_BYTES_MAX) return null;
  return { code: 'busy', detail: 'too many operations on the cluster wait for their answers on this node', retryAfterMs: 1000 };
}

export function noLeader(): ErrorFacts {
  const detail = 'the cluster has no leader, for which more than half of its peers must reach each other';
  return { code: 'unavailable', detail, retryAfterMs: 1000 };
}
