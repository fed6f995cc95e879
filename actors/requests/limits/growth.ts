/** Refuses writes that take memory for good when a node is short of it (Memory-M3). */

import { noRoomToGrow } from '../../../storage/memory/ledger.js';
import type { WriteOperation } from '../../../storage/threads/messages.js';
import type { MemoryRoom } from '../../context/memory-room.js';

/** Whether an operation may take memory. Those that take points or values away go on, since they are what helps. */
const GROWS: Readonly<Record<WriteOperation, boolean>> = {
  upsertPoints: true,
  updateVectors: true,
  setPayload: true,
  overwritePayload: true,
  batchUpdate: true,
  createFieldIndex: true,
  deletePoints: false,
  deleteVectors: false,
  deletePayload: false,
  clearPayload: false,
  deleteFieldIndex: false,
};

/** bytes: of the request. Errors: `outOfMemory`; nothing is written. */
export function checkGrowth(room: MemoryRoom, operation: WriteOperation, bytes: number): void {
  if (GROWS[operation] && !room.takesPoints(bytes)) throw noRoomToGrow(room.writeBytesMax, room.committedBytes());
}
