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

const CONFIG_FILE = 'config.json';
const SET_ASIDE = 'set-aside';
const UNFINISHED = '.creating-';
const DELETED = '.deleted-';
/** Behind a shard's number. */
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
  const root = join(storagePath, 'collections');
  await prepareFolder(root);
  const path = (folder: string) => join(root, folder);
  const aheadFile = (folder: string, shardId: number) => join(path(folder), `${shardId}${AHEAD}`);
  return {
    path,
    scan: async () => {
      const entries = await readdir(root, { withFileTypes: true });
      const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
      for (const name of folders) if (isLeftover(name)) discard(join(root, name), onLeftover);
      return folders.filter((name) => !name.startsWith('.')).sort();
    },
    load: (folder) => loadCollection(path(folder), folder),
    create: async (collection) => {
      const folder = folderName(collection.name);
      const existing = await loadExisting(path(folder), folder);
      if (existing !== null) return existing;
      const unfinished = join(root, UNFINISHED + randomUUID());
      await mkdir(unfinished, { recursive: true });
      await replaceFile(join(unfinished, CONFIG_FILE), encodeConfigFile(collection));
      await syncFolder(unfinished);
      await rename(unfinished, path(folder));
      await syncFolder(root);
      return collection;
    },
    save: async (collection) => {
      const folder = path(folderName(collection.name));
      await replaceFile(join(folder, CONFIG_FILE), encodeConfigFile(collection));
      await syncFolder(folder);
    },
    remove: async (folder) => {
      const deleted = join(root, DELETED + randomUUID());
      if (!(await moveIfThere(path(folder), deleted))) return;
      await syncFolder(root);
      discard(deleted, onLeftover);
    },
    removeShard: async (folder, shardId) => {
      await rm(aheadFile(folder, shardId), { force: true });
      const deleted = join(root, DELETED + randomUUID());
      if (!(await moveIfThere(join(path(folder), String(shardId)), deleted))) return;
      await syncFolder(root);
      await syncFolder(path(folder));
      discard(deleted, onLeftover);
    },
    hasShard: async (folder, shardId) => isMarkedMade(join(path(folder), String(shardId))),
    isAhead: (folder, shardId) => mayBeThere(aheadFile(folder, shardId)),
    noteAhead: async (folder, shardId, isAhead) => {
      if (isAhead) await writeFile(aheadFile(folder, shardId), '');
      else await rm(aheadFile(folder, shardId), { force: true });
      await syncFolder(path(folder));
    },
    staged: STAGED_ON_DISK,
    staging: (name) => join(root, `${UNFINISHED}${name}`),
    exchangeShard: async (folder, shardId, staged) => {
      const deleted = join(root, DELETED + randomUUID());
      await moveIfThere(join(path(folder), String(shardId)), deleted);
      await rename(staged, join(path(folder), String(shardId)));
      await syncFolder(path(folder));
      await syncFolder(root);
      discard(deleted, onLeftover);
    },
    setAside: async (folder) => {
      const aside = join(storagePath, SET_ASIDE);
      await prepareFolder(aside);
      const kept = join(aside, `${folder}.${randomUUID().slice(0, 8)}`);
      if (!(await moveIfThere(path(folder), kept))) return null;
      await syncFolder(aside);
      await syncFolder(root);
      return kept;
    },
  };
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

/** Removes in the background; what stays is swept at the next start. */
function discard(path: string, onLeftover: (path: string, error: unknown) => void): void {
  rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => onLeftover(path, error));
}

function errorCode(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code;
}
