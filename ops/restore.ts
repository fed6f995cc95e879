/** `troupe restore`: restores the archive of a snapshot into the storage folder of a node that is stopped, or says what that would do. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadCollection } from '../actors/collection/store.js';
import { archivedCollection, incompatibility } from '../actors/snapshots/archived-collection.js';
import { type ShardReach, shownReach } from '../actors/snapshots/until.js';
import { reachesOfStopped } from '../actors/snapshots/until-at-start.js';
import { errorFacts, TroupeError } from '../protocols/errors.js';
import { checkNewCollectionName } from '../protocols/rest/parameters.js';
import type { ArchiveCollection, ArchiveManifest } from '../storage/archive/manifest.js';
import { manifestOfFile } from '../storage/archive/read-archive.js';
import { requireSpace } from '../storage/archive/unpack.js';
import { initChecksum } from '../storage/disk/checksum.js';
import { freeForStart, marksOfFolder } from '../storage/disk/disk-watch.js';
import { folderName } from '../storage/disk/folder-name.js';
import { isSnapshotName } from '../storage/snapshot-store/snapshot-store.js';
import { dateMs } from '../storage/threads/clock.js';
import { verifyReplicas } from '../storage/verify/verify-lmdb.js';
import type { NodeSettings } from './config/settings.js';
import { lockStorage } from './lock/storage-lock.js';
import { restoreBeforeStart } from './restore-before-start.js';
import { describeArchive, verifyArchiveFile } from './verify-archive.js';

export interface RestoreOrder {
  /** The file of an archive; for a dry run also a folder of archives. */
  readonly path: string;
  /** Null: the name that the collection had. */
  readonly collection: string | null;
  /** `--force_snapshot`: a collection that exists is replaced. */
  readonly force: boolean;
  /** `--until`, a date in milliseconds: what is there is replaced, and its log follows the snapshot; null: the snapshot as it is. */
  readonly untilMs: number | null;
}

/** How long a node that ends is waited for. */
const LOCK_PATIENCE_MS = 1000;

/** Restores, under the lock of the storage folder. print: gets a line for what was done. Errors: as `restoreAtStart`; the folder is in use. */
export async function restoreStopped(settings: NodeSettings, order: RestoreOrder, print: (line: string) => void): Promise<void> {
  const { collection, force, path, untilMs } = order;
  await initChecksum();
  const manifest = await manifestOfFile(path);
  const [refusal] = refusalsOf(settings, manifest, order);
  if (refusal !== undefined) throw new TroupeError('wrongInput', refusal);
  const { disk_reserve_mb: reserve, storage_path: storagePath } = settings.storage;
  freeForStart(storagePath, reserve);
  const lock = await lockStorage(storagePath, LOCK_PATIENCE_MS, () => {});
  try {
    const name = collection ?? manifest.collections[0]?.name ?? '';
    const wanted =
      manifest.kind === 'full'
        ? { collections: [], storage: path, force }
        : {
            collections: [{ file: path, collection: name }],
            storage: null,
            force: force || untilMs !== null,
            ...(untilMs === null ? {} : { untilMs }),
          };
    await restoreBeforeStart(settings, wanted, { info: print, warn: print });
  } finally {
    lock.release();
  }
}

/**
 * Looks through archives, and prints what they have and what a restore into the storage folder of the settings would do. Nothing is written.
 * Result: how many things are wrong or would be refused.
 */
export async function describeRestore(settings: NodeSettings, order: RestoreOrder, print: (line: string) => void): Promise<number> {
  if (!statSync(order.path).isDirectory()) return describeOne(settings, order, print);
  const files = readdirSync(order.path).filter(isSnapshotName).sort();
  if (files.length === 0) throw new Error(`${order.path} has no file that ends with .snapshot`);
  if (order.collection !== null) throw new Error('--collection: give the file of one archive');
  let problems = 0;
  for (const file of files) {
    print(`${file}:`);
    problems += await describeOne(settings, { ...order, path: join(order.path, file) }, (line) => print(`  ${line}`));
  }
  return problems;
}

