/** Who a node of its own is for as long as its process lives. */

import type { Identity } from '../http/context/services.js';
import { crypto } from '../protocols/late-modules.js';
import { readSystemFile } from '../storage/memory/system-file.js';

/** The last hexadecimal digits of a UUID, which are drawn by chance (122 of its bits are). Source: RFC 9562, section 5.4. */
const CHANCE_DIGITS = 12;
const PEER_ID_BOUND = 2 ** 47;

/**
 * Drawn by chance when somebody asks, since few do and a start would wait for it. startedMs: when the process began, in milliseconds since
 * the epoch.
 */
export function nodeIdentity(version: string, startedMs: number): Identity {
  let id: string | undefined;
  let peerId: number | undefined;
  return {
    version,
    startedMs,
    get id() {
      id ??= randomId();
      return id;
    },
    get peerId() {
      peerId ??= 1 + (Number.parseInt(randomId().slice(-CHANCE_DIGITS), 16) % (PEER_ID_BOUND - 1));
      return peerId;
    },
  };
}

/** A UUID of the system: to load OpenSSL for one (`node:crypto`) takes 15 ms of CPU and more, and holds the first report of a node up for so long. */
function randomId(): string {
  return readSystemFile('/proc/sys/kernel/random/uuid').trim() || crypto().randomUUID();
}
