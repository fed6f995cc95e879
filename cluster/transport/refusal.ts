/** Whether nobody listens at an address any more, for certain: its own system says so by refusing the connection. */

import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { dns } from '../../protocols/late-modules.js';
import { channelTarget } from './address.js';

/** `cluster.survivor`. */
export const SURVIVORS = ['local', 'always', 'never'] as const;
export type Survivor = (typeof SURVIVORS)[number];

const PATIENCE_MS = 500;

/**
 * anywhere: also where it is not this machine that refuses: there may be a firewall or a proxy on the way, which says the same for a
 * process that runs. Errors: `wrongInput` for what is no address of a peer; a name that cannot be resolved.
 */
export async function refusesConnections(uri: string, anywhere: boolean): Promise<boolean> {
  const { hostname, port } = new URL(`http://${channelTarget(uri)}`);
  const found = await dns().lookup(hostname.replace(/^\[(.*)\]$/, '$1'), { all: true });
  const addresses = found.map(({ address }) => address);
  if (addresses.length === 0 || (!anywhere && !addresses.every(isOwn))) return false;
  const ends = await Promise.all(addresses.map((address) => call(address, Number(port || 80))));
  return ends.includes('refused') && !ends.includes('open');
}

function isOwn(address: string): boolean {
  return /^127\./.test(address) || address === '::1' || isThere(address);
}

function isThere(address: string): boolean {
  return Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => entry.address === address) === true);
}

/** none: this machine has no such address, as where it does without IPv6. open: something answers, or nothing at all. */
function call(host: string, port: number): Promise<'refused' | 'none' | 'open'> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PATIENCE_MS });
    const end = (how: 'refused' | 'none' | 'open') => {
      socket.destroy();
      resolve(how);
    };
    socket.once('connect', () => end('open'));
    socket.once('timeout', () => end('open'));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') end('refused');
      // The same is said where no port is left to call from.
      else end((code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT') && isOwn(host) && !isThere(host) ? 'none' : 'open');
    });
  });
}
