/** Decides whether a shard may go on without one of its replicas while its cluster can agree on nothing (Log-L9). */

import { mayTakeLeads } from '../../../cluster/apply/lead-taking.js';
import { between, lastIndex } from '../../../cluster/raft/log.js';
import { decodeCommand } from '../../../cluster/state/command-codec.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { Entry } from '../../../protocols/model/consensus.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { isUnderWay, submit } from '../proposals/proposals.js';
import type { MemberConsensus } from '../state.js';
import { isPledged, partnerOf } from './survivor.js';

const FENCE_TICKS = 50;

/**
 * True if `peer` is the only other member and is away. Then nothing is agreed on without this node, and no command that is in its log or
 * that it has proposed, and that is not applied yet, would take a shard's lead from it. A second other member, even a learner, excludes
 * this, as it could have got a vote meanwhile.
 */
export function isAloneWithout(member: MemberConsensus, peer: PeerId): boolean {
  const { connected, identity, raft } = member;
  if (partnerOf(member) === null || !raft.membership.some(({ peerId }) => peerId === peer) || connected.has(peer)) return false;
  // With a survivor everything can be agreed on; and a node that has pledged to do nothing alone keeps its pledge.
  if (raft.gone !== null || isPledged(member) || !isFenced(member)) return false;
  return between(raft.log, raft.appliedIndex + 1, lastIndex(raft.log)).every((entry) => isHarmless(entry, identity.peerId));
}

/**
 * Keeps a fence after proposals whose outcome is unknown. Called once a tick. One of two nodes may be left alone at any time, and a command
 * that it proposed may be in the other one's log. Once a later command of its own is applied, the earlier one is applied too or never will
 * be.
 */
export function keepFenced(draft: ConsensusDraft): void {
  const { agreed, raft, ticks } = draft.member;
  if (raft.leader === null || partnerOf(draft.member) === null || isUnderWay(draft, 'fence') || agreed.appliedIndex === 0) return;
  if (!hasFence(draft.member)) submit(draft, { kind: 'operation', operation: { kind: 'noop' } }, { kind: 'fence' }, ticks + FENCE_TICKS);
}

function isFenced(member: MemberConsensus): boolean {
  const { calls, identity } = member;
  const isOpen = calls.proposals.some(({ what }) => what.kind !== 'operation' || mayTakeLeads(what.operation, identity.peerId));
  return !isOpen && hasFence(member);
}

/** Whether proposals that ended with an unknown outcome cannot be applied any more, if they have not been. */
function hasFence({ agreed, calls, identity }: MemberConsensus): boolean {
  const session = agreed.sessions.get(identity.peerId);
  return session?.session === identity.starts && session.doneBelow > calls.lastOpen;
}

function isHarmless({ payload }: Entry, self: PeerId): boolean {
  if (payload.kind !== 'operation') return payload.kind === 'empty';
  return !mayTakeLeads(decodeCommand(payload.bytes).command, self);
}
