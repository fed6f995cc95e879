/** Addresses of peers. */

import { TroupeError } from '../../protocols/errors.js';

/** `host:port` of a peer's address, as channels take it. Whether it is called with TLS is one setting for all peers. Errors: `wrongInput`. */
export function channelTarget(uri: string): string {
  const url = URL.canParse(uri) ? new URL(uri) : null;
  if (
    url === null ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.hostname === '' ||
    url.pathname !== '/' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    throw new TroupeError(
      'wrongInput',
      `${uri} is not the address of a peer: expected http://host:port with the internal port of the peer`,
    );
  }
  return `${url.hostname}:${url.port || (url.protocol === 'http:' ? '80' : '443')}`;
}

/** The host of `host:port` as a socket names it, ready to be part of an address: IPv6 in brackets, IPv4 without its IPv6 form. */
export function hostOf(peer: string): string {
  const host = peer
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/^::ffff:(?=\d+\.)/i, '');
  return host.includes(':') ? `[${host}]` : host;
}
