/** Files of a base: what a new archive may leave out, and what an archive has left out. */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import { checksumStream } from '../disk/checksum.js';
import { openPlainFile, readFully } from '../disk/file.js';
import { diskError } from './archive-disk.js';
import { ArchiveError } from './archive-error.js';
import { fileKey, missingBase, otherBase } from './bases.js';
import { type ArchiveFile, type ArchiveManifest, checkedValue, filesOf, MANIFEST_LIMITS, packedFilesOf } from './manifest.js';
import { CHECKSUMS_MEMBER, END_BYTES, memberBytes } from './members.js';
import { ARCHIVE_CHUNK_BYTES, checksumsBytes, checksumText, throwIfCancelled } from './pack.js';
import type { ArchiveWorkOptions, BaseFile } from './port.js';
import { type ArchiveVisitor, fileSource, manifestOfFile, readArchive } from './read-archive.js';

/** Bytes and checksum of each file, by `fileKey`. */
type KnownFiles = Map<string, { readonly bytes: number; readonly checksum: string }>;

/**
 * The manifest with `inBase` at each file that the base has with the same path, size and checksum. Of the base only its manifest and its checksums
 * are read; of the folders only files that have the size of the base's. Errors: `ArchiveError` for the base; `storage`.
 */
export async function leaveOutBase(
  manifest: ArchiveManifest,
  folderOf: (collection: number, shard: ShardId) => string,
  { file: baseFile, name, sha256 }: BaseFile,
  options: ArchiveWorkOptions,
): Promise<ArchiveManifest> {
  const known = await filesOfBase(baseFile, options);
  const inBase = new Map<string, string>();
  for (const { collection, file, shard } of filesOf(manifest)) {
    throwIfCancelled(options.signal);
    const key = fileKey(collection, shard, file);
    const found = known.get(key);
    if (found === undefined || found.bytes !== file.bytes) continue;
    const checksum = await checksumOfFile(path.join(folderOf(collection, shard), ...file.path.split('/')), file.bytes, options);
    if (checksum === found.checksum) inBase.set(key, checksum);
  }
  const marked = (collection: number, shard: ShardId, { bytes, path: name }: ArchiveFile): ArchiveFile => {
    const checksum = inBase.get(fileKey(collection, shard, { bytes, path: name }));
    return checksum === undefined ? { path: name, bytes } : { path: name, bytes, inBase: checksum };
  };
  const collections = manifest.collections.map((collection, at) => ({
    ...collection,
    shards: collection.shards.map((shard) => ({ ...shard, files: shard.files.map((file) => marked(at, shard.id, file)) })),
  }));
  return { ...manifest, base: { name, sha256 }, collections };
}

/** All files of an archive with their checksums, those of its own base included. The files are not read. */
async function filesOfBase(file: string, options: ArchiveWorkOptions): Promise<KnownFiles> {
  const manifest = await manifestOfFile(file, options);
  const packed = [...packedFilesOf(manifest)];
  const checksums = readChecksumsAtEnd(file, packed.length);
  const known: KnownFiles = new Map();
  for (const { collection, file, shard } of filesOf(manifest))
    if (file.inBase !== undefined) known.set(fileKey(collection, shard, file), { bytes: file.bytes, checksum: file.inBase });
  for (const [at, { collection, file, shard }] of packed.entries())
    known.set(fileKey(collection, shard, file), { bytes: file.bytes, checksum: String(checksums[at]) });
  return known;
}

/** The last member of an archive with so many files. Errors: `ArchiveError` `damaged`; `storage`. */
function readChecksumsAtEnd(file: string, files: number): readonly unknown[] {
  const bytes = checksumsBytes(files);
  const fd = openPlainFile(file);
  try {
    const at = fs.fstatSync(fd).size - END_BYTES - memberBytes(bytes) + memberBytes(0);
    if (at < 0) throw new ArchiveError('truncated', 'the archive is truncated: it has no checksums');
    const member = Buffer.alloc(bytes);
    readFully(fd, member, at, file);
    const checksums = checkedValue(member, 'checksums', CHECKSUMS_MEMBER);
    if (Array.isArray(checksums) && checksums.length === files) return checksums;
    throw new ArchiveError('damaged', `the archive is damaged: \`${CHECKSUMS_MEMBER}\` has not one checksum for each file`);
  } catch (error) {
    throw diskError(error, `cannot read ${file}`);
  } finally {
    fs.closeSync(fd);
  }
}

