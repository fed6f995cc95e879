/** Log lines about the cluster: changes of leader, members and connections. */

import type { Member, PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusEffect } from '../messages.js';
import { isLeaderless } from '../proposals/readiness.js';
import type { MemberConsensus } from '../state.js';

type Known = Pick<MemberConsensus, 'agreed' | 'connected' | 'fullTicks' | 'identity' | 'leaderlessTicks' | 'raft'>;

/** Effects that log one line for each change of interest to an operator. */
export function noticesOf(before: Known, after: Known): ConsensusEffect[] {
  return [...leadership(before, after), ...memberships(before, after), ...connections(before, after), ...fullDisks(before, after)];
}

function leadership(before: Known, after: Known): ConsensusEffect[] {
  const { leader, term } = after.raft;
  if (!isLeaderless(before) && isLeaderless(after)) {
    const text = 'there is no leader: collections cannot be changed until more than half of the peers reach each other';
    return [{ kind: 'log', level: 'warn', text }];
  }
  if (leader === null || (leader === before.raft.leader && term === before.raft.term)) return [];
  const who = leader === after.identity.peerId ? 'this peer leads' : `peer ${leader} leads`;
  return [info(`${who} in term ${term}`)];
}

function memberships(before: Known, after: Known): ConsensusEffect[] {
  if (before.agreed.membership === after.agreed.membership) return [];
  const former = byId(before.agreed.membership);
  const present = byId(after.agreed.membership);
  const self = after.identity.peerId;
  const texts: string[] = [];
  // The first membership that a node hears of is not a change.
  if (former.size === 0) {
    const others = [...present.values()].filter(({ peerId }) => peerId !== self).map(({ peerId, uri }) => `${peerId} (${uri})`);
    return others.length === 0 ? [] : [info(`other peers of the cluster: ${others.join(', ')}`)];
  }
  for (const { peerId, uri, voter } of present.values()) {
    const known = former.get(peerId);
    if (known === undefined) texts.push(`${nameOf(peerId, self)} was added at ${uri}`);
    else if (known.uri !== uri) texts.push(`${nameOf(peerId, self)} is at ${uri} now`);
    if (known?.voter !== true && voter) texts.push(`${nameOf(peerId, self)} has a vote`);
  }
  const doubles = [...present.values()].flatMap((member) => (former.has(member.peerId) ? [] : doublesOf(member, former, present)));
  for (const peerId of former.keys()) if (!present.has(peerId)) texts.push(`${nameOf(peerId, self)} was removed`);
  return [...texts.map(info), ...doubles];
}

/** Warnings about a peer at the address of another one: it was started with `--reinit` or on an empty folder. */
function doublesOf({ peerId, uri }: Member, former: ReadonlyMap<PeerId, Member>, present: ReadonlyMap<PeerId, Member>): ConsensusEffect[] {
  const others = [...former.values()].filter((other) => present.get(other.peerId)?.uri === uri);
  return others.map((other) => {
    const text = `peer ${peerId} has joined at the address of peer ${other.peerId}, which counts as a peer that is down until it is removed: DELETE /cluster/peer/${other.peerId}`;
    return { kind: 'log', level: 'warn', text };
  });
}

function connections(before: Known, after: Known): ConsensusEffect[] {
  if (before.connected === after.connected) return [];
  const gone = [...before.connected].filter((peer) => !after.connected.has(peer));
  const come = [...after.connected].filter((peer) => !before.connected.has(peer));
  return [...come.map((peer) => info(`peer ${peer} is connected`)), ...gone.map((peer) => info(`peer ${peer} is not connected any more`))];
}

/** The own disk has its own lines. */
function fullDisks({ fullTicks: before }: Known, { fullTicks: after, identity }: Known): ConsensusEffect[] {
  if (before === after) return [];
  const come = [...after.keys()].filter((peer) => peer !== identity.peerId && !before.has(peer));
  const gone = [...before.keys()].filter((peer) => peer !== identity.peerId && !after.has(peer));
  return [
    ...come.map((peer) => info(`the disk of peer ${peer} is nearly full: others lead its shards where they can`)),
    ...gone.map((peer) => info(`peer ${peer} does not say any more that its disk is nearly full`)),
  ];
}

function byId(membership: readonly Member[]): ReadonlyMap<PeerId, Member> {
  return new Map(membership.map((member) => [member.peerId, member]));
}

function nameOf(peerId: PeerId, self: PeerId): string {
  return peerId === self ? `this peer (${peerId})` : `peer ${peerId}`;
}

function info(text: string): ConsensusEffect {
  return { kind: 'log', level: 'info', text };
}
