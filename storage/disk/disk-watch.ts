/** The disk of a storage folder as it runs: how much is free, the reserve, and what is refused (`disk-room.ts` decides). */

import { closeSync, fsyncSync, mkdirSync, openSync, readSync, renameSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import { copyMarks, type DiskFigures, type DiskMarks, diskMarks, hasRoomFor, isFull, reserveMove } from './disk-room.js';

export interface DiskReport extends DiskFigures, DiskMarks {
  /** Size of the reserve that is held now, 0 if it is given up or there is none. */
  readonly heldBytes: number;
  /** Whether writes that need room are refused now. */
  readonly isLow: boolean;
  /** Writes that were refused since the start. */
  readonly refused: number;
}

/** What a node asks before a write that needs room. */
export interface DiskRoom {
  /** Errors: `outOfDisk`; nothing has been done. bytes: of the write. */
  require(bytes: number): void;
}

/** What a node asks before it takes a copy from another one (Disk-D3). */
export interface CopyDisk {
  /** Why so many bytes have no room; null: they have. */
  refuseCopy(bytes: number): TroupeError | null;
  /** Whether it counts as full (Disk-D4). */
  readonly isFull: boolean;
}

export type DiskNews = 'low' | 'enough' | 'given up' | 'held';

const RESERVE_FILE = '.reserve';
const WATCH_EVERY_MS = 1000;
/** A figure of this age is taken for a decision; the system is asked in some microseconds. */
const FIGURE_AGE_MS = 20;
const RETRY_MS = 10_000;
const MEBIBYTE = 1 << 20;

export class DiskWatch implements DiskRoom, CopyDisk {
  readonly marks: DiskMarks;
  private readonly reserve: string;
  private timer: NodeJS.Timeout | null = null;
  private figures: DiskFigures;
  private heldBytes = 0;
  private readMs = 0;
  /** Bytes of writes that began after the figures were read. */
  private begunBytes = 0;
  private refused = 0;
  private full = false;

  /** folder: exists. onNews: told of each change. */
  constructor(
    private readonly folder: string,
    settings: { readonly freeMegabytes: number | null; readonly reserveMegabytes: number },
    private readonly onNews: (news: DiskNews, report: DiskReport) => void,
  ) {
    this.reserve = reserveOf(folder);
    this.figures = figuresOf(folder);
    this.marks = diskMarks(this.figures.totalBytes, settings.freeMegabytes, settings.reserveMegabytes);
  }

  /** Looks again and again from now on. A disk that is not nearly full gets its reserve with the first look, beside the start. */
  start(): void {
    this.timer = setInterval(() => this.look(), WATCH_EVERY_MS);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  require(bytes: number): void {
    const refusal = this.refuse(bytes, this.marks);
    if (refusal !== null) throw refusal;
  }

  refuseCopy(bytes: number): TroupeError | null {
    return this.refuse(bytes, copyMarks(this.marks));
  }

  private refuse(bytes: number, marks: DiskMarks): TroupeError | null {
    if (performance.now() - this.readMs > FIGURE_AGE_MS) this.read();
    if (hasRoomFor(marks, this.figures.freeBytes - this.begunBytes, this.heldBytes, bytes)) {
      this.begunBytes += bytes;
      return null;
    }
    this.refused++;
    this.tellFull(true);
    const { freeBytes } = this.figures;
    const detail =
      `${megabytes(freeBytes)} are free on the disk of ${this.folder}, and ${megabytes(marks.freeBytesMin)} stay free ` +
      '(`storage.disk_free_min_mb`): delete points or collections, or give the disk more room; reads and deletions go on';
    return new TroupeError('outOfDisk', detail, { retryAfterMs: RETRY_MS, outcome: 'none' });
  }

  report(): DiskReport {
    this.read();
    const { figures, heldBytes, marks, refused } = this;
    return { ...figures, ...marks, heldBytes, isLow: !hasRoomFor(marks, figures.freeBytes, heldBytes, 0), refused };
  }

  get isFull(): boolean {
    return this.full;
  }

  private look(): void {
    const report = this.report();
    this.tellFull(isFull(this.marks, report.freeBytes, report.heldBytes, this.full));
    const move = reserveMove(this.marks, report.freeBytes, report.heldBytes);
    if (move === null) return;
    const isDone = move === 'giveUp' ? removed(this.reserve) : made(this.reserve, this.marks.reserveBytes);
    if (isDone) this.onNews(move === 'giveUp' ? 'given up' : 'held', this.report());
  }

  private tellFull(full: boolean): void {
    if (full === this.full) return;
    this.full = full;
    this.onNews(full ? 'low' : 'enough', this.report());
  }

  /** A disk that does not say how much is free is taken to have as much as before: who writes is told what is wrong with it. */
  private read(): void {
    try {
      this.figures = figuresOf(this.folder);
      this.heldBytes = sizeOf(this.reserve);
    } catch {}
    this.readMs = performance.now();
    this.begunBytes = 0;
  }
}

/** Before a start: gives the reserve up if the disk is full, since locking the folder and opening collections need some room. Makes the folder. */
export function freeForStart(folder: string, reserveMegabytes: number): void {
  mkdirSync(folder, { recursive: true });
  const marks: DiskMarks = { freeBytesMin: 0, reserveBytes: reserveMegabytes * MEBIBYTE };
  const held = sizeOf(reserveOf(folder));
  if (reserveMove(marks, figuresOf(folder).freeBytes, held) === 'giveUp') removed(reserveOf(folder));
}

function reserveOf(folder: string): string {
  return join(folder, RESERVE_FILE);
}

/** Some file systems (of networks, of user space) have no figures, and say 0 blocks: nothing is refused there. */
/** The marks of the disk that a folder is on, as `DiskWatch` has them. */
export function marksOfFolder(folder: string, freeMegabytes: number | null, reserveMegabytes: number): DiskMarks {
  return diskMarks(figuresOf(folder).totalBytes, freeMegabytes, reserveMegabytes);
}

function figuresOf(folder: string): DiskFigures {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return { totalBytes: blocks * bsize, freeBytes: blocks === 0 ? Number.MAX_SAFE_INTEGER : bavail * bsize };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function removed(file: string): boolean {
  try {
    rmSync(file, { force: true });
    return true;
  } catch {
    return false;
  }
}

/** Random bytes, which no file system makes smaller. A reserve that cannot be made leaves nothing behind. */
function made(file: string, bytes: number): boolean {
  const draft = `${file}.new`;
  try {
    const descriptor = openSync(draft, 'w');
    try {
      const part = randomPart();
      for (let at = 0; at < bytes; at += part.length) writeSync(descriptor, part, 0, Math.min(part.length, bytes - at));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
    return true;
  } catch {
    rmSync(draft, { force: true });
    return false;
  }
}

const RANDOM_DEVICE = '/dev/urandom';

/**
 * Of the system: a loop that makes them has V8 load its optimizing compiler, and `node:crypto` loads OpenSSL; an idle process keeps some 6 MB
 * of either.
 */
function randomPart(): Uint8Array {
  const part = new Uint8Array(MEBIBYTE);
  try {
    const descriptor = openSync(RANDOM_DEVICE, 'r');
    try {
      for (let at = 0; at < part.length; ) at += readSync(descriptor, part, at, part.length - at, null);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Another system.
    crypto().randomFillSync(part);
  }
  return part;
}

function megabytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(bytes < 100 * MEBIBYTE ? 1 : 0)} MB`;
}
