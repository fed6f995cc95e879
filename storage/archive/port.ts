/** What the archive's thread does for others: makes archives, reads them, and hashes files. `ArchiveThread` is the one that runs. */

import type { CollectionParams } from '../../protocols/model/collection.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { ArchiveBase, ArchiveManifest } from './manifest.js';

export interface PackOrder {
  readonly manifest: ArchiveManifest;
  /** The folder of each shard: `folders[collection][shard]`, in the order of the manifest. The files may grow, and may not change otherwise. */
  readonly folders: readonly (readonly string[])[];
  /** Bytes of the disk that must stay free, where the archive is a file; default 0. */
  readonly freeBytesMin?: number;
  /** Files that this archive has as well are left out (Archive-T5); only for `pack`. Without it the archive has all. */
  readonly base?: BaseFile;
}

/** An archive that another one needs, as a file of this machine. */
export interface BaseFile extends ArchiveBase {
  readonly file: string;
}

export interface PackedArchive {
  /** Of the whole archive. */
  readonly bytes: number;
  /** Of the whole archive, in hex. */
  readonly sha256: string;
}

export interface PackedStream {
  /** Of the whole archive, known before it is made. */
  readonly bytes: number;
  /**
   * The archive in chunks of 1 MB at most, made as they are taken. Whoever takes them may keep them, and takes all or ends the iteration: until then
   * the files are open. Errors: as `ArchivePort.pack`.
   */
  readonly chunks: AsyncIterableIterator<Uint8Array>;
}

export interface UnpackLimits {
  /** Bytes of all files together. */
  readonly bytesMax: number;
  /** Bytes of the disk that must stay free. */
  readonly freeBytesMin: number;
  /** Files of all shards; default 1,000,000. */
  readonly filesMax?: number;
  /** Bytes of the manifest; default 64 MB. */
  readonly manifestBytesMax?: number;
}

export interface UnpackOrder {
  readonly file: string;
  /** Is made, in a folder that is there, and has the files afterwards: the shard's folder is `unpackedShard(folder, collection, shardId)`. */
  readonly folder: string;
  readonly limits: UnpackLimits;
  /** SHA-256 in hex that the archive must have; null for any. */
  readonly expectedSha256: string | null;
  /** Its base, the base of that, and so on. */
  readonly bases?: readonly BaseFile[];
}

export interface UnpackedArchive extends PackedArchive {
  readonly manifest: ArchiveManifest;
}

export interface ArchiveWorkOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told now and then, and at the end. total: bytes that the work goes through. */
  readonly onProgress?: ((doneBytes: number, totalBytes: number) => void) | undefined;
}

/**
 * All methods: Errors: `unavailable` when it was cancelled by the signal, or when the thread has ended meanwhile (it may be tried again); `storage`
 * for what the disk refuses. What was begun is removed then.
 */
export interface ArchivePort {
  /**
   * Makes an archive as a new file, on disk when it resolves. Errors: `storage` of reason `damaged` if a file has fewer bytes than the manifest
   * says; `internal` for a manifest that could not be read again; `ArchiveError` `tooLarge`; `outOfDisk` before anything is written.
   */
  pack(order: PackOrder, file: string, options?: ArchiveWorkOptions): Promise<PackedArchive>;
  /** Makes an archive while it is taken. Errors: as `pack`; `busy` while too many are being taken. */
  packStream(order: PackOrder, options?: ArchiveWorkOptions): Promise<PackedStream>;
  /**
   * Unpacks an archive into a new folder, on disk when it resolves. Errors: `ArchiveError`; `outOfDisk` before anything is written. The folder is
   * not there then.
   */
  unpack(order: UnpackOrder, options?: ArchiveWorkOptions): Promise<UnpackedArchive>;
  /** The manifest of an archive; nothing behind it is looked at. Errors: `ArchiveError`. */
  manifestOf(file: string, options?: ArchiveWorkOptions): Promise<ArchiveManifest>;
  /** Size and SHA-256 of any file. */
  hash(file: string, options?: ArchiveWorkOptions): Promise<PackedArchive>;
  /** See `beginLogAfter` in `begin-log.ts`. */
  beginLogAfter(folder: string, at: LogTag, timeMs: number): Promise<void>;
  /** See `addToLog` in `add-to-log.ts`. Each operation is the only content of its memory, and is given away. */
  addToLog(folder: string, entries: readonly ShardEntry[], params: CollectionParams): Promise<void>;
  /** Ends the thread; works that are under way fail with `unavailable`. */
  close(): Promise<void>;
}
