/** Whether a shard may go on without one of its replicas although its cluster can agree on nothing (Log-L9). */

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
 * True where `peer` is the only other member, and is away: nothing is agreed on without this node then, and nothing that is in its log
 * and not agreed on yet, or that it has asked for, would take a shard's lead from it. A learner could have been given a vote meanwhile.
 */
export function isAloneWithout(member: MemberConsensus, peer: PeerId): boolean {
  const { connected, identity, raft } = member;
  if (partnerOf(member) === null || !raft.membership.some(({ peerId }) => peerId === peer) || connected.has(peer)) return false;
  // With a survivor everything can be agreed on; and who has pledged to do nothing alone keeps to it.
  if (raft.gone !== null || isPledged(member) || !isFenced(member)) return false;
  return between(raft.log, raft.appliedIndex + 1, lastIndex(raft.log)).every((entry) => isHarmless(entry, identity.peerId));
}

/**
 * Once a tick. Of two nodes, one may be left alone at any time, and whatever it asked for may be in the other's log: something of its
 * own that is applied behind what ended with an open outcome says that this is done, or will never be.
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

/** What ended with an open outcome comes to nothing any more, where it has not been applied. */
function hasFence({ agreed, calls, identity }: MemberConsensus): boolean {
  const session = agreed.sessions.get(identity.peerId);
  return session?.session === identity.starts && session.doneBelow > calls.lastOpen;
}

function isHarmless({ payload }: Entry, self: PeerId): boolean {
  if (payload.kind !== 'operation') return payload.kind === 'empty';
  return !mayTakeLeads(decodeCommand(payload.bytes).command, self);
}
