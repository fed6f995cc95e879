/**
 * Which addresses a node with API keys fetches archives from. Decisions over addresses that names were resolved to: a name says nothing about
 * where it leads.
 *
 * - **Fetch-U1** Where keys are set, an address that is not of the public internet is refused, after a redirect like before it, unless
 *   `service.snapshot_url_allow` lists it or its host, or it is a peer's.
 * - **Fetch-U2** The connection goes to an address that was checked: the name is not resolved a second time.
 * - **Fetch-U3** The `api-key` of a request goes to the origin that the caller named, and to no other one that it redirects to.
 */

import { isIPv4, isIPv6 } from 'node:net';

/** Hosts by name, and networks. */
export interface AllowedAddresses {
  readonly hosts: ReadonlySet<string>;
  readonly networks: readonly AddressNetwork[];
}

interface AddressNetwork {
  /** 4 or 16. */
  readonly bytes: Uint8Array;
  /** Of the prefix that its addresses have in common. */
  readonly bits: number;
}

type ClosedRange = readonly [network: AddressNetwork, name: string];

/** Source: the registries of special-purpose addresses (RFC 6890 and what updates it), multicast, and what is reserved. */
const CLOSED: readonly ClosedRange[] = (
  [
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
  ] as const
).map(([range, name]) => [networkOf(range) as AddressNetwork, name]);

const HOST = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$/;

/** The kind of a range that is not of the public internet; null for an address that is. What is no address is in such a range, too. */
export function closedRangeOf(address: string): string | null {
  const bytes = addressBytes(address);
  if (bytes === null) return 'unknown';
  return CLOSED.find(([network]) => isWithin(bytes, network))?.[1] ?? null;
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

/** A network, or one address as a network; null for what is neither. */
function networkOf(range: string): AddressNetwork | null {
  const [address = '', bitsText, more] = range.split('/');
  const bytes = addressBytes(address);
  if (bytes === null || more !== undefined) return null;
  if (bitsText === undefined) return { bytes, bits: bytes.length * 8 };
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.POSITIVE_INFINITY;
  return bits <= bytes.length * 8 ? { bytes, bits } : null;
}

function isWithin(bytes: Uint8Array, network: AddressNetwork): boolean {
  if (bytes.length !== network.bytes.length) return false;
  for (let bit = 0; bit < network.bits; bit += 8) {
    const mask = 0xff00 >> Math.min(8, network.bits - bit);
    const at = bit / 8;
    if (((bytes[at] as number) & mask & 0xff) !== ((network.bytes[at] as number) & mask & 0xff)) return false;
  }
  return true;
}

/** 4 or 16 bytes; null for what is no address. */
function addressBytes(address: string): Uint8Array | null {
  if (isIPv4(address)) return Uint8Array.from(address.split('.'), Number);
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return null;
  const [left = '', right] = plain.split('::');
  const head = groupsOf(left);
  const tail = groupsOf(right ?? '');
  const groups = right === undefined ? head : [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

/** Numbers of 16 bits; a part with dots is two of them. */
function groupsOf(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [one = 0, two = 0, three = 0, four = 0] = group.split('.').map(Number);
    return [one * 256 + two, three * 256 + four];
  });
}
