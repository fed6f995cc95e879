/** Who a node of its own is for as long as its process lives. */

import type { Identity } from '../http/context/services.js';
import { crypto } from '../protocols/late-modules.js';

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
      id ??= crypto().randomUUID();
      return id;
    },
    get peerId() {
      peerId ??= crypto().randomInt(1, PEER_ID_BOUND);
      return peerId;
    },
  };
}
