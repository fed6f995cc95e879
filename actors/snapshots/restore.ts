/** Restores collections and shards from archives. */

import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ArchiveCollection, ArchiveManifest } from '../../storage/archive/manifest.js';
import { unpackedShard } from '../../storage/archive/members.js';
import type { ArchivePort, BaseFile, UnpackedArchive } from '../../storage/archive/port.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { type ArchivedKey, archivedCollection, incompatibility } from './archived-collection.js';
import { installShards } from './install.js';
import type { CollectionFinder, NamedCollection } from './names.js';
import { planRestore, type RestorePlan, type TargetShard } from './plan-restore.js';
import { sendRestored } from './send.js';
import type { RestoreOptions, RestoreTarget } from './snapshot-api.js';

export interface RestoreParts {
  readonly services: NodeServices;
  readonly archive: ArchivePort;
  readonly names: CollectionFinder;
  /** Null outside of a cluster. */
  readonly cluster: ClusterApi | null;
  readonly createCollection: (name: string, config: CollectionConfig, timeoutMs?: number) => Promise<boolean>;
  readonly deleteCollection: (name: string, timeoutMs?: number) => Promise<boolean>;
  readonly pause: (milliseconds: number) => Promise<void>;
  readonly nowMs: () => number;
  readonly log: { warn(message: string): void };
  /** Bytes of the disk that must stay free. */
  readonly freeBytesMin: number;
}

export interface RestoreWork {
  readonly target: RestoreTarget;
  readonly file: string;
  /** Those that the archive needs, nearest first. */
  readonly bases: readonly BaseFile[];
  readonly options: RestoreOptions;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

const CREATE_MS = 60_000;
/** New shards have leaders, and are open, within this time. */
const SETTLE_MS = 60_000;
const SETTLE_PAUSE_MS = 20;

/**
 * Restores a file's archive. It is unpacked beside the collections and checked whole before anything of them changes; a collection that was
 * created for it goes again if the restore fails. Errors: `ArchiveError`; `wrongInput` for an archive that does not fit; those of `installShards`.
 */
export async function restoreArchive(parts: RestoreParts, work: RestoreWork): Promise<void> {
  const { archive, freeBytesMin, services } = parts;
  const { bases, file, onProgress, options, signal, target } = work;
  const folder = services.store.staging(`restore-${crypto().randomUUID()}`);
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, freeBytesMin };
  try {
    const unpacked = await archive.unpack({ file, bases, folder, limits, expectedSha256: options.checksum }, { signal, onProgress });
    const archived = collectionOf(unpacked.manifest, target);
    await checkShards(services, unpacked, folder);
    const { config, keys } = archivedCollection(archived.name, archived.description);
    const known = parts.names.known(target.collection);
    if (known === null) await createFor(parts, target, config, keys);
    else checkFits(known, config);
    try {
      if (known === null) await createKeys(parts, target.collection, keys);
      const found = known ?? (await settled(parts, target.collection));
      await putInPlace(parts, work, { archived, folder, found, isNew: known === null, keys, kind: unpacked.manifest.kind });
    } catch (error) {
      if (known === null) await removeNew(parts, target.collection);
      throw error;
    }
  } finally {
    await services.store.staged.remove(folder);
  }
}

/** The archive's collection that fits what is restored. */
function collectionOf({ collections, kind }: ArchiveManifest, { shardId }: RestoreTarget): ArchiveCollection {
  if (kind === 'full')
    throw new TroupeError(
      'wrongInput',
      'this is a snapshot of a whole storage: start a node with an empty storage folder and `--storage-snapshot`',
    );
  const [collection] = collections;
  if (collection === undefined) throw new TroupeError('wrongInput', 'the snapshot has no collection');
  if (shardId === null && collection.shards.length === 0)
    throw new TroupeError('wrongInput', 'the snapshot has no shard of its collection: the node that made it had none');
  return collection;
}

/** A database that is damaged could end the process that opens it. */
async function checkShards({ verified }: NodeServices, { manifest }: UnpackedArchive, folder: string): Promise<void> {
  for (const [at, { name, shards }] of manifest.collections.entries())
    for (const { id } of shards) {
      const damaged = await verified.check(unpackedShard(folder, at, id));
      if (damaged !== null) throw new TroupeError('wrongInput', `shard ${id} of ${name} in the snapshot cannot be used: ${damaged}`);
    }
}

/** Errors: `wrongInput` for a snapshot of other points; `conflict` while points move between shards. */
function checkFits({ entry, name, record }: NamedCollection, config: CollectionConfig): void {
  if (record !== null && (record.resharding !== null || record.keyCopy !== null))
    throw new TroupeError('conflict', `points of collection ${name} are moving between its shards: restore it when that has ended`);
  const own = record?.config ?? entry?.config ?? null;
  const refusal = own === null ? null : incompatibility(config, own);
  if (refusal !== null) throw new TroupeError('wrongInput', `the snapshot does not fit collection ${name}: ${refusal}`);
}

