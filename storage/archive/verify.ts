/** Looks through an archive and tells what is wrong with it, without making its files, or with the files of one shard at a time. */

import path from 'node:path';
import { errorFacts } from '../../protocols/errors.js';
import { rethrowBroken } from '../../protocols/invariant.js';
import { diskError, requireRoom } from './archive-disk.js';
import { ArchiveError } from './archive-error.js';
import { type ArchiveCollection, type ArchiveManifest, type ArchiveShard, MANIFEST_LIMITS } from './manifest.js';
import type { ArchiveWorkOptions, UnpackedArchive } from './port.js';
import { type ArchiveVisitor, fileSource, readArchive } from './read-archive.js';
import { NewFiles } from './unpack.js';

export interface ArchiveChecks extends ArchiveWorkOptions {
  /** Gets a sentence for each problem. cause: of the archive's bytes, or of the machine. */
  readonly tell: (problem: string, cause: 'archive' | 'machine') => void;
  /** Where the shards are looked through, too. */
  readonly shards?: {
    /** A folder that is there; each shard is unpacked below it, and removed when it has been looked through. */
    readonly temporary: string;
    readonly lookThrough: (collection: ArchiveCollection, shard: ArchiveShard, folder: string) => Promise<void>;
  };
}

/** Result: what the archive is; null if a problem has ended the reading. Errors: none but for broken invariants; whatever is wrong is told. */
export async function verifyArchive(file: string, { shards, tell, ...options }: ArchiveChecks): Promise<UnpackedArchive | null> {
  const unpacked = new ShardFiles(shards);
  try {
    const source = fileSource(file);
    try {
      const visitor: ArchiveVisitor = {
        begin: (manifest) => unpacked.begin(manifest),
        beginFile: (collection, shard, { path }) => unpacked.beginFile(collection, shard, path),
        bytes: (part) => unpacked.write(part),
        endFile: () => unpacked.endFile(),
        endShard: (collection, shard) => unpacked.endShard(collection, shard),
        damaged: (error) => tell(error.detail, 'archive'),
      };
      return await readArchive(source, MANIFEST_LIMITS, visitor, options);
    } finally {
      await source.close();
    }
  } catch (error) {
    rethrowBroken(error);
    const cause = error instanceof ArchiveError ? 'archive' : 'machine';
    tell(errorFacts(diskError(error, `cannot look through ${file}`)).detail, cause);
    return null;
  } finally {
    unpacked.remove();
  }
}

/** The files of the shard that is being read, where they are wanted. */
class ShardFiles {
  private manifest: ArchiveManifest | null = null;
  private files: NewFiles | null = null;

  constructor(private readonly checks: ArchiveChecks['shards']) {}

  begin(manifest: ArchiveManifest): void {
    this.manifest = manifest;
  }

  beginFile(collection: number, shard: number, name: string): void {
    if (this.checks === undefined) return;
    this.require(collection, shard).begin(path.join(this.folderOf(collection, shard), ...name.split('/')));
  }

  write(part: Uint8Array): void {
    this.files?.write(part);
  }

  endFile(): void {
    this.files?.end();
  }

  async endShard(collection: number, shard: number): Promise<void> {
    const { checks } = this;
    if (checks === undefined) return;
    this.require(collection, shard);
    await checks.lookThrough(...this.shardOf(collection, shard), this.folderOf(collection, shard));
    this.remove();
  }

  remove(): void {
    this.files?.remove();
    this.files = null;
  }

  private require(collection: number, shard: number): NewFiles {
    if (this.files !== null) return this.files;
    const folder = this.folderOf(collection, shard);
    const bytes = this.shardOf(collection, shard)[1].files.reduce((sum, file) => sum + file.bytes, 0);
    requireRoom(path.dirname(folder), bytes, 0, `shard ${shard} cannot be looked through`);
    const files = new NewFiles(folder, 0);
    files.makeRoot();
    this.files = files;
    return files;
  }

  private folderOf(collection: number, shard: number): string {
    return path.join(path.resolve(this.checks?.temporary ?? ''), `${collection}-${shard}`);
  }

  private shardOf(collection: number, shard: number): [ArchiveCollection, ArchiveShard] {
    const found = this.manifest?.collections[collection];
    const files = found?.shards.find(({ id }) => id === shard);
    if (found === undefined || files === undefined) throw new Error(`the manifest has no shard ${shard} of collection ${collection}`);
    return [found, files];
  }
}
