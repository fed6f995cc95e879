/** Which addresses clients may connect from: `service.allow_clients` and `service.deny_clients`. */

import { type AddressNetwork, addressBytes, isWithin, networkOf, plainAddressBytes, plainNetwork } from '../../protocols/addresses.js';

/** Plain data, which goes to other threads as it is. */
export interface ClientLists {
  /** Empty: all that are not denied. */
  readonly allow: readonly AddressNetwork[];
  readonly deny: readonly AddressNetwork[];
}

/** A list from its entries, addresses and networks as `10.0.0.0/8`; and the entries that are neither. */
export function clientNetworks(entries: readonly string[]): {
  readonly networks: readonly AddressNetwork[];
  readonly wrong: readonly string[];
} {
  const networks: AddressNetwork[] = [];
  const wrong: string[] = [];
  for (const entry of entries) {
    const network = networkOf(entry);
    if (network === null) wrong.push(entry);
    else networks.push(plainNetwork(network));
  }
  return { networks, wrong };
}

/** Whether a client of this address may connect. An IPv4 address is the same over a socket of IPv6. What is no address may not. */
export function mayConnect(address: string, { allow, deny }: ClientLists): boolean {
  const bytes = addressBytes(address);
  if (bytes === null) return false;
  const plain = plainAddressBytes(bytes);
  const isIn = (networks: readonly AddressNetwork[]): boolean => networks.some((network) => isWithin(plain, network));
  return !isIn(deny) && (allow.length === 0 || isIn(allow));
}
