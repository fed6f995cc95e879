/**
 * Two nodes of which one has ended (Raft-R11). The remaining node may go on alone if the other one cannot have agreed on anything,
 * acknowledged anything or changed the membership without it.
 *
 * 1. Each node renews, every few seconds, a pledge to the other: «I do nothing alone, and you have on disk everything that I know to be
 *    agreed on».
 * 2. A process that has ended keeps its pledge. The proof is its own system, which refuses connections at the address where the pledge was
 *    given. Silence proves nothing.
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
  /** Counts connections made and lost: an answer to an earlier question says nothing about the process that is there now. */
  readonly contact: number;
  /**
   * The other node's newest pledge: the address where it was given, the time until which it counts (milliseconds of the monotonic clock),
   * and the tick at which it came; null if there is none.
   */
  readonly held: { readonly peer: PeerId; readonly uri: string; readonly untilMs: number; readonly tick: number } | null;
  /** The tick until which this node keeps its own pledge. A process that stalls counts fewer ticks, so it keeps the pledge for longer. */
  readonly givenUntilTick: number;
  /** The tick until which this node gives no pledge, because a removal waits for its end. */
  readonly withheldUntilTick: number;
}

/**
 * How long a pledge is kept by its giver. The receiver counts on it for less, as clocks of two machines run at slightly different rates.
 */
const PLEDGE_MS = 3000;
export const COUNTED_ON_MS = 0.9 * PLEDGE_MS;
const ASK_MS = 500;
/** Ticks without a message after which the other node counts as unheard; two nodes hear each other at every tick. */
const UNHEARD_TICKS = 3;
/** Time for a removal to be agreed on before the next pledge. */
const WITHHELD_MS = 5000;

/** The state after a start. A node that reads its log again has forgotten its pledge, so it counts as given. */
export function newSurvival(tickMs: number): Survival {
  return { contact: 0, held: null, givenUntilTick: pledgeTicks(tickMs), withheldUntilTick: 0 };
}

/** Renews the pledges between two nodes, and looks whether the other one has ended. Called once a tick. */
export function keepSurvivable(draft: ConsensusDraft): void {
  const { agreed, connected, heardTicks, identity, raft, settings, survival, ticks } = draft.member;
  const partner = partnerOf(draft.member);
  if (!settings.survives || partner === null || raft.gone !== null) return;
  const { contact, held } = survival;
  const { peerId: peer, uri } = partner;
  // A connection may end later than the process at its other end. At an address that was announced since, the port may not be open yet.
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

/** The peer whose pledge this node has: if that peer ends now, this node goes on alone. Null if there is none. For reports. */
export function pledgeHeld({ settings, survival, ticks }: Pick<MemberConsensus, 'settings' | 'survival' | 'ticks'>): PeerId | null {
  const { held } = survival;
  return held !== null && (ticks - held.tick) * settings.tickMs < COUNTED_ON_MS ? held.peer : null;
}

/** Notes that the process which gave the pledge ended while the pledge was valid. */
export function noteEnd(draft: ConsensusDraft, { contact, peer }: Extract<ConsensusMessage, { kind: 'ended' }>): void {
  const { raft, survival } = draft.member;
  if (contact !== survival.contact || survival.held?.peer !== peer || partnerOf(draft.member)?.peerId !== peer || raft.gone !== null)
    return;
  const text = `peer ${peer} has ended, and had done nothing alone: this node goes on without it until it is back`;
  draft.emit({ kind: 'log', level: 'warn', text });
  draft.raft({ kind: 'gone', peer });
}

/** Notes a connection made or lost: another process may be there now, or the same one again. */
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

/**
 * Whether an input has to wait until this node's own pledge has ended: the removal of the other node would leave a cluster that needs no
 * other node. No new pledge is given before that.
 */
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

/** The other one of two voters, if there are no other members. */
export function partnerOf({ identity, raft }: Pick<MemberConsensus, 'identity' | 'raft'>): Member | null {
  const { membership } = raft;
  const other = membership.find(({ peerId }) => peerId !== identity.peerId);
  if (other === undefined || !isPair(membership, identity.peerId, other.peerId)) return null;
  return membership.every(({ voter }) => voter) ? other : null;
}

/** Whether this node may give a pledge. After a start it first has to know which shards it leads, and so what it may have done alone. */
function mayPledge(member: MemberConsensus, peer: PeerId): boolean {
  const { catchUp, raft, survival, ticks } = member;
  if (partnerOf(member)?.peerId !== peer || raft.gone !== null || catchUp !== null || ticks < survival.withheldUntilTick) return false;
  return raft.membershipIndex <= raft.commitIndex && hasEverything(raft, peer);
}

/**
 * Whether the peer has on disk everything that was agreed on, also without it. A leader sees this; a follower knows it of the leader that
 * was elected.
 */
function hasEverything({ commitIndex, leader, log, role, term }: RaftState, peer: PeerId): boolean {
  if (role.kind !== 'Leader') return leader === peer;
  return termAt(log, commitIndex) === term && (role.progress.get(peer)?.matchIndex ?? 0) >= commitIndex;
}

/** The length of a pledge in ticks; one tick more, as the first one may come at once. */
function pledgeTicks(tickMs: number): number {
  return Math.ceil(PLEDGE_MS / tickMs) + 1;
}
