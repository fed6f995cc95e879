/**
 * Archives of snapshots in a local folder: `<folder>/<name>` of the whole storage, `<folder>/<collection>/<name>` of a collection and
 * `<folder>/<collection>/shards/<id>/<name>` of a shard, each with its SHA-256 in `<name>.checksum` beside it. What is not finished is hidden:
 * its name begins with a dot.
 */

import { constants, createReadStream, type Dirent, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import { syncFolder } from '../disk/checked-file.js';
import {
  type ArchiveRange,
  creationTimeOf,
  isSnapshotName,
  type LocalArchive,
  type OpenArchive,
  olderFirst,
  placeFolders,
  SNAPSHOT_SUFFIX,
  type SnapshotPlace,
  type SnapshotRecord,
  type SnapshotStore,
  snapshotNotFound,
} from './snapshot-store.js';
import { diskRefusal, spoolToFile, throwIfEnded } from './spool.js';

export interface LocalStoreOptions {
  /** `storage.snapshots_path`; is made with the first snapshot. */
  readonly folder: string;
  /** Bytes of the disk that a copied archive must leave free. */
  readonly freeBytesMin: number;
}

const CHECKSUM_SUFFIX = '.checksum';
/** Of files that are not finished, with a dot before: nothing else in these folders has it. */
const UNFINISHED_SUFFIX = '.unfinished';
const CHECKSUM = /^([0-9a-f]{64})\s*$/;
const CHECKSUM_BYTES_MAX = 80;
const CHUNK_BYTES = 256 << 10;
/** Records that are read at the same time. */
const READ_AT_ONCE = 16;
/** Not blocked by what is no regular file. */
const READ_PLAIN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class LocalSnapshotStore implements SnapshotStore {
  private readonly folder: string;
  private readonly freeBytesMin: number;
  /** Paths that a `put` is about to use: a name is given once. */
  private readonly begun = new Set<string>();

  constructor({ folder, freeBytesMin }: LocalStoreOptions) {
    this.folder = resolve(folder);
    this.freeBytesMin = freeBytesMin;
  }

  async list(place: SnapshotPlace): Promise<SnapshotRecord[]> {
    const folder = this.folderOf(place);
    if (!(await this.isThere(place))) return [];
    const names = (await entriesOf(folder)).filter((entry) => entry.isFile() && isSnapshotName(entry.name)).map(({ name }) => name);
    const records: SnapshotRecord[] = [];
    for (let from = 0; from < names.length; from += READ_AT_ONCE) {
      const found = await Promise.all(names.slice(from, from + READ_AT_ONCE).map((name) => recordOf(folder, name)));
      for (const record of found) if (record !== null) records.push(record);
    }
    return records.sort(olderFirst);
  }

  async describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord> {
    const record = (await this.mayBeThere(place, name)) ? await recordOf(this.folderOf(place), name) : null;
    if (record === null) throw this.notFound(place, name);
    return record;
  }

  async put(place: SnapshotPlace, name: string, file: string, sha256: string, signal: AbortSignal): Promise<SnapshotRecord> {
    if (!isSnapshotName(name)) throw new TroupeError('internal', `${JSON.stringify(name)} is no name of a snapshot`, { outcome: 'none' });
    const target = this.pathOf(place, name);
    if (this.begun.has(target)) throw nameTaken(name);
    this.begun.add(target);
    try {
      return await this.keep(place, name, file, sha256, signal);
    } catch (error) {
      throw diskRefusal(error, target);
    } finally {
      this.begun.delete(target);
    }
  }

  async open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive> {
    const handle = (await this.mayBeThere(place, name)) ? await openPlain(this.pathOf(place, name)) : null;
    if (handle === null) throw this.notFound(place, name);
    const { size } = await handle.stat();
    const part = range === null ? {} : { start: range.start, end: range.end };
    return { size, stream: createReadStream('', { fd: handle, highWaterMark: CHUNK_BYTES, ...part }) };
  }

  async localFile(place: SnapshotPlace, name: string, _tempFolder: string, signal: AbortSignal): Promise<LocalArchive> {
    throwIfEnded(signal);
    await this.describe(place, name);
    return { path: this.pathOf(place, name), release: async () => undefined };
  }

  async remove(place: SnapshotPlace, name: string): Promise<void> {
    await this.describe(place, name);
    const path = this.pathOf(place, name);
    try {
      // A checksum without its archive is listed nowhere; an archive without its checksum would be.
      await rm(path);
      await rm(path + CHECKSUM_SUFFIX, { force: true });
      await syncFolder(dirname(path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw this.notFound(place, name);
      throw diskRefusal(error, path);
    }
  }

  async sweep(): Promise<number> {
    let removed = await sweepFolder(this.folder);
    for (const collection of await foldersIn(this.folder)) {
      const path = join(this.folder, collection);
      removed += await sweepFolder(path);
      for (const shard of await foldersIn(join(path, 'shards'))) removed += await sweepFolder(join(path, 'shards', shard));
    }
    return removed;
  }

  /** First the checksum, then the archive: what has a name has both (Store-B1). */
  private async keep(place: SnapshotPlace, name: string, file: string, sha256: string, signal: AbortSignal): Promise<SnapshotRecord> {
    throwIfEnded(signal);
    await this.makeFolders(place);
    const folder = this.folderOf(place);
    const target = join(folder, name);
    if ((await statOf(target)) !== null) throw nameTaken(name);
    const draft = join(folder, `.${crypto().randomUUID()}${UNFINISHED_SUFFIX}`);
    let isCopy = false;
    try {
      await syncFile(file);
      isCopy = !(await moved(file, draft));
      if (isCopy) await this.copy(file, draft, signal);
      throwIfEnded(signal);
      await writeSynced(draft + CHECKSUM_SUFFIX, `${sha256}\n`);
      await rename(draft + CHECKSUM_SUFFIX, target + CHECKSUM_SUFFIX);
      await syncFolder(folder);
      await rename(draft, target);
      await syncFolder(folder);
    } catch (error) {
      if (!isCopy) await moved(draft, file).catch(() => false);
      for (const path of [draft, draft + CHECKSUM_SUFFIX]) await rm(path, { force: true }).catch(() => undefined);
      if ((await statOf(target).catch(() => null)) === null) await rm(target + CHECKSUM_SUFFIX, { force: true }).catch(() => undefined);
      throw error;
    }
    if (isCopy) await rm(file, { force: true }).catch(() => undefined);
    return this.describe(place, name);
  }

  private async copy(file: string, draft: string, signal: AbortSignal): Promise<void> {
    const source = createReadStream(file, { highWaterMark: CHUNK_BYTES });
    const { size } = await lstat(file);
    await spoolToFile(source, draft, { expectedBytes: size, freeBytesMin: this.freeBytesMin, signal });
  }

  /** Each with its entry on disk. Errors: `storage` where a link or a file is in the place of a folder (Store-B2). */
  private async makeFolders(place: SnapshotPlace): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    let path = this.folder;
    for (const segment of placeFolders(place)) {
      const above = path;
      path = join(path, segment);
      try {
        await mkdir(path);
        await syncFolder(above);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        if ((await lstat(path)).isDirectory()) continue;
        const detail = `${path} is no folder, so no snapshots can be kept there; links are not followed: move it away`;
        throw new TroupeError('storage', detail, { outcome: 'none' });
      }
    }
  }

  private async mayBeThere(place: SnapshotPlace, name: string): Promise<boolean> {
    return isSnapshotName(name) && (await this.isThere(place));
  }

  /** Whether the folders of a place are there and no links. */
  private async isThere(place: SnapshotPlace): Promise<boolean> {
    let path = this.folder;
    for (const segment of placeFolders(place)) {
      path = join(path, segment);
      if ((await statOf(path))?.isDirectory() !== true) return false;
    }
    return true;
  }

  private folderOf(place: SnapshotPlace): string {
    return join(this.folder, ...placeFolders(place));
  }

  private pathOf(place: SnapshotPlace, name: string): string {
    return join(this.folderOf(place), name);
  }

  private notFound(place: SnapshotPlace, name: string): TroupeError {
    return snapshotNotFound(place, name, isSnapshotName(name) ? this.pathOf(place, name) : name);
  }
}

function nameTaken(name: string): TroupeError {
  return new TroupeError('conflict', `there is a snapshot ${name} already; remove it, or give the new one another name`);
}

/** Null for what is not there, or no regular file. */
async function recordOf(folder: string, name: string): Promise<SnapshotRecord | null> {
  const path = join(folder, name);
  const found = await statOf(path);
  if (found?.isFile() !== true) return null;
  return { name, creationTime: creationTimeOf(found.mtimeMs), size: found.size, checksum: await checksumBeside(path) };
}

async function checksumBeside(path: string): Promise<string | null> {
  const handle = await openPlain(path + CHECKSUM_SUFFIX);
  if (handle === null) return null;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(CHECKSUM_BYTES_MAX), 0, CHECKSUM_BYTES_MAX, 0);
    return CHECKSUM.exec(buffer.toString('latin1', 0, bytesRead))?.[1] ?? null;
  } finally {
    await handle.close();
  }
}

