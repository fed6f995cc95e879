/** Tells in the log of clients that were refused for their address: at most one line in ten seconds, however many they are. */

import type { ClientGate } from '../http/context/client-gate.js';
import type { ModuleLog } from './log.js';

const LOOK_EVERY_MS = 1000;
const QUIET_LOOKS = 9;

export function tellRefusals(clients: ClientGate, log: ModuleLog): void {
  let told = 0;
  let quietLooks = 0;
  setInterval(() => {
    if (quietLooks-- > 0) return;
    quietLooks = 0;
    const { count, lately } = clients.refusals();
    if (count === told) return;
    const message = 'connections were refused: their clients are denied by service.deny_clients, or not in service.allow_clients';
    log.warn(message, { connections: count - told, one_address: lately, since_start: count });
    told = count;
    quietLooks = QUIET_LOOKS;
  }, LOOK_EVERY_MS).unref();
}
