/** Whether the certificate that a connection has shown is one of the peer that its other side says it is. */

import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { tls } from '../../protocols/late-modules.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { channelTarget } from './address.js';

/** Of the other side of a connection; undefined: it has shown none. */
export type ShownCertificate = PeerCertificate | undefined;

/** The certificate of a connection that was taken. */
export function certificateOf(socket: Socket): ShownCertificate {
  return 'getPeerCertificate' in socket ? (socket as TLSSocket).getPeerCertificate() : undefined;
}

/**
 * Why whoever has shown this certificate is not the peer; null: it may be. uri: the address of the peer that the cluster has agreed on, whose
 * host the peer also shows to those that call it; undefined: this node knows no such peer.
 */
export function judgeCertificate(certificate: ShownCertificate, peer: PeerId, uri: string | undefined): string | null {
  if (uri === undefined) return null;
  const host = certifiedHost(channelTarget(uri).replace(/:\d+$/, ''));
  const isOfHost = certificate !== undefined && tls().checkServerIdentity(host, certificate) === undefined;
  return isOfHost ? null : `who calls itself peer ${peer} has no certificate for ${host}, the host of that peer's address`;
}

/** The host of an address as certificates have it: IPv6 without its brackets. */
export function certifiedHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}
