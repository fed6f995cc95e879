/** Collections and aliases on a virtual disk. */

import type { StoredCollection } from '../../actors/collection/config-file.js';
import type { StagedFiles } from '../../actors/collection/staged-files.js';
import type { CollectionStore } from '../../actors/collection/store.js';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { VirtualDisk } from './disk.js';
import { CHECKPOINT_FILE, fromCheckpoint } from './replica-files.js';

export function virtualCollections(disk: VirtualDisk): CollectionStore {
  const stored = (folder: string): StoredCollection => {
    const collection = disk.folders.get(folder) as StoredCollection | undefined;
    if (collection === undefined) throw new TroupeError('storage', `${folder}/config.json is missing`);
    return collection;
  };
  const put = (collection: StoredCollection) => disk.folders.set(folderName(collection.name), copyOf(collection));
  const removed = (folder: string) => {
    disk.removeBelow(path(folder));
    return disk.folders.delete(folder);
  };
  const path = (folder: string) => `/${disk.name}/${folder}`;
  const aheadFile = (folder: string, shardId: number) => `${path(folder)}/${shardId}.ahead`;
  return {
    path,
    scan: () =>
      disk.read(() => {
        disk.removeBelow(`/${disk.name}/staging`);
        return [...disk.folders.keys()].sort();
      }),
    load: (folder) => disk.read(() => stored(folder)),
    create: async (collection) => {
      const existing = await disk.read(() => disk.folders.get(folderName(collection.name)) as StoredCollection | undefined);
      if (existing !== undefined) return existing;
      await disk.write(`create ${collection.name}`, () => put(collection));
      return collection;
    },
    save: (collection) => disk.write(`save ${collection.name}`, () => put(collection)),
    remove: (folder) => disk.write(`remove ${folder}`, () => removed(folder)),
    removeShard: (folder, shardId) =>
      disk.write(`remove ${folder}/${shardId}`, () => {
        disk.removeBelow(`${path(folder)}/${shardId}`);
        disk.files.delete(aheadFile(folder, shardId));
      }),
    hasShard: (folder, shardId) => disk.read(() => disk.replicas.has(`${path(folder)}/${shardId}`)),
    isAhead: (folder, shardId) => disk.files.has(aheadFile(folder, shardId)),
    noteAhead: (folder, shardId, isAhead) =>
      disk.write(`${folder}/${shardId} is ${isAhead ? 'ahead' : 'not ahead any more'}`, () => {
        if (isAhead) disk.files.set(aheadFile(folder, shardId), new Uint8Array());
        else disk.files.delete(aheadFile(folder, shardId));
      }),
    staging: (name) => `/${disk.name}/staging/${name}`,
    staged: virtualFiles(disk),
    replaceCollection: () => Promise.reject(new TroupeError('unsupported', 'simulations restore no snapshots')),
    prepareExchange: () => Promise.reject(new TroupeError('unsupported', 'simulations restore no snapshots')),
    exchangeShard: async (folder, shardId, staged) => {
      const shard = `${path(folder)}/${shardId}`;
      // A crash between the two leaves none.
      await disk.write(`remove ${shard}`, () => disk.removeBelow(shard));
      const checkpoint = await disk.read(() => fileOf(disk, `${staged}/${CHECKPOINT_FILE}`));
      await disk.write(`put ${staged} in the place of ${shard}`, () => {
        disk.replicas.set(shard, fromCheckpoint(checkpoint));
        disk.removeBelow(staged);
      });
    },
    setShardAside: async (folder, shardId) => {
      await disk.write(`set ${folder}/${shardId} aside`, () => disk.removeBelow(`${path(folder)}/${shardId}`));
      return `/${disk.name}/set-aside/${folder}.${shardId}`;
    },
    setAside: async (folder) => {
      let kept = false;
      await disk.write(`set ${folder} aside`, () => {
        kept = removed(folder);
      });
      return kept ? `/${disk.name}/set-aside/${folder}` : null;
    },
  };
}

function virtualFiles(disk: VirtualDisk): StagedFiles {
  return {
    read: (folder, path, offset, length) => disk.read(() => fileOf(disk, `${folder}/${path}`).slice(offset, offset + length)),
    write: (folder, path, offset, bytes) =>
      disk.write(`part of ${path}`, () => {
        const name = `${folder}/${path}`;
        const before = offset === 0 ? new Uint8Array() : fileOf(disk, name).subarray(0, offset);
        disk.files.set(name, Uint8Array.from([...before, ...bytes]));
      }),
    settle: (folder, files) =>
      disk.read(() => {
        for (const { bytes, path } of files)
          if (fileOf(disk, `${folder}/${path}`).length !== bytes) throw new TroupeError('storage', `${path} has not arrived whole`);
        return folder;
      }),
    remove: (folder) => disk.write(`remove ${folder}`, () => disk.removeBelow(folder)),
  };
}

function fileOf(disk: VirtualDisk, path: string): Uint8Array {
  const bytes = disk.files.get(path);
  if (bytes === undefined) throw new TroupeError('storage', `${path} is missing`);
  return bytes;
}

export function virtualAliases(disk: VirtualDisk) {
  return {
    load: (): Promise<AliasMap> => disk.read(() => new Map(disk.aliases)),
    save: (aliases: AliasMap): Promise<void> => {
      const saved = new Map(aliases);
      return disk.write('save aliases', () => {
        disk.aliases = saved;
      });
    },
  };
}

/** As it comes back from a file. */
function copyOf(collection: StoredCollection): StoredCollection {
  return structuredClone(collection);
}
