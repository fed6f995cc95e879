/**
 * What must hold before LMDB opens an environment (Room-R1). When opening fails in native code, lmdb frees what it never made, and the process ends;
 * so whatever can fail there is tried before: the meta pages, descriptors, addresses, room on the disk.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { unreadableMeta } from './lmdb-meta.js';
import { codeOf, freeBytes, lacking, requireAddresses, requireDescriptors, requireDiskRoom } from './machine.js';

/** Of the lock file: `MDB_txninfo` without its first reader, and a reader. Source: files of lmdb 3.5. */
const LOCK_HEAD_BYTES = 208;
const LOCK_READER_BYTES = 64;
/** LMDB's own number of readers, and what each thread may have. A thread that was terminated gives its places back a little later. */
const READERS_MIN = 126;
const READERS_PER_THREAD = 4;

/** Address space of a new environment; LMDB maps its file anew when that is not enough (`MapRoom`). */
export const MAP_BYTES_MIN = 256 * 2 ** 20;
/** The first pages of a new file with all its databases, and room for what other threads write meanwhile. */
const NEW_FILE_BYTES = 256 * 2 ** 10;

export interface OpeningPlan {
  readonly mapBytes: number;
  readonly maxReaders: number;
}

/**
 * Checks that the environment can be opened, or made where `isWriter`. threads: that may read it; null for a reader, which takes the number
 * that it finds. Errors: `storage`, of outcome `none` for what is lacking, else with the damage.
 */
export function prepareOpening(folder: string, threads: number | null): OpeningPlan {
  const data = path.join(folder, 'data.mdb');
  const doing = `cannot open ${data}`;
  const fileBytes = fs.statSync(data, { throwIfNoEntry: false })?.size ?? 0;
  if (threads === null && fileBytes === 0) throw new TroupeError('storage', `${data} is missing or empty`);
  const mapBytes = mapBytesFor(fileBytes);
  requireDescriptors(folder, doing);
  if (fileBytes > 0) {
    const damage = unreadableMeta(data, mapBytes);
    if (damage !== null) throw new TroupeError('storage', `${data}: ${damage}`);
  }
  requireAddresses(mapBytes, doing);
  const maxReaders = readersFor(threads ?? 0);
  const lockBytes = LOCK_HEAD_BYTES + LOCK_READER_BYTES * maxReaders;
  if (fileBytes === 0) requireDiskRoom(folder, NEW_FILE_BYTES + lockBytes, doing);
  fillLockFile(path.join(folder, 'lock.mdb'), lockBytes, threads !== null);
  return { mapBytes, maxReaders };
}

/** Number of readers that an environment is laid out for. threads: that may read it. */
function readersFor(threads: number): number {
  return Math.max(READERS_MIN, READERS_PER_THREAD * threads);
}

/** Address space for a file of so many bytes: it can double before it is mapped anew. */
function mapBytesFor(fileBytes: number): number {
  return Math.max(MAP_BYTES_MIN, 2 ** Math.ceil(Math.log2(2 * Math.max(1, fileBytes))));
}

/**
 * Gives the lock file its bytes. LMDB makes it with a hole and maps it: a full disk would end the process that writes there. isWriter: no
 * other thread has the environment open, so holes that an earlier release left can be filled.
 */
function fillLockFile(file: string, bytes: number, isWriter: boolean): void {
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  const isWhole = stat !== undefined && stat.size >= bytes && stat.blocks * 512 >= stat.size;
  if (isWhole || (stat !== undefined && !isWriter)) return;
  try {
    const content = Buffer.alloc(Math.max(bytes, stat?.size ?? 0));
    const descriptor = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o664);
    try {
      fs.readSync(descriptor, content, 0, content.length, 0);
      for (let done = 0; done < content.length; ) done += fs.writeSync(descriptor, content, done, content.length - done, done);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    throw lacking(`${file}: cannot be written (${codeOf(error)}); make room on the disk`, error);
  }
}

/** What LMDB says of the map of an environment. */
export interface MapState {
  readonly mapSize: number;
  readonly lastPageNumber: number;
  /** Number of the newest commit. */
  readonly lastTxnId: number;
}

