/**
 * Two nodes of which one has ended (Raft-R11). Whoever is left may go on alone where the other one cannot have agreed on anything, acknowledged
 * anything or changed the membership without it. So each has the other's pledge, for a short while and again and again: «I do nothing
 * alone, and you have all that I know to be agreed on». And a process that has ended keeps its pledge: what says so is its own system,
 * which refuses connections at the address where it gave the pledge. Silence says nothing.
 */

import type { PeerReply, PeerRequest } from '../../../cluster/peer-messages.js';
import { termAt } from '../../../cluster/raft/log.js';
import type { RaftInput } from '../../../cluster/raft/messages.js';
import { isPair } from '../../../cluster/raft/quorum.js';
import type { RaftState } from '../../../cluster/raft/state.js';
import type { Member, PeerId } from '../../../protocols/model/cluster.js';
import type { ReplyTo } from '../../runtime/behaviour.js';
import type { ConsensusMessage } from '../messages.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import type { MemberConsensus } from '../state.js';

export interface Survival {
  /** Counts connections that came and went: what was asked before says nothing of the process that is there afterwards. */
  readonly contact: number;
  /** The other one's newest pledge, where it gave it, until when it is counted on (milliseconds of the monotonic clock), and when it came. */
  readonly held: { readonly peer: PeerId; readonly uri: string; readonly untilMs: number; readonly tick: number } | null;
  /** Until this tick this node keeps its own. A process that stalls takes fewer ticks, and keeps it for longer. */
  readonly givenUntilTick: number;
  /** Until this tick it gives none: something waits until it is free. */
  readonly withheldUntilTick: number;
}

/** How long a pledge is kept, and counted on: clocks of two machines do not run at quite the same rate. */
const PLEDGE_MS = 3000;
export const COUNTED_ON_MS = 0.9 * PLEDGE_MS;
const ASK_MS = 500;
/** Two nodes hear of each other at every tick. */
const UNHEARD_TICKS = 3;
/** For a removal to get through before the next pledge. */
const WITHHELD_MS = 5000;

/** A node that reads its log again has forgotten what it pledged. */
export function newSurvival(tickMs: number): Survival {
  return { contact: 0, held: null, givenUntilTick: pledgeTicks(tickMs), withheldUntilTick: 0 };
}

/** Once a tick. */
export function keepSurvivable(draft: ConsensusDraft): void {
  const { agreed, connected, heardTicks, identity, raft, settings, survival, ticks } = draft.member;
  const partner = partnerOf(draft.member);
  if (!settings.survives || partner === null || raft.gone !== null) return;
  const { contact, held } = survival;
  const { peerId: peer, uri } = partner;
  // A connection may end later than whoever was at its other end. At an address that it has announced since nobody may listen yet.
  const isHeard = connected.has(peer) && ticks - (heardTicks.get(peer) ?? 0) < UNHEARD_TICKS;
  if (!isHeard && held?.peer === peer && held.uri === uri) draft.emit({ kind: 'lookFor', peer, uri, contact, untilMs: held.untilMs });
  if (!connected.has(peer) || ticks % Math.max(1, Math.floor(ASK_MS / settings.tickMs)) !== 0) return;
  const request: PeerRequest = { kind: 'pledge', clusterId: agreed.clusterId, peerId: identity.peerId };
  draft.emit({ kind: 'askPledge', peer, uri, contact, request });
}

export function notePledge(draft: ConsensusDraft, { contact, peer, untilMs, uri }: Extract<ConsensusMessage, { kind: 'pledged' }>): void {
  const { survival, ticks } = draft.member;
  if (contact === survival.contact) draft.change({ survival: { ...survival, held: { peer, uri, untilMs, tick: ticks } } });
}

/** Whose pledge this node has: if that one ends now, it goes on alone. For those who look at it. */
export function pledgeHeld({ settings, survival, ticks }: Pick<MemberConsensus, 'settings' | 'survival' | 'ticks'>): PeerId | null {
  const { held } = survival;
  return held !== null && (ticks - held.tick) * settings.tickMs < COUNTED_ON_MS ? held.peer : null;
}

