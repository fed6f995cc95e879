/** Makes an archive in one pass over the files. Memory: one chunk, the manifest, and a checksum for each file. */

import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import { SYNC_BYTES } from '../disk/batch-writer.js';
import { encodeChecked } from '../disk/checked-file.js';
import { checksumStream } from '../disk/checksum.js';
import { openPlainFile, readFully, syncFolderNow } from '../disk/file.js';
import { diskError, requireRoom, writeFully } from './archive-disk.js';
import { type ArchiveManifest, encodeManifestFile, packedFilesOf } from './manifest.js';
import {
  BLOCK_BYTES,
  CHECKSUMS_MEMBER,
  END_BYTES,
  MANIFEST_MEMBER,
  memberBytes,
  memberName,
  paddingAfter,
  writeHeader,
} from './members.js';
import type { ArchiveWorkOptions, PackedArchive } from './port.js';

/** A multiple of a tar's block. */
export const ARCHIVE_CHUNK_BYTES = 1 << 20;

export interface PackSource extends ArchiveWorkOptions {
  readonly manifest: ArchiveManifest;
  /** collection: its place in the manifest. */
  readonly folderOf: (collection: number, shard: ShardId) => string;
}

/** The bytes of `checksums.json`. checksums: `checksumText` of each file. */
export function encodeChecksums(checksums: readonly string[]): Uint8Array {
  return encodeChecked('checksums', checksums);
}

/** Bytes of `checksums.json` for so many files. */
export function checksumsBytes(files: number): number {
  return encodeChecksums([]).length + files * 18 + Math.max(0, files - 1);
}

export function checksumText(checksum: bigint): string {
  return checksum.toString(16).padStart(16, '0');
}

/** An archive that is about to be made. Errors: as `encodeManifestFile`. */
export class Packing {
  /** Of the whole archive. */
  readonly bytes: number;
  private readonly manifestFile: Uint8Array;
  private readonly hash = crypto().createHash('sha256');
  private readonly chunk = Buffer.allocUnsafeSlow(ARCHIVE_CHUNK_BYTES);
  private readonly modified: Date;
  /** Bytes of the chunk that are filled. */
  private used = 0;

  constructor(
    private readonly manifest: ArchiveManifest,
    private readonly folderOf: PackSource['folderOf'],
  ) {
    this.manifestFile = encodeManifestFile(manifest);
    this.modified = new Date(manifest.createdAt);
    let files = 0;
    let bytes = memberBytes(this.manifestFile.length) + END_BYTES;
    for (const { file } of packedFilesOf(manifest)) {
      files++;
      bytes += memberBytes(file.bytes);
    }
    this.bytes = bytes + memberBytes(checksumsBytes(files));
  }

  /**
   * The archive in chunks of 1 MB, the last one smaller. A chunk holds until the next one is asked for. Errors: `DamagedFile` if a file is missing or
   * has fewer bytes than the manifest says.
   */
  *chunks(): Generator<Uint8Array, PackedArchive> {
    yield* this.member(MANIFEST_MEMBER, this.manifestFile);
    const checksums: string[] = [];
    for (const { collection, file, position, shard } of packedFilesOf(this.manifest)) {
      if (this.used === this.chunk.length) yield this.full();
      this.header(memberName(collection, shard, position, file), file.bytes);
      checksums.push(yield* this.file(path.join(this.folderOf(collection, shard), ...file.path.split('/')), file.bytes));
    }
    yield* this.member(CHECKSUMS_MEMBER, encodeChecksums(checksums));
    yield* this.put(Buffer.alloc(END_BYTES));
    if (this.used > 0) yield this.full();
    return { bytes: this.bytes, sha256: this.hash.digest('hex') };
  }

  private *member(name: string, bytes: Uint8Array): Generator<Uint8Array, void> {
    if (this.used === this.chunk.length) yield this.full();
    this.header(name, bytes.length);
    yield* this.put(bytes);
    yield* this.put(Buffer.alloc(paddingAfter(bytes.length)));
  }

