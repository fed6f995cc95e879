/** Collections and aliases on a virtual disk. */

import type { StoredCollection } from '../../actors/collection/config-file.js';
import { folderName } from '../../actors/collection/folder-name.js';
import type { CollectionStore } from '../../actors/collection/store.js';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { VirtualDisk } from './disk.js';

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
  return {
    path,
    scan: () => disk.read(() => [...disk.folders.keys()].sort()),
    load: (folder) => disk.read(() => stored(folder)),
    create: async (collection) => {
      const existing = await disk.read(() => disk.folders.get(folderName(collection.name)) as StoredCollection | undefined);
      if (existing !== undefined) return existing;
      await disk.write(`create ${collection.name}`, () => put(collection));
      return collection;
    },
    save: (collection) => disk.write(`save ${collection.name}`, () => put(collection)),
    remove: (folder) => disk.write(`remove ${folder}`, () => removed(folder)),
    removeShard: (folder, shardId) => disk.write(`remove ${folder}/${shardId}`, () => disk.removeBelow(`${path(folder)}/${shardId}`)),
    hasShard: (folder, shardId) => disk.read(() => disk.replicas.has(`${path(folder)}/${shardId}`)),
    staging: (name) => `/${disk.name}/.creating-${name}`,
    exchangeShard: (folder, shardId, staged) => disk.write(`put ${staged} in the place of ${folder}/${shardId}`, () => {}),
    setAside: async (folder) => {
      let kept = false;
      await disk.write(`set ${folder} aside`, () => {
        kept = removed(folder);
      });
      return kept ? `/${disk.name}/set-aside/${folder}` : null;
    },
  };
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
