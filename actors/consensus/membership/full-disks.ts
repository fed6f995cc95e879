/**
 * Whose disk is full (Disk-D4). A peer says so again and again, and what it has said counts for a while: a lost message is made up for, and a peer
 * that has room again, or is gone, is forgotten.
 */

import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusDraft } from '../proposals/draft.js';
import type { MemberConsensus } from '../state.js';
import { handOverLeadership } from './remove-peer.js';

/** Ticks for which it counts. */
const FULL_TICKS = 30;
/** Ticks between two messages to the peers, and between two tries to have another one lead consensus. */
const TELL_TICKS = 5;
const YIELD_TICKS = 10;

const NOBODY: ReadonlySet<PeerId> = new Set();

/** Peers whose disk is full, as far as this node knows, and itself. */
export function fullPeers({ fullTicks, ticks }: Pick<MemberConsensus, 'fullTicks' | 'ticks'>): ReadonlySet<PeerId> {
  if (fullTicks.size === 0) return NOBODY;
  return new Set([...fullTicks].filter(([, tick]) => ticks - tick < FULL_TICKS).map(([peerId]) => peerId));
}

export function noteDiskFull(draft: ConsensusDraft, peer: PeerId): void {
  const { fullTicks, ticks } = draft.member;
  if (fullTicks.get(peer) !== ticks) draft.change({ fullTicks: new Map(fullTicks).set(peer, ticks) });
}

/** Tells the peers at once, and from then on every few ticks. */
export function noteOwnDiskFull(draft: ConsensusDraft): void {
  const { connected, identity, ticks } = draft.member;
  const isNew = !fullPeers(draft.member).has(identity.peerId);
  noteDiskFull(draft, identity.peerId);
  if (isNew || ticks % TELL_TICKS === 0) for (const peer of connected) draft.tell(peer, { kind: 'diskFull' });
}

/** Forgets who has said nothing for a while, and has another peer lead consensus, whose log this node may soon not write. Called once a tick. */
export function followDisks(draft: ConsensusDraft): void {
  const { fullTicks, identity, raft, ticks } = draft.member;
  if (fullTicks.size === 0) return;
  const full = fullPeers(draft.member);
  if (full.size < fullTicks.size) draft.change({ fullTicks: new Map([...fullTicks].filter(([peerId]) => full.has(peerId))) });
  if (raft.role.kind === 'Leader' && full.has(identity.peerId) && ticks % YIELD_TICKS === 0)
    handOverLeadership(draft, (peerId) => !full.has(peerId));
}