async function describeOne(settings: NodeSettings, order: RestoreOrder, print: (line: string) => void): Promise<number> {
  const { archive, missingBase, problems } = await verifyArchiveFile(order.path, null, print);
  const refused = (why: string): void => print(`a restore would be refused: ${why}`);
  if (archive === null) {
    refused('the snapshot cannot be read to its end');
    return Math.max(1, problems);
  }
  const { manifest } = archive;
  print(describeArchive(archive));
  for (const collection of manifest.collections) print(describeCollectionOf(collection));
  const refusals = [
    ...(problems > 0 ? [`${problems} problems are printed above`] : []),
    ...(missingBase === null ? [] : [`its base ${missingBase} does not lie beside it`]),
    ...refusalsOf(settings, manifest, order),
  ];
  const { storage_path: storagePath } = settings.storage;
  const effects: string[] = [];
  for (const archived of manifest.collections) {
    const name = manifest.kind === 'full' ? archived.name : (order.collection ?? archived.name);
    const { effect, refusal } = await effectOn(storagePath, name, archived, order.force || order.untilMs !== null);
    effects.push(effect);
    if (refusal !== null) refusals.push(refusal);
    else if (order.untilMs !== null) {
      const reached = await reachedBy(storagePath, name, archived, order.untilMs);
      if (typeof reached === 'string') refusals.push(reached);
      else effects.push(...reached.map((reach) => `bring ${shownReach(reach)}`));
    }
  }
  const noRoom = lackOfRoom(settings, manifest);
  if (noRoom !== null) refusals.push(noRoom);
  for (const why of refusals) refused(why);
  if (refusals.length === 0) for (const effect of effects) print(`a restore into ${storagePath} would ${effect}`);
  return Math.max(problems, refusals.length);
}

function describeCollectionOf({ name, shards }: ArchiveCollection): string {
  const files = shards.flatMap((shard) => shard.files);
  const sum = (some: typeof files): number => some.reduce((total, { bytes }) => total + bytes, 0);
  const inBase = files.filter((file) => file.inBase !== undefined);
  const points = shards.reduce((total, shard) => total + shard.points, 0);
  const ids = shards.map(({ id }) => id).join(', ');
  const left = inBase.length === 0 ? '' : `, of which ${inBase.length} files (${sum(inBase)} bytes) are in its base`;
  return `collection ${name}: shards ${ids}, ${points} points, ${files.length} files (${sum(files)} bytes)${left}`;
}

/** How far the logs of the collection would bring the snapshot; a text says why they would not. */
async function reachedBy(
  storagePath: string,
  name: string,
  archived: ArchiveCollection,
  untilMs: number,
): Promise<readonly ShardReach[] | string> {
  const lock = await lockStorage(storagePath, LOCK_PATIENCE_MS, () => {});
  try {
    const collectionsPath = join(storagePath, 'collections');
    return await reachesOfStopped({ collectionsPath, name, archived, untilMs, nowMs: dateMs(), verify: verifyReplicas });
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return error.detail;
  } finally {
    lock.release();
  }
}

/** What refuses the restore whatever the storage folder has. */
function refusalsOf({ cluster }: NodeSettings, { collections, kind }: ArchiveManifest, { collection, untilMs }: RestoreOrder): string[] {
  const refusals: string[] = [];
  if (kind !== 'collection' && untilMs !== null) refusals.push('--until: give the snapshot of a collection');
  if (cluster.enabled) refusals.push('this is a node of a cluster (cluster.enabled), where snapshots are restored by requests');
  if (kind === 'full' && collection !== null)
    refusals.push('--collection: a snapshot of a whole storage brings the names of its collections');
  if (collection !== null) refusals.push(...refusalOf(() => checkNewCollectionName(collection)));
  for (const { description, name } of collections)
    refusals.push(
      ...refusalOf(() => {
        const { keys } = archivedCollection(name, description);
        if (keys.length === 0) return;
        throw new TroupeError('wrongInput', `collection ${name} has shard keys: restore it in a cluster, by a request`);
      }),
    );
  return refusals;
}

async function effectOn(
  storagePath: string,
  name: string,
  { description, shards }: ArchiveCollection,
  force: boolean,
): Promise<{ readonly effect: string; readonly refusal: string | null }> {
  const folder = folderName(name);
  const path = join(storagePath, 'collections', folder);
  const points = shards.reduce((total, shard) => total + shard.points, 0);
  if (!existsSync(path)) return { effect: `create collection ${name} with ${points} points`, refusal: null };
  const stored = await loadCollection(path, folder).catch(() => null);
  const difference = stored === null ? null : differenceOf(name, description, stored.config);
  const also = difference === null ? '' : `; a request to the running node could not restore it over that one: ${difference}`;
  if (!force) return { effect: '', refusal: `collection ${name} exists: add --force_snapshot to replace it${also}` };
  return { effect: `replace collection ${name}, and all that is in it, by ${points} points${also}`, refusal: null };
}

type Config = ReturnType<typeof archivedCollection>['config'];

function differenceOf(name: string, description: ArchiveCollection['description'], own: Config): string | null {
  try {
    return incompatibility(archivedCollection(name, description).config, own);
  } catch {
    // `refusalsOf` says that it has no configuration.
    return null;
  }
}

function lackOfRoom({ storage }: NodeSettings, manifest: ArchiveManifest): string | null {
  const folder = nearestFolder(resolve(storage.storage_path));
  const { freeBytesMin } = marksOfFolder(folder, storage.disk_free_min_mb, storage.disk_reserve_mb);
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, freeBytesMin };
  return refusalOf(() => requireSpace(manifest, join(folder, 'restore'), limits))[0] ?? null;
}

function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path));
}

function refusalOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return [errorFacts(error).detail];
  }
}
