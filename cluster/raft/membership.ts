/** Changes of the membership, one peer at a time. Source: dissertation, chapter 4. */

import type { Member, Membership, PeerId } from '../../protocols/model/cluster.js';
import type { MembershipChange } from './messages.js';

export function memberOf(membership: Membership, peerId: PeerId): Member | undefined {
  return membership.find((member) => member.peerId === peerId);
}

export function isVoter(membership: Membership, peerId: PeerId): boolean {
  return memberOf(membership, peerId)?.voter === true;
}

/** The membership after `change`: the same object if nothing changes, null if the change is not possible. */
export function changed(membership: Membership, change: MembershipChange): Membership | null {
  switch (change.kind) {
    case 'addLearner':
      return withMember(membership, { ...change.member, voter: isVoter(membership, change.member.peerId) });
    case 'promote': {
      const member = memberOf(membership, change.peerId);
      return member === undefined ? null : withMember(membership, { ...member, voter: true });
    }
    case 'announce': {
      const member = memberOf(membership, change.member.peerId);
      return member === undefined ? null : withMember(membership, { ...change.member, voter: member.voter });
    }
    case 'remove': {
      if (memberOf(membership, change.peerId) === undefined) return membership;
      const left = membership.filter((member) => member.peerId !== change.peerId);
      return left.some((member) => member.voter) ? left : null;
    }
  }
}

function withMember(membership: Membership, member: Member): Membership {
  const before = memberOf(membership, member.peerId);
  if (before !== undefined && before.uri === member.uri && before.version === member.version && before.voter === member.voter) {
    return membership;
  }
  const others = membership.filter((other) => other.peerId !== member.peerId);
  return [...others, member].sort((a, b) => a.peerId - b.peerId);
}
