/** A node without a leader refuses in time what only a leader can do. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { MemberConsensus } from './state.js';

/** About two elections at default settings: a new leader is usually there before. */
const LEADERLESS_TICKS_MAX = 30;

/** There was no leader for so long that nobody should wait for one. */
export function isLeaderless({ leaderlessTicks }: Pick<MemberConsensus, 'leaderlessTicks'>): boolean {
  return leaderlessTicks >= LEADERLESS_TICKS_MAX;
}

export function noLeader(): ErrorFacts {
  const detail = 'the cluster has no leader, for which more than half of its peers must reach each other';
  return { code: 'unavailable', detail, retryAfterMs: 1000 };
}
