/**
 * Unpacks an archive into a new folder, which is on disk at the end or not there. The names of the files come from the manifest, whose paths are
 * checked one by one; the members have to follow it (`read-archive.ts`).
 */

import fs from 'node:fs';
import path from 'node:path';
import type { ShardId } from '../../protocols/model/cluster.js';
import { SYNC_BYTES } from '../disk/batch-writer.js';
import { syncFolderNow } from '../disk/file.js';
import { diskError, requireRoom, writeFully } from './archive-disk.js';
import { ArchiveError } from './archive-error.js';
import { type ArchiveFile, type ArchiveManifest, filesOf, MANIFEST_LIMITS, withoutBase } from './manifest.js';
import { unpackedShard } from './members.js';
import type { ArchiveWorkOptions, UnpackedArchive, UnpackLimits, UnpackOrder } from './port.js';
import { type ArchiveSource, type ArchiveVisitor, fileSource, hashFile, readArchive, streamSource } from './read-archive.js';
import { readBases, requireBase } from './read-base.js';

export interface UnpackRequest extends Omit<UnpackOrder, 'file'>, ArchiveWorkOptions {
  /** The path of a file, or the bytes as they come. */
  readonly from: string | AsyncIterable<Uint8Array>;
}

/** What a small file takes of the disk besides its bytes, at most: its last block, and its place in the folder. */
const FILE_OVERHEAD_BYTES = 4096 + 512;

/** Errors: as `ArchivePort.unpack`. */
export async function unpackArchive(request: UnpackRequest): Promise<UnpackedArchive> {
  const { bases, expectedSha256, folder, from, limits, onProgress, signal } = request;
  const source = typeof from === 'string' ? fileSource(from) : streamSource(from);
  try {
    return await unpackSource(source, { bases: bases ?? [], expectedSha256, folder: path.resolve(folder), limits }, { onProgress, signal });
  } catch (error) {
    // Whoever knows the checksum is told first that this is another file, whatever else is wrong with it.
    if (!(error instanceof ArchiveError) || error.problem === 'wrongSha256' || expectedSha256 === null || typeof from !== 'string')
      throw error;
    const { sha256 } = await hashFile(from, { signal });
    throw isSameSha256(expectedSha256, sha256) ? error : wrongSha256(expectedSha256, sha256, error);
  } finally {
    await source.close();
  }
}

async function unpackSource(
  source: ArchiveSource,
  { bases = [], expectedSha256, folder, limits }: Omit<UnpackOrder, 'file'>,
  options: ArchiveWorkOptions,
): Promise<UnpackedArchive> {
  const files = new NewFiles(folder, limits.freeBytesMin);
  try {
    const beginFile = (collection: number, shard: ShardId, file: ArchiveFile): void =>
      files.begin(path.join(unpackedShard(folder, collection, shard), ...file.path.split('/')));
    const visitor: ArchiveVisitor = {
      begin(manifest) {
        requireBase(manifest, bases[0]);
        requireSpace(manifest, folder, limits);
        files.makeRoot();
        for (const [collection, { shards }] of manifest.collections.entries())
          for (const { id } of shards) files.makeFolder(unpackedShard(folder, collection, id));
      },
      beginFile,
      bytes: (part) => files.write(part),
      endFile: () => files.end(),
      endShard() {},
      damaged(error) {
        throw error;
      },
    };
    const manifestLimits = { ...MANIFEST_LIMITS, ...withoutUndefined(limits) };
    const unpacked = await readArchive(source, manifestLimits, visitor, options);
    if (expectedSha256 !== null && !isSameSha256(expectedSha256, unpacked.sha256)) throw wrongSha256(expectedSha256, unpacked.sha256);
    const taker = { begin: beginFile, bytes: (part: Uint8Array) => files.write(part), end: () => files.end() };
    await readBases(unpacked.manifest, bases, taker, { signal: options.signal });
    files.sync();
    return { ...unpacked, manifest: withoutBase(unpacked.manifest) };
  } catch (error) {
    files.remove();
    throw diskError(error, `cannot unpack the archive into ${folder}`);
  }
}

/** Errors: `ArchiveError` `tooLarge`; `outOfDisk`. */
export function requireSpace(manifest: ArchiveManifest, folder: string, { bytesMax, freeBytesMin }: UnpackLimits): void {
  let bytes = 0;
  let files = 0;
  for (const { file } of filesOf(manifest)) {
    bytes += file.bytes;
    files++;
  }
  if (bytes > bytesMax)
    throw new ArchiveError('tooLarge', `the archive has files of ${bytes} bytes, and ${bytesMax} are the most that is taken`);
  requireRoom(path.dirname(folder), bytes + files * FILE_OVERHEAD_BYTES, freeBytesMin, 'the archive cannot be unpacked');
}

/** Files that are made in a folder of their own, one after the other. Nothing that is there is written to, and no link is followed. */
export class NewFiles {
  private fd: number | null = null;
  private unsynced = 0;
  /** In the order in which they were made. */
  private readonly folders: string[] = [];
  private readonly known = new Set<string>();

  /** root: is made by `makeRoot`. */
  constructor(
    private readonly root: string,
    private readonly freeBytesMin: number,
  ) {}

  /** Errors: the system's, also when the folder is there. */
  makeRoot(): void {
    fs.mkdirSync(this.root);
    this.add(this.root);
  }

  /** With all folders between the root and it. */
  makeFolder(folder: string): void {
    if (this.known.has(folder)) return;
    this.makeFolder(path.dirname(folder));
    fs.mkdirSync(folder);
    this.add(folder);
  }

  begin(file: string): void {
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
    this.makeFolder(path.dirname(file));
    this.fd = fs.openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
  }

  write(bytes: Uint8Array): void {
    const fd = this.fd as number;
    writeFully(fd, bytes);
    this.unsynced += bytes.length;
    if (this.unsynced < SYNC_BYTES) return;
    this.unsynced = 0;
    fs.fdatasyncSync(fd);
    requireRoom(this.root, 0, this.freeBytesMin, 'the archive cannot be unpacked');
  }

  end(): void {
    const fd = this.fd as number;
    fs.fsyncSync(fd);
    this.close();
  }

  /** Puts the folders on disk. */
  sync(): void {
    for (const folder of [...this.folders].reverse()) syncFolderNow(folder);
    syncFolderNow(path.dirname(this.root));
  }

  /** Removes all that was made. Does nothing if that was nothing. */
  remove(): void {
    this.close();
    if (this.folders.length > 0) fs.rmSync(this.root, { recursive: true, force: true });
  }

  private close(): void {
    if (this.fd !== null) fs.closeSync(this.fd);
    this.fd = null;
  }

  private add(folder: string): void {
    this.known.add(folder);
    this.folders.push(folder);
  }
}

function isSameSha256(expected: string, actual: string): boolean {
  return expected.toLowerCase() === actual;
}

function wrongSha256(expected: string, actual: string, cause?: unknown): ArchiveError {
  return new ArchiveError('wrongSha256', `the archive has SHA-256 ${actual}, and ${expected} was asked for`, { expected, actual, cause });
}

function withoutUndefined({ filesMax, manifestBytesMax }: UnpackLimits): Partial<typeof MANIFEST_LIMITS> {
  return { ...(filesMax === undefined ? {} : { filesMax }), ...(manifestBytesMax === undefined ? {} : { manifestBytesMax }) };
}
