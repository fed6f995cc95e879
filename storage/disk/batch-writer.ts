/** Writes a stream of small parts to a file in batches, one of which is under way while the next one gathers. */

import type { FileHandle } from 'node:fs/promises';

/** A call per part would cost more than the part: connections bring 64 kB at a time. */
const BATCH_BYTES = 1 << 20;
/**
 * After so many bytes the disk is waited for. It is never far behind then: who commits meanwhile would wait for all that it has not written yet. With
 * 4 MB a commit beside waits half as long as with 32, and the large file takes no longer.
 */
export const SYNC_BYTES = 4 << 20;

export class BatchWriter {
  private parts: Uint8Array[] = [];
  private gathered = 0;
  private unsynced = 0;
  private writing: Promise<void> = Promise.resolve();

  /** handle: is closed by the caller, after `end` or `settled`. */
  constructor(private readonly handle: FileHandle) {}

  /** Bytes that were given and may not be in the file yet are no more than this. */
  static readonly heldBytesMax = 2 * BATCH_BYTES;

  /** Takes bytes, which stay as they are. Null: more can be given at once; else when it resolves. Errors: the system's, also of earlier bytes. */
  add(part: Uint8Array): Promise<void> | null {
    this.parts.push(part);
    this.gathered += part.length;
    return this.gathered < BATCH_BYTES ? null : this.begin();
  }

  /** Resolves when all is written; not when it is on disk. Errors: the system's. */
  async end(): Promise<void> {
    await this.begin();
    await this.writing;
  }

  /** Resolves when nothing is under way, whatever has become of it. */
  settled(): Promise<void> {
    return this.writing.catch(() => {});
  }

  /** Begins with what has gathered, when the batch before is written. */
  private async begin(): Promise<void> {
    await this.writing;
    const { gathered, parts } = this;
    this.parts = [];
    this.gathered = 0;
    this.writing = this.write(parts, gathered);
    // Whoever comes next is told.
    this.writing.catch(() => {});
  }

  private async write(parts: readonly Uint8Array[], bytes: number): Promise<void> {
    if (bytes > 0) await this.writeFully(parts, bytes);
    this.unsynced += bytes;
    if (this.unsynced < SYNC_BYTES) return;
    this.unsynced = 0;
    await this.handle.datasync();
  }

  private async writeFully(parts: readonly Uint8Array[], bytes: number): Promise<void> {
    const { bytesWritten } = await this.handle.writev(parts);
    if (bytesWritten === bytes) return;
    // A full disk takes a part; the call that goes on says so.
    const rest = Buffer.concat(parts).subarray(bytesWritten);
    for (let done = 0; done < rest.length; ) done += (await this.handle.write(rest, done)).bytesWritten;
  }
}
