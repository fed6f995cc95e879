/** What the settings say about the addresses of clients. */

import { ClientGate } from '../../http/context/client-gate.js';
import { clientNetworks } from '../../http/context/client-lists.js';
import type { NodeSettings } from './settings.js';

const KEYS = ['allow_clients', 'deny_clients'] as const;

/** One line for each entry that is neither an address nor a network, starting with its key; empty when all is well. */
export function clientProblems({ service }: NodeSettings): string[] {
  return KEYS.flatMap((key) =>
    clientNetworks(service[key]).wrong.map(
      (entry) => `service.${key}: ${JSON.stringify(entry)} is neither an address nor a network such as \`10.0.0.0/8\` or \`fd00::/8\``,
    ),
  );
}

/** Null: clients may connect from anywhere. */
export function clientGateFor({ service }: NodeSettings): ClientGate | null {
  const [allow, deny] = KEYS.map((key) => clientNetworks(service[key]).networks);
  if (allow === undefined || deny === undefined || allow.length + deny.length === 0) return null;
  return ClientGate.of({ allow, deny });
}
