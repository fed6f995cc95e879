/** Addresses of IPv4 and IPv6, and networks of them as `10.0.0.0/8`. */

/** The addresses that begin with the same bits. */
export interface AddressNetwork {
  /** 4 or 16. */
  readonly bytes: Uint8Array;
  /** Of the prefix that its addresses have in common. */
  readonly bits: number;
}

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);
const GROUP = /^[0-9a-f]{1,4}$/i;
const ZONE = /%[a-z0-9.:-]+$/i;
const GROUPS = 8;
/** An IPv4 address as one of IPv6: `::ffff:10.0.0.1`. Source: RFC 4291, 2.5.5.2. */
const MAPPED_BITS = 96;

/** A network, or one address as a network; null for what is neither. */
export function networkOf(range: string): AddressNetwork | null {
  const [address = '', bitsText, more] = range.split('/');
  const bytes = addressBytes(address);
  if (bytes === null || more !== undefined) return null;
  if (bitsText === undefined) return { bytes, bits: bytes.length * 8 };
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.POSITIVE_INFINITY;
  return bits <= bytes.length * 8 ? { bytes, bits } : null;
}

/** bytes: an address, 4 or 16. */
export function isWithin(bytes: Uint8Array, network: AddressNetwork): boolean {
  if (bytes.length !== network.bytes.length) return false;
  for (let bit = 0; bit < network.bits; bit += 8) {
    const mask = 0xff00 >> Math.min(8, network.bits - bit);
    const at = bit / 8;
    if (((bytes[at] as number) & mask & 0xff) !== ((network.bytes[at] as number) & mask & 0xff)) return false;
  }
  return true;
}

/** 4 or 16 bytes; null for what is no address. A zone (`fe80::1%eth0`) is left out. */
export function addressBytes(address: string): Uint8Array | null {
  if (IPV4.test(address)) return Uint8Array.from(address.split('.'), Number);
  const halves = address.replace(ZONE, '').split('::');
  const parts = halves.map((half, at) => groupsOf(half, at === halves.length - 1));
  const [head, tail] = parts;
  if (head === undefined || head === null || tail === null || parts.length > 2) return null;
  const missing = GROUPS - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = tail === undefined ? head : [...head, ...new Array<number>(missing).fill(0), ...tail];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

/** An IPv4 address that came as one of IPv6 (a socket that takes both shows it so) is itself; all else is what it was. */
export function plainAddressBytes(bytes: Uint8Array): Uint8Array {
  return isMapped(bytes) ? bytes.subarray(MAPPED_BITS / 8) : bytes;
}

/** As `plainAddressBytes`, of a network. */
export function plainNetwork({ bits, bytes }: AddressNetwork): AddressNetwork {
  if (bits < MAPPED_BITS || !isMapped(bytes)) return { bytes, bits };
  return { bytes: bytes.subarray(MAPPED_BITS / 8), bits: bits - MAPPED_BITS };
}

/** Whether an address is one of its own machine. */
export function isLoopback(bytes: Uint8Array): boolean {
  const plain = plainAddressBytes(bytes);
  return plain.length === 4 ? plain[0] === 127 : plain.every((byte, at) => byte === (at === 15 ? 1 : 0));
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0);
}

/** Numbers of 16 bits; null where one is none. The last part of the last half may be an IPv4 address, which is two of them. */
function groupsOf(half: string, isLast: boolean): number[] | null {
  if (half === '') return [];
  const groups: number[] = [];
  const parts = half.split(':');
  for (const [at, part] of parts.entries()) {
    if (GROUP.test(part)) groups.push(Number.parseInt(part, 16));
    else if (isLast && at === parts.length - 1 && IPV4.test(part)) {
      const [one = 0, two = 0, three = 0, four = 0] = part.split('.').map(Number);
      groups.push(one * 256 + two, three * 256 + four);
    } else return null;
  }
  return groups;
}
