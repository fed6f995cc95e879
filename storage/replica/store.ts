/**
 * A replica on disk and in memory. Its home worker holds it and is the only thread that writes it.
 *
 * Its rules are Wal-W1 to Wal-W5 in storage/README.md.
 */

import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import type { CollectionConfig, FieldSchema } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LogReach, LogTag } from '../../protocols/model/shard-log.js';
import { AppendFolder } from '../disk/append-file.js';
import { initChecksum } from '../disk/checksum.js';
import { syncFolderNow } from '../disk/file.js';
import { checkFormat, markMade } from '../disk/format-marker.js';
import type { Environment } from '../disk/lmdb.js';
import type { FilePages, FilePart } from '../memory/system-calls.js';
import type { SegmentSet } from '../segment/handle.js';
import { tendOriginals } from '../segment/mapped-originals.js';
import { closeSegmentFiles } from '../segment/payload-file.js';
import { vectorPlans } from '../segment/plans.js';
import { cleanSegmentFolders } from '../segment/sealed.js';
import type { ClosingReason, ReplicaSpec, ReplicaStats } from '../threads/messages.js';
import type { LogPart, ReplicaCheckpoint } from '../threads/shard-log.js';
import { NO_LEADER } from '../wal/log-tags.js';
import { damagedRecord } from '../wal/records.js';
import { WriteAheadLog } from '../wal/wal.js';
import { awaitsOriginals, awaitsVerifying, bringAllOriginals, verifyAll } from './arrivals.js';
import { Attempts } from './attempts.js';
import { Builds } from './builds.js';
import { makeCheckpoint } from './checkpoint.js';
import { compactCopy } from './compact.js';
import { Copies, type CopiesHost } from './copies.js';
import { DatabaseFile, type DatabaseFileHost } from './database-file.js';
import { defersRows, holdReplaced, settleDeferred } from './deferral.js';
import { FORMAT, hasNewestIndexes, READABLE_FORMATS } from './formats.js';
import { loadReplica } from './load.js';
import { LogRetention, type RetainingHost } from './log-retention.js';
import type { Manifest } from './manifest.js';
import { openEnvironment, sweep } from './open-environment.js';
import { Easing, type NumberedOperation, Operations, type OperationsHost, type Pause, pauseOver } from './operations.js';
import { placePayloads } from './place-payloads.js';
import { deferredPoints, pointFigures } from './replica-figures.js';
import { ReplicaLog, type ReplicaLogHost } from './replica-log.js';
import { RetiredSegments } from './retired-segments.js';
import { giveBackMemory, makeAppendable, type RowItems, type SegmentRows } from './segment-rows.js';
import { holdsSleepRecord, writeSleepRecord } from './sleep-record.js';
import type { IsOver } from './slices.js';
import type { StaleBuckets } from './stale.js';
import { type FilterScans, type ReplicaShape, Transaction, type TransactionHost } from './transaction.js';
import type { Unfinished } from './unfinished.js';

/** What readers have to know of a replica beside its segments. */
export interface PublishedFacts {
  readonly spec: ReplicaSpec;
  readonly openCommit: number;
  /** `Environment.commits`. */
  readonly commits: Int32Array;
}

export interface ReplicaHooks {
  /** Publishes a new set of segments, before the commit that makes it current. */
  publish(facts: PublishedFacts, fields: ReadonlyMap<string, FieldSchema>, set: SegmentSet): void;
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

/** With so many segments, no further one is made for `default_segment_number` or `max_segment_size`: each read looks at all of them. */
const SEGMENTS_MADE_MAX = 64;

/** Most bytes of operations that are replayed in one transaction. */
const REPLAY_BYTES_MAX = 16 * 2 ** 20;

export class ReplicaStore implements TransactionHost, OperationsHost, ReplicaLogHost, RetainingHost, CopiesHost, DatabaseFileHost {
  readonly environment: Environment;
  readonly rowFiles: AppendFolder;
  readonly openCommit: number;
  spec: ReplicaSpec;
  /** Changed by committed transactions alone. */
  shape: ReplicaShape;
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
  lastWriteMs = 0;
  /** The figures before the operation of which some slices are applied. */
  private heldStats: ReplicaStats | null = null;
  /** A transaction with pauses has begun and not ended. */
  private isChanging = false;
  readonly retiring: RetiredSegments;
  readonly builds: Builds;
  readonly file: DatabaseFile;

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
    this.retiring = new RetiredSegments(this);
    this.builds = new Builds(this);
    this.attempts = new Attempts(spec.folder);
    this.operations = new Operations(this);
    this.retention = new LogRetention(this);
    this.log = new ReplicaLog(this);
    this.copies = new Copies(this);
    this.file = new DatabaseFile(this);
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
    const environment = await openEnvironment(spec.folder, spec.readers, (message) => hooks.warn(message));
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
      if (isMade && format !== FORMAT) markMade(spec.folder, FORMAT);
      await store.begin(loaded.repairs);
      // LMDB tells of damage that it met on the way.
      store.file.read();
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
    for (const pause of this.operations.replaying(group)) await (pause === null ? this.hooks.pause() : pauseOver(pause));
  }

  // ---------------------------------------------------------------- writes

  get unfinished(): Unfinished | null {
    return this.shape.unfinished;
  }

