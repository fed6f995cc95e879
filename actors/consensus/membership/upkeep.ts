/** Regular work of consensus, once a tick. */

import { markOf } from '../../../cluster/apply/apply-peers.js';
import type { LeaderRole } from '../../../cluster/raft/state.js';
import type { Member, PeerId } from '../../../protocols/model/cluster.js';
import { maybeActivate } from '../agreed/activation.js';
import { lookAfter } from '../agreed/health.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import { dropLateProposals, isUnderWay, proposeMembership, proposeWaiting, submit } from '../proposals/proposals.js';
import { isLeaderless } from '../proposals/readiness.js';
import { askReads, dropLateReads } from '../proposals/reads.js';
import { askAgain } from '../proposals/settling.js';
import type { MemberConsensus } from '../state.js';
import { keepFenced } from './alone.js';
import { followDisks } from './full-disks.js';
import { maybeGoOnWithPlans } from './plans.js';
import { keepSurvivable } from './survivor.js';

/** A learner whose log ends this close to the committed end has caught up. Source: dissertation, section 4.2.1. */
const CAUGHT_UP_ENTRIES = 64;
const PROMOTE_TICKS = 30;
const ACTIVATE_TICKS = 30;
const ANNOUNCE_TICKS = 20;
const MARK_TICKS = 5;
/** Ticks after which a peer without a leader asks whether it is still a member. */
const ASK_MEMBERSHIP_TICKS = 50;
const ASK_SNAPSHOT_TICKS = 10;

export function tick(draft: ConsensusDraft): void {
  const { leaderlessTicks, ticks } = draft.member;
  draft.change({ ticks: ticks + 1 });
  draft.raft({ kind: 'tick' });
  draft.change({ leaderlessTicks: draft.member.raft.leader === null ? leaderlessTicks + 1 : 0 });
  dropLateReads(draft);
  dropLateProposals(draft);
  proposeWaiting(draft);
  askReads(draft);
  askAgain(draft);
  recoverOn(draft);
  maybePromote(draft);
  maybeAnnounce(draft);
  lookAfter(draft);
  followDisks(draft);
  keepFenced(draft);
  keepSurvivable(draft);
  maybeGoOnWithPlans(draft);
  maybeMark(draft);
  // Also after a proposal has failed.
  if (ticks % ACTIVATE_TICKS === 0 || ticks === draft.member.upkeep.activateTick) maybeActivate(draft);
}

/** Connects the transport with the peers of the newest membership. */
export function followMembership(draft: ConsensusDraft): void {
  const { identity, peers, raft } = draft.member;
  // A node that was let in and has not heard of the cluster yet keeps the list of members that it was given.
  if (raft.membership === peers || raft.membership.length === 0) return;
  draft.change({ peers: raft.membership });
  draft.emit({ kind: 'setPeers', uris: urisOf(raft.membership, identity.peerId) });
}

export function urisOf(members: readonly Member[], self: PeerId): Map<PeerId, string> {
  return new Map(members.filter(({ peerId }) => peerId !== self).map(({ peerId, uri }) => [peerId, uri]));
}

/** This peer's member record as the cluster should have it; null if the cluster has it so. */
export function wantedMember({
  identity,
  raft,
  settings,
}: Pick<MemberConsensus, 'identity' | 'raft' | 'settings'>): Omit<Member, 'voter'> | null {
  const own = raft.membership.find(({ peerId }) => peerId === identity.peerId);
  if (own === undefined) return null;
  const uri = settings.uri ?? withPort(own.uri, settings.port);
  if (own.uri === uri && own.version === settings.version) return null;
  return { peerId: identity.peerId, uri, version: settings.version };
}

/** A derived address with a new port and the same host. */
function withPort(uri: string, port: number): string {
  return uri.replace(/:\d+$/, `:${port}`);
}

function maybePromote(draft: ConsensusDraft): void {
  const { calls, raft, ticks } = draft.member;
  if (raft.role.kind !== 'Leader' || raft.membershipIndex > raft.commitIndex) return;
  if (calls.proposals.some(({ what }) => what.kind === 'membership')) return;
  const learner = raft.membership.find(({ peerId, voter }) => !voter && isCaughtUp(raft.role as LeaderRole, peerId, raft.commitIndex));
  if (learner === undefined) return;
  proposeMembership(draft, { kind: 'promote', peerId: learner.peerId }, { kind: 'upkeep' }, ticks + PROMOTE_TICKS);
}

/** Proposes this node's mark if the agreed one differs from how it was started. */
function maybeMark(draft: ConsensusDraft): void {
  const { agreed, identity, settings, ticks } = draft.member;
  const { peerId } = identity;
  if (ticks % MARK_TICKS !== 0 || !agreed.membership.some((member) => member.peerId === peerId)) return;
  if (markOf(agreed, peerId).listens === settings.listens || isUnderWay(draft, 'mark')) return;
  const operation = { kind: 'markPeer', peerId, listens: settings.listens, leaving: null } as const;
  submit(draft, { kind: 'operation', operation }, { kind: 'mark' }, ticks + PROMOTE_TICKS);
}

function isCaughtUp({ progress }: LeaderRole, peerId: PeerId, commitIndex: number): boolean {
  const known = progress.get(peerId);
  return (
    known !== undefined && known.mode.kind === 'Replicate' && known.recentlyActive && known.matchIndex + CAUGHT_UP_ENTRIES >= commitIndex
  );
}

/** Announces a new address or version to the leader, or to any member: with an old address the streams may not connect. */
function maybeAnnounce(draft: ConsensusDraft): void {
  const { agreed, identity, raft, ticks, upkeep } = draft.member;
  if (ticks < upkeep.announceTick) return;
  const wanted = wantedMember(draft.member);
  const own = raft.membership.find(({ peerId }) => peerId === identity.peerId);
  const lonely = isLeaderless(draft.member) && own !== undefined;
  if (wanted === null && !lonely) return;
  const member = wanted ?? { peerId: identity.peerId, uri: own?.uri ?? '', version: own?.version ?? '' };
  const others = raft.membership.filter(({ peerId }) => peerId !== identity.peerId);
  const announceTick = ticks + (wanted === null ? ASK_MEMBERSHIP_TICKS : ANNOUNCE_TICKS);
  draft.change({ upkeep: { ...upkeep, announceTick, announceTurn: upkeep.announceTurn + 1 } });
  if (raft.role.kind === 'Leader') {
    proposeMembership(draft, { kind: 'announce', member }, { kind: 'upkeep' }, announceTick);
    return;
  }
  const asked = others.find(({ peerId }) => peerId === raft.leader) ?? others[upkeep.announceTurn % Math.max(1, others.length)];
  if (asked === undefined) return;
  draft.emit({ kind: 'announce', uri: asked.uri, request: { kind: 'announce', clusterId: agreed.clusterId, member } });
}

/** Asks for the leader's state again: the leader may have missed the question, or have changed. */
function recoverOn(draft: ConsensusDraft): void {
  const { calls, ticks } = draft.member;
  const { recovery } = calls;
  if (recovery === null) return;
  if (ticks >= recovery.deadlineTick) {
    draft.changeCalls({ recovery: null });
    draft.refuse(recovery.replyTo, { code: 'timeout', detail: "the leader's state did not arrive in time" });
  } else if ((recovery.deadlineTick - ticks) % ASK_SNAPSHOT_TICKS === 0) draft.raft({ kind: 'requestSnapshot' });
}
