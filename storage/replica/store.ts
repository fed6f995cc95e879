/**
 * A replica on disk and in memory, as its home worker holds it: the only one that writes it.
 *
 * W1: an operation is acknowledged only when its WAL record is on disk, and completed only when its effects are.
 * W2: operations are applied in the order of their numbers, each once: the state record's `appliedOperation` and the
 *     effects change in one transaction.
 * W3: a transaction that fails leaves memory and disk as they were.
 * W4: generations, segment ids and field numbers are never used twice within a process, also where a commit failed.
 */

import { rmSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { type CollectionConfig, type FieldSchema, sameSchema } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { type ClockTag, isSameTag } from '../../protocols/model/shard-log.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { decodeOperation, encodeOperation, type LoggedOperation } from '../../protocols/operation-codec.js';
import { AppendError, AppendFolder } from '../append-file.js';
import { initChecksum } from '../checksum.js';
import type { BuildResult, BuildSources, GraphStats, ReplicaSpec, ReplicaStats, SegmentStats } from '../engine/messages.js';
import type { BucketPoints, LogPart, ReplicaCheckpoint, ReplicaDigest, ShardPosition } from '../engine/shard-log.js';
import { afterPrefix, Environment, LmdbError } from '../lmdb.js';
import { checkFormat, isMarkedMade, markMade } from '../made-file.js';
import { measured } from '../meter.js';
import type { FieldIndexHandle, SegmentHandle, SegmentSet } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import { closeSegmentFiles, readPayloadBytes } from '../segment/payload-file.js';
import { vectorPlans } from '../segment/plans.js';
import { cleanSegmentFolders } from '../segment/sealed.js';
import { WriteAheadLog } from '../wal.js';
import { applyOperation } from './apply.js';
import { decodeBuckets, encodeBuckets } from './bucket-codec.js';
import { makeCheckpoint } from './checkpoint.js';
import { carryDeletions, defersRows, holdReplaced, settleDeferred } from './deferral.js';
import { PointDigest } from './digest.js';
import { loadReplica, slotsOf, trackSealedFields, writeFirstRecords } from './load.js';
import { type Leader, NO_LEADER } from './log-tags.js';
import { encodeManifest, type Manifest, type ManifestField } from './manifest.js';
import { MANIFEST_KEY, segmentPrefix } from './records.js';
import { pointsOfBuckets, replaceBuckets } from './replace-buckets.js';
import { makeAppendable, type RowItems, SegmentRows } from './segment-rows.js';
import { fieldsOf, type ReplicaShape, Transaction, type TransactionHost } from './transaction.js';

export interface ReplicaHooks {
  /** A new set of segments, before the commit that makes it current. */
  publish(spec: ReplicaSpec, openCommit: number, fields: ReadonlyMap<string, FieldSchema>, set: SegmentSet): void;
  /** The set of this generation is committed. */
  published(generation: number): void;
  /** Something went wrong that no answer tells. */
  warn(message: string): void;
  now(): number;
}

/** An operation with its number, and who gave it. */
export interface NumberedOperation {
  readonly operation: number;
  readonly by: Leader;
  readonly logged: LoggedOperation;
}

/** How an operation went. `skipped`: the one it hangs on failed. */
export type Outcome = { readonly operation: number; readonly error: TroupeError | 'skipped' | null };

/**
 * 2: large values lie in files beside LMDB. 3: the manifest says which vectors an appendable segment has, and these may be
 * of any kind. 4: operations may have had leaders, which give their ticks. Older ones become replicas of format 4 when they are opened.
 */
const FORMAT = 4;
const READABLE = [2, 3, FORMAT];

/** Bytes of applied operations that a replica in a cluster keeps at least: what another one can miss and be told of afterwards. */
const RETAINED_BYTES = 64 * 2 ** 20;

/** Bytes of operations that are replayed in one transaction. */
const REPLAY_BYTES_MAX = 16 * 2 ** 20;
/** Records of a dropped segment that are removed in one transaction. */
const PURGE_RECORDS = 4096;
const PURGED_DATABASES = ['rows', 'ids', 'payload', 'index', 'deleted'] as const;

/** A segment that left the set and may go when no reader is before `generation` any more. */
interface RetiredSegment {
  readonly generation: number;
  readonly handle: SegmentHandle;
}

export class ReplicaStore implements TransactionHost {
  readonly environment: Environment;
  readonly rowFiles: AppendFolder;
  readonly openCommit: number;
  private spec: ReplicaSpec;
  private shape: ReplicaShape;
  readonly wal: WriteAheadLog;
  /** In the WAL and acknowledged, not applied yet. */
  private backlog: NumberedOperation[] = [];
  private lastGeneration: number;
  private lastSegment: number;
  private commits = 0;
  /** The log keeps what is behind this operation, whatever it comes to: a checkpoint has what is before. */
  private keptFrom = Number.POSITIVE_INFINITY;
  /** The checkpoint that is being made, until when files stay; null: none is. */
  private copying: Promise<ReplicaCheckpoint> | null = null;
  /** All readers have dropped the sets before this generation. */
  private retiredGeneration = 0;
  /** Kept from the first time on that somebody asks for it. */
  private pointDigest: PointDigest | null = null;
  private lastWriteMs = 0;
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
  }

  /**
   * Opens a replica, or makes it; replays what the WAL holds beyond the applied operation.
   * damaged: what a check of its LMDB file has found. Errors: `storage`, naming the file or record.
   */
  static async open(spec: ReplicaSpec, damaged: string | null, hooks: ReplicaHooks): Promise<ReplicaStore> {
    await initChecksum();
    checkFormat(spec.folder, READABLE);
    if (damaged !== null) throw new TroupeError('storage', damaged);
    const environment = Environment.open(path.join(spec.folder, 'lmdb'), writeFirstRecords);
    try {
      if (environment.isNew && isMarkedMade(spec.folder))
        throw new TroupeError('storage', `${path.join(spec.folder, 'lmdb', 'data.mdb')} is missing or empty`);
      const warn = (message: string): void => hooks.warn(message);
      const rowFiles = new AppendFolder(path.join(spec.folder, 'rows'));
      const loaded = await loadReplica(environment, rowFiles, spec, warn);
      const wal = new WriteAheadLog(environment, new AppendFolder(path.join(spec.folder, 'wal')), loaded.shape.appliedOperation, warn);
      const store = new ReplicaStore(spec, hooks, environment, rowFiles, wal, loaded.shape);
      cleanSegmentFolders(spec.folder, new Set(loaded.shape.segments.map((segment) => segment.id)));
      store.begin(loaded.repair);
      markMade(spec.folder, FORMAT);
      return store;
    } catch (error) {
      await environment.close();
      throw error;
    }
  }

  /** First publication (with an appendable segment where there is none), repairs, replay. */
  private begin(repair: (transaction: Transaction) => void): void {
    this.transact((transaction) => {
      repair(transaction);
      holdReplaced(transaction);
      settleDeferred(transaction, this.spec.config);
      transaction.keepVectors(vectorPlans(this.spec.config.params));
      if (!transaction.segments.some((segment) => segment.room > 0)) transaction.addSegment(this.makeSegment());
    });
    let group: NumberedOperation[] = [];
    let groupBytes = 0;
    for (const { operation, logged, bytes } of this.wal.after(this.shape.appliedOperation)) {
      group.push({ operation, by: NO_LEADER, logged });
      groupBytes += bytes;
      if (groupBytes < REPLAY_BYTES_MAX) continue;
      this.replay(group);
      group = [];
      groupBytes = 0;
    }
    this.replay(group);
  }

  private replay(group: NumberedOperation[]): void {
    this.backlog.push(...group);
    this.apply([]);
    if (this.backlog.length > 0)
      throw new TroupeError('storage', `operations from ${this.backlog[0]?.operation} on of the WAL cannot be applied`);
  }

  // ---------------------------------------------------------------- writes

  /** Puts operations in the WAL, on disk on return, to be applied by the next `apply`. Returns their numbers. Errors: `storage`; nothing is logged then. */
  log(operations: readonly LoggedOperation[]): number[] {
    const numbered = this.number(operations);
    this.logNumbered(numbered);
    return numbered.map(({ operation }) => operation);
  }

  /** As `log`, operations of a leader: in ascending order, behind all that are there. */
  logNumbered(numbered: readonly NumberedOperation[]): void {
    if (numbered.length === 0) return;
    this.commit(() => this.append(numbered));
    this.backlog.push(...numbered);
  }

  private append(numbered: readonly NumberedOperation[]): void {
    for (const { operation, by, logged } of numbered) this.wal.append(operation, by, logged, this.walCapacity);
  }

  /**
   * Applies what was logged, then logs and applies `operations`, in one transaction that is on disk on return.
   * Returns how each of `operations` went. A disk that refuses is the outcome of all of them: they are not in the WAL
   * then, and what was logged waits for the next call. An operation that meets a bug is alone with it.
   */
  apply(operations: readonly LoggedOperation[]): Outcome[] {
    const numbered = this.number(operations);
    if (numbered.length + this.backlog.length === 0) return [];
    try {
      const outcomes = this.applyTogether(this.backlog, numbered);
      this.backlog = [];
      return outcomes.slice(outcomes.length - numbered.length);
    } catch (error) {
      if (isRefusal(error)) return numbered.map(({ operation }) => ({ operation, error }));
      return this.applyOneByOne(operations, error);
    }
  }

  /**
   * As `apply`, operations of a leader: all of them are in the log on return, whatever becomes of each. Returns how each went, and before
   * these each of those that were logged. Errors: `storage`; where that is after a bug, they may be in the log, not applied.
   */
  applyNumbered(numbered: readonly NumberedOperation[]): Outcome[] {
    if (numbered.length + this.backlog.length === 0) return [];
    try {
      const outcomes = this.applyTogether(this.backlog, numbered);
      this.backlog = [];
      return outcomes;
    } catch (error) {
      if (isRefusal(error)) throw error;
      this.hooks.warn(`a group of operations failed and is applied one by one: ${textOf(error)}`);
      this.logNumbered(numbered);
      return this.applyBacklog();
    }
  }

  private number(operations: readonly LoggedOperation[]): NumberedOperation[] {
    const { tick } = this.wal.last;
    return operations.map((logged, index) => ({ operation: tick + 1 + index, by: NO_LEADER, logged }));
  }

  private applyTogether(logged: readonly NumberedOperation[], unlogged: readonly NumberedOperation[]): Outcome[] {
    const outcomes = this.transact((transaction) => {
      this.append(unlogged);
      return this.applyAll(transaction, [...logged, ...unlogged]);
    });
    this.lastWriteMs = this.hooks.now();
    return outcomes;
  }

  /** After a bug within a group: the operation that meets it is passed over, the others are applied. */
  private applyOneByOne(operations: readonly LoggedOperation[], cause: unknown): Outcome[] {
    this.hooks.warn(`a group of operations failed and is applied one by one: ${textOf(cause)}`);
    try {
      this.applyBacklog();
    } catch (refusal) {
      return operations.map(() => ({ operation: 0, error: refusal as TroupeError }));
    }
    let broken = false;
    return operations.map((logged): Outcome => {
      const operation = this.wal.last.tick + 1;
      if (logged.chained && broken) return { operation, error: 'skipped' };
      try {
        const alone = { operation, by: NO_LEADER, logged: { ...logged, chained: false, encoded: undefined } };
        const [outcome] = this.applyTogether([], [alone]) as [Outcome];
        broken = outcome.error !== null;
        return outcome;
      } catch (error) {
        broken = true;
        return { operation, error: asKnown(error) };
      }
    });
  }

  /** Applies what was logged, one after the other: those that meet a bug are passed over. Errors: `storage` when the disk refuses; the rest stays logged then. */
  private applyBacklog(): Outcome[] {
    const outcomes: Outcome[] = [];
    for (let next = this.backlog[0]; next !== undefined; next = this.backlog[0]) {
      outcomes.push(this.applyAlone(next));
      this.backlog.shift();
    }
    return outcomes;
  }

  private applyAlone(next: NumberedOperation): Outcome {
    const { operation } = next;
    try {
      return (this.applyTogether([next], []) as [Outcome])[0];
    } catch (error) {
      if (isRefusal(error)) throw error;
      this.hooks.warn(`operation ${operation} cannot be applied and is passed over: ${textOf(error)}`);
      this.transact((transaction) => {
        transaction.appliedOperation = operation;
        this.wal.markFailed(operation);
      });
      return { operation, error: asKnown(error) };
    }
  }

  /** An operation that hangs on the one before it is not applied where that one was not, however long ago. */
  private applyAll(transaction: Transaction, operations: readonly NumberedOperation[]): Outcome[] {
    return operations.map(({ operation, logged }): Outcome => {
      const broken = this.wal.failed > 0 && this.wal.failed === transaction.appliedOperation;
      transaction.appliedOperation = operation;
      if (logged.chained && broken) {
        this.wal.markFailed(operation);
        return { operation, error: 'skipped' };
      }
      try {
        measured(logged.usage ?? null, () => applyOperation(transaction, logged.operation, operation));
        return { operation, error: null };
      } catch (error) {
        // Only what was found out before anything changed is the operation's own affair; the rest ends the transaction.
        if (!(error instanceof TroupeError) || error.code !== 'notFound') throw error;
        this.wal.markFailed(operation);
        return { operation, error };
      }
    });
  }

  /** Runs `change` in a transaction; W3. trims: the log may lose applied operations. */
  private transact<T>(change: (transaction: Transaction) => T, trims = true): T {
    const transaction = new Transaction(this, this.shape);
    let result: T;
    try {
      result = this.commit(() => {
        const changed = change(transaction);
        if (trims) this.wal.trim(Math.min(transaction.appliedOperation, this.keptFrom), this.walCapacity);
        transaction.flush();
        return changed;
      });
    } catch (error) {
      transaction.undo();
      throw error;
    }
    this.shape = transaction.shape;
    for (const change of transaction.rowChanges) this.pointDigest?.change(change);
    if (transaction.hasNewGeneration) this.hooks.published(this.shape.generation);
    return result;
  }

  /** Runs `action` in one LMDB transaction. The files it wrote are on disk before the commit, whose records point at them. */
  private commit<T>(action: () => T): T {
    let result: T;
    try {
      result = this.environment.write(() => {
        const done = action();
        this.wal.flush();
        this.wal.files.sync();
        this.rowFiles.sync();
        return done;
      });
    } catch (error) {
      this.wal.forget();
      this.rowFiles.forget();
      throw error;
    }
    this.wal.keep();
    this.rowFiles.keep();
    this.commits++;
    return result;
  }

  private get walCapacity(): number {
    return Math.max(this.spec.config.wal_config.wal_capacity_mb * 2 ** 20, this.wal.isOrdered ? RETAINED_BYTES : 0);
  }

  // ---------------------------------------------------------------- the log of a shard

  get position(): ShardPosition {
    const { last, base } = this.wal;
    return { last, base };
  }

  /** See `ShardLogPort.entriesAfter`. */
  entriesAfter(after: ClockTag, bytesMax: number): LogPart {
    const { last, base } = this.wal;
    if (after.tick < base.tick) return { kind: 'compacted' };
    const own = after.tick === base.tick ? base : this.wal.tagOf(after.tick);
    if (own === null || !isSameTag(own, after)) return { kind: 'diverged' };
    const entries = this.wal.entriesAfter(after.tick, bytesMax);
    return entries === null ? { kind: 'compacted' } : { kind: 'entries', entries, last };
  }

  /** See `ShardLogPort.resetLog`. What was logged and not applied goes with the log. */
  resetLog(at: ClockTag): void {
    this.transact((transaction) => {
      this.wal.reset(at);
      transaction.appliedOperation = at.tick;
    }, false);
    this.backlog = [];
  }

  /** The first of these points that is not there once everything logged is applied; null: all are. */
  missing(ids: readonly PointId[]): PointId | null {
    this.apply([]);
    const now = new Transaction(this, this.shape);
    return ids.find((id) => now.find(id) === undefined) ?? null;
  }

  // ---------------------------------------------------------------- points for other replicas

  /** See `ShardLogPort.digest`. Errors: `storage`. */
  digest(): ReplicaDigest {
    this.applyLogged();
    this.pointDigest ??= PointDigest.of(this.shape.segments);
    return { at: this.wal.last, ...this.pointDigest.value() };
  }

  /** See `ShardLogPort.bucketPoints`. Errors: `storage`. */
  bucketPoints(buckets: readonly number[]): BucketPoints {
    this.applyLogged();
    const at = this.wal.last;
    const now = new Transaction(this, this.shape);
    const points = pointsOfBuckets(now.segments, new Set(buckets));
    const bytes = encodeBuckets(at, buckets, vectorPlans(this.spec.config.params), points, (point) => now.payloadText(point));
    return { at, buckets, points: points.length, bytes };
  }

  /** See `ShardLogPort.replaceBuckets`. Errors: `storage`. */
  replaceBuckets(bytes: Uint8Array): number {
    const passed = decodeBuckets(bytes, vectorPlans(this.spec.config.params));
    this.applyLogged();
    const { last } = this.wal;
    if (!isSameTag(passed.at, last))
      throw new TroupeError('conflict', `the points are those after operation ${passed.at.tick}, the replica is at ${last.tick}`);
    return this.transact((transaction) => replaceBuckets(transaction, passed));
  }

  /** See `ShardLogPort.settings`. Errors: `storage`. */
  settings(): Uint8Array[] {
    this.applyLogged();
    return this.shape.manifest.fields.map(({ name, schema }) =>
      encodeOperation({ operation: { kind: 'createFieldIndex', field: name, schema }, chained: false }),
    );
  }

  /** See `ShardLogPort.applySettings`. Errors: `storage`. */
  applySettings(operations: readonly Uint8Array[]): void {
    const decoded = operations.map((bytes) => decodeOperation(bytes).operation);
    this.applyLogged();
    this.transact((transaction) => makeSettings(transaction, decoded));
  }

  /** See `ShardLogPort.checkpoint`. Other calls may come meanwhile. Errors: `conflict` while another one is there; `storage`. */
  checkpoint(folder: string): Promise<ReplicaCheckpoint> {
    if (this.keptFrom !== Number.POSITIVE_INFINITY)
      throw new TroupeError('conflict', 'another checkpoint of the replica has not been released yet');
    this.applyLogged();
    this.keptFrom = this.shape.appliedOperation;
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

  /** The log may lose what it was kept for. */
  releaseCheckpoint(): void {
    this.keptFrom = Number.POSITIVE_INFINITY;
  }

  /** Errors: `storage`, when the disk refuses. */
  private applyLogged(): void {
    if (this.backlog.length > 0) this.applyNumbered([]);
  }

  get keepsDigest(): boolean {
    return this.pointDigest !== null;
  }

  // ---------------------------------------------------------------- host of transactions

  nextGeneration(): number {
    return ++this.lastGeneration;
  }

  makeSegment(items?: RowItems): SegmentRows {
    return makeAppendable(++this.lastSegment, this.spec.config, slotsOf(this.spec), items);
  }

  defers(segments: readonly SegmentRows[], manifest: Manifest): boolean {
    return defersRows(segments, manifest, this.spec.config);
  }

  publish(set: SegmentSet, fields: ReadonlyMap<string, FieldSchema>): void {
    this.hooks.publish(this.spec, this.openCommit, fields, set);
  }

  // ---------------------------------------------------------------- builds

  /** Freezes segments as the sources of a build. Errors: `conflict` when one of them is not there or is being built from. */
  beginBuild(ids: readonly number[]): BuildSources {
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
      segmentId: ++this.lastSegment,
    };
  }

  /** Replaces the sources of a build by what came of it, with all deletions that happened meanwhile. */
  publishBuild(result: BuildResult): void {
    try {
      const sources = result.sources.map((id) => this.segment(id));
      if (result.plan === 'fieldIndex') this.replaceHandle(sources[0] as SegmentRows, result.handle);
      else this.replaceSources(sources, result);
      for (const source of sources) source.building = false;
    } catch (error) {
      this.abandonBuild(result.sources);
      if (result.plan === 'segment') removeFolder(result.handle);
      throw error;
    }
  }

  /** The segments are no longer sources of a build; they take rows again where there is room. */
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

  private replaceSources(sources: readonly SegmentRows[], result: BuildResult): void {
    const { fields } = this.shape.manifest;
    const built = new SegmentRows({ ...result.handle, fieldIndexes: wantedIndexes(result.handle, fields) }, result.handle.rows);
    for (const source of sources) built.dropVectors(source.droppedSinceBuild);
    // What the configuration says may have changed during the build.
    this.placePayloads(built);
    // A vector that came and went while no source had it.
    built.keepVectors(vectorPlans(this.spec.config.params));
    const ids = sources.map((source) => source.id);
    const staying = this.shape.segments.filter((segment) => !sources.includes(segment));
    this.transact((transaction) => {
      sources.forEach((source, at) => {
        const rowMap = new Uint32Array(result.rowMaps[at] as SharedArrayBuffer);
        carryDeletions(source, rowMap, result.seq, built, staying);
      });
      transaction.removeSegments(ids);
      if (built.rows > 0) {
        trackSealedFields(built, fields);
        transaction.addSegment(built);
        transaction.storeDeletions(built);
      }
      settleDeferred(transaction, this.spec.config);
    });
    const generation = this.shape.generation;
    this.retiring.push(...sources.map((source) => ({ generation, handle: source.handle })));
    if (built.rows === 0) removeFolder(built.handle);
  }

  /** All readers have dropped the sets before `generation`: what only those had can be removed. */
  retired(generation: number): void {
    this.retiredGeneration = generation;
    // A copy that is being made may point at them.
    if (this.copying !== null) return;
    const [gone, kept] = partition(this.retiring, (retired) => retired.generation <= generation);
    this.retiring = kept;
    for (const { handle } of gone) {
      if (handle.kind === 'sealed') removeFolder(handle);
      else this.rowFiles.remove(handle.id);
      this.purging.push(handle.id);
    }
  }

  /** Removes some records of dropped segments, in one transaction. Whether there is more to remove. Errors: `storage`. */
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
   * Takes a changed configuration over and publishes it. Operations that were logged before are applied before: what they
   * say of a vector is not meant for another one that gets its name. Errors: `storage`.
   */
  configure(config: CollectionConfig): void {
    const { spec } = this;
    this.apply([]);
    if (this.backlog.length > 0) throw new TroupeError('storage', 'there are operations that the disk has not taken yet');
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

  /** Takes the payloads of a sealed segment into memory or leaves them on disk, as `on_disk_payload` says now. */
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

  stats(): ReplicaStats {
    const { segments, manifest, appliedOperation } = this.shape;
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
      segments: stats,
      fields: fieldsOf(manifest),
      fieldPoints: new Map(fieldPoints),
      appliedOperation,
      queuedOperations: this.backlog.length,
      commits: this.commits,
      walBytes: this.wal.bytes,
      lastWriteMs: this.lastWriteMs,
      position: this.position,
    };
  }

  /** Points whose newest row readers do not see yet. */
  get deferredPoints(): number {
    return sumLive(this.shape.segments.filter((segment) => segment.deferred));
  }

  async close(): Promise<void> {
    await this.copying?.catch(() => {});
    for (const segment of this.shape.segments) if (!segment.isAppendable) closeSegmentFiles(segment.handle);
    for (const { handle } of this.retiring) if (handle.kind === 'sealed') closeSegmentFiles(handle);
    this.rowFiles.close();
    this.wal.files.close();
    await this.environment.close();
  }

  private segment(id: number): SegmentRows {
    const segment = this.shape.segments.find((known) => known.id === id);
    if (segment === undefined) throw new TroupeError('conflict', `there is no segment ${id}`);
    return segment;
  }
}

