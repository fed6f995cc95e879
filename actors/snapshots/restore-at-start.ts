/** Restores snapshots before a node opens its collections. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { basesBeside } from '../../storage/archive/bases.js';
import type { ArchiveCollection, ArchiveKind, ArchiveManifest } from '../../storage/archive/manifest.js';
import { unpackedShard } from '../../storage/archive/members.js';
import type { UnpackedArchive, UnpackLimits } from '../../storage/archive/port.js';
import { manifestOfFile } from '../../storage/archive/read-archive.js';
import { unpackArchive } from '../../storage/archive/unpack.js';
import { initChecksum } from '../../storage/disk/checksum.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { type CollectionStore, openCollectionStore } from '../collection/store.js';
import type { VerifyReplicas } from '../context/verified-replicas.js';
import { AliasFile } from '../node/alias-store.js';
import { archivedCollection } from './archived-collection.js';
import { shownReach } from './until.js';

export interface StartRestore {
  /** `--snapshot`. */
  readonly collections: readonly { readonly file: string; readonly collection: string }[];
  /** `--storage-snapshot`; null: none. */
  readonly storage: string | null;
  /** `--force_snapshot`: collections that exist are replaced. */
  readonly force: boolean;
  /** `troupe restore --until`: the logs of the collections follow their snapshots up to this date in milliseconds. */
  readonly untilMs?: number;
}

export interface StartRestoreParts {
  readonly storagePath: string;
  readonly verify: VerifyReplicas;
  readonly freeBytesMin: number;
  readonly log: { info(message: string): void; warn(message: string): void };
  /** The date, in milliseconds. */
  readonly nowMs: number;
}

interface Unpacked {
  readonly name: string;
  readonly archived: ArchiveCollection;
  /** The folder of each of its shards, by shard id. */
  readonly shards: ReadonlyMap<number, string>;
}

/**
 * Restores all that is asked for; nothing is open yet, and the storage folder is this process's. All archives are unpacked and checked before
 * the first collection changes, and each collection changes as a whole. Errors: `conflict` for a collection that exists, unless
 * forced; `ArchiveError`; `wrongInput`; `storage`, `outOfDisk`.
 */
export async function restoreAtStart(parts: StartRestoreParts, wanted: StartRestore): Promise<void> {
  const { log, storagePath } = parts;
  const store = await openCollectionStore(storagePath, (path, error) => log.warn(`${path} could not be removed: ${String(error)}`));
  const existing = new Set(await store.scan());
  for (const { collection } of wanted.collections) refuseExisting(collection, existing, wanted.force);
  const folders: string[] = [];
  try {
    const unpacked: Unpacked[] = [];
    for (const { collection, file } of wanted.collections) {
      const { folder, manifest } = await unpack(parts, store, file, folders);
      const [archived] = manifest.collections;
      if (archived === undefined || manifest.kind === 'full') throw notOfKind(file, manifest.kind, '--storage-snapshot');
      unpacked.push({ name: collection, archived, shards: shardsOf(folder, 0, archived) });
    }
    const aliases = new Map<string, string>();
    if (wanted.storage !== null) {
      const { folder, manifest } = await unpack(parts, store, wanted.storage, folders);
      if (manifest.kind !== 'full') throw notOfKind(wanted.storage, manifest.kind, '--snapshot <file>:<collection>');
      for (const [at, archived] of manifest.collections.entries()) {
        refuseExisting(archived.name, existing, wanted.force);
        unpacked.push({ name: archived.name, archived, shards: shardsOf(folder, at, archived) });
      }
      for (const { alias, collection } of manifest.aliases) aliases.set(alias, collection);
    }
    for (const one of unpacked)
      await replace(store, one, log, wanted.untilMs === undefined ? null : await carriedTo(parts, one, wanted.untilMs));
    if (aliases.size > 0) await addAliases(parts, aliases);
  } finally {
    for (const folder of folders) await store.staged.remove(folder);
  }
}