const PAGE_BYTES = 4096;
/** New pages that a change may take besides those of its value: those of the way to it, and of the list of free pages. */
const PAGES_PER_CHANGE = 4;
const SPARE_PAGES = 1024;
/** Addresses that are free before a file is mapped anew: enough for what other threads take until then. */
const GROWTH_SPARE_BYTES = 16 * 2 ** 30;

/**
 * Whether the map of an environment can grow. LMDB does not look whether mapping its file anew worked, and the next read of a map that is
 * not there ends the process. So a transaction that may outgrow the map first looks whether there are addresses for the next one.
 */
export class MapRoom {
  private pagesLeft = 0;
  private mapBytes = 0;

  /** doing: for errors, «cannot …». */
  constructor(private readonly doing: string) {}

  /** A write transaction has begun. */
  begin({ lastPageNumber, mapSize }: Pick<MapState, 'lastPageNumber' | 'mapSize'>): void {
    this.mapBytes = mapSize;
    this.pagesLeft = Math.floor(mapSize / PAGE_BYTES) - lastPageNumber - 1;
  }

  /** A change with so many bytes of value comes. Errors: `storage` of outcome `none` if its pages might have no place. */
  take(bytes: number): void {
    this.pagesLeft -= PAGES_PER_CHANGE + Math.ceil(bytes / PAGE_BYTES);
    if (this.pagesLeft >= SPARE_PAGES) return;
    // LMDB doubles what it needs, which may be somewhat more than the map.
    const grown = 3 * this.mapBytes;
    requireAddresses(grown, this.doing, GROWTH_SPARE_BYTES);
    this.pagesLeft += Math.floor(this.mapBytes / PAGE_BYTES);
    this.mapBytes *= 2;
  }
}

/** A transaction asks for so many bytes at least, so that a small one looks once. */
const LOOK_BYTES_MIN = 256 * 2 ** 10;
/** Pages that a new value may take besides its own: the leaf that it comes into, and another one where that is split. */
const PAGES_PER_VALUE = 2;

/**
 * Whether the disk has room for what a transaction changes (Room-R8). Another program may have filled it since requests were let in; and where
 * LMDB cannot write a page, it writes its message about it past the end of its memory, which can end the process. A transaction needs a copy of
 * each page that it changes, and pages for its values; pages that are free in the file are taken first.
 */
export class WriteRoom {
  private wanted = 0;
  private fileBytes = 0;
  private valueBytes = 0;
  /** There was room for so many bytes when the transaction looked. */
  private seenBytes = 0;

  /**
   * doing: for errors, «cannot …». reusable: bytes of pages that are free in the file. free: bytes that are free on the disk of the folder; null
   * if that is not known.
   */
  constructor(
    private readonly folder: string,
    private readonly doing: string,
    private readonly reusable: () => number,
    private readonly free: (folder: string) => number | null = freeBytes,
  ) {}

  /** A write transaction has begun. */
  begin({ lastPageNumber }: Pick<MapState, 'lastPageNumber'>): void {
    this.wanted = 0;
    this.valueBytes = 0;
    this.seenBytes = 0;
    this.fileBytes = (lastPageNumber + 1) * PAGE_BYTES;
  }

  /** A value of so many bytes comes. Errors: `storage` of outcome `none` if its pages might have no place. */
  put(bytes: number): void {
    this.wanted += PAGES_PER_VALUE * PAGE_BYTES;
    this.valueBytes += bytes;
    this.look();
  }

  /** A record goes. Errors: as `put`. */
  remove(): void {
    this.wanted += PAGE_BYTES;
    this.look();
  }

  private look(): void {
    const most = Math.min(this.wanted, this.fileBytes) + 2 * this.valueBytes;
    if (most <= this.seenBytes) return;
    const wanted = Math.max(LOOK_BYTES_MIN, most);
    const free = this.free(this.folder) ?? Number.POSITIVE_INFINITY;
    this.seenBytes = free >= wanted ? free : free + this.reusable();
    if (this.seenBytes < wanted)
      throw lacking(`${this.doing}: up to ${wanted} bytes more are needed, and ${free} are free; make room on the disk`);
  }
}
