/** Removes a peer from the cluster for good: its id is never used again. */

import type { RaftState } from '../../../cluster/raft/state.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { ClusterState } from '../../../cluster/state/state.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusMessage } from '../messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { proposeMembership, submit } from '../proposals/proposals.js';
import type { RemovalCaller } from '../state.js';

type RemovePeer = Extract<ConsensusMessage, { kind: 'removePeer' }>;

/** Begins to remove a peer; does nothing if it is no member. Errors: `badRequest` while it holds shards, unless forced; `wrongInput`. */
export function removePeerIfEmpty(draft: ConsensusDraft, { force, peerId, replyTo }: RemovePeer, deadlineTick: number): void {
  const { agreed } = draft.member;
  if (!agreed.membership.some((member) => member.peerId === peerId)) {
    // So a removal may be repeated. Source: contract, scenario `cluster-one-node`.
    draft.reply(replyTo, true);
    return;
  }
  const held = force ? [] : shardsOn(agreed, peerId);
  if (held.length > 0) {
    refuseHolder(draft, replyTo, peerId, held);
    return;
  }
  if (agreed.membership.every((member) => member.peerId === peerId || !member.voter)) {
    const detail = `peer ${peerId} is the only one with a vote, and no cluster is without one: let another peer join first, or just stop it`;
    draft.refuse(replyTo, { code: 'wrongInput', detail });
    return;
  }
  if (force) remove(draft, peerId, replyTo, deadlineTick);
  else {
    // From then on no replica is placed there, so a peer found to be empty stays empty.
    submit(draft, { kind: 'operation', operation: markOf(peerId, 'removal') }, { kind: 'removal', replyTo, peerId }, deadlineTick);
  }
}

/** Removes a peer that has no shards, as another one asks to join at its address. */
export function replaceEmpty(draft: ConsensusDraft, peerId: PeerId, deadlineTick: number): void {
  if (draft.member.calls.proposals.some(({ caller }) => caller.kind === 'replacement')) return;
  submit(draft, { kind: 'operation', operation: markOf(peerId, 'removal') }, { kind: 'replacement', peerId }, deadlineTick);
}

/** Removes a marked peer if it holds nothing. */
export function removeEmpty(draft: ConsensusDraft, caller: RemovalCaller, deadlineTick: number): void {
  const { peerId } = caller;
  const held = shardsOn(draft.member.agreed, peerId);
  if (held.length === 0) {
    if (caller.kind === 'removal') remove(draft, peerId, caller.replyTo, deadlineTick);
    else proposeMembership(draft, { kind: 'remove', peerId }, { kind: 'upkeep' }, deadlineTick);
    return;
  }
  if (caller.kind === 'removal') refuseHolder(draft, caller.replyTo, peerId, held);
  submit(draft, { kind: 'operation', operation: markOf(peerId, 'stays') }, { kind: 'mark' }, deadlineTick);
}

function markOf(peerId: PeerId, leaving: 'removal' | 'stays'): ClusterCommand {
  return { kind: 'markPeer', peerId, listens: null, leaving };
}

function refuseHolder(draft: ConsensusDraft, replyTo: RemovePeer['replyTo'], peerId: PeerId, held: readonly string[]): void {
  const detail =
    `Cannot remove peer ${peerId} as there are shards on it, of ${shown(held)}: move them away (\`POST /cluster/peer/${peerId}/drain\`), drop these replicas ` +
    '(`drop_replica`) where other peers have one, delete the collections, or remove the peer with force=true, and what it alone holds is lost';
  draft.refuse(replyTo, { code: 'badRequest', detail });
}

function remove(draft: ConsensusDraft, peerId: PeerId, replyTo: RemovePeer['replyTo'], deadlineTick: number): void {
  // The next leader starts at once, instead of an election after the removal.
  if (peerId === draft.member.raft.config.peerId) handOverLeadership(draft);
  proposeMembership(draft, { kind: 'remove', peerId }, { kind: 'caller', replyTo, settles: true }, deadlineTick);
}

/** Hands leadership of consensus to another peer, of those that may lead. */
export function handOverLeadership(draft: ConsensusDraft, mayLead: (peerId: PeerId) => boolean = anybody): void {
  const successor = newestFollower(draft.member.raft, mayLead);
  if (successor !== null) draft.raft({ kind: 'transferLeadership', to: successor });
}

function shardsOn({ collections }: ClusterState, peerId: PeerId): string[] {
  return [...collections]
    .filter(([, { shards }]) => [...shards.values()].some(({ replicas }) => replicas.has(peerId)))
    .map(([name]) => name);
}

const anybody = () => true;

const NAMES_MAX = 3;

function shown(names: readonly string[]): string {
  const some = names.slice(0, NAMES_MAX).map((name) => `\`${name}\``);
  return names.length > NAMES_MAX ? `${some.join(', ')} and ${names.length - NAMES_MAX} more` : some.join(', ');
}

/** The follower with the longest log; null if this peer does not lead, or if no other peer may lead. */
function newestFollower({ config, membership, role }: RaftState, mayLead: (peerId: PeerId) => boolean): PeerId | null {
  if (role.kind !== 'Leader') return null;
  let newest: { peerId: PeerId; matchIndex: number } | null = null;
  for (const { peerId, voter } of membership) {
    const progress = role.progress.get(peerId);
    if (!voter || peerId === config.peerId || !mayLead(peerId) || progress?.recentlyActive !== true) continue;
    if (newest === null || progress.matchIndex > newest.matchIndex) newest = { peerId, matchIndex: progress.matchIndex };
  }
  return newest?.peerId ?? null;
}