/** The process that gave the pledge has ended before it was over. */
export function noteEnd(draft: ConsensusDraft, { contact, peer }: Extract<ConsensusMessage, { kind: 'ended' }>): void {
  const { raft, survival } = draft.member;
  if (contact !== survival.contact || survival.held?.peer !== peer || partnerOf(draft.member)?.peerId !== peer || raft.gone !== null)
    return;
  const text = `peer ${peer} has ended, and had done nothing alone: this node goes on without it until it is back`;
  draft.emit({ kind: 'log', level: 'warn', text });
  draft.raft({ kind: 'gone', peer });
}

/** Another process may be there now, or the same one again. */
export function noteContact(draft: ConsensusDraft, peer: PeerId, connected: boolean): void {
  const { raft, survival } = draft.member;
  const contact = survival.contact + 1;
  draft.change({ survival: { ...survival, contact, held: connected ? null : survival.held } });
  if (connected && raft.gone === peer) draft.raft({ kind: 'gone', peer: null });
}

export function givePledge(draft: ConsensusDraft, { peerId }: Extract<PeerRequest, { kind: 'pledge' }>, replyTo: ReplyTo<PeerReply>): void {
  const { settings, survival, ticks } = draft.member;
  const granted = mayPledge(draft.member, peerId);
  if (granted) draft.change({ survival: { ...survival, givenUntilTick: ticks + pledgeTicks(settings.tickMs) } });
  draft.emit({ kind: 'reply', replyTo, answer: { kind: 'pledged', granted } });
}

/** Whether this node has pledged that it does nothing alone. */
export function isPledged({ survival, ticks }: Pick<MemberConsensus, 'survival' | 'ticks'>): boolean {
  return ticks < survival.givenUntilTick;
}

/** The removal of the other one would leave a cluster that needs nobody else: it waits until this node is free, and no pledge is given before. */
export function isHeldBack(draft: ConsensusDraft, input: RaftInput): boolean {
  const { raft, settings, survival } = draft.member;
  const proposal =
    input.kind === 'propose'
      ? input.proposal
      : input.kind === 'receive' && input.message.kind === 'propose'
        ? input.message.proposal
        : null;
  if (raft.role.kind !== 'Leader' || proposal?.kind !== 'membership' || proposal.change.kind !== 'remove') return false;
  if (proposal.change.peerId !== partnerOf(draft.member)?.peerId || !isPledged(draft.member)) return false;
  const withheldUntilTick = survival.givenUntilTick + Math.ceil(WITHHELD_MS / settings.tickMs);
  draft.change({ survival: { ...survival, withheldUntilTick } });
  return true;
}

/** The other one of two voters, where there is nobody else. */
export function partnerOf({ identity, raft }: Pick<MemberConsensus, 'identity' | 'raft'>): Member | null {
  const { membership } = raft;
  const other = membership.find(({ peerId }) => peerId !== identity.peerId);
  if (other === undefined || !isPair(membership, identity.peerId, other.peerId)) return null;
  return membership.every(({ voter }) => voter) ? other : null;
}

/** A node that has just started knows what it may have done alone once it knows what it leads. */
function mayPledge(member: MemberConsensus, peer: PeerId): boolean {
  const { catchUp, raft, survival, ticks } = member;
  if (partnerOf(member)?.peerId !== peer || raft.gone !== null || catchUp !== null || ticks < survival.withheldUntilTick) return false;
  return raft.membershipIndex <= raft.commitIndex && hasEverything(raft, peer);
}

/** Whether the peer has on its disk all that was agreed on, also without it: its leader sees that, and who leads has been voted for. */
function hasEverything({ commitIndex, leader, log, role, term }: RaftState, peer: PeerId): boolean {
  if (role.kind !== 'Leader') return leader === peer;
  return termAt(log, commitIndex) === term && (role.progress.get(peer)?.matchIndex ?? 0) >= commitIndex;
}

/** One more: the first may come at once. */
function pledgeTicks(tickMs: number): number {
  return Math.ceil(PLEDGE_MS / tickMs) + 1;
}
