/**
 * Build-B1. Large originals of a build's sources as pages of a file while the build works: they stay readable where they are, and take
 * memory only as far as they are read. Without this a build has all originals in memory twice, in its sources and in what it makes.
 *
 * The file has no name any more when it takes their place, so nothing of it stays behind a process that ends. Rows of a source never change
 * (View-V2), and those that it may take after a build that was given up lie behind the pages.
 */

import fs from 'node:fs';
import path from 'node:path';
import { freeBytes } from '../disk/machine.js';
import type { FilePages, FilePart } from '../memory/system-calls.js';
import type { SegmentHandle } from '../segment/handle.js';
import { LARGE_ORIGINALS_BYTES, wholePages } from '../segment/layout.js';
import { mayLeaveMemory } from '../segment/mapped-originals.js';
import type { BuildJob } from '../threads/messages.js';
import type { BuildControl } from './control.js';

/** Written between two checks whether the build goes on. */
const PART_BYTES = 1 << 22;
/**
 * The disk keeps so much beside the file and what the build makes (at most twice as much): the most that writes are refused for by default
 * (Disk-D1).
 */
const SPARE_BYTES = 512 << 20;
/** What searches have read of the sources meanwhile is let go of so often. */
const LET_GO_MS = 1000;

/** Those of one build. */
export class SourcePages {
  private begun = false;
  private leftMs = 0;
  private readonly parts: FilePart[] = [];

  constructor(
    private readonly job: BuildJob,
    private readonly control: BuildControl,
  ) {}

  /**
   * Puts the originals of all sources to disk, where they may be, by way of a file in `folder`. What the disk refuses stays in memory.
   * Called once or again. Errors: `BuildCancelled`.
   */
  async put(folder: string): Promise<void> {
    const { pages } = this.control;
    if (pages === undefined || this.begun) return;
    this.begun = true;
    const parts = partsOf(this.job, this.control.onCallBytesMin ?? LARGE_ORIGINALS_BYTES);
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    const free = bytes === 0 ? null : freeBytes(folder);
    if (free === null || free < 3 * bytes + SPARE_BYTES) return;
    for (const part of parts) {
      if (!(await this.putPart(path.join(folder, 'sources'), part, pages))) return;
      this.parts.push(part);
    }
  }

  /** Lets go of what was read. */
  letGo(): void {
    for (const part of this.parts) this.control.pages?.letGo(part);
    this.leftMs = this.control.now();
  }

  /** The same, now and then: called often. */
  maybeLetGo(): void {
    if (this.control.now() - this.leftMs >= LET_GO_MS) this.letGo();
  }

  /** Returns whether it did. */
  private async putPart(file: string, part: FilePart, pages: FilePages): Promise<boolean> {
    let descriptor: number | null = null;
    try {
      descriptor = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_NOFOLLOW, 0o600);
      fs.unlinkSync(file);
      for (let at = 0; at < part.bytes; at += PART_BYTES) {
        await this.control.checkpoint();
        writeAll(descriptor, new Uint8Array(part.buffer, part.offset + at, Math.min(PART_BYTES, part.bytes - at)), at);
      }
      // A page that the system could not write later would be lost, and these are what searches read.
      fs.fdatasyncSync(descriptor);
      return pages.put(part, descriptor, 0);
    } catch (error) {
      // A full disk is told of by what the build writes next.
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      return false;
    } finally {
      if (descriptor !== null) fs.closeSync(descriptor);
    }
  }
}

/** Whole pages of large originals of sources that take rows, unless somebody wants them in memory. Sealed ones have a file of their own. */
function partsOf({ rows, sources, spec }: BuildJob, bytesMin: number): FilePart[] {
  return sources.flatMap((source, n) => {
    if (source.kind !== 'appendable' || source.common !== undefined) return [];
    return source.layout.vectors.flatMap(({ kind, name, offset, stride }) => {
      const bytes = (rows[n] as number) * stride;
      if (kind !== 'dense' || offset === null || bytes < bytesMin || !mayLeaveMemory(name, spec.config)) return [];
      return partOf(source, offset, bytes);
    });
  });
}

function partOf({ memory: { buffer } }: SegmentHandle, offset: number, bytes: number): FilePart[] {
  const pages = wholePages(offset, bytes);
  return pages === null ? [] : [{ buffer, ...pages }];
}

function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}