/** Null for what is not there, or no regular file. */
async function openPlain(path: string): Promise<FileHandle | null> {
  let handle: FileHandle;
  try {
    handle = await open(path, READ_PLAIN);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ELOOP and EMLINK: a link. ENXIO: a socket.
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO'].includes(code ?? '')) return null;
    throw diskRefusal(error, path);
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return null;
}

/** Of the path itself, not of what a link points at; null for nothing. */
async function statOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw diskRefusal(error, path);
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw diskRefusal(error, folder);
  }
}

/** Names of folders, without links. */
async function foldersIn(folder: string): Promise<string[]> {
  if ((await statOf(folder))?.isDirectory() !== true) return [];
  return (await entriesOf(folder)).filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Removes drafts and checksums without an archive; folders that are empty then stay for the next snapshot. */
async function sweepFolder(folder: string): Promise<number> {
  const files = new Set((await entriesOf(folder)).filter((entry) => entry.isFile()).map(({ name }) => name));
  let removed = 0;
  for (const name of files) {
    const isDraft = name.startsWith('.') && (name.endsWith(UNFINISHED_SUFFIX) || name.endsWith(UNFINISHED_SUFFIX + CHECKSUM_SUFFIX));
    const isAlone = name.endsWith(SNAPSHOT_SUFFIX + CHECKSUM_SUFFIX) && !files.has(name.slice(0, -CHECKSUM_SUFFIX.length));
    if (!isDraft && !isAlone) continue;
    await rm(join(folder, name), { force: true });
    removed++;
  }
  return removed;
}

/** Whether a rename was enough: false where the file lies on another file system. */
async function moved(source: string, target: string): Promise<boolean> {
  try {
    await rename(source, target);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EXDEV') return false;
    throw error;
  }
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
