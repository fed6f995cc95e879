/** Tells in the log of clients that were refused: at most one line in ten seconds, however many they are. */

import { type ClientGate, REFUSAL_CAUSES, type RefusalCause } from '../http/context/client-gate.js';
import type { ModuleLog } from './log.js';

const LOOK_EVERY_MS = 1000;
const QUIET_LOOKS = 9;

const WHY: Readonly<Record<RefusalCause, string>> = {
  address: 'their clients are denied by service.deny_clients, or not in service.allow_clients',
  max_connections: 'as many are open as service.max_connections allows',
  max_connections_per_client: 'their clients have as many open as service.max_connections_per_client allows',
};

export function tellRefusals(clients: ClientGate, log: ModuleLog): void {
  let told = Object.fromEntries(REFUSAL_CAUSES.map((reason) => [reason, 0])) as Record<RefusalCause, number>;
  let quietLooks = 0;
  setInterval(() => {
    if (quietLooks-- > 0) return;
    quietLooks = 0;
    const { counts, lately } = clients.refusals();
    const reasons = REFUSAL_CAUSES.filter((reason) => counts[reason] > told[reason]);
    if (reasons.length === 0) return;
    const sum = (of: Readonly<Record<RefusalCause, number>>): number => REFUSAL_CAUSES.reduce((all, reason) => all + of[reason], 0);
    const message = `connections were refused: ${reasons.map((reason) => WHY[reason]).join('; ')}`;
    log.warn(message, { connections: sum(counts) - sum(told), one_address: lately, since_start: sum(counts) });
    told = { ...counts };
    quietLooks = QUIET_LOOKS;
  }, LOOK_EVERY_MS).unref();
}
