/**
 * Which addresses a node with API keys fetches archives from. Decisions over addresses that names were resolved to: a name says nothing about
 * where it leads.
 *
 * - **Fetch-U1** Where keys are set, an address that is not of the public internet is refused, after a redirect like before it, unless
 *   `service.snapshot_url_allow` lists it or its host, or it is a peer's.
 * - **Fetch-U2** The connection goes to an address that was checked: the name is not resolved a second time.
 * - **Fetch-U3** The `api-key` of a request goes to the origin that the caller named, and to no other one that it redirects to.
 */

import { type AddressNetwork, addressBytes, isWithin, networkOf } from '../../protocols/addresses.js';

/** Hosts by name, and networks. */
export interface AllowedAddresses {
  readonly hosts: ReadonlySet<string>;
  readonly networks: readonly AddressNetwork[];
}

type ClosedRange = readonly [network: AddressNetwork, name: string];

/** Source: the registries of special-purpose addresses (RFC 6890 and what updates it), multicast, and what is reserved. */
const CLOSED = [
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'carrier-grade NAT'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'reserved'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', '6to4'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::/96', 'IPv4-compatible'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['::ffff:0:0:0/96', 'IPv4-translated'],
  ['64:ff9b::/96', 'NAT64'],
  ['64:ff9b:1::/48', 'NAT64'],
  ['100::/64', 'discard-only'],
  ['2001::/32', 'Teredo'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['3fff::/20', 'documentation'],
  ['5f00::/16', 'segment routing'],
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
] as const;
/** Made with the first address that is looked for: every start would take 2 ms for what few nodes do. */
let closed: readonly ClosedRange[] | undefined;

const HOST = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$/;

/** The kind of a range that is not of the public internet; null for an address that is. What is no address is in such a range, too. */
export function closedRangeOf(address: string): string | null {
  const bytes = addressBytes(address);
  if (bytes === null) return 'unknown';
  closed ??= CLOSED.map(([range, name]) => [networkOf(range) as AddressNetwork, name]);
  return closed.find(([network]) => isWithin(bytes, network))?.[1] ?? null;
}

/** Whether a list has a host, or the address that it was resolved to. */
export function isListed(host: string, address: string, { hosts, networks }: AllowedAddresses): boolean {
  if (hosts.has(plainHost(host))) return true;
  const bytes = addressBytes(address);
  return bytes !== null && networks.some((network) => isWithin(bytes, network));
}

/** A list from its entries: names of hosts, addresses, and networks as `10.0.0.0/8`; and the entries that are none of these. */
export function allowedAddresses(entries: readonly string[]): { readonly allowed: AllowedAddresses; readonly wrong: readonly string[] } {
  const hosts = new Set<string>();
  const networks: AddressNetwork[] = [];
  const wrong: string[] = [];
  for (const entry of entries) {
    const host = plainHost(entry);
    const network = networkOf(host);
    if (network !== null) networks.push(network);
    else if (HOST.test(host) && !/^[\d.]+$/.test(host)) hosts.add(host);
    else wrong.push(entry);
  }
  return { allowed: { hosts, networks }, wrong };
}

/** A host without brackets, the final dot, and capitals. */
export function plainHost(host: string): string {
  return host
    .trim()
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}
