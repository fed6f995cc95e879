/** Copies the files of replicas as of one moment each, for an archive. */

import type { CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { ArchiveCollection, ArchiveShard } from '../../storage/archive/manifest.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { isSnapshotName, SNAPSHOT_SUFFIX } from '../../storage/snapshot-store/snapshot-store.js';
import { localShards } from '../collection/state.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { describeCollection, keysOfShards } from './archived-collection.js';

/** The files of a collection's shards, and what an archive says of them. */
export interface CopiedCollection {
  readonly described: ArchiveCollection;
  /** The folder of each shard, in the order of the description. They are the caller's to remove. */
  readonly folders: readonly string[];
}

export interface CopyParts {
  readonly services: NodeServices;
  /** Names folders that nothing else has. */
  readonly newId: () => string;
  readonly pause: (milliseconds: number) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A replica gives one copy at a time, and a transfer may be taking it. */
const BUSY_PAUSE_MS = 500;
const BUSY_TRIES = 240;

/**
 * The shards of a collection that a snapshot on this node has: replicas that are Active. only: exactly these. Errors: `unavailable` while there are replicas and
 * none of them is, or one of `only` is not.
 */
export function shardsToCopy(
  { assignments }: Pick<NodeServices, 'assignments'>,
  entry: CollectionEntry,
  only: readonly ShardId[] | null = null,
): ShardId[] {
  const { belonging, config, name } = entry;
  if (config === null) throw new TroupeError('unavailable', `collection ${name} has no configuration`);
  const here = localShards({ belonging, config });
  const usable = here.filter((shardId) => {
    if (entry.replicas.get(shardId)?.state !== 'Serving') return false;
    const shard = { collection: name, uid: belonging?.uid ?? 0, shardId };
    return assignments.isAlone || assignments.of(shard)?.replicas.get(assignments.peerId) === 'Active';
  });
  const isLacking = assignments.isAlone ? usable.length < here.length : usable.length === 0 && here.length > 0;
  if (isLacking || only?.every((shardId) => usable.includes(shardId)) === false)
    throw new TroupeError('unavailable', `shards of collection ${name} are not Active on this node`, { retryAfterMs: 1000 });
  return only === null ? usable : [...only];
}

/** Copies shards of a collection. record: null outside of a cluster. Nothing stays if it fails. Errors: `unavailable`, `storage`. */
export async function copyCollection(
  parts: CopyParts,
  entry: CollectionEntry,
  record: CollectionRecord | null,
  shardIds: readonly ShardId[],
): Promise<CopiedCollection> {
  const { newId, services } = parts;
  const { config, name } = entry;
  if (config === null) throw new TroupeError('unavailable', `collection ${name} has no configuration`);
  const folders = shardIds.map(() => services.store.staging(`snapshot-${newId()}`));
  try {
    const copies = shardIds.map((shardId, at) => copyShard(parts, entry, record, shardId, folders[at] as string));
    // All have ended before any folder is removed.
    const results = await Promise.allSettled(copies);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const keys = keysOfShards(record?.shards ?? []);
    const copied = await Promise.all(copies);
    const times = new Map(copied.flatMap(({ shard, timeMs }): [ShardId, number][] => (timeMs === null ? [] : [[shard.id, timeMs]])));
    return {
      described: { name, description: describeCollection({ config, keys, times }), shards: copied.map(({ shard }) => shard) },
      folders,
    };
  } catch (error) {
    await removeCopies(services, folders);
    throw error;
  }
}

export async function removeCopies({ store }: Pick<NodeServices, 'store'>, folders: readonly string[]): Promise<void> {
  await Promise.all(folders.map((folder) => store.staged.remove(folder)));
}

async function copyShard(
  { pause, services, signal }: CopyParts,
  entry: CollectionEntry,
  record: CollectionRecord | null,
  shardId: ShardId,
  folder: string,
): Promise<{ readonly shard: ArchiveShard; readonly timeMs: number | null }> {
  const { engine } = services;
  const key = entry.replicas.get(shardId)?.key;
  if (key === undefined) throw new TroupeError('unavailable', `shard ${shardId} of ${entry.name} is not on this node, or not yet`);
  for (let tries = 0; ; tries++) {
    signal.throwIfAborted();
    try {
      const { at, files, timeMs } = await engine.checkpoint(key, folder, false);
      const points = engine.stats(key)?.points ?? 0;
      await engine.releaseCheckpoint(key);
      return { shard: { id: shardId, key: record?.shards.get(shardId)?.key ?? null, points, at, files }, timeMs };
    } catch (error) {
      const isBusy = error instanceof TroupeError && error.code === 'conflict';
      if (!isBusy || tries === BUSY_TRIES) throw error;
      await pause(BUSY_PAUSE_MS);
    }
  }
}

/** `<what>-<time><mark>.snapshot` with the time in UTC, or with a number more where there is one of this name. */
export function archiveName(what: string, timeMs: number, taken: number, mark = ''): string {
  const time = new Date(timeMs).toISOString().slice(0, 19).replace(/[T:]/g, '-');
  const tail = `-${time}${taken === 0 ? '' : `-${taken + 1}`}${mark}${SNAPSHOT_SUFFIX}`;
  const name = `${what}${tail}`;
  if (isSnapshotName(name)) return name;
  const plain = `${folderName(what).slice(0, 100)}${tail}`;
  return isSnapshotName(plain) ? plain : `snapshot${tail}`;
}
