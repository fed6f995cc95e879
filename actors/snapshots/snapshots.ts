/** The snapshots of a node: made from its replicas, kept in a store, and restored. */

import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ArchiveManifest } from '../../storage/archive/manifest.js';
import type { ArchivePort, BaseFile, PackedArchive } from '../../storage/archive/port.js';
import type {
  ArchiveRange,
  OpenArchive,
  SnapshotPlace,
  SnapshotRecord,
  SnapshotStore,
} from '../../storage/snapshot-store/snapshot-store.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import type { NodeServices } from '../context/services.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { Clock, Log, Timers } from '../runtime/ports.js';
import { archiveName, type CopiedCollection, copyCollection, removeCopies, shardsToCopy } from './make.js';
import type { SnapshotsMessage, SnapshotWork } from './messages.js';
import type { CollectionFinder, NamedCollection } from './names.js';
import { restoreArchive } from './restore.js';
import {
  type ListedSnapshot,
  NO_SNAPSHOT_FIGURES,
  type RestoreOptions,
  type RestoreTarget,
  type SnapshotApi,
  type SnapshotFigures,
  type UploadFile,
} from './snapshot-api.js';
import { type HeldBases, SnapshotBases } from './snapshot-bases.js';
import type { ShardReach } from './until.js';

/** What a node needs for snapshots, beside its collections. */
export interface SnapshotOptions {
  readonly store: SnapshotStore;
  readonly archive: ArchivePort;
  /** A folder of this node alone, which is emptied at the start. */
  readonly tempFolder: string;
  /** Troupe's version. */
  readonly version: string;
  /** Bytes of the disk that must stay free. */
  readonly freeBytesMin: number;
  /** The file that a request names by a URL or a path: see `recover`. */
  readonly locate: LocateArchive;
  /** The date, in milliseconds. */
  readonly dateMs: () => number;
  readonly checkArchive: CheckArchive;
}

/** What is wrong with an archive. */
export interface ArchiveFindings {
  /** A sentence each; none: it is in order. */
  readonly problems: readonly string[];
  /** Its bytes are not those that were packed: it cannot be restored. */
  readonly isDamaged: boolean;
}

/** unpackIn: a folder in which shards are unpacked and looked through; null: the archive's own checks only. Errors: `unavailable`. */
export type CheckArchive = (file: string, unpackIn: string | null, signal: AbortSignal) => Promise<ArchiveFindings>;

