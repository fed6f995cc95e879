/** When a member refuses at once: what it knows of the cluster is not enough to go on. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { MemberConsensus } from './state.js';

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
  return isLeaderless(member) ? noLeader() : null;
}

export function noLeader(): ErrorFacts {
  const detail = 'the cluster has no leader, for which more than half of its peers must reach each other';
  return { code: 'unavailable', detail, retryAfterMs: 1000 };
}