  private *file(name: string, bytes: number): Generator<Uint8Array, string> {
    const checksum = checksumStream();
    const fd = openPlainFile(name);
    try {
      for (let at = 0; at < bytes; ) {
        if (this.used === this.chunk.length) yield this.full();
        const part = this.chunk.subarray(this.used, this.used + Math.min(bytes - at, this.chunk.length - this.used));
        readFully(fd, part, at, name);
        checksum.update(part);
        this.used += part.length;
        at += part.length;
      }
    } finally {
      fs.closeSync(fd);
    }
    yield* this.put(Buffer.alloc(paddingAfter(bytes)));
    return checksumText(checksum.digest());
  }

  /** All that is written is in whole blocks, so a header finds its block in the chunk or none of it. */
  private header(name: string, bytes: number): void {
    writeHeader(this.chunk, this.used, name, bytes, this.modified);
    this.used += BLOCK_BYTES;
  }

  private *put(bytes: Uint8Array): Generator<Uint8Array, void> {
    for (let at = 0; at < bytes.length; ) {
      if (this.used === this.chunk.length) yield this.full();
      const part = bytes.subarray(at, at + this.chunk.length - this.used);
      this.chunk.set(part, this.used);
      this.used += part.length;
      at += part.length;
    }
  }

  private full(): Uint8Array {
    const filled = this.chunk.subarray(0, this.used);
    this.hash.update(filled);
    this.used = 0;
    return filled;
  }
}

/** Makes the chunks of an archive and gives each to `write`. Errors: as `packArchive`. */
export async function packChunks(
  packing: Packing,
  { onProgress, signal }: ArchiveWorkOptions,
  write: (chunk: Uint8Array) => void | Promise<void>,
): Promise<PackedArchive> {
  const chunks = packing.chunks();
  let done = 0;
  try {
    for (;;) {
      throwIfCancelled(signal);
      const next = chunks.next();
      if (next.done) return next.value;
      await write(next.value);
      done += next.value.length;
      onProgress?.(done, packing.bytes);
      // Messages of the thread have their turn.
      await setImmediate();
    }
  } finally {
    // Closes the file that was being read.
    chunks.return({ bytes: 0, sha256: '' });
  }
}

/**
 * Makes an archive and gives it to `write` in chunks, each of which holds until `write` has resolved. Errors: as `ArchivePort.pack`, and what
 * `write` throws.
 */
export async function packArchive(source: PackSource, write: (chunk: Uint8Array) => void | Promise<void>): Promise<PackedArchive> {
  const packing = new Packing(source.manifest, source.folderOf);
  return packChunks(packing, source, write);
}

/** Makes an archive as a new file, on disk when it resolves; on an error the file is not there. Errors: as `ArchivePort.pack`. */
export async function packToFile(source: PackSource, file: string, freeBytesMin: number): Promise<PackedArchive> {
  const packing = new Packing(source.manifest, source.folderOf);
  const requireNextRoom = (bytes: number): void =>
    requireRoom(path.dirname(file), bytes, freeBytesMin, `the snapshot ${path.basename(file)} cannot be made`);
  requireNextRoom(packing.bytes);
  let fd: number | null = null;
  try {
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
    fd = fs.openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
    const target = fd;
    let unsynced = 0;
    const packed = await packChunks(packing, source, (chunk) => {
      writeFully(target, chunk);
      unsynced += chunk.length;
      if (unsynced < SYNC_BYTES) return;
      unsynced = 0;
      fs.fdatasyncSync(target);
      requireNextRoom(0);
    });
    fs.fsyncSync(fd);
    syncFolderNow(path.dirname(file));
    return packed;
  } catch (error) {
    if (fd !== null) fs.rmSync(file, { force: true });
    throw diskError(error, `cannot write the archive ${file}`);
  } finally {
    if (fd !== null) fs.closeSync(fd);
  }
}

/** Errors: `unavailable` if a work was cancelled. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledWork();
}

export function cancelledWork(): TroupeError {
  return new TroupeError('unavailable', 'the work on the archive was cancelled', { outcome: 'none' });
}
