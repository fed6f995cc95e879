/** Restores collections and shards from archives. */

import type { ShardAddress } from '../../cluster/data-messages.js';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ArchiveCollection, ArchiveManifest } from '../../storage/archive/manifest.js';
import { unpackedShard } from '../../storage/archive/members.js';
import type { ArchivePort, BaseFile, UnpackedArchive } from '../../storage/archive/port.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { type ArchivedKey, archivedCollection, incompatibility } from './archived-collection.js';
import { installShards, reachHere } from './install.js';
import type { CollectionFinder, NamedCollection } from './names.js';
import { planRestore, type RestorePlan, type TargetShard } from './plan-restore.js';
import { sendRestored } from './send.js';
import type { RestoreOptions, RestoreTarget } from './snapshot-api.js';
import { reachOfShard, requireTimes, type ShardReach } from './until.js';

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
  /** The date, in milliseconds. */
  readonly dateMs: () => number;
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
const TRIES_MAX = 5;
/** A shard whose leader's node has ended has another one within this time, or none. */
const LEADER_MS = 10_000;
const LEADER_PAUSE_MS = 50;
const REACH_MS = 60_000;
/** Errors of a node that does not lead a shard any more, or is gone. */
const LEADER_CODES: ReadonlySet<string> = new Set(['conflict', 'unavailable', 'timeout']);

/**
 * Restores a file's archive. It is unpacked beside the collections and checked whole before anything of them changes; a collection that was
 * created for it goes again if the restore fails. If the leader of a shard changes meanwhile, it begins anew, for the shards that are left. Result: how
 * far the log brought each shard, of a restore to a point in time. Errors: `ArchiveError`; `wrongInput` for an archive that does not fit; those of
 * `installShards`.
 */
export async function restoreArchive(parts: RestoreParts, work: RestoreWork): Promise<readonly ShardReach[]> {
  const run: RestoreRun = { isNew: false, plan: null, done: new Set(), reaches: new Map() };
  try {
    for (let tries = 1; ; tries++) {
      try {
        await restoreOnce(parts, work, run);
        return [...run.reaches.values()];
      } catch (error) {
        if (tries === TRIES_MAX || !(await hasNewLeader(parts, work, run, error))) throw error;
        parts.log.warn(
          `restore of ${work.target.collection}: the leader of a shard has changed, it is planned again: ${errorFacts(error).detail}`,
        );
      }
    }
  } catch (error) {
    if (run.isNew) await removeNew(parts, work.target.collection);
    throw error;
  }
}

/** What a restore has done so far. */
interface RestoreRun {
  /** It has created the collection. */
  isNew: boolean;
  plan: RestorePlan | null;
  readonly done: Set<ShardId>;
  readonly reaches: Map<ShardId, ShardReach>;
}

/** The files of a try that failed may have been changed already, so each try unpacks the archive. */
async function restoreOnce(parts: RestoreParts, work: RestoreWork, run: RestoreRun): Promise<void> {
  const { archive, freeBytesMin, services } = parts;
  const { bases, file, onProgress, options, signal, target } = work;
  const folder = services.store.staging(`restore-${crypto().randomUUID()}`);
  const limits = { bytesMax: Number.MAX_SAFE_INTEGER, freeBytesMin };
  try {
    const unpacked = await archive.unpack({ file, bases, folder, limits, expectedSha256: options.checksum }, { signal, onProgress });
    const archived = collectionOf(unpacked.manifest, target);
    await checkShards(services, unpacked, folder);
    const { config, keys, times } = archivedCollection(archived.name, archived.description);
    const known = parts.names.known(target.collection);
    if (known !== null) checkFits(known, config);
    else {
      if (options.until !== null) throw notThere(target.collection);
      await createFor(parts, target, config, keys);
      run.isNew = true;
      await createKeys(parts, target.collection, keys);
    }
    const found = run.isNew ? await settled(parts, target.collection) : (known as NamedCollection);
    await putInPlace(parts, work, { archived, folder, found, run, keys, times, kind: unpacked.manifest.kind });
  } finally {
    await services.store.staged.remove(folder);
  }
}

function notThere(collection: string): TroupeError {
  return new TroupeError(
    'wrongInput',
    `collection ${collection} does not exist, and \`until\` needs its log: leave out \`until\` to restore the snapshot as it is`,
  );
}

