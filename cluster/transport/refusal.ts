/** Whether nobody listens at an address any more, for certain: its own system says so by refusing the connection. */

import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
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
  const found = await lookup(hostname.replace(/^\[(.*)\]$/, '$1'), { all: true });
  const addresses = found.map(({ address }) => address);
  if (addresses.length === 0 || (!anywhere && !addresses.every(isOwn))) return false;
  const refusals = await Promise.all(addresses.map((address) => refuses(address, Number(port || 80))));
  return refusals.every((refused) => refused);
}

function isOwn(address: string): boolean {
  if (/^127\./.test(address) || address === '::1') return true;
  return Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => entry.address === address) === true);
}

function refuses(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PATIENCE_MS });
    const end = (refused: boolean) => {
      socket.destroy();
      resolve(refused);
    };
    socket.once('connect', () => end(false));
    socket.once('timeout', () => end(false));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED'));
  });
}
