/** Refuses writes that take memory for good when a node is short of it (Memory-M3). */

import { TAKES_ROOM, type WriteOperation } from '../../../protocols/model/update.js';
import { noRoomToGrow } from '../../../storage/memory/ledger.js';
import type { MemoryRoom } from '../../context/memory-room.js';

/** bytes: of the request. Errors: `outOfMemory`; nothing is written. */
export function checkGrowth(room: MemoryRoom, operation: WriteOperation, bytes: number): void {
  if (TAKES_ROOM[operation] && !room.takesPoints(bytes)) throw noRoomToGrow(room.writeBytesMax, room.committedBytes());
}
