/** A node that others can reach and that asks nobody for a key: what to tell whoever runs it. */

import { addressBytes, isLoopback } from '../protocols/addresses.js';
import type { NodeSettings } from './config/settings.js';

const REMEDIES = [
  'to ask for a key:        troupe --secured (makes one), or service.api_key (`troupe key` prints one)',
  'to serve this machine:   service.host: 127.0.0.1',
  'to choose its clients:   service.allow_clients: a list of addresses and networks',
];

/** One sentence about the danger; null: a key is asked for, or only this machine reaches the node. */
export function exposureOf({ service }: Pick<NodeSettings, 'service'>): string | null {
  const keys = [service.api_key, service.alt_api_key, service.read_only_api_key];
  if (keys.some((key) => key !== null && key !== '')) return null;
  const { allow_clients: allowed, host } = service;
  if (isLoopbackHost(host)) return null;
  const where = isUnspecified(host) ? 'listens on all interfaces' : `listens on ${host}`;
  const who = allowed.length === 0 ? 'whoever reaches it' : 'every client at an address of service.allow_clients';
  return `This node has no API key and ${where}: ${who} can read, change and delete everything.`;
}

/** The warning for a terminal, with what can be done. */
export function exposureNotice(exposure: string): string {
  const lines = [exposure, '', ...REMEDIES];
  const width = Math.max(...lines.map(({ length }) => length));
  const frame = '='.repeat(width + 8);
  return [frame, ...lines.map((line) => `==  ${line.padEnd(width)}  ==`), frame, ''].join('\n');
}

/** A name of a host other than this one may lead anywhere. */
function isLoopbackHost(host: string): boolean {
  const bytes = addressBytes(host);
  return bytes === null ? host.toLowerCase() === 'localhost' : isLoopback(bytes);
}

function isUnspecified(host: string): boolean {
  return addressBytes(host)?.every((byte) => byte === 0) ?? false;
}
