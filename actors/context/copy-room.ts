/** Refuses copies of other replicas that this node has no room for (Disk-D3, Memory-M3). */

import type { TroupeError } from '../../protocols/errors.js';
import { takesRoom } from '../../storage/disk/disk-room.js';
import type { CopyDisk } from '../../storage/disk/disk-watch.js';
import { noRoomToGrow } from '../../storage/memory/ledger.js';
import type { MemoryRoom } from './memory-room.js';

type Growth = Pick<MemoryRoom, 'committedBytes' | 'copyBytesMax'>;

export class CopyRoom {
  /** disk: null for a node that looks at no disk. */
  constructor(
    private readonly disk: Pick<CopyDisk, 'refuseCopy'> | null,
    private readonly memory: Growth,
  ) {}

  /** Errors: `outOfDisk`, `outOfMemory`; nothing is done. bytes: of points or files. */
  require(bytes: number): void {
    const refusal = this.refuse(bytes);
    if (refusal !== null) throw refusal;
  }

  /** As `require`, of bytes that stay on the disk: an archive takes no memory. Errors: `outOfDisk`. */
  requireOnDisk(bytes: number): void {
    const refusal = this.disk?.refuseCopy(bytes) ?? null;
    if (refusal !== null) throw refusal;
  }

  /** As `require`, of entries of a log: what only removes something is taken. */
  requireForEntries(entries: readonly { readonly operation: Uint8Array }[]): void {
    const bytes = entries.reduce((sum, { operation }) => sum + operation.length, 0);
    if (bytes === 0) return;
    const refusal = this.refuse(bytes);
    if (refusal !== null && takesRoom(entries.map(({ operation }) => operation))) throw refusal;
  }

  private refuse(bytes: number): TroupeError | null {
    const { copyBytesMax } = this.memory;
    const committed = this.memory.committedBytes();
    if (committed + bytes > copyBytesMax) return noRoomToGrow(copyBytesMax, committed);
    return this.disk?.refuseCopy(bytes) ?? null;
  }
}
