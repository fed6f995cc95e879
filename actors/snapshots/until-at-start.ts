/** Restores to a point in time before a node opens its collections: `troupe restore --until`. */

import { join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import { addToLog } from '../../storage/archive/add-to-log.js';
import type { ArchiveCollection } from '../../storage/archive/manifest.js';
import { withStoppedLog } from '../../storage/archive/stopped-log.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { WriteAheadLog } from '../../storage/wal/wal.js';
import { loadCollection } from '../collection/store.js';
import type { VerifyReplicas } from '../context/verified-replicas.js';
import { archivedCollection, incompatibility } from './archived-collection.js';
import { reachOfShard, requireTimes, type ShardReach } from './until.js';

export interface StoppedRestore {
  /** The folder of all collections. */
  readonly collectionsPath: string;
  /** The collection whose log follows the snapshot. */
  readonly name: string;
  readonly archived: ArchiveCollection;
  /** A date in milliseconds. */
  readonly untilMs: number;
  readonly nowMs: number;
  readonly verify: VerifyReplicas;
}

/** Of the log that are carried at a time. */
const CARRY_BYTES = 4 * 2 ** 20;

/** How far the log of each shard brings the snapshot. Nothing changes. Errors: `wrongInput`, with the figures; `storage`. */
export async function reachesOfStopped(restore: StoppedRestore): Promise<ShardReach[]> {
  const { archived, nowMs, untilMs } = restore;
  await checkedConfig(restore);
  const { times } = archivedCollection(archived.name, archived.description);
  const reaches: ShardReach[] = [];
  for (const { at, id } of archived.shards) {
    const facts = { shardId: id, at, timeMs: times.get(id) ?? null, untilMs, nowMs };
    requireTimes(facts);
    reaches.push(await withStoppedLog(folderOf(restore, id), async (log) => reachOfShard(facts, log.reachOf(at, untilMs))));
  }
  return reaches;
}

/**
 * Puts what the logs have up to the time behind the unpacked files (Restore-I4). shards: the unpacked folders. Result: the configuration that the collection has and
 * keeps. Errors: as `reachesOfStopped`; all shards are judged before the first file changes.
 */
export async function carryStopped(
  restore: StoppedRestore,
  shards: ReadonlyMap<number, string>,
): Promise<{ readonly config: CollectionConfig; readonly reaches: readonly ShardReach[] }> {
  const reaches = await reachesOfStopped(restore);
  const config = await checkedConfig(restore);
  for (const reach of reaches) {
    const folder = shards.get(reach.shardId) as string;
    await withStoppedLog(folderOf(restore, reach.shardId), (log) => carry(log, reach, folder, config, restore.nowMs));
  }
  return { config, reaches };
}

async function carry(
  log: WriteAheadLog,
  { from, to }: ShardReach,
  folder: string,
  { params }: CollectionConfig,
  nowMs: number,
): Promise<void> {
  for (let after = from.tag.index; after < to.tag.index; ) {
    const entries = log.entriesAfter(after, CARRY_BYTES)?.filter(({ tag }) => tag.index <= to.tag.index) ?? [];
    const last = entries.at(-1);
    if (last === undefined) throw new TroupeError('storage', `the log cannot be read after operation ${after}`, { reason: 'damaged' });
    await addToLog(folder, entries, params);
    after = last.tag.index;
  }
  const tag = { ...log.last, index: log.last.index + 1 };
  await addToLog(folder, [{ tag, timeMs: nowMs, operation: encodeUpdate(NOTHING) }], params);
}

/** Errors: `wrongInput` for a snapshot of other points, or without some of the shards; `storage` for files that are damaged. */
async function checkedConfig(restore: StoppedRestore): Promise<CollectionConfig> {
  const { archived, collectionsPath, name, verify } = restore;
  const folder = folderName(name);
  const { config } = await loadCollection(join(collectionsPath, folder), folder).catch((error: unknown) => {
    throw new TroupeError('wrongInput', `collection ${name} cannot be read, and --until needs its log`, { cause: error });
  });
  const refusal = incompatibility(archivedCollection(archived.name, archived.description).config, config);
  if (refusal !== null) throw new TroupeError('wrongInput', `the snapshot does not fit collection ${name}: ${refusal}`);
  const { shard_number: count } = config.params;
  if (archived.shards.length !== count)
    throw new TroupeError('wrongInput', `the snapshot has ${archived.shards.length} of the ${count} shards of collection ${name}`);
  const folders = archived.shards.map(({ id }) => folderOf(restore, id));
  for (const [shard, damaged] of await verify(folders))
    if (damaged !== null) throw new TroupeError('storage', `${shard}: ${damaged}`, { reason: 'damaged' });
  return config;
}

function folderOf({ collectionsPath, name }: StoppedRestore, shardId: number): string {
  return join(collectionsPath, folderName(name), String(shardId));
}