  now(): number {
    return this.hooks.now();
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
      yield null;
      this.finish(transaction, true);
      // The files are on their way to the disk while others work; then there is little to wait for.
      yield new Easing(() => Promise.all([this.wal.files.syncing(), this.rowFiles.syncing()]));
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
    this.retiring.add(
      this.shape.generation,
      transaction.emptied.map(({ handle }) => handle),
    );
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

  // ---------------------------------------------------------------- originals that arrive later

  get awaitsVerifying(): boolean {
    return awaitsVerifying(this.shape.segments);
  }

  /** See `verifyAll` of segments. It must have ended before the replica is closed. */
  verifyFiles(pause: () => Promise<void>): Promise<readonly string[]> {
    return verifyAll(() => this.shape.segments, pause);
  }

  get awaitsOriginals(): boolean {
    return awaitsOriginals(this.shape.segments);
  }

  /** See `bringAllOriginals`. It must have ended before the replica is closed. */
  bringOriginals(pause: () => Promise<void>): Promise<void> {
    return bringAllOriginals(() => this.shape.segments, pause);
  }

  /** See `tendOriginals` of segments: whether any of them are pages of their files. */
  tendOriginals(pages: FilePages): boolean {
    return this.shape.segments.map(({ handle }) => tendOriginals(handle, this.spec.config, pages)).includes(true);
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

  get folder(): string {
    return this.spec.folder;
  }

  get readers(): number {
    return this.spec.readers;
  }

  /** Its database is read, or will have more to give back soon. */
  get isBusy(): boolean {
    return this.copying !== null || this.isChanging || this.shape.segments.some(({ building }) => building);
  }

  /** Goes on in a smaller file of its database if one has been made (`DatabaseFile`). Errors: `storage`. */
  async takeSmallerFile(): Promise<void> {
    // Readers hear of the generation again: those that read nothing let go of the file that was.
    if (await this.file.takeCopy()) this.hooks.published(this.shape.generation);
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
      this.retiring.remove();
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

  nextSegment(): number {
    return ++this.lastSegment;
  }

  get segmentsWanted(): number {
    return Math.min(SEGMENTS_MADE_MAX, Math.max(1, this.spec.config.optimizer_config.default_segment_number));
  }

  makeSegment(segments: readonly SegmentRows[], items?: RowItems): SegmentRows {
    const { config, readers } = this.spec;
    const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
    const { max_segment_size } = config.optimizer_config;
    const isBounded = max_segment_size !== null && segments.length < SEGMENTS_MADE_MAX;
    const before = segments.filter(({ building, isAppendable }) => isAppendable && building).at(-1);
    const bound = isBounded ? { vectorBytesMax: max_segment_size * 1024 } : {};
    return makeAppendable(this.nextSegment(), config, readers, { items, rows, before, ...bound });
  }

  defers(segments: readonly SegmentRows[], manifest: Manifest): boolean {
    return defersRows(segments, manifest, this.spec.config);
  }

  publish(set: SegmentSet, fields: ReadonlyMap<string, FieldSchema>): void {
    const { environment, openCommit, spec } = this;
    this.hooks.publish({ spec, openCommit, commits: environment.commits }, fields, set);
  }

  // ---------------------------------------------------------------- the rest

  get manifest(): Manifest {
    return this.shape.manifest;
  }

  set manifest(manifest: Manifest) {
    this.shape = { ...this.shape, manifest };
  }

  /** All readers have dropped the sets before `generation`: segments that only these had are removed. empty: see `memoryEmptier`. */
  retired(generation: number, empty: ((part: FilePart) => void) | null = null): void {
    this.retiring.seen(generation, empty);
    // A checkpoint that is being made may point at them.
    if (this.copying === null) this.retiring.remove();
  }

  /** See `RetiredSegments.purge`. */
  purge(): boolean | null {
    return this.retiring.purge();
  }

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
        for (const segment of transaction.segments) placePayloads(segment, config, transaction);
        transaction.keepVectors(vectorPlans(config.params));
        settleDeferred(transaction, config);
      });
    } catch (error) {
      this.spec = spec;
      throw error;
    }
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
      database: this.file.figures(),
      ...(this.retention.isCheckpointLost ? { lostCheckpoint: true } : {}),
      lastWriteMs,
      position: log.position,
    };
    const held = shape.unfinished === null && !this.isChanging ? null : this.heldStats;
    return {
      ...(held ?? { key: this.spec.key, ...pointFigures(shape.segments, shape.manifest, this.config) }),
      ...figures,
    };
  }

  /** Number of points whose newest row readers do not see yet. */
  get deferredPoints(): number {
    return deferredPoints(this.shape.segments);
  }

  /**
   * No reader has anything of it open, but before an exit. Of a replica that sleeps what its file has free is given back (Room-R6).
   * isSound: false where it met damage, so that nothing is said of its files.
   */
  async close(why: ClosingReason = 'asked', isSound = true): Promise<ReplicaStats> {
    await this.copying?.catch(() => {});
    await this.file.close();
    const stats = this.stats();
    if (why === 'exit') {
      this.noteState(stats, isSound && !holdsSleepRecord(this.spec.folder));
      return stats;
    }
    for (const segment of this.shape.segments) if (!segment.isAppendable) closeSegmentFiles(segment.handle);
    this.retiring.close();
    this.rowFiles.close();
    this.wal.close();
    const replace = why === 'sleeps' ? await compactCopy(this.environment, this.spec.folder, (message) => this.hooks.warn(message)) : null;
    await this.environment.close();
    const bytes = replace?.() ?? null;
    const closed = bytes === null ? stats : { ...stats, database: { bytes, freeBytes: 0 } };
    this.noteState(closed, isSound && (bytes !== null || !holdsSleepRecord(this.spec.folder)));
    for (const { handle } of this.shape.segments) giveBackMemory(handle);
    return closed;
  }

  /** For the next start, which then need not open it. */
  private noteState(stats: ReplicaStats, isNew: boolean): void {
    if (isNew && stats.queuedOperations === 0) writeSleepRecord(this.spec.folder, stats);
  }
}