async function unpack(
  { freeBytesMin, verify }: StartRestoreParts,
  store: CollectionStore,
  file: string,
  folders: string[],
): Promise<{ readonly folder: string; readonly manifest: ArchiveManifest }> {
  const folder = store.staging(`restore-${crypto().randomUUID()}`);
  folders.push(folder);
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, freeBytesMin };
  const { manifest } = await unpackWithBases(file, folder, limits).catch((error: unknown) => {
    throw error instanceof TroupeError ? new TroupeError(error.code, `${file}: ${error.detail}`, { cause: error }) : error;
  });
  const shards = manifest.collections.flatMap((archived, at) => [...shardsOf(folder, at, archived).values()]);
  for (const [shard, damaged] of await verify(shards))
    if (damaged !== null) throw new TroupeError('wrongInput', `${file} cannot be used: ${shard.slice(folder.length + 1)}: ${damaged}`);
  return { folder, manifest };
}

/** Bases lie beside the file. */
async function unpackWithBases(file: string, folder: string, limits: UnpackLimits): Promise<UnpackedArchive> {
  await initChecksum();
  const bases = await basesBeside(file, await manifestOfFile(file), async (base) => (existsSync(base) ? manifestOfFile(base) : null));
  return unpackArchive({ from: file, bases, folder, limits, expectedSha256: null });
}

function shardsOf(folder: string, at: number, { shards }: ArchiveCollection): Map<number, string> {
  return new Map(shards.map(({ id }) => [id, unpackedShard(folder, at, id)]));
}

/** The configuration that the collection keeps, once its log follows the unpacked files. */
async function carriedTo(parts: StartRestoreParts, { archived, name, shards }: Unpacked, untilMs: number): Promise<CollectionConfig> {
  const { log, nowMs, storagePath, verify } = parts;
  // Loaded where it is asked for.
  const { carryStopped } = await import('./until-at-start.js');
  const restore = { collectionsPath: join(storagePath, 'collections'), name, archived, untilMs, nowMs, verify };
  const { config, reaches } = await carryStopped(restore, shards);
  for (const reach of reaches) log.info(shownReach(reach));
  return config;
}

async function replace(
  store: CollectionStore,
  { archived, name, shards }: Unpacked,
  log: StartRestoreParts['log'],
  own: CollectionConfig | null,
): Promise<void> {
  const { config: archivedConfig, keys } = archivedCollection(name, archived.description);
  const config = own ?? archivedConfig;
  const { params } = config;
  if (keys.length > 0)
    throw new TroupeError(
      'wrongInput',
      `collection ${name} has shard keys, which a node without a cluster has not: restore it in a cluster, by a request`,
    );
  const missing = Array.from({ length: params.shard_number }, (_, shard) => shard).filter((shard) => !shards.has(shard));
  await store.replaceCollection({ name, config }, shards);
  if (missing.length > 0) log.warn(`the snapshot of ${name} has no points of shards ${missing.join(', ')}: they begin empty`);
  log.info(`collection ${name} is restored from a snapshot: ${archived.shards.reduce((sum, { points }) => sum + points, 0)} points`);
}

async function addAliases({ log, storagePath }: StartRestoreParts, aliases: ReadonlyMap<string, string>): Promise<void> {
  const file = new AliasFile(storagePath, (error) => log.warn(error.detail));
  await file.save(new Map([...(await file.load()), ...aliases]));
}

function refuseExisting(collection: string, existing: ReadonlySet<string>, force: boolean): void {
  if (force || !existing.has(folderName(collection))) return;
  throw new TroupeError('conflict', `collection ${collection} exists already: add --force_snapshot to replace it with its snapshot`);
}

function notOfKind(file: string, kind: ArchiveKind, option: string): TroupeError {
  return new TroupeError(
    'wrongInput',
    `${file} is a snapshot of ${kind === 'full' ? 'a whole storage' : `a ${kind}`}: restore it with ${option}`,
  );
}
