/**
 * Collections on disk: `<storage>/collections/<folder>/config.json` beside the folders of their shards, which are called by
 * their numbers. An empty file `<number>.ahead` says that a shard may have what its other replicas lack.
 * A collection appears by one rename and goes by one rename, so a crash leaves it whole or not there; what is left over
 * under another name is swept at the next start.
 */

import { randomUUID } from 'node:crypto';
import { constants, statSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { initChecksum } from '../../storage/disk/checksum.js';
import { isMarkedMade } from '../../storage/disk/format-marker.js';
import { replaceFile, syncFolder } from '../context/checked-file.js';
import { folderName } from '../context/folder-name.js';
import { decodeConfigFile, encodeConfigFile, type StoredCollection } from './config-file.js';
import { STAGED_ON_DISK, type StagedFiles } from './staged-files.js';

const COLLECTIONS = 'collections';
const CONFIG_FILE = 'config.json';
const SET_ASIDE = 'set-aside';
const UNFINISHED = '.creating-';
const DELETED = '.deleted-';
/** Follows a shard's number. */
const AHEAD = '.ahead';

/** Where collections' configurations are kept. */
export interface CollectionStore {
  /** Folder of the collection with this folder name. */
  path(folder: string): string;
  /** Folder names of all collections, sorted. Leftovers are removed. */
  scan(): Promise<readonly string[]>;
  /** Errors: `storage`, naming the file that is damaged or missing. */
  load(folder: string): Promise<StoredCollection>;
  /** Makes the collection, or returns it as it is when it exists. On disk when it resolves. */
  create(collection: StoredCollection): Promise<StoredCollection>;
  /** Replaces the configuration. On disk when it resolves. */
  save(collection: StoredCollection): Promise<void>;
  /** The collection is gone for good when it resolves; its files go later. Nothing happens when it is not there. */
  remove(folder: string): Promise<void>;
  /** The same for the files of one of its shards, closed before. */
  removeShard(folder: string, shardId: number): Promise<void>;
  /** Whether one of its shards has been made, as far as its files say. */
  hasShard(folder: string, shardId: number): Promise<boolean>;
  /** Whether one of its shards has something acknowledged that its other replicas may lack (Log-L9), as was noted; also where nobody can tell. */
  isAhead(folder: string, shardId: number): boolean;
  /** Notes that it may have, or that it has not. On disk when it resolves. */
  noteAhead(folder: string, shardId: number, isAhead: boolean): Promise<void>;
  /** A folder for files of a transfer, on the same disk: not made yet, and removed by the next start. */
  staging(name: string): string;
  /** What lies in such folders. */
  readonly staged: StagedFiles;
  /** Puts the files in `staged` in the place of a shard's, closed before. On disk when it resolves; after a crash it may have none. */
  exchangeShard(folder: string, shardId: number, staged: string): Promise<void>;
  /** Moves the collection, closed before, where no start looks for it. Result: where to; null when it was not there. */
  setAside(folder: string): Promise<string | null>;
}

/**
 * Collections below `<storagePath>/collections`, which is made where it is missing. `onLeftover` hears of files that could
 * not be removed. Errors: `storage` when the folder cannot be used.
 */
export async function openCollectionStore(
  storagePath: string,
  onLeftover: (path: string, error: unknown) => void,
): Promise<CollectionStore> {
  await initChecksum();
  await prepareFolder(join(storagePath, COLLECTIONS));
  return new FolderOfCollections(storagePath, onLeftover);
}

class FolderOfCollections implements CollectionStore {
  readonly staged = STAGED_ON_DISK;
  readonly #root: string;

  constructor(
    private readonly storagePath: string,
    private readonly onLeftover: (path: string, error: unknown) => void,
  ) {
    this.#root = join(storagePath, COLLECTIONS);
  }

  path(folder: string): string {
    return join(this.#root, folder);
  }

  async scan(): Promise<readonly string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    for (const name of folders) if (isLeftover(name)) this.#discard(join(this.#root, name));
    return folders.filter((name) => !name.startsWith('.')).sort();
  }

  load(folder: string): Promise<StoredCollection> {
    return loadCollection(this.path(folder), folder);
  }

  async create(collection: StoredCollection): Promise<StoredCollection> {
    const folder = folderName(collection.name);
    const existing = await loadExisting(this.path(folder), folder);
    if (existing !== null) return existing;
    const unfinished = join(this.#root, UNFINISHED + randomUUID());
    await mkdir(unfinished, { recursive: true });
    await replaceFile(join(unfinished, CONFIG_FILE), encodeConfigFile(collection));
    await syncFolder(unfinished);
    await rename(unfinished, this.path(folder));
    await syncFolder(this.#root);
    return collection;
  }

  async save(collection: StoredCollection): Promise<void> {
    const folder = this.path(folderName(collection.name));
    await replaceFile(join(folder, CONFIG_FILE), encodeConfigFile(collection));
    await syncFolder(folder);
  }

  async remove(folder: string): Promise<void> {
    const deleted = this.#deletedPath();
    if (!(await moveIfThere(this.path(folder), deleted))) return;
    await syncFolder(this.#root);
    this.#discard(deleted);
  }

  async removeShard(folder: string, shardId: number): Promise<void> {
    await rm(this.#aheadFile(folder, shardId), { force: true });
    const deleted = this.#deletedPath();
    if (!(await moveIfThere(this.#shardPath(folder, shardId), deleted))) return;
    await syncFolder(this.#root);
    await syncFolder(this.path(folder));
    this.#discard(deleted);
  }

  async hasShard(folder: string, shardId: number): Promise<boolean> {
    return isMarkedMade(this.#shardPath(folder, shardId));
  }

  isAhead(folder: string, shardId: number): boolean {
    return mayBeThere(this.#aheadFile(folder, shardId));
  }

  async noteAhead(folder: string, shardId: number, isAhead: boolean): Promise<void> {
    if (isAhead) await writeFile(this.#aheadFile(folder, shardId), '');
    else await rm(this.#aheadFile(folder, shardId), { force: true });
    await syncFolder(this.path(folder));
  }

  staging(name: string): string {
    return join(this.#root, `${UNFINISHED}${name}`);
  }

  async exchangeShard(folder: string, shardId: number, staged: string): Promise<void> {
    const deleted = this.#deletedPath();
    await moveIfThere(this.#shardPath(folder, shardId), deleted);
    await rename(staged, this.#shardPath(folder, shardId));
    await syncFolder(this.path(folder));
    await syncFolder(this.#root);
    this.#discard(deleted);
  }

  async setAside(folder: string): Promise<string | null> {
    const aside = join(this.storagePath, SET_ASIDE);
    await prepareFolder(aside);
    const kept = join(aside, `${folder}.${randomUUID().slice(0, 8)}`);
    if (!(await moveIfThere(this.path(folder), kept))) return null;
    await syncFolder(aside);
    await syncFolder(this.#root);
    return kept;
  }

  #shardPath(folder: string, shardId: number): string {
    return join(this.path(folder), String(shardId));
  }

  #aheadFile(folder: string, shardId: number): string {
    return join(this.path(folder), `${shardId}${AHEAD}`);
  }

  #deletedPath(): string {
    return join(this.#root, DELETED + randomUUID());
  }

  /** Removes in the background; what stays is swept at the next start. */
  #discard(path: string): void {
    rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => this.onLeftover(path, error));
  }
}

async function prepareFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
    await access(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw new TroupeError('storage', `the folder ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

async function loadCollection(path: string, folder: string): Promise<StoredCollection> {
  const file = join(path, CONFIG_FILE);
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new TroupeError('storage', errorCode(error) === 'ENOENT' ? `${file} is missing` : `${file} cannot be read: ${String(error)}`, {
      cause: error,
    });
  });
  const collection = decodeConfigFile(bytes, file);
  if (folderName(collection.name) !== folder) {
    throw new TroupeError(
      'storage',
      `${file} belongs to the collection ${collection.name}, whose folder is ${folderName(collection.name)}`,
    );
  }
  return collection;
}

async function loadExisting(path: string, folder: string): Promise<StoredCollection | null> {
  const names = await readdir(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  });
  return names === null ? null : loadCollection(path, folder);
}

/** False when there is nothing at `from`. */
async function moveIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    return false;
  }
}

function mayBeThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function isLeftover(name: string): boolean {
  return name.startsWith(UNFINISHED) || name.startsWith(DELETED);
}

function errorCode(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code;
}