/** Makes the field indexes those that the operations make. */
function makeSettings(transaction: Transaction, operations: readonly UpdateOperation[]): void {
  const wanted = operations.flatMap((operation) => (operation.kind === 'createFieldIndex' ? [operation] : []));
  for (const { name } of transaction.manifest.fields) if (!wanted.some(({ field }) => field === name)) transaction.deleteField(name);
  for (const operation of wanted) applyOperation(transaction, operation, transaction.appliedOperation);
}

// ------------------------------------------------------------------ sealed segments

function removeFolder(handle: SegmentHandle): void {
  closeSegmentFiles(handle);
  if (handle.folder !== null) rmSync(handle.folder, { recursive: true, force: true });
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
    frozen: segment.room === 0,
    deferred: segment.deferred,
    building: segment.building,
    graphs,
    quantized: vectors.flatMap(({ name, quantization }) =>
      quantization === null ? [] : [{ name, setting: JSON.stringify(quantization) }],
    ),
    indexedVectors: live * (graphs.length + handle.sparseIndexes.length),
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

/** The disk took nothing of the transaction; as opposed to a bug in an operation. */
function isRefusal(error: unknown): error is LmdbError | AppendError {
  return error instanceof LmdbError || error instanceof AppendError;
}

function asKnown(error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  return new TroupeError('internal', `the operation cannot be applied: ${textOf(error)}`, { cause: error });
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Indexes of a built segment whose fields still have the schema that they were built with. */
function wantedIndexes(handle: SegmentHandle, fields: readonly ManifestField[]): FieldIndexHandle[] {
  return handle.fieldIndexes.filter((index) => fields.some((field) => field.name === index.field && sameSchema(field.schema, index)));
}