async function checksumOfFile(name: string, bytes: number, { signal }: ArchiveWorkOptions): Promise<string> {
  const checksum = checksumStream();
  const chunk = Buffer.allocUnsafe(Math.min(bytes, ARCHIVE_CHUNK_BYTES));
  const fd = openPlainFile(name);
  try {
    for (let at = 0; at < bytes; ) {
      throwIfCancelled(signal);
      const part = chunk.subarray(0, Math.min(chunk.length, bytes - at));
      readFully(fd, part, at, name);
      checksum.update(part);
      at += part.length;
      // Messages of the thread have their turn.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  } finally {
    fs.closeSync(fd);
  }
  return checksumText(checksum.digest());
}

// ------------------------------------------------------------------ reading

/** Takes the files that an archive has left out. */
export interface BaseTaker {
  begin(collection: number, shard: ShardId, file: ArchiveFile): void;
  bytes(part: Uint8Array): void;
  end(): void;
}

/** The bases that an archive needs are given, in their order. Errors: `ArchiveError` `base`. */
export function requireBase({ base }: ArchiveManifest, given: BaseFile | undefined): void {
  if (base === undefined || given?.sha256 === base.sha256) return;
  throw missingBase(base);
}

/**
 * Brings the files that an archive has left out from its bases, each of which is read whole, with its SHA-256. taker: null to check them only.
 * Errors: `ArchiveError` `base` for one that is another one than was needed, damaged ones included.
 */
export async function readBases(
  manifest: ArchiveManifest,
  bases: readonly BaseFile[],
  taker: BaseTaker | null,
  options: ArchiveWorkOptions,
): Promise<void> {
  const wanted = new Map<string, ArchiveFile>();
  for (const { collection, file, shard } of filesOf(manifest))
    if (file.inBase !== undefined) wanted.set(fileKey(collection, shard, file), file);
  let needed = manifest;
  for (const [at, base] of bases.entries()) {
    requireBase(needed, base);
    needed = await readBase(base, bases[at + 1], wanted, taker, options);
    if (needed.base === undefined) break;
  }
  const [missing] = wanted.values();
  if (missing !== undefined) throw new ArchiveError('base', `no base of the snapshot has \`${missing.path}\`: the snapshot is damaged`);
}

async function readBase(
  base: BaseFile,
  next: BaseFile | undefined,
  wanted: Map<string, ArchiveFile>,
  taker: BaseTaker | null,
  options: ArchiveWorkOptions,
): Promise<ArchiveManifest> {
  let taken: { readonly key: string; readonly file: ArchiveFile } | null = null;
  const visitor: ArchiveVisitor = {
    begin: (manifest) => requireBase(manifest, next),
    beginFile(collection, shard, { path: name }) {
      const key = fileKey(collection, shard, { path: name, bytes: 0 });
      const file = wanted.get(key);
      taken = file === undefined ? null : { key, file };
      if (file !== undefined) taker?.begin(collection, shard, file);
    },
    bytes(part) {
      if (taken !== null) taker?.bytes(part);
    },
    endFile(checksum) {
      if (taken === null) return;
      taker?.end();
      if (checksum !== taken.file.inBase) throw new ArchiveError('base', `\`${taken.file.path}\` is not as the snapshot has left it out`);
      wanted.delete(taken.key);
    },
    endShard() {},
    damaged(error) {
      throw error;
    },
  };
  const source = fileSource(base.file);
  try {
    const { manifest, sha256 } = await readArchive(source, MANIFEST_LIMITS, visitor, options);
    if (sha256 !== base.sha256) throw otherBase(base, sha256);
    return manifest;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'wrongInput') throw error;
    if (error instanceof ArchiveError && error.problem === 'base') throw error;
    const detail = `the base ${base.name} of the snapshot cannot be used: ${error.detail}; put a sound copy of it back`;
    throw new ArchiveError('base', detail, { cause: error });
  } finally {
    await source.close();
  }
}