/** Whether a restore failed because a shard that it had planned for has another leader now, which is waited for. */
async function hasNewLeader(
  { names, nowMs, pause }: RestoreParts,
  { target }: RestoreWork,
  run: RestoreRun,
  error: unknown,
): Promise<boolean> {
  const left = run.plan?.installs.filter(({ leads, to }) => leads && !run.done.has(to)) ?? [];
  if (left.length === 0 || !LEADER_CODES.has(errorFacts(error).code)) return false;
  for (const endMs = nowMs() + LEADER_MS; nowMs() < endMs; ) {
    const shards = names.known(target.collection)?.record?.shards;
    if (shards === undefined) return false;
    const leaders = left.map(({ peer, to }) => ({ planned: peer, now: shards.get(to)?.leader ?? null }));
    if (leaders.every(({ now }) => now !== null) && leaders.some(({ now, planned }) => now !== planned)) return true;
    await pause(LEADER_PAUSE_MS);
  }
  return false;
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
  readonly times: ReadonlyMap<ShardId, number>;
  readonly folder: string;
  readonly found: NamedCollection;
  readonly run: RestoreRun;
}

async function putInPlace(parts: RestoreParts, work: RestoreWork, unpacked: Unpacked): Promise<void> {
  const { services } = parts;
  const { archived, folder, found, keys, kind, run } = unpacked;
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
    isNew: run.isNew,
  });
  run.plan = plan;
  if (plan.kept.length > 0)
    parts.log.warn(
      `restore of ${found.name} with priority ${options.priority}: shards ${plan.kept.join(', ')} keep what other replicas have`,
    );
  const left = plan.installs.filter(({ to }) => !run.done.has(to));
  // All shards are judged before the first of them changes.
  if (options.until !== null) {
    const { dryRun, timeMs } = options.until;
    for (const install of left) run.reaches.set(install.to, await reachOf(parts, unpacked, install, timeMs));
    if (dryRun) return;
  }
  const here = left.filter(({ peer }) => peer === self);
  const elsewhere = left.filter(({ peer }) => peer !== self);
  await installHere(parts, found, folder, run, here);
  for (const install of elsewhere) await installElsewhere(parts, work, found, folder, run, install);
}

type Install = RestorePlan['installs'][number];

/** How far the log of a shard brings its snapshot. Errors: those of `reachOfShard`, and of the call to its leader. */
async function reachOf(
  { dateMs, services }: RestoreParts,
  { found, times }: Unpacked,
  { from, peer, to }: Install,
  untilMs: number,
): Promise<ShardReach> {
  const facts = { shardId: to, at: from.at, timeMs: times.get(from.id) ?? null, untilMs, nowMs: dateMs() };
  requireTimes(facts);
  if (peer === services.assignments.peerId)
    return reachOfShard(facts, await reachHere(services, entryOf(found), { shardId: to }, from.at, untilMs));
  const answer = await services.calls.call(peer, { kind: 'reachOf', shard: addressOf(found, to), after: from.at, untilMs }, REACH_MS);
  if (answer.kind !== 'reach') throw new TroupeError('internal', `a question for the reach of a log is answered by ${answer.kind}`);
  return reachOfShard(facts, answer.reach);
}

async function installHere(
  { dateMs, services }: RestoreParts,
  found: NamedCollection,
  folder: string,
  { done, reaches }: RestoreRun,
  installs: readonly Install[],
): Promise<void> {
  // A node of its own leads all its shards, and they take their places as one.
  for (const leads of [true, false]) {
    const group = installs.filter((install) => install.leads === leads);
    if (group.length === 0) continue;
    const restored = group.map(({ from, to }) => ({
      shardId: to,
      folder: unpackedShard(folder, 0, from.id),
      at: from.at,
      to: reaches.get(to)?.to.tag ?? null,
    }));
    await installShards(services, entryOf(found), restored, leads, dateMs());
    for (const { to } of group) done.add(to);
  }
}

async function installElsewhere(
  { services }: RestoreParts,
  { signal }: RestoreWork,
  found: NamedCollection,
  folder: string,
  { done, reaches }: RestoreRun,
  { from, peer, to }: Install,
): Promise<void> {
  const shard = addressOf(found, to);
  const restore = crypto().randomUUID();
  const upTo = reaches.get(to)?.to.tag ?? null;
  const sent = { shard, to: peer, restore, archived: from, folder: unpackedShard(folder, 0, from.id), upTo };
  await sendRestored(services, sent, () => {}, signal);
  done.add(to);
}

function addressOf({ name, record }: NamedCollection, shardId: ShardId): ShardAddress {
  if (record === null) throw new TroupeError('unavailable', `collection ${name} is not one of the cluster`);
  return { collection: name, uid: record.uid, shardId };
}

function entryOf({ entry, name }: NamedCollection): CollectionEntry {
  if (entry !== null) return entry;
  throw new TroupeError('unavailable', `collection ${name} is being created on this node: retry`, { retryAfterMs: 1000 });
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
