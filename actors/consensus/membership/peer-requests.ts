/** Requests of other nodes: to join the cluster, and to announce a new address or version. */

import { joiningAt } from '../../../cluster/plans/replaced.js';
import type { Member } from '../../../protocols/model/cluster.js';
import type { ConsensusMessage } from '../messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { holds, proposeMembership, refuseCaller } from '../proposals/proposals.js';
import { read } from '../proposals/reads.js';
import type { ProposalCaller } from '../state.js';
import { replaceEmpty } from './remove-peer.js';
import { givePledge } from './survivor.js';

/** Deadline of a request in ticks; the other node tries again after it. */
const REQUEST_TICKS = 80;

type PeerCaller = Extract<ProposalCaller, { kind: 'peer' }>;

/** Handles a request. address: host of the other node, IPv6 in brackets. */
export function takeRequest(draft: ConsensusDraft, { address, replyTo, request }: Extract<ConsensusMessage, { kind: 'requested' }>): void {
  const deadlineTick = draft.member.ticks + REQUEST_TICKS;
  switch (request.kind) {
    case 'join': {
      const { peerId, version } = request;
      const member = { peerId, uri: request.uri ?? `http://${address}:${request.port}`, version };
      if (refusedAddress(draft, member, replyTo, deadlineTick)) break;
      proposeMembership(draft, { kind: 'addLearner', member }, { kind: 'peer', replyTo, reply: 'joined', member }, deadlineTick);
      break;
    }
    case 'announce': {
      const { member } = request;
      // Only a node that knows the newest membership may tell a peer that it is not a member.
      const caller = { kind: 'peer', replyTo, reply: 'announced', member } as const;
      read(draft, replyTo, deadlineTick, { kind: 'announce', caller });
      break;
    }
    case 'pledge':
      givePledge(draft, request, replyTo);
      break;
    case 'describe':
      draft.refuse(replyTo, { code: 'internal', detail: 'nodes describe themselves without consensus' });
      break;
    default:
      request satisfies never;
  }
}

/** Refuses a node that asks to join at the address of a member. Returns whether it did. */
function refusedAddress(
  draft: ConsensusDraft,
  member: Omit<Member, 'voter'>,
  replyTo: PeerCaller['replyTo'],
  deadlineTick: number,
): boolean {
  const { agreed, connected, identity } = draft.member;
  const joining = joiningAt(agreed, member, (peer) => peer === identity.peerId || connected.has(peer));
  switch (joining.kind) {
    case 'joins':
      return false;
    case 'replaces': {
      replaceEmpty(draft, joining.by, deadlineTick);
      const detail = `peer ${joining.by} was at ${member.uri} and has no shards: it is being removed, as another node takes its address`;
      draft.refuse(replyTo, { code: 'unavailable', detail, retryAfterMs: 1000 });
      return true;
    }
    case 'taken': {
      const detail =
        `peer ${joining.by} is at ${member.uri}, answers and has shards: give this node an address of its own (--uri), ` +
        `or stop that peer first, or drain it (POST /cluster/peer/${joining.by}/drain)`;
      draft.refuse(replyTo, { code: 'conflict', detail, reason: 'addressTaken' });
      return true;
    }
    default:
      return joining satisfies never;
  }
}

/** Proposes the announcement, once the membership here is as new as when the peer asked. */
export function announce(draft: ConsensusDraft, caller: PeerCaller, deadlineTick: number): void {
  const { member } = caller;
  if (!isIn(draft.member.agreed.membership, member)) {
    refuseCaller(draft, caller, { code: 'notFound', detail: `peer ${member.peerId} was removed from the cluster` });
    return;
  }
  const change = { kind: 'announce', member } as const;
  if (holds(change, draft.member.agreed.membership)) draft.emit({ kind: 'reply', replyTo: caller.replyTo, answer: { kind: 'announced' } });
  else proposeMembership(draft, change, caller, deadlineTick);
}

function isIn(membership: readonly Member[], { peerId }: Pick<Member, 'peerId'>): boolean {
  return membership.some((member) => member.peerId === peerId);
}
