/** What the settings say about the addresses of clients and the number of their connections. */

import { ClientGate } from '../../http/context/client-gate.js';
import { clientNetworks } from '../../http/context/client-lists.js';
import { openConnectionsData } from '../../http/context/open-connections.js';
import { lanesFor } from '../../http/context/reader-servers.js';
import type { NodeSettings } from './settings.js';

/** What bounds the number of connections of a node that has no setting for it. */
export interface ConnectionRoom {
  /** Files that the process can have open; null: not known. */
  readonly descriptors: number | null;
  /** Memory that the process may have. */
  readonly memoryBytes: number;
}

const KEYS = ['allow_clients', 'deny_clients'] as const;

/** One that a reader hands on to the main thread takes three; collections and segments need most of them. */
const DESCRIPTORS_OF_ONE = 8;
/** Several times what one with TLS takes that does nothing. */
const MEMORY_OF_ONE = 256 << 10;
const CONNECTIONS_MIN = 64;
const CONNECTIONS_MAX = 16_384;
const DESCRIPTORS_UNKNOWN = 8192;

/** One line for each setting of clients that cannot be, starting with its key; empty when all is well. */
export function clientProblems({ service }: NodeSettings): string[] {
  return KEYS.flatMap((key) =>
    clientNetworks(service[key]).wrong.map(
      (entry) => `service.${key}: ${JSON.stringify(entry)} is neither an address nor a network such as \`10.0.0.0/8\` or \`fd00::/8\``,
    ),
  );
}

/** How many connections there may be on the node, and from one address: without a setting for that, half of them. */
export function connectionLimits({ service }: NodeSettings, { descriptors, memoryBytes }: ConnectionRoom) {
  const room = Math.min((descriptors ?? DESCRIPTORS_UNKNOWN) / DESCRIPTORS_OF_ONE, memoryBytes / MEMORY_OF_ONE, CONNECTIONS_MAX);
  const max = service.max_connections ?? Math.max(CONNECTIONS_MIN, Math.floor(room));
  return { max, maxPerClient: service.max_connections_per_client ?? Math.ceil(max / 2) };
}

/** readers: with servers. seeds: numbers that clients do not know. */
export function clientGateFor(settings: NodeSettings, room: ConnectionRoom, readers: number, seeds: readonly [number, number]): ClientGate {
  const [allow, deny] = KEYS.map((key) => clientNetworks(settings.service[key]).networks) as [never, never];
  const limits = connectionLimits(settings, room);
  return ClientGate.of({ allow, deny }, openConnectionsData({ ...limits, lanes: lanesFor(readers), seeds }));
}
