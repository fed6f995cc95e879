/** When a node of a cluster should get requests. */

import type { ClusterStatus } from '../actors/consensus/cluster-api.js';

/**
 * What it waits for; null when it is a member with a vote that knows its leader and has carried out what that one knew to be
 * agreed. Who waits for one node before the next one is stopped thus never stops a majority. It does not wait long for a leader,
 * as nodes that are started one after the other must not wait for each other.
 */
export function membershipWaitsFor({ carriedOut, caughtUp, error, leaderless, peerId, phase, raft }: ClusterStatus): string | null {
  if (phase !== 'Member' || raft === null) return `${WAITS[phase]}${error === null ? '' : `: ${error}`}`;
  if (!raft.membership.some((member) => member.peerId === peerId && member.voter))
    return 'the node has joined its cluster and has no vote yet';
  if (raft.leader === null && !leaderless) return 'the node has not heard of a leader yet';
  if (!caughtUp && !leaderless) return 'the node does not know yet what its cluster has agreed on meanwhile';
  if (carriedOut < raft.commitIndex) return `the node carries out what is agreed: ${carriedOut} of ${raft.commitIndex}`;
  return null;
}

const WAITS: Readonly<Record<ClusterStatus['phase'], string>> = {
  Starting: 'the node is starting',
  Joining: 'the node is joining its cluster',
  Member: 'the node is starting',
  Removed: 'the node is no member',
  Broken: 'the node cannot take part in its cluster',
};
