/** Counts majorities. Source: dissertation, section 3. */

import type { Member, Membership, PeerId } from '../../protocols/model/cluster.js';
import type { RaftState } from './state.js';

/** The voters whose votes and disks count: all but the one of two that has ended (Raft-R11). */
export function countedVoters({ config, gone, membership }: Pick<RaftState, 'config' | 'gone' | 'membership'>): Membership {
  const voters = membership.filter(({ voter }) => voter);
  return gone !== null && isPair(voters, config.peerId, gone) ? voters.filter(({ peerId }) => peerId !== gone) : voters;
}

/** Whether the members are exactly these two peers. */
export function isPair(members: readonly Member[], self: PeerId, other: PeerId): boolean {
  const ids = members.map(({ peerId }) => peerId);
  return self !== other && ids.length === 2 && ids.includes(self) && ids.includes(other);
}

/** The highest value that more than half of `values` reach; 0 if `values` is empty. Sorts `values` in place. */
export function reachedByMajority(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((a, b) => b - a);
  return values[values.length >> 1] as number;
}

/** The result of a vote so far. yes, no: number of votes. voters: number of voters. */
export function tally(yes: number, no: number, voters: number): 'won' | 'lost' | 'open' {
  const needed = (voters >> 1) + 1;
  if (yes >= needed) return 'won';
  return no > voters - needed ? 'lost' : 'open';
}
