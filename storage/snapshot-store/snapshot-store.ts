/**
 * Where archives of snapshots are kept, in words: a local folder (`local.ts`) or an S3-compatible store (`s3.ts`). A store knows archives as
 * files with a name and a checksum; what is in them is `storage/archive/`'s.
 *
 * - **Store-B1** What is listed is whole: an archive has its name only after all of its bytes and its checksum are kept, whatever moment the
 *   process ends at. What an interrupted `put` leaves is listed nowhere, and `sweep` removes it.
 * - **Store-B2** Nothing outside of the store's folder is read, written or removed: names are checked, folders of collections are encoded,
 *   links are not followed.
 * - **Store-B3** The snapshots of a collection stay when the collection is dropped.
 */

import type { Readable } from 'node:stream';
import { TroupeError } from '../../protocols/errors.js';
import { folderName } from '../disk/folder-name.js';

/** Which list a snapshot is in. */
export type SnapshotPlace =
  /** Of the whole storage. */
  | { readonly kind: 'full' }
  | { readonly kind: 'collection'; readonly collection: string }
  | { readonly kind: 'shard'; readonly collection: string; readonly shardId: number };

export interface SnapshotRecord {
  readonly name: string;
  /** UTC in whole seconds, without a zone: `2026-11-21T01:04:22`. */
  readonly creationTime: string;
  /** In bytes. */
  readonly size: number;
  /** SHA-256 of the archive in hexadecimal digits; null where none was kept with it. */
  readonly checksum: string | null;
}

/** Bytes of an archive, both ends inclusive; within its size. */
export interface ArchiveRange {
  readonly start: number;
  readonly end: number;
}

/** An archive that is being read. Whoever has it reads `stream` to its end or destroys it. */
export interface OpenArchive {
  /** Of the whole archive, whatever range is read. */
  readonly size: number;
  readonly stream: Readable;
}

/** An archive as a file of this machine. */
export interface LocalArchive {
  readonly path: string;
  /** Call it when the file is not needed any more: a copy is removed. */
  release(): Promise<void>;
}

/**
 * Errors of all methods: `notFound` for what is not there and for a name that no snapshot can have; `outOfDisk` when the disk is full;
 * `unavailable` when a store cannot be reached or refuses (try again, or change the settings that the message names); `storage` else. An
 * aborted `signal` rejects with its reason, and nothing of the call stays.
 */
export interface SnapshotStore {
  /** The oldest first. */
  list(place: SnapshotPlace): Promise<SnapshotRecord[]>;
  describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord>;
  /**
   * Keeps a finished archive under a new name. Takes `file` away when it succeeds; otherwise `file` stays and is the caller's to remove.
   * sha256: of the file, in hexadecimal digits. Errors: `conflict` when there is a snapshot of this name.
   */
  put(place: SnapshotPlace, name: string, file: string, sha256: string, signal: AbortSignal): Promise<SnapshotRecord>;
  /** The archive, or a range of it; null: all. The range is the caller's to check against the size (`describe`). */
  open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive>;
  /** The archive as a file to read from: the kept one itself, or a copy in `tempFolder`. */
  localFile(place: SnapshotPlace, name: string, tempFolder: string, signal: AbortSignal): Promise<LocalArchive>;
  remove(place: SnapshotPlace, name: string): Promise<void>;
  /** Removes what interrupted calls have left (Store-B1). Result: how many files or uploads. Call it before any `put`. */
  sweep(): Promise<number>;
}

export const SNAPSHOT_SUFFIX = '.snapshot';
/** In bytes; with what is added to them, names of files stay below the 255 bytes of most file systems. */
const NAME_BYTES_MAX = 200;

/** Whether a snapshot can have this name: a plain file name that ends in `.snapshot`. */
export function isSnapshotName(name: string): boolean {
  if (!name.endsWith(SNAPSHOT_SUFFIX) || name.length === SNAPSHOT_SUFFIX.length) return false;
  if (Buffer.byteLength(name) > NAME_BYTES_MAX || Buffer.from(name).toString() !== name) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
  return !name.startsWith('.') && !/[/\\\u0000-\u001f\u007f]/.test(name);
}

/** The names of folders, from the store's own downwards, that snapshots of a place are in. */
export function placeFolders(place: SnapshotPlace): string[] {
  switch (place.kind) {
    case 'full':
      return [];
    case 'collection':
      return [folderName(place.collection)];
    case 'shard':
      return [folderName(place.collection), 'shards', String(place.shardId)];
  }
}

/** `notFound` as clients know it. shownPath: of the archive, for a shard's. */
export function snapshotNotFound(place: SnapshotPlace, name: string, shownPath: string): TroupeError {
  const what = place.kind === 'shard' ? JSON.stringify(shownPath) : name;
  return new TroupeError('notFound', `Snapshot ${what} not found`);
}

/** A time of the system, in milliseconds, as snapshots show it. */
export function creationTimeOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 19);
}

/** The order of lists: the oldest first, and by name within a second. */
export function olderFirst(one: SnapshotRecord, other: SnapshotRecord): number {
  const [left, right] = [`${one.creationTime} ${one.name}`, `${other.creationTime} ${other.name}`];
  return left < right ? -1 : left > right ? 1 : 0;
}
