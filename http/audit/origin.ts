/** Where a request comes from, and by which id it is known. */

import { addressBytes, plainAddressBytes } from '../../protocols/addresses.js';
import { crypto } from '../../protocols/late-modules.js';

/** What a door knows of a request's sender. */
export interface RequestOrigin {
  /** Of the other end of the connection; empty: it is gone. */
  readonly address: string;
  /** The value of a header by its name in lower case; undefined: the request has none. */
  readonly field: (name: string) => string | undefined;
}

export interface ClientAddress {
  readonly from: string;
  readonly via: string | null;
}

/** Where a request comes from, and its id: the client's, or one that no other request of this node has. */
export interface NamedOrigin extends ClientAddress {
  readonly requestId: string;
}

/** Says of each request where it comes from and gives it an id where the client gave none. One for each log of a thread. */
export class OriginNames {
  readonly #idStart = crypto().randomBytes(6).toString('hex');
  #nextId = 1;

  /** trustForwarded: as in `clientAddress`. */
  constructor(private readonly trustForwarded: boolean) {}

  of(origin: RequestOrigin): NamedOrigin {
    const requestId = givenRequestId(origin) ?? `${this.#idStart}-${this.#nextId++}`;
    return { requestId, ...clientAddress(origin, this.trustForwarded) };
  }
}

const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** The id that the client gave the request; null: none that could be written. */
export function givenRequestId({ field }: Pick<RequestOrigin, 'field'>): string | null {
  const given = field('x-request-id');
  return given !== undefined && REQUEST_ID.test(given) ? given : null;
}

/**
 * The client's address. trustForwarded: proxies are believed about it, so the first address of `Forwarded`, else of `X-Forwarded-For`, counts.
 * Sources: RFC 7239, sections 4 and 5.2; the convention of proxies.
 */
export function clientAddress({ address, field }: RequestOrigin, trustForwarded: boolean): ClientAddress {
  const own = plainText(address);
  const forwarded = trustForwarded ? (forwardedFor(field('forwarded')) ?? listedFirst(field('x-forwarded-for'))) : null;
  return forwarded === null ? { from: own, via: null } : { from: forwarded, via: own };
}

/** `for=192.0.2.60;proto=http, for=…`, `for="[2001:db8::17]:4711"`. */
function forwardedFor(value: string | undefined): string | null {
  const first = value?.split(',', 1)[0]?.split(';') ?? [];
  const pair = first.map((part) => /^\s*for=(.*)$/i.exec(part)).find((match) => match !== null);
  return pair == null ? null : nodeAddress((pair[1] as string).trim().replace(/^"(.*)"$/, '$1'));
}

/** `192.0.2.60, 198.51.100.7` */
function listedFirst(value: string | undefined): string | null {
  const first = value?.split(',', 1)[0]?.trim();
  return first === undefined ? null : nodeAddress(first);
}

/** An address with or without a port; null for what is none: `unknown`, and names that a proxy made up. */
function nodeAddress(node: string): string | null {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(node)?.[1];
  const address = bracketed ?? node.replace(/^([\d.]+):\d+$/, '$1');
  return addressBytes(address) === null ? null : plainText(address);
}

/** An IPv4 address that came as one of IPv6 is written as itself. */
function plainText(address: string): string {
  if (!address.includes('.') || !address.includes(':')) return address;
  const bytes = addressBytes(address);
  const plain = bytes === null ? null : plainAddressBytes(bytes);
  return plain?.length === 4 ? plain.join('.') : address;
}