async function createFor(
  { cluster, createCollection }: RestoreParts,
  { collection, shardId }: RestoreTarget,
  config: CollectionConfig,
  keys: readonly ArchivedKey[],
): Promise<void> {
  if (shardId !== null) throw new TroupeError('notFound', `Collection \`${collection}\` doesn't exist!`);
  if (keys.length > 0 && cluster === null)
    throw new TroupeError(
      'wrongInput',
      'the snapshot has shards of shard keys: restore it in a cluster, as a node without one has no shard keys',
    );
  await createCollection(collection, config, CREATE_MS);
}

async function createKeys({ cluster }: RestoreParts, collection: string, keys: readonly ArchivedKey[]): Promise<void> {
  for (const { key, shards } of keys) {
    const shape = { shardsNumber: shards.length, replicationFactor: null, placement: null, initialState: null };
    await cluster?.updateCollectionCluster(collection, { kind: 'createShardKey', key, ...shape }, CREATE_MS);
  }
}

async function removeNew({ deleteCollection, log }: RestoreParts, collection: string): Promise<void> {
  await deleteCollection(collection, CREATE_MS).catch((error: unknown) =>
    log.warn(`collection ${collection}, made for a restore that has failed, could not be deleted: ${String(error)}`),
  );
}

/** The new collection, once each of its shards has a leader and those of this node are open. */
async function settled({ names, nowMs, pause }: RestoreParts, collection: string): Promise<NamedCollection> {
  const endMs = nowMs() + SETTLE_MS;
  for (;;) {
    const found = names.find(collection);
    const isLed = found.record === null || [...found.record.shards.values()].every(({ leader }) => leader !== null);
    const isOpen = found.entry !== null && [...found.entry.replicas.values()].every(({ state }) => state === 'Serving');
    if (isLed && isOpen) return found;
    if (nowMs() > endMs) throw new TroupeError('timeout', `the shards of the new collection ${collection} have not opened`);
    await pause(SETTLE_PAUSE_MS);
  }
}

interface Unpacked {
  readonly archived: ArchiveCollection;
  readonly kind: ArchiveManifest['kind'];
  readonly keys: readonly ArchivedKey[];
  readonly folder: string;
  readonly found: NamedCollection;
  readonly isNew: boolean;
}

async function putInPlace(parts: RestoreParts, work: RestoreWork, unpacked: Unpacked): Promise<void> {
  const { services } = parts;
  const { archived, folder, found, isNew, keys, kind } = unpacked;
  const { options, target } = work;
  const self = services.assignments.peerId;
  const plan = planRestore({
    kind,
    archived: archived.shards,
    keys,
    shards: shardsOf(found, self),
    only: target.shardId,
    priority: options.priority,
    self,
    inCluster: found.record !== null,
    isNew,
  });
  if (plan.kept.length > 0)
    parts.log.warn(
      `restore of ${found.name} with priority ${options.priority}: shards ${plan.kept.join(', ')} keep what other replicas have`,
    );
  const here = plan.installs.filter(({ peer }) => peer === self);
  const elsewhere = plan.installs.filter(({ peer }) => peer !== self);
  await installHere(parts, found, folder, here);
  for (const install of elsewhere) await installElsewhere(parts, work, found, folder, install);
}

type Install = RestorePlan['installs'][number];

async function installHere(
  { services }: RestoreParts,
  { entry, name }: NamedCollection,
  folder: string,
  installs: readonly Install[],
): Promise<void> {
  if (installs.length === 0) return;
  if (entry === null)
    throw new TroupeError('unavailable', `collection ${name} is being created on this node: retry`, { retryAfterMs: 1000 });
  const restored = installs.map(({ from, leads, to }) => ({ shardId: to, folder: unpackedShard(folder, 0, from.id), at: from.at, leads }));
  // A node of its own leads all its shards, and they take their places as one.
  for (const leads of [true, false]) {
    const group = restored.filter((shard) => shard.leads === leads);
    if (group.length > 0) await installShards(services, entry, group, leads);
  }
}

async function installElsewhere(
  { services }: RestoreParts,
  { signal }: RestoreWork,
  { name, record }: NamedCollection,
  folder: string,
  { from, peer, to }: Install,
): Promise<void> {
  if (record === null) throw new TroupeError('unavailable', `collection ${name} is not one of the cluster`);
  const shard = { collection: name, uid: record.uid, shardId: to };
  const sent = { shard, to: peer, restore: crypto().randomUUID(), archived: from, folder: unpackedShard(folder, 0, from.id) };
  await sendRestored(services, sent, () => {}, signal);
}

function shardsOf({ entry, record }: NamedCollection, self: number): TargetShard[] {
  if (record !== null) return [...record.shards].map(([id, { key, leader, replicas }]) => ({ id, key, leader, replicas }));
  return [...(entry as CollectionEntry).replicas.keys()].map((id) => ({
    id,
    key: null,
    leader: self,
    replicas: new Map([[self, 'Active']]),
  }));
}