export interface LocateRequest {
  readonly tempFolder: string;
  /** Sent with the request for a URL; null: none. */
  readonly apiKey: string | null;
  /** Hosts of all peers of the cluster. */
  readonly peers: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * A file for the location of a request, below `tempFolder` if it has to be fetched. Errors: `wrongInput`, `forbidden`, `outOfDisk`, `unavailable`.
 */
export type LocateArchive = (location: string, request: LocateRequest) => Promise<{ readonly path: string; release(): Promise<void> }>;

export interface SnapshotsParts {
  readonly options: SnapshotOptions;
  readonly services: NodeServices;
  readonly names: CollectionFinder;
  readonly cluster: ClusterApi | null;
  readonly actor: ActorRef<SnapshotsMessage>;
  readonly createCollection: (name: string, config: CollectionConfig, timeoutMs?: number) => Promise<boolean>;
  readonly deleteCollection: (name: string, timeoutMs?: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

/** A work waits so long for those before it. */
const TURN_MS = 24 * 3_600_000;
const NAMES_MAX = 100;
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;

export class Snapshots implements SnapshotApi {
  readonly #closing = new AbortController();
  readonly #prepared: Promise<void>;
  readonly #figures = new Map<string, SnapshotFigures>();
  readonly #bases: SnapshotBases;

  constructor(private readonly parts: SnapshotsParts) {
    this.#bases = new SnapshotBases(parts.options);
    this.#prepared = this.#sweep();
    this.#prepared.catch((error: unknown) => parts.log.warn(`leftovers of snapshots could not be removed: ${String(error)}`));
  }

  figures(collection: string): SnapshotFigures {
    return this.#figures.get(collection) ?? NO_SNAPSHOT_FIGURES;
  }

  check(place: SnapshotPlace): void {
    if (place.kind === 'full') return;
    const found = this.parts.names.find(place.collection);
    if (place.kind === 'shard') checkShard(found, place.shardId);
  }

  async list(place: SnapshotPlace): Promise<readonly ListedSnapshot[]> {
    const stored = this.#stored(place);
    const records = await this.#store.list(stored);
    const bases = stored.kind === 'full' ? [] : await this.#bases.of(stored, records);
    return records.map((record, at) => ({ ...record, base: bases[at]?.name ?? null }));
  }

  async describe(place: SnapshotPlace, name: string): Promise<SnapshotRecord> {
    return this.#store.describe(this.#stored(place), name);
  }

  async open(place: SnapshotPlace, name: string, range: ArchiveRange | null): Promise<OpenArchive> {
    return this.#store.open(this.#stored(place), name, range);
  }

  async remove(place: SnapshotPlace, name: string, force = false): Promise<void> {
    const stored = this.#stored(place);
    if (!force && stored.kind !== 'full') {
      await this.#store.describe(stored, name);
      await this.#bases.requireUnneeded(stored, name);
    }
    return this.#store.remove(stored, name);
  }

  /**
   * mark: stands before `.snapshot` in the name. only: of a collection's shards on this node, those that the snapshot has; `unavailable` if one of them is not
   * Active here. Default: those that are Active.
   */
  async create(
    place: SnapshotPlace,
    base: string | null = null,
    mark = '',
    only: readonly ShardId[] | null = null,
  ): Promise<ListedSnapshot> {
    const stored = this.#stored(place);
    const collection = stored.kind === 'full' ? null : stored.collection;
    if (base === null) {
      const made = await this.#inTurn({ kind: 'create', collection }, (onProgress, signal) =>
        this.#make(stored, { base: null, mark, only }, onProgress, signal),
      );
      return { ...made, base: null };
    }
    if (stored.kind === 'full')
      throw new TroupeError('wrongInput', 'a snapshot of the whole storage has no `base`: leave it out, or make snapshots of collections');
    await this.#store.describe(stored, base);
    return this.#inTurn({ kind: 'create', collection }, (onProgress, signal) =>
      this.#bases.use(stored, base, signal, async (file) => {
        const made = await this.#make(stored, { base: file, mark, only }, onProgress, signal);
        try {
          // Another node may have removed it.
          await this.#store.describe(stored, base);
        } catch (error) {
          await this.#store.remove(stored, made.name);
          throw error;
        }
        return { ...made, base };
      }),
    );
  }

  /**
   * Looks through a stored archive in a process of its own. unpack: with each shard's files in a temporary folder, where all of its points are
   * read. Errors: as the store's; `outOfDisk`; `unavailable` if it could not be looked through.
   */
  async lookThrough(place: SnapshotPlace, name: string, unpack: boolean): Promise<ArchiveFindings> {
    const { signal } = this.#closing;
    const { checkArchive, store, tempFolder } = this.#options;
    const stored = this.#stored(place);
    await this.#prepared;
    const file = await store.localFile(stored, name, tempFolder, signal);
    try {
      if (!unpack) return await checkArchive(file.path, null, signal);
      this.parts.services.copyRoom.require((await store.describe(stored, name)).size);
      const folder = join(tempFolder, `${crypto().randomUUID()}.check`);
      await mkdir(folder);
      try {
        return await checkArchive(file.path, folder, signal);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    } finally {
      await file.release();
    }
  }

  async stream(collection: string, shardId: ShardId, signal: AbortSignal): Promise<Readable> {
    const place = this.#stored({ kind: 'shard', collection, shardId });
    const copies = await this.#inTurn({ kind: 'create', collection: (place as { collection: string }).collection }, () =>
      this.#copy(place, null, signal),
    );
    try {
      const { chunks } = await this.#options.archive.packStream(this.#order(place, copies), { signal });
      const stream = Readable.from(chunks, { objectMode: false });
      stream.once('close', () => void this.#discard(copies));
      return stream;
    } catch (error) {
      await this.#discard(copies);
      throw error;
    }
  }

  async upload(): Promise<UploadFile> {
    const path = await this.#newFile();
    const { copyRoom } = this.parts.services;
    return { path, requireRoom: (bytes) => copyRoom.requireOnDisk(bytes), discard: () => rm(path, { force: true }) };
  }

  async restoreUploaded(target: RestoreTarget, file: UploadFile, options: RestoreOptions): Promise<readonly ShardReach[]> {
    try {
      return await this.#restore(target, options, async () => ({ path: file.path, release: async () => {} }));
    } finally {
      await file.discard();
    }
  }

  async recover(
    target: RestoreTarget,
    location: string,
    options: RestoreOptions & { readonly apiKey: string | null },
  ): Promise<readonly ShardReach[]> {
    const { shardId } = target;
    return this.#restore(target, options, async (signal) => {
      const { locate, store, tempFolder } = this.#options;
      await this.#prepared;
      if (shardId === null || SCHEME.test(location))
        return locate(location, { tempFolder, apiKey: options.apiKey, peers: this.#peers(), signal });
      const place = this.#stored({ kind: 'shard', collection: target.collection, shardId });
      return store.localFile(place, location, tempFolder, signal);
    });
  }

  /** Ends works that are under way; nothing of them stays. */
  async close(): Promise<void> {
    this.#closing.abort(new TroupeError('unavailable', 'the node stops'));
    await this.#prepared.catch(() => {});
    await this.#options.archive.close();
  }

  get #options(): SnapshotOptions {
    return this.parts.options;
  }

  get #store(): SnapshotStore {
    return this.#options.store;
  }

  #peers(): string[] {
    const members = this.parts.cluster?.state()?.membership ?? [];
    return members.map(({ uri }) => new URL(uri).hostname);
  }

  /** The place under the collection's own name. Errors: `notFound`. */
  #stored(place: SnapshotPlace): SnapshotPlace {
    if (place.kind === 'full') return place;
    const found = this.parts.names.find(place.collection);
    if (place.kind === 'shard') checkShard(found, place.shardId);
    return { ...place, collection: found.name };
  }

  async #make(
    place: SnapshotPlace,
    { base, mark, only }: { readonly base: BaseFile | null; readonly mark: string; readonly only: readonly ShardId[] | null },
    onProgress: (doneBytes: number, totalBytes: number) => void,
    signal: AbortSignal,
  ): Promise<SnapshotRecord> {
    const copies = await this.#copy(place, only, signal);
    const file = await this.#newFile();
    try {
      const order = base === null ? this.#order(place, copies) : { ...this.#order(place, copies), base };
      const packed = await this.#options.archive.pack(order, file, { signal, onProgress });
      return await this.#put(place, mark, file, packed, signal);
    } finally {
      await rm(file, { force: true });
      await this.#discard(copies);
    }
  }

  async #copy(place: SnapshotPlace, only: readonly ShardId[] | null, signal: AbortSignal): Promise<CopiedCollection[]> {
    const { clock: _, names, services, timers } = this.parts;
    const pause = (ms: number) => new Promise<void>((resolve) => void timers.after(ms, resolve));
    const copyParts = { services, newId: () => crypto().randomUUID(), pause, signal };
    const wanted = place.kind === 'full' ? names.list() : [place.collection];
    const copies: CopiedCollection[] = [];
    try {
      for (const name of wanted) {
        const { record } = names.find(name);
        const entry = names.entry(name);
        const shards = place.kind === 'shard' ? [place.shardId] : shardsToCopy(services, entry, only);
        copies.push(await copyCollection(copyParts, entry, record, shards));
      }
      return copies;
    } catch (error) {
      await this.#discard(copies);
      throw error;
    }
  }

  async #discard(copies: readonly CopiedCollection[]): Promise<void> {
    for (const { folders } of copies) await removeCopies(this.parts.services, folders);
  }

  #order(place: SnapshotPlace, copies: readonly CopiedCollection[]) {
    const { dateMs, freeBytesMin, version } = this.#options;
    const { names, services } = this.parts;
    const aliases = place.kind === 'full' ? [...names.aliases()].map(([alias, collection]) => ({ alias, collection })) : [];
    const manifest: ArchiveManifest = {
      kind: place.kind,
      version,
      createdAt: new Date(dateMs()).toISOString(),
      peer: services.assignments.peerId,
      aliases,
      collections: copies.map(({ described }) => described),
    };
    return { manifest, folders: copies.map(({ folders }) => folders), freeBytesMin };
  }

  /** Names within a second get a number. */
  async #put(place: SnapshotPlace, mark: string, file: string, { sha256 }: PackedArchive, signal: AbortSignal): Promise<SnapshotRecord> {
    const timeMs = this.#options.dateMs();
    const what = nameOf(place, this.parts.services.assignments.peerId);
    for (let taken = 0; ; taken++) {
      try {
        return await this.#store.put(place, archiveName(what, timeMs, taken, mark), file, sha256, signal);
      } catch (error) {
        if (errorFacts(error).code !== 'conflict' || taken === NAMES_MAX) throw error;
      }
    }
  }

  async #restore(
    target: RestoreTarget,
    options: RestoreOptions,
    locate: (signal: AbortSignal) => Promise<{ readonly path: string; release(): Promise<void> }>,
  ): Promise<readonly ShardReach[]> {
    const { clock, cluster, createCollection, deleteCollection, log, names, services, timers } = this.parts;
    const { archive, dateMs, freeBytesMin } = this.#options;
    const collection = names.known(target.collection)?.name ?? target.collection;
    if (target.shardId !== null) this.check({ kind: 'shard', collection, shardId: target.shardId });
    return this.#inTurn({ kind: 'restore', collection }, async (onProgress, signal) => {
      const file = await locate(signal);
      let bases: HeldBases | null = null;
      try {
        bases = await this.#bases.hold(file.path, placeOf(collection, target.shardId), signal);
        const pause = (ms: number) => new Promise<void>((resolve) => void timers.after(ms, resolve));
        const parts = {
          archive,
          cluster,
          createCollection,
          deleteCollection,
          freeBytesMin,
          log,
          names,
          nowMs: () => clock.nowMs(),
          dateMs,
          pause,
          services,
        };
        return await restoreArchive(parts, {
          target: { ...target, collection },
          file: file.path,
          bases: bases.files,
          options,
          signal,
          onProgress,
        });
      } finally {
        await bases?.release();
        await file.release();
      }
    });
  }

  /** Runs a work when its turn has come (Turn-S1). */
  async #inTurn<Value>(
    work: SnapshotWork,
    run: (onProgress: (doneBytes: number, totalBytes: number) => void, signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const { actor } = this.parts;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    this.#count(work, 1, 0);
    try {
      const value = await this.#inItsTurn(actor, work, run);
      this.#count(work, -1, work.kind === 'create' ? 1 : 0);
      return value;
    } catch (error) {
      this.#count(work, -1, 0);
      throw error;
    }
  }

  async #inItsTurn<Value>(
    actor: ActorRef<SnapshotsMessage>,
    work: SnapshotWork,
    run: (onProgress: (doneBytes: number, totalBytes: number) => void, signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const { signal } = this.#closing;
    await this.#prepared;
    const id = await actor.ask<number>((replyTo) => ({ kind: 'begin', work, replyTo }), TURN_MS);
    try {
      signal.throwIfAborted();
      const value = await run((doneBytes, totalBytes) => void actor.tell({ kind: 'progress', id, doneBytes, totalBytes }), signal);
      actor.report({ kind: 'ended', id, error: null });
      return value;
    } catch (error) {
      actor.report({ kind: 'ended', id, error: errorFacts(error).detail });
      throw error;
    }
  }

  /** A snapshot of the whole storage is one of no collection. */
  #count({ collection, kind }: SnapshotWork, running: number, created: number): void {
    if (collection === null) return;
    const before = this.figures(collection);
    const creating = before.creating + (kind === 'create' ? running : 0);
    const restoring = before.restoring + (kind === 'restore' ? running : 0);
    this.#figures.set(collection, { created: before.created + created, creating, restoring });
  }

  async #newFile(): Promise<string> {
    await this.#prepared;
    return join(this.#options.tempFolder, `${crypto().randomUUID()}.tmp`);
  }

  async #sweep(): Promise<void> {
    const { store, tempFolder } = this.#options;
    await mkdir(tempFolder, { recursive: true });
    for (const name of await readdir(tempFolder)) await rm(join(tempFolder, name), { recursive: true, force: true });
    await store.sweep();
  }
}

function placeOf(collection: string, shardId: ShardId | null): SnapshotPlace {
  return shardId === null ? { kind: 'collection', collection } : { kind: 'shard', collection, shardId };
}

/** Errors: `notFound`. */
function checkShard({ entry }: NamedCollection, shardId: ShardId): void {
  if (entry?.replicas.has(shardId) !== true) throw new TroupeError('notFound', `shard ${shardId} not found`);
}

function nameOf(place: SnapshotPlace, peer: number): string {
  switch (place.kind) {
    case 'full':
      return 'full-snapshot';
    case 'collection':
      return `${place.collection}-${peer}`;
    case 'shard':
      return `${place.collection}-shard-${place.shardId}`;
  }
}
