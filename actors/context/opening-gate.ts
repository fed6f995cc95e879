/** Whether the files of a replica may be opened now: not in recovery mode, nor, on a node that was killed for memory, without room for them. */

import { TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { HeldRoom, MemoryRoom } from './memory-room.js';

/** Resolves to the room that the replica has until it is open. Errors: `unavailable` with the reason; it is asked again later. */
export type OpeningGate = (folder: string, config: CollectionConfig) => Promise<HeldRoom>;

/** Bytes of memory that a replica's files take when they are open. */
export type LoadedBytes = (folder: string, config: CollectionConfig) => Promise<number>;

const OPEN: HeldRoom = { release: () => {} };
const RETRY_MS = 5000;
/** Ids, marks and scratch come on top of the files. */
const OPENING_FACTOR = 1.25;

/** recoveryMode: what to tell whoever asks for a collection; null: not in recovery mode. */
export function openingGate(recoveryMode: string | null, room: MemoryRoom, loadedBytes: LoadedBytes | null): OpeningGate {
  if (recoveryMode !== null) return () => Promise.reject(new TroupeError('unavailable', recoveryMode));
  // Only who was killed for memory looks at what files will take: others have had them open before.
  if (loadedBytes === null || room.caution === 1) return () => Promise.resolve(OPEN);
  return async (folder, config) => {
    const bytes = (await loadedBytes(folder, config)) * OPENING_FACTOR;
    const held = room.holdExactly(bytes);
    if (held !== null) return held;
    const detail =
      `it is not loaded, since this node was killed for memory before: ${room.describeExactly(bytes)}. Set \`on_disk\` of its vectors, ` +
      'delete this collection or others, or give the node more memory';
    throw new TroupeError('unavailable', detail, { retryAfterMs: RETRY_MS });
  };
}
