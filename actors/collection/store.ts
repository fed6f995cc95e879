/**
 * Collections on disk: `<storage>/collections/<folder>/config.json` beside the folders of their shards, which are named by their numbers.
 * An empty file `<number>.ahead` notes that a shard may have operations that its other replicas lack. A collection appears and disappears
 * by one rename, so a crash leaves it whole or not at all; leftovers under other names are removed at the next start.
 */

import { constants, statSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import { renameOwned, replaceFile, syncFolder } from '../../storage/disk/checked-file.js';
import { initChecksum } from '../../storage/disk/checksum.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { isMarkedMade } from '../../storage/disk/format-marker.js';
import { COLLECTIONS } from './collections-folder.js';
import { decodeConfigFile, encodeConfigFile, type StoredCollection } from './config-file.js';
import { STAGED_ON_DISK, type StagedFiles } from './staged-files.js';

const CONFIG_FILE = 'config.json';
const SET_ASIDE = 'set-aside';
const UNFINISHED = '.creating-';
/** Files of shards that take the place of others, as one: see `prepareExchange`. */
const EXCHANGING = '.exchanging-';
/** A whole collection that takes the place of another one: see `replaceCollection`. */
const REPLACING = '.replacing-';
const DELETED = '.deleted-';
/** File name ending of the note, after the shard's number. */
const AHEAD = '.ahead';

/** Stores collections' configurations and the folders of their shards. */
export interface CollectionStore {
  /** Folder of the collection with this folder name. */
  path(folder: string): string;
  /** Folder names of all collections, sorted. Leftovers are removed. */
  scan(): Promise<readonly string[]>;
  /** Reads a collection's configuration. Errors: `storage`, naming the file that is damaged or missing. */
  load(folder: string): Promise<StoredCollection>;
  /** Creates the collection, or returns the existing one unchanged. On disk when it resolves. */
  create(collection: StoredCollection): Promise<StoredCollection>;
  /** Replaces the configuration. On disk when it resolves. */
  save(collection: StoredCollection): Promise<void>;
  /** Removes the collection, for good when it resolves; its files are deleted later. Does nothing if it does not exist. */
  remove(folder: string): Promise<void>;
  /** Removes the files of one of its shards, which must be closed, for good when it resolves. */
  removeShard(folder: string, shardId: number): Promise<void>;
  /** Whether one of its shards has been made, by its files. */
  hasShard(folder: string, shardId: number): Promise<boolean>;
  /**
   * Whether a shard is noted to have acknowledged operations that its other replicas may lack (Log-L9); true also if that cannot be found
   * out.
   */
  isAhead(folder: string, shardId: number): boolean;
  /** Sets or clears that note. On disk when it resolves. */
  noteAhead(folder: string, shardId: number, isAhead: boolean): Promise<void>;
  /** The path of a folder for files of a transfer, on the same disk. The folder is not made yet, and is removed at the next start. */
  staging(name: string): string;
  /** Access to files in such folders. */
  readonly staged: StagedFiles;
  /**
   * Prepares the exchange of all files of some shards. From when it resolves these files are the shards': `exchangeShard` puts them in their
   * places or, after a crash, the next `scan`, which makes the collection, too, if there is none. Nothing else has a folder of `shards`
   * any more. shards: folders with files, synced, by shard id.
   */
  prepareExchange(collection: StoredCollection, shards: ReadonlyMap<number, string>): Promise<PreparedExchange>;
  /**
   * Makes a collection with these files of shards, in the place of the one of its name, which must be closed, if there is one. A crash leaves
   * the one or the other. shards: as for `prepareExchange`; a shard without files begins empty.
   */
  replaceCollection(collection: StoredCollection, shards: ReadonlyMap<number, string>): Promise<void>;
  /**
   * Replaces a shard's files by those in `staged`. The shard must be closed. On disk when it resolves; after a crash the shard may have no
   * files, unless `staged` is a folder of `prepareExchange`.
   */
  exchangeShard(folder: string, shardId: number, staged: string): Promise<void>;
  /**
   * Moves the files of a shard, which must be closed, where no start looks for them, in the place of those that were moved there before.
   * Result: the new path; null if there were none.
   */
  setShardAside(folder: string, shardId: number): Promise<string | null>;
  /** Moves a closed collection where no start looks for it. Result: the new path; null if it did not exist. */
  setAside(folder: string): Promise<string | null>;
}

export interface PreparedExchange {
  /** The folder with a shard's files, for `exchangeShard`. */
  folderOf(shardId: number): string;
  /** Forgets the exchange: all shards have their files, or those that have not are not to get them. */
  finish(): Promise<void>;
}

/**
 * Opens the store below `<storagePath>/collections`, which is made if it is missing. onLeftover: gets files that could not be removed.
 * Errors: `storage` if the folder cannot be used.
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
  /** Prepared exchanges that are not finished: their paths, and the folder of each's collection. */
  readonly #exchanges = new Map<string, string>();

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
    for (const name of await this.#folders()) {
      if (isLeftover(name)) this.#discard(join(this.#root, name));
      if (name.startsWith(REPLACING)) await this.#finishReplacing(join(this.#root, name));
      if (name.startsWith(EXCHANGING) && !this.#exchanges.has(join(this.#root, name))) await this.#resumeExchange(join(this.#root, name));
    }
    return (await this.#folders()).filter((name) => !name.startsWith('.')).sort();
  }

  load(folder: string): Promise<StoredCollection> {
    return loadCollection(this.path(folder), folder);
  }

  async create(collection: StoredCollection): Promise<StoredCollection> {
    const folder = folderName(collection.name);
    const existing = await loadExisting(this.path(folder), folder);
    if (existing !== null) return existing;
    const unfinished = join(this.#root, UNFINISHED + crypto().randomUUID());
    await mkdir(unfinished, { recursive: true });
    await replaceFile(join(unfinished, CONFIG_FILE), encodeConfigFile(collection));
    await syncFolder(unfinished);
    await renameOwned(unfinished, this.path(folder));
    await syncFolder(this.#root);
    return collection;
  }

  async save(collection: StoredCollection): Promise<void> {
    const folder = this.path(folderName(collection.name));
    await replaceFile(join(folder, CONFIG_FILE), encodeConfigFile(collection));
    await syncFolder(folder);
  }

  async remove(folder: string): Promise<void> {
    for (const [exchange, of] of this.#exchanges) if (of === folder) await this.#forgetExchange(exchange);
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

  async prepareExchange(collection: StoredCollection, shards: ReadonlyMap<number, string>): Promise<PreparedExchange> {
    const unfinished = await this.#assemble(collection, shards);
    const prepared = join(this.#root, EXCHANGING + crypto().randomUUID());
    this.#exchanges.set(prepared, folderName(collection.name));
    try {
      await renameOwned(unfinished, prepared);
      await syncFolder(this.#root);
    } catch (error) {
      await this.#forgetExchange(prepared);
      throw error;
    }
    return { folderOf: (shardId) => join(prepared, String(shardId)), finish: () => this.#forgetExchange(prepared) };
  }

  async replaceCollection(collection: StoredCollection, shards: ReadonlyMap<number, string>): Promise<void> {
    const unfinished = await this.#assemble(collection, shards);
    const replacing = join(this.#root, REPLACING + crypto().randomUUID());
    await renameOwned(unfinished, replacing);
    await syncFolder(this.#root);
    await this.#finishReplacing(replacing);
  }

  async exchangeShard(folder: string, shardId: number, staged: string): Promise<void> {
    const deleted = this.#deletedPath();
    await moveIfThere(this.#shardPath(folder, shardId), deleted);
    await renameOwned(staged, this.#shardPath(folder, shardId));
    await syncFolder(this.path(folder));
    await syncFolder(this.#root);
    this.#discard(deleted);
  }

  async setShardAside(folder: string, shardId: number): Promise<string | null> {
    const aside = join(this.storagePath, SET_ASIDE);
    await prepareFolder(aside);
    const kept = join(aside, `${folder}.${shardId}`);
    const deleted = this.#deletedPath();
    if (await moveIfThere(kept, deleted)) this.#discard(deleted);
    if (!(await moveIfThere(this.#shardPath(folder, shardId), kept))) return null;
    await syncFolder(aside);
    await syncFolder(this.path(folder));
    return kept;
  }

  async setAside(folder: string): Promise<string | null> {
    const aside = join(this.storagePath, SET_ASIDE);
    await prepareFolder(aside);
    const kept = join(aside, `${folder}.${crypto().randomUUID().slice(0, 8)}`);
    if (!(await moveIfThere(this.path(folder), kept))) return null;
    await syncFolder(aside);
    await syncFolder(this.#root);
    return kept;
  }

  async #folders(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  }

  /** A folder with these files, which no start takes for a collection; it is on disk. */
  async #assemble(collection: StoredCollection, shards: ReadonlyMap<number, string>): Promise<string> {
    const unfinished = join(this.#root, UNFINISHED + crypto().randomUUID());
    await mkdir(unfinished, { recursive: true });
    await replaceFile(join(unfinished, CONFIG_FILE), encodeConfigFile(collection));
    for (const [shardId, staged] of shards) await renameOwned(staged, join(unfinished, String(shardId)));
    await syncFolder(unfinished);
    return unfinished;
  }

  async #finishReplacing(replacing: string): Promise<void> {
    const file = join(replacing, CONFIG_FILE);
    const { name } = decodeConfigFile(await readFile(file), file);
    await this.remove(folderName(name));
    await renameOwned(replacing, this.path(folderName(name)));
    await syncFolder(this.#root);
  }

  /** Carries out what a process that ended had prepared: the collection may have been made anew since, in its cluster. */
  async #resumeExchange(prepared: string): Promise<void> {
    const file = join(prepared, CONFIG_FILE);
    const wanted = decodeConfigFile(await readFile(file), file);
    const folder = folderName(wanted.name);
    const existing = await loadExisting(this.path(folder), folder);
    if (existing === null && wanted.belonging === undefined) {
      await renameOwned(prepared, this.path(folder));
      await syncFolder(this.#root);
      return;
    }
    if (existing !== null && existing.belonging?.uid === wanted.belonging?.uid) {
      const shards = (await readdir(prepared)).filter((name) => /^\d+$/.test(name));
      for (const shard of shards) await this.exchangeShard(folder, Number(shard), join(prepared, shard));
    }
    await this.#forgetExchange(prepared);
  }

  async #forgetExchange(prepared: string): Promise<void> {
    const deleted = this.#deletedPath();
    if (await moveIfThere(prepared, deleted)) {
      await syncFolder(this.#root);
      this.#discard(deleted);
    }
    this.#exchanges.delete(prepared);
  }

  #shardPath(folder: string, shardId: number): string {
    return join(this.path(folder), String(shardId));
  }

  #aheadFile(folder: string, shardId: number): string {
    return join(this.path(folder), `${shardId}${AHEAD}`);
  }

  #deletedPath(): string {
    return join(this.#root, DELETED + crypto().randomUUID());
  }

  /** Removes a path in the background; leftovers are removed at the next start. */
  #discard(path: string): void {
    rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => this.onLeftover(path, error));
  }
}

async function prepareFolder(path: string): Promise<void> {
  try {
    const firstMade = await mkdir(path, { recursive: true });
    if (firstMade !== undefined) for (const parent of new Set([dirname(path), dirname(firstMade)])) await syncFolder(parent);
    await access(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw new TroupeError('storage', `the folder ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Reads the configuration of the collection with this folder name in the folder `path`. Errors: `storage`, naming the file that is damaged or missing. */
export async function loadCollection(path: string, folder: string): Promise<StoredCollection> {
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

/** Renames `from` to `to`. Returns false if `from` does not exist. */
async function moveIfThere(from: string, to: string): Promise<boolean> {
  try {
    await renameOwned(from, to);
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
