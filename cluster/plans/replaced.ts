/** Peers that come back with an empty disk are new peers to the cluster: whoever was at their address before is gone for good. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { ClusterState } from '../state/state.js';

/**
 * A peer that is to be drained, as another one is at its address now; null when there is none. isLost: peers that nobody has heard of
 * for long; isHeard: peers that answer.
 */
export function replacedPeer(
  { marks, membership }: Pick<ClusterState, 'marks' | 'membership'>,
  isLost: (peerId: PeerId) => boolean,
  isHeard: (peerId: PeerId) => boolean,
): PeerId | null {
  const replaced = membership.find(
    ({ peerId, uri }) =>
      isLost(peerId) &&
      (marks.get(peerId)?.leaving ?? null) === null &&
      membership.some((other) => other.peerId !== peerId && sameAddress(other.uri, uri) && isHeard(other.peerId)),
  );
  return replaced?.peerId ?? null;
}

function sameAddress(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '');
}
