/**
 * A replica on disk and in memory. Its home worker holds it and is the only thread that writes it.
 *
 * Its rules are Wal-W1 to Wal-W5 in storage/README.md.
 */

import { rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { invariant, rethrowBroken } from '../../protocols/invariant.js';
import { type CollectionConfig, type FieldSchema, sameSchema } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LogReach, LogTag } from '../../protocols/model/shard-log.js';
import { AppendFolder } from '../disk/append-file.js';
import { initChecksum } from '../disk/checksum.js';
import { syncFolderNow } from '../disk/file.js';
import { checkFormat, markMade } from '../disk/format-marker.js';
import { afterPrefix, DATABASES, type DatabaseSpace, Environment } from '../disk/lmdb.js';
import type { FieldIndexHandle, SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import { closeSegmentFiles, readPayloadBytes } from '../segment/payload-file.js';
import { vectorPlans } from '../segment/plans.js';
import { cleanSegmentFolders } from '../segment/sealed.js';
import { diskBytesOf, memoryBytesOf } from '../segment/segment-bytes.js';
import type { BuildResult, BuildSources, BuiltSegment, GraphStats, ReplicaSpec, ReplicaStats, SegmentStats } from '../threads/messages.js';
import type { LogPart, ReplicaCheckpoint } from '../threads/shard-log.js';
import { NO_LEADER } from '../wal/log-tags.js';
import { damagedRecord, MANIFEST_KEY, segmentPrefix } from '../wal/records.js';
import { WriteAheadLog } from '../wal/wal.js';
import { Attempts } from './attempts.js';
import { makeCheckpoint } from './checkpoint.js';
import { compactCopy, type Replacement } from './compact.js';
import { Copies, type CopiesHost } from './copies.js';
import { carryingDeletions, deferralBytes, defersRows, holdReplaced, settleDeferred } from './deferral.js';
import { FORMAT, hasNewestIndexes, READABLE_FORMATS } from './formats.js';
import { loadReplica, trackSealedFields, writeFirstRecords } from './load.js';
import { LogRetention, type RetainingHost } from './log-retention.js';
import { encodeManifest, type Manifest, type ManifestField } from './manifest.js';
import { type NumberedOperation, Operations, type OperationsHost, type Pause } from './operations.js';
import { ReplicaLog, type ReplicaLogHost } from './replica-log.js';
import { giveBackMemory, makeAppendable, type RowItems, SegmentRows } from './segment-rows.js';
import { holdsSleepRecord, writeSleepRecord } from './sleep-record.js';
import type { IsOver } from './slices.js';
import type { StaleBuckets } from './stale.js';
import { type FilterScans, fieldsOf, type ReplicaShape, Transaction, type TransactionHost } from './transaction.js';
import type { Unfinished } from './unfinished.js';

export interface ReplicaHooks {
  /** Publishes a new set of segments, before the commit that makes it current. */
  publish(spec: ReplicaSpec, openCommit: number, fields: ReadonlyMap<string, FieldSchema>, set: SegmentSet): void;
  /** The set of this generation is committed. */
  published(generation: number): void;
  /** Reports a problem that no answer tells. */
  warn(message: string): void;
  now(): number;
  /** Begins a slice of an operation that touches many points. Returns a function that says when its time is over. */
  beginSlice(): IsOver;
  /** Begins a portion of a slice or of another long work, after which others have their turn. Returns a function that says when its time is over. */
  beginPortion(): IsOver;
  /** Lets others work before an opening goes on. Rejects if the replica is not to be opened any more. */
  pause(): Promise<void>;
  /** The log is kept for restores to a point in time, too (Kept-K5). */
  readonly isRestorable?: boolean;
  /** See `TransactionHost`. */
  readonly scans?: FilterScans;
}

/** For so long the figures of the database are taken for those of now. */
const SPACE_AGE_MS = 5000;

/** With so many segments, no further one is made for `default_segment_number` or `max_segment_size`: each read looks at all of them. */
const SEGMENTS_MADE_MAX = 64;

/** Most bytes of operations that are replayed in one transaction. */
const REPLAY_BYTES_MAX = 16 * 2 ** 20;
/** Most records of a dropped segment that are removed in one transaction. */
const PURGE_RECORDS = 4096;
const PURGED_DATABASES = ['rows', 'ids', 'payload', 'index', 'deleted'] as const;

/** A segment that has left the set; it may be removed when all readers have dropped the sets before `generation`. */
interface RetiredSegment {
  readonly generation: number;
  readonly handle: SegmentHandle;
}

export class ReplicaStore implements TransactionHost, OperationsHost, ReplicaLogHost, RetainingHost, CopiesHost {
  readonly environment: Environment;
  readonly rowFiles: AppendFolder;
  readonly openCommit: number;
  private spec: ReplicaSpec;
  private shape: ReplicaShape;
  readonly wal: WriteAheadLog;
  readonly operations: Operations;
  readonly log: ReplicaLog;
  readonly copies: Copies;
  readonly attempts: Attempts;
  private lastGeneration: number;
  private lastSegment: number;
  private commits = 0;
  readonly retention: LogRetention;
  /** The checkpoint that is being made; no file is removed until it ends. Null if none is. */
  copying: Promise<ReplicaCheckpoint> | null = null;
  /** All readers have dropped the sets before this generation. */
  private retiredGeneration = 0;
  lastWriteMs = 0;
  /** What the database had when it was looked at last. */
  private space: (DatabaseSpace & { readonly readMs: number }) | null = null;
  /** The figures before the operation of which some slices are applied. */
  private heldStats: ReplicaStats | null = null;
  /** A transaction with pauses has begun and not ended. */
  private isChanging = false;
  private retiring: RetiredSegment[] = [];
  /** Segments whose records can be removed. */
  private purging: number[];

  private constructor(
    spec: ReplicaSpec,
    private readonly hooks: ReplicaHooks,
    environment: Environment,
    rowFiles: AppendFolder,
    wal: WriteAheadLog,
    shape: ReplicaShape,
  ) {
    this.spec = spec;
    this.environment = environment;
    this.rowFiles = rowFiles;
    this.wal = wal;
    this.shape = shape;
    this.openCommit = shape.commit;
    this.lastGeneration = shape.generation;
    this.lastSegment = shape.manifest.nextSegment - 1;
    this.purging = [...shape.manifest.dropped];
    this.attempts = new Attempts(spec.folder);
    this.operations = new Operations(this);
    this.retention = new LogRetention(this);
    this.log = new ReplicaLog(this);
    this.copies = new Copies(this);
  }

  /**
   * Opens or makes a replica, and replays the WAL after the last applied operation. damaged: the damage that a check of its LMDB file has
   * found; null if none. Errors: `storage`, naming the file or record.
   */
  static async open(spec: ReplicaSpec, damaged: string | null, hooks: ReplicaHooks): Promise<ReplicaStore> {
    await initChecksum();
    const format = checkFormat(spec.folder, ...READABLE_FORMATS);
    if (damaged !== null) throw new TroupeError('storage', damaged, { reason: 'damaged' });
    const lmdb = path.join(spec.folder, 'lmdb');
    const isMade = format !== null;
    if (!isMade) sweep(spec.folder);
    // Besides the readers: its writer, and builders.
    cpus ??= os.availableParallelism();
    const threads = spec.readers + cpus + 1;
    const environment = await openEnvironment(spec.folder, threads, (message) => hooks.warn(message));
    try {
      if (environment.isNew && isMade)
        throw new TroupeError('storage', `${path.join(lmdb, 'data.mdb')} is missing or empty`, { reason: 'damaged' });
      if (environment.isNew) syncFolderNow(lmdb);
      const warn = (message: string): void => hooks.warn(message);
      const rowFiles = new AppendFolder(path.join(spec.folder, 'rows'));
      const loaded = await loadReplica(environment, rowFiles, spec, hasNewestIndexes(format), { warn, pause: () => hooks.pause() });
      const wal = new WriteAheadLog(environment, new AppendFolder(path.join(spec.folder, 'wal')), loaded.shape.appliedOperation, warn);
      const store = new ReplicaStore(spec, hooks, environment, rowFiles, wal, loaded.shape);
      cleanSegmentFolders(spec.folder, new Set(loaded.shape.segments.map((segment) => segment.id)));
      // Before the first record that an older release does not know.
      if (isMade) markMade(spec.folder, FORMAT);
      await store.begin(loaded.repairs);
      // LMDB tells of damage that it met on the way.
      store.readSpace();
      if (!isMade) markMade(spec.folder, FORMAT);
      return store;
    } catch (error) {
      await environment.close();
      throw error;
    }
  }

  /** Publishes the first set (with a new appendable segment if there is none), repairs, and replays. */
  private async begin(repairs: readonly ((transaction: Transaction) => void)[]): Promise<void> {
    const prepare = (transaction: Transaction): void => {
      for (const repair of repairs) repair(transaction);
      holdReplaced(transaction);
      settleDeferred(transaction, this.spec.config);
      transaction.keepVectors(vectorPlans(this.spec.config.params));
      const wanted = transaction.segments.length === 0 ? this.segmentsWanted : 1;
      for (let open = transaction.segments.filter(({ room }) => room > 0).length; open < wanted; open++)
        transaction.addSegment(this.makeSegment(transaction.segments));
    };
    const mayBeAsBefore = repairs.length === 0 && this.unfinished === null && this.shape.segments.some(({ room }) => room > 0);
    if (!mayBeAsBefore || !this.showAsBefore(prepare)) this.transact(prepare);
    let group: NumberedOperation[] = [];
    let groupBytes = 0;
    for (const { operation, logged, bytes } of this.wal.after(this.shape.appliedOperation)) {
      group.push({ operation, by: NO_LEADER, logged });
      groupBytes += bytes;
      if (groupBytes < REPLAY_BYTES_MAX) continue;
      await this.replay(group);
      group = [];
      groupBytes = 0;
    }
    await this.replay(group);
    if (this.unfinished !== null) throw damagedRecord('meta/unfinished');
  }

  /** Publishes what is there without a commit (Sleep-S5), unless something changes. Returns whether it did. */
  private showAsBefore(prepare: (transaction: Transaction) => void): boolean {
    const transaction = new Transaction(this, this.shape);
    prepare(transaction);
    if (!transaction.isAsBefore) {
      transaction.undo();
      return false;
    }
    transaction.show();
    this.shape = transaction.shape;
    this.hooks.published(this.shape.generation);
    return true;
  }

  private async replay(group: readonly NumberedOperation[]): Promise<void> {
    const begun = this.unfinished;
    if (begun !== null && group.length > 0 && group[0]?.operation !== begun.operation) throw damagedRecord('meta/unfinished');
    for (const pause of this.operations.replaying(group)) await (pause ?? this.hooks.pause());
  }

  // ---------------------------------------------------------------- writes

  get unfinished(): Unfinished | null {
    return this.shape.unfinished;
  }

  beginSlice(): IsOver {
    return this.hooks.beginSlice();
  }

  beginPortion(): IsOver {
    return this.hooks.beginPortion();
  }

  holdStats(): void {
    this.heldStats = this.stats();
  }

  applied(): void {
    this.lastWriteMs = this.hooks.now();
  }

  warn(message: string): void {
    this.hooks.warn(message);
  }

  /** Runs `change` in a transaction (Wal-W3). trims: the log may lose applied operations. */
  transact<T>(change: (transaction: Transaction) => T, trims = true): T {
    const transaction = new Transaction(this, this.shape);
    let result: T;
    try {
      result = this.commit(() => {
        const changed = change(transaction);
        this.finish(transaction, trims);
        return changed;
      });
    } catch (error) {
      transaction.undo();
      throw error;
    }
    this.takeOver(transaction);
    return result;
  }

  /**
   * As `transact`, for a change that pauses: others have their turns, and nothing else changes the replica (Slice-S4). The transaction stays
   * open meanwhile. Whoever leaves the generator before its end undoes the change.
   */
  *transacting<T>(change: (transaction: Transaction) => Generator<Pause, T>): Generator<Pause, T> {
    const transaction = new Transaction(this, this.shape);
    const write = this.environment.begin();
    this.isChanging = true;
    let isCommitted = false;
    let result: T;
    try {
      result = yield* change(transaction);
      this.finish(transaction, true);
      this.syncFiles();
      write.commit();
      isCommitted = true;
    } finally {
      this.isChanging = false;
      if (!isCommitted) {
        write.abort();
        this.forgetFiles();
        transaction.undo();
      }
    }
    this.keepFiles();
    this.takeOver(transaction);
    return result;
  }

  /** The last steps of a transaction before its commit. */
  private finish(transaction: Transaction, trims: boolean): void {
    const { appliedOperation } = transaction;
    if (trims) this.retention.trim(appliedOperation);
    invariant(
      appliedOperation <= this.wal.end,
      'Wal-W2',
      () => `operation ${appliedOperation} is applied, the log ends at ${this.wal.end}`,
    );
    transaction.flush();
  }

  /** A transaction is on disk. */
  private takeOver(transaction: Transaction): void {
    this.shape = transaction.shape;
    this.copies.note(transaction.rowChanges);
    const { generation } = this.shape;
    this.retiring.push(...transaction.emptied.map(({ handle }) => ({ generation, handle })));
    if (transaction.hasNewGeneration) this.hooks.published(this.shape.generation);
  }

  /** Runs `action` in one LMDB transaction. The files that it wrote are on disk before the commit, whose records point at them. */
  commit<T>(action: () => T): T {
    let result: T;
    try {
      result = this.environment.write(() => {
        const done = action();
        this.syncFiles();
        return done;
      });
    } catch (error) {
      this.forgetFiles();
      throw error;
    }
    this.keepFiles();
    return result;
  }

  private syncFiles(): void {
    this.wal.flush();
    this.wal.files.sync();
    this.rowFiles.sync();
  }

  private forgetFiles(): void {
    this.wal.forget();
    this.rowFiles.forget();
  }

  private keepFiles(): void {
    this.wal.keep();
    this.rowFiles.keep();
    this.commits++;
  }

  get keepsLog(): boolean {
    return this.retention.keepsLog || this.isRestorable;
  }

  get isRestorable(): boolean {
    return this.hooks.isRestorable === true;
  }

  get walCapacity(): number {
    return this.retention.capacity;
  }

  get capacityBytes(): number {
    return this.spec.config.wal_config.wal_capacity_mb * 2 ** 20;
  }

  /** Number of the newest applied operation that is on disk. */
  get appliedOperation(): number {
    return this.shape.appliedOperation;
  }

  /** See `ShardLogPort.entriesAfter`. */
  entriesAfter(after: LogTag, bytesMax: number): LogPart {
    this.retention.noteRead(this.hooks.now());
    return this.log.entriesAfter(after, bytesMax);
  }

  /** See `ShardLogPort.reachOf`. Whoever asks for it reads the log next. */
  reachOf(after: LogTag, untilMs: number): LogReach {
    this.retention.noteRead(this.hooks.now());
    return this.log.reachOf(after, untilMs);
  }

  /** Removes some of what the log has beyond what it may keep. Returns whether there is more. Errors: `storage`. */
  shortenLog(): boolean {
    // Between two slices nothing else changes the replica (Slice-S4).
    if (this.unfinished !== null || !this.retention.isTooLong) return false;
    this.transact(() => {});
    return this.retention.isTooLong;
  }

  // ---------------------------------------------------------------- staleness and points

  get stale(): StaleBuckets {
    return this.shape.stale;
  }

  /** Ends staleness on a leader: others are compared with this replica (Bucket-B3). */
  lead(): void {
    if (this.shape.stale === null) return;
    this.transact((transaction) => {
      transaction.stale = null;
    }, false);
  }

  /** The first of these points that does not exist once everything logged is applied; null if all exist. */
  missing(ids: readonly PointId[]): PointId | null {
    this.operations.apply();
    const now = this.view();
    return ids.find((id) => now.find(id) === undefined) ?? null;
  }

  // ---------------------------------------------------------------- a copy of the files

  /** See `ShardLogPort.checkpoint`. Other calls may run meanwhile. Errors: `conflict` while another checkpoint exists; `storage`. */
  checkpoint(folder: string, isFollowed = true): Promise<ReplicaCheckpoint> {
    this.operations.apply();
    this.retention.beginCheckpoint(isFollowed ? this.appliedOperation : null);
    this.copying = this.copyTo(folder);
    return this.copying;
  }

  private async copyTo(folder: string): Promise<ReplicaCheckpoint> {
    try {
      return await makeCheckpoint(this.environment, this.spec.folder, folder);
    } catch (error) {
      this.releaseCheckpoint();
      throw error;
    } finally {
      this.copying = null;
      this.retired(this.retiredGeneration);
    }
  }

  /** Lets the log lose operations that it kept for the checkpoint. */
  releaseCheckpoint(): void {
    this.retention.endCheckpoint();
  }

  get scans(): FilterScans | undefined {
    return this.hooks.scans;
  }

  /** A transaction for reading only. */
  view(): Transaction {
    return new Transaction(this, this.shape);
  }

  get keepsDigest(): boolean {
    return this.copies.keepsDigest;
  }

  // ---------------------------------------------------------------- host of transactions

  nextGeneration(): number {
    return ++this.lastGeneration;
  }

  get segmentsWanted(): number {
    return Math.min(SEGMENTS_MADE_MAX, Math.max(1, this.spec.config.optimizer_config.default_segment_number));
  }

  makeSegment(segments: readonly SegmentRows[], items?: RowItems): SegmentRows {
    const { config, readers } = this.spec;
    const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
    const { max_segment_size } = config.optimizer_config;
    const isBounded = max_segment_size !== null && segments.length < SEGMENTS_MADE_MAX;
    return makeAppendable(++this.lastSegment, config, readers, items, rows, isBounded ? max_segment_size * 1024 : undefined);
  }

  defers(segments: readonly SegmentRows[], manifest: Manifest): boolean {
    return defersRows(segments, manifest, this.spec.config);
  }

  publish(set: SegmentSet, fields: ReadonlyMap<string, FieldSchema>): void {
    this.hooks.publish(this.spec, this.openCommit, fields, set);
  }

  // ---------------------------------------------------------------- builds

  /**
   * Freezes segments as the sources of a build. results: segments to make. Errors: `conflict` if one of them does not exist or is a source
   * already.
   */
  beginBuild(ids: readonly number[], results = 1): BuildSources {
    this.mustBeWhole();
    const sources = ids.map((id) => this.segment(id));
    for (const source of sources)
      if (source.building) throw new TroupeError('conflict', `segment ${source.id} is the source of another build`);
    for (const source of sources) source.beginBuild();
    return {
      spec: this.spec,
      openCommit: this.openCommit,
      seq: this.shape.commit - this.openCommit,
      rows: sources.map((source) => source.rows),
      sources: sources.map((source) => source.handle),
      fields: fieldsOf(this.shape.manifest),
      segmentIds: Array.from({ length: results }, () => ++this.lastSegment),
    };
  }

  /**
   * Replaces the sources of a build by what it has made, with all deletions made meanwhile: one transaction, which is prepared with pauses. Whoever
   * runs this may do other work at each pause, but nothing that changes the replica.
   */
  *publishingBuild(result: BuildResult): Generator<Pause, void> {
    try {
      this.mustBeWhole();
      const sources = result.sources.map((id) => this.segment(id));
      if (result.plan === 'fieldIndex') this.replaceHandle(sources[0] as SegmentRows, (result.built[0] as BuiltSegment).handle);
      else this.replaceSources(sources, yield* this.preparing(sources, result));
      for (const source of sources) source.building = false;
    } catch (error) {
      this.abandonBuild(result.sources);
      if (result.plan === 'segment') for (const { handle } of result.built) removeFolder(handle);
      throw error;
    }
  }

  /** An operation whose slices cannot be applied now goes on in the segments in which it began (Slice-S4). Errors: `conflict`. */
  private mustBeWhole(): void {
    const { unfinished } = this;
    if (unfinished !== null) throw new TroupeError('conflict', `operation ${unfinished.operation} is applied in part`);
  }

  /** Ends a build without result: its sources take rows again if they have room. */
  abandonBuild(ids: readonly number[]): void {
    for (const segment of this.shape.segments) {
      if (!ids.includes(segment.id)) continue;
      segment.building = false;
      segment.frozen = !segment.isAppendable;
    }
  }

  private replaceHandle(segment: SegmentRows, handle: SegmentHandle): void {
    const { fields } = this.shape.manifest;
    const current = segment.handle;
    const currentDamage = segment.damagedFiles;
    const wanted = wantedIndexes(handle, fields);
    this.transact((transaction) => {
      segment.handle = { ...current, fieldIndexes: wanted };
      transaction.onUndo(() => {
        segment.handle = current;
      });
      transaction.reshape(transaction.segments);
    });
    segment.damagedFiles = currentDamage.filter((file) => !file.startsWith('index.'));
    trackSealedFields(segment, fields);
  }

  /** The segments that a build has made, as they are to be published. Nobody sees them yet. */
  private *preparing(sources: readonly SegmentRows[], { built, seq }: BuildResult): Generator<Pause, SegmentRows[]> {
    const { fields } = this.shape.manifest;
    const staying = this.shape.segments.filter((segment) => !sources.includes(segment));
    const prepared: SegmentRows[] = [];
    for (const { handle, rowMaps } of built) {
      const segment = this.builtRows(handle, sources);
      for (const [at, source] of sources.entries()) {
        const rowMap = new Uint32Array(rowMaps[at] as SharedArrayBuffer);
        yield* carryingDeletions(source, rowMap, seq, segment, staying, () => this.beginPortion());
        yield null;
      }
      if (segment.rows > 0) trackSealedFields(segment, fields);
      prepared.push(segment);
    }
    return prepared;
  }

  private replaceSources(sources: readonly SegmentRows[], prepared: readonly SegmentRows[]): void {
    this.transact((transaction) => {
      transaction.removeSegments(sources.map((source) => source.id));
      for (const built of prepared) {
        if (built.rows === 0) continue;
        transaction.addSegment(built);
        transaction.storeDeletions(built);
      }
      settleDeferred(transaction, this.spec.config);
    });
    const generation = this.shape.generation;
    this.retiring.push(...sources.map((source) => ({ generation, handle: source.handle })));
    for (const built of prepared) if (built.rows === 0) removeFolder(built.handle);
  }

  private builtRows(handle: SegmentHandle, sources: readonly SegmentRows[]): SegmentRows {
    const built = new SegmentRows({ ...handle, fieldIndexes: wantedIndexes(handle, this.shape.manifest.fields) }, handle.rows);
    for (const source of sources) built.dropVectors(source.droppedSinceBuild);
    // The configuration may have changed during the build.
    this.placePayloads(built);
    // A vector may have been added and dropped while no source had it.
    built.keepVectors(vectorPlans(this.spec.config.params));
    return built;
  }

  /** All readers have dropped the sets before `generation`: segments that only these had are removed. */
  retired(generation: number): void {
    this.retiredGeneration = generation;
    // A checkpoint that is being made may point at them.
    if (this.copying !== null) return;
    const [gone, kept] = partition(this.retiring, (retired) => retired.generation <= generation);
    this.retiring = kept;
    for (const { handle } of gone) {
      if (handle.kind === 'sealed') removeFolder(handle);
      else this.rowFiles.remove(handle.id);
      this.purging.push(handle.id);
    }
  }

  /** Removes some records of dropped segments, in one transaction. Returns whether there are more. Errors: `storage`. */
  purge(): boolean {
    const segment = this.purging[0];
    if (segment === undefined) return false;
    const prefix = segmentPrefix(segment);
    const finished = this.environment.write(() => {
      for (const database of PURGED_DATABASES) {
        if (this.environment.removeRange(database, prefix, afterPrefix(prefix), PURGE_RECORDS) === PURGE_RECORDS) return false;
      }
      this.environment.put('meta', MANIFEST_KEY, encodeManifest(this.manifestWithout(segment)));
      return true;
    });
    if (finished) {
      this.purging.shift();
      this.shape = { ...this.shape, manifest: this.manifestWithout(segment) };
    }
    return this.purging.length > 0;
  }

  private manifestWithout(segment: number): Manifest {
    return { ...this.shape.manifest, dropped: this.shape.manifest.dropped.filter((id) => id !== segment) };
  }

  // ---------------------------------------------------------------- the rest

  /**
   * Takes over a changed configuration and publishes it. Operations that were logged before are applied first, as their vectors may not be
   * those that have the same names afterwards. Errors: `storage`.
   */
  configure(config: CollectionConfig): void {
    const { spec } = this;
    this.operations.apply();
    this.spec = { ...spec, config };
    try {
      this.transact((transaction) => {
        for (const segment of transaction.segments) this.placePayloads(segment, transaction);
        transaction.keepVectors(vectorPlans(config.params));
        settleDeferred(transaction, config);
      });
    } catch (error) {
      this.spec = spec;
      throw error;
    }
  }

  /** Loads the payloads of a sealed segment into memory or leaves them on disk, as `on_disk_payload` says. */
  private placePayloads(segment: SegmentRows, transaction?: Transaction): void {
    const { handle } = segment;
    const onDisk = this.spec.config.params.on_disk_payload;
    if (segment.isAppendable || handle.folder === null || (handle.payloadBytes === null) === onDisk) return;
    segment.handle = { ...handle, payloadBytes: onDisk ? null : readPayloadBytes(handle.folder) };
    transaction?.onUndo(() => {
      segment.handle = handle;
    });
  }

  get config(): CollectionConfig {
    return this.spec.config;
  }

  /** Figures. While an operation is applied in slices, those of points and segments are from before it, as what readers see. */
  stats(): ReplicaStats {
    const { lastWriteMs, log, operations, shape, wal } = this;
    const figures = {
      appliedOperation: shape.appliedOperation,
      queuedOperations: operations.waiting,
      commits: this.commits,
      walBytes: wal.bytes,
      database: this.databaseSpace(),
      ...(this.retention.isCheckpointLost ? { lostCheckpoint: true } : {}),
      lastWriteMs,
      position: log.position,
    };
    const held = shape.unfinished === null && !this.isChanging ? null : this.heldStats;
    return { ...(held ?? this.pointStats()), ...figures };
  }

  /** A few calls of LMDB for each database: not for each commit. */
  private databaseSpace(): DatabaseSpace | null {
    const nowMs = this.hooks.now();
    if (this.space === null || nowMs - this.space.readMs >= SPACE_AGE_MS) {
      try {
        return this.readSpace();
      } catch (error) {
        rethrowBroken(error);
        // Every answer takes figures along, and has to be given whatever LMDB met.
        return null;
      }
    }
    const { bytes, freeBytes } = this.space;
    return { bytes, freeBytes };
  }

  /** Errors: `storage` if LMDB has met damage. */
  private readSpace(): DatabaseSpace {
    const space = this.environment.space();
    this.space = { ...space, readMs: this.hooks.now() };
    return space;
  }

  private pointStats() {
    const { segments, manifest } = this.shape;
    const stats = segments.map((segment) => segmentStats(segment, manifest.fields));
    const shown = segments.filter((segment) => !segment.deferred);
    const fieldPoints = manifest.fields.map(({ name }): [string, number] => [
      name,
      shown.reduce((sum, segment) => sum + (segment.indexed.get(name)?.count ?? 0), 0),
    ]);
    return {
      key: this.spec.key,
      points: sumLive(shown),
      deferredPoints: this.deferredPoints,
      ...deferredSince(segments),
      defers: deferralBytes(this.spec.config) !== Number.POSITIVE_INFINITY,
      segments: stats,
      fields: fieldsOf(manifest),
      fieldPoints: new Map(fieldPoints),
    };
  }

  /** Number of points whose newest row readers do not see yet. */
  get deferredPoints(): number {
    return sumLive(this.shape.segments.filter((segment) => segment.deferred));
  }

  /**
   * No reader has anything of it open. sleeps: the replica goes on being there, closed: what its file has free is given back (Room-R6).
   * isSound: false where it met damage, so that nothing is said of its files.
   */
  async close(sleeps = false, isSound = true): Promise<ReplicaStats> {
    await this.copying?.catch(() => {});
    for (const segment of this.shape.segments) if (!segment.isAppendable) closeSegmentFiles(segment.handle);
    for (const { handle } of this.retiring) if (handle.kind === 'sealed') closeSegmentFiles(handle);
    this.rowFiles.close();
    this.wal.close();
    const stats = this.stats();
    const replace = sleeps ? await compactCopy(this.environment, this.spec.folder, (message) => this.hooks.warn(message)) : null;
    await this.environment.close();
    const closed = replace === null ? stats : { ...stats, database: { bytes: replace(), freeBytes: 0 } };
    const isKnown = replace === null && holdsSleepRecord(this.spec.folder);
    if (stats.queuedOperations === 0 && isSound && !isKnown) writeSleepRecord(this.spec.folder, closed);
    for (const { handle } of this.shape.segments) giveBackMemory(handle);
    return closed;
  }

  private segment(id: number): SegmentRows {
    const segment = this.shape.segments.find((known) => known.id === id);
    if (segment === undefined) throw new TroupeError('conflict', `there is no segment ${id}`);
    return segment;
  }
}

/** Asked once: newer Node.js reads files of the system for it, some tenths of a millisecond each time. */
let cpus: number | undefined;

/** Opens or makes the environment of the replica in `folder`, with a smaller file if that is worth it (Room-R6). */
async function openEnvironment(folder: string, threads: number, warn: (message: string) => void): Promise<Environment> {
  const open = (): Environment => Environment.open(path.join(folder, 'lmdb'), writeFirstRecords, DATABASES, threads);
  const environment = open();
  let replace: Replacement | null;
  try {
    replace = environment.isNew ? null : await compactCopy(environment, folder, warn);
  } catch (error) {
    await environment.close();
    throw error;
  }
  if (replace === null) return environment;
  await environment.close();
  replace();
  return open();
}

/** Removes what a replica that was never made to the end has left (Room-R2): LMDB may not survive its file. */
function sweep(folder: string): void {
  for (const part of ['lmdb', 'wal', 'rows']) rmSync(path.join(folder, part), { recursive: true, force: true });
}

// ------------------------------------------------------------------ sealed segments

function removeFolder(handle: SegmentHandle): void {
  closeSegmentFiles(handle);
  if (handle.folder !== null) rmSync(handle.folder, { recursive: true, force: true });
}

function deferredSince(segments: readonly SegmentRows[]): Pick<ReplicaStats, 'deferredFrom'> {
  const froms = segments.filter(({ deferred, live }) => deferred && live > 0).map(({ deferredFrom }) => deferredFrom);
  return froms.length === 0 ? {} : { deferredFrom: Math.min(...froms) };
}

function sumLive(segments: readonly SegmentRows[]): number {
  return segments.reduce((sum, segment) => sum + segment.live, 0);
}

function segmentStats(segment: SegmentRows, fields: readonly ManifestField[]): SegmentStats {
  const { handle, isAppendable, rows, live, damagedFiles } = segment;
  const vectors = handle.layout.vectors;
  const graphs = vectors.flatMap(graphStats);
  return {
    id: handle.id,
    kind: handle.kind,
    rows,
    deleted: segment.deleted,
    vectorBytes: segment.vectorBytes,
    payloadBytes: segment.payloadBytes,
    diskBytes: diskBytesOf(handle),
    memoryBytes: memoryBytesOf(handle, rows),
    frozen: segment.room === 0,
    deferred: segment.deferred,
    building: segment.building,
    graphs,
    quantized: vectors.flatMap(({ name, quantization }) =>
      quantization === null ? [] : [{ name, setting: JSON.stringify(quantization) }],
    ),
    indexedVectors: live * (graphs.length + handle.sparseIndexes.length),
    fieldRows: fields.map(({ name }) => segment.indexed.get(name)?.count ?? 0),
    missingFields: isAppendable
      ? []
      : fields.filter(({ name }) => !handle.fieldIndexes.some((index) => index.field === name)).map(({ name }) => name),
    damagedFiles,
  };
}

function graphStats({ name, graph, subgraphs }: VectorLayout): GraphStats[] {
  if (graph === null && subgraphs === null) return [];
  const made = subgraphs === null ? {} : { subgraphs: subgraphs.setting };
  return [{ name, m: graph?.m ?? 0, efConstruct: graph?.efConstruct ?? subgraphs?.setting.efConstruct ?? 0, ...made }];
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** Indexes of a built segment whose fields still have the schema that they were built with. */
function wantedIndexes(handle: SegmentHandle, fields: readonly ManifestField[]): FieldIndexHandle[] {
  return handle.fieldIndexes.filter((index) => fields.some((field) => field.name === index.field && sameSchema(field.schema, index)));
}
