/** Decisions about streams: whether two sides may talk, which of two streams stays, when to call again. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { Hello, VersionRange } from './codec/frames.js';

/** Versions of the peer-to-peer protocol that this release speaks. See protocols/peer/peer.proto for when they change. */
export const PROTOCOL_VERSIONS: VersionRange = { min: 1, max: 1 };

export interface OwnSide {
  readonly peerId: PeerId;
  /** Null while this node is in no cluster. */
  readonly clusterId: string | null;
  readonly versions: VersionRange;
}

export type Handshake =
  /** version: the highest that both speak. */
  { readonly kind: 'agreed'; readonly version: number } | { readonly kind: 'refused'; readonly reason: string };

/** Judges the other side's hello. expected: the peer that was called; null on the side that was. */
export function judgeHello(own: OwnSide, hello: Hello, expected: PeerId | null): Handshake {
  if (own.clusterId === null) return refused('this node is not a member of a cluster yet');
  const version = commonVersion(own.versions, hello.versions);
  if (version === null) return refused(versionsDiffer(own.versions, hello.versions));
  if (hello.clusterId !== own.clusterId) {
    return refused(`this node is part of cluster ${own.clusterId}, peer ${hello.from} of cluster ${hello.clusterId || '(none)'}`);
  }
  if (hello.from === own.peerId) return refused(`both sides have the peer id ${own.peerId}: a node has called itself or a copy of itself`);
  if (expected !== null && hello.from !== expected) return refused(`peer ${hello.from} answers where peer ${expected} was called`);
  if (hello.to !== own.peerId) return refused(`this is peer ${own.peerId}, peer ${hello.from} has called peer ${hello.to}`);
  return { kind: 'agreed', version };
}

/** Null when there is none. */
export function commonVersion(own: VersionRange, other: VersionRange): number | null {
  const version = Math.min(own.max, other.max);
  return version >= Math.max(own.min, other.min) ? version : null;
}

export function versionsDiffer(own: VersionRange, other: VersionRange): string {
  return `no common version of the peer protocol: this node speaks ${shown(own)}, the other one ${shown(other)}; update the older one`;
}

/** A stream of a pair after the handshake. */
export interface Established {
  /** Of the other side's process. */
  readonly session: number;
  /** Whoever has called. */
  readonly dialer: PeerId;
}

/**
 * Whether `next` takes the place of `current`. Both sides must come to the same answer: of two streams that were called at
 * the same time, the one of the lower peer id stays. Whoever calls again, or comes after a restart, has lost the old one.
 */
export function takesOver(next: Established, current: Established, self: PeerId, other: PeerId): boolean {
  if (next.session !== current.session || next.dialer === current.dialer) return true;
  return next.dialer === Math.min(self, other);
}

/** Milliseconds until the next call. random: 0 to 1. */
export function backOffMs(failedBefore: number, random: number): number {
  const longest = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MS * 2 ** failedBefore);
  return longest / 2 + (longest / 2) * random;
}

/** A peer that restarts is called again within a second of its being back. */
const BACK_OFF_MS = 50;
const BACK_OFF_MAX_MS = 800;

/**
 * How much longer the side with the higher peer id waits before it calls. Mostly it is called before; it calls itself for
 * the case that the other side doesn't know its new address, or cannot reach it.
 */
export const HIGHER_WAITS_MS = 400;

function refused(reason: string): Handshake {
  return { kind: 'refused', reason };
}

function shown({ min, max }: VersionRange): string {
  return min === max ? `version ${max}` : `versions ${min} to ${max}`;
}
