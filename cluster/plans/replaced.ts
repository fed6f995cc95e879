/** Peers that come back with an empty disk are new peers to the cluster: whoever was at their address before is gone for good. */

import type { Member, PeerId } from '../../protocols/model/cluster.js';
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

/**
 * What becomes of a node that asks to join at `uri`. joins: no other member is there, or only one that is lost, which `replacedPeer` takes
 * care of later. replaces: the member there has no shards, and is removed first. taken: the member there answers and has shards, or is the
 * only voter. isThere: peers that this node is connected with, itself included.
 */
export function joiningAt(
  { collections, membership }: Pick<ClusterState, 'collections' | 'membership'>,
  { peerId, uri }: Pick<Member, 'peerId' | 'uri'>,
  isThere: (peerId: PeerId) => boolean,
): { readonly kind: 'joins' } | { readonly kind: 'replaces' | 'taken'; readonly by: PeerId } {
  const before = membership.find((other) => other.peerId !== peerId && sameAddress(other.uri, uri));
  if (before === undefined) return { kind: 'joins' };
  const by = before.peerId;
  const isEmpty = [...collections.values()].every(({ shards }) => [...shards.values()].every(({ replicas }) => !replicas.has(by)));
  const isNeeded = membership.every((other) => other.peerId === by || !other.voter);
  if (isEmpty && !isNeeded) return { kind: 'replaces', by };
  return isThere(by) ? { kind: 'taken', by } : { kind: 'joins' };
}

function sameAddress(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '');
}
