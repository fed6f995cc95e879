/**
 * The engine's threads as the main thread sees them: readers answer queries, writers own the writes of their replicas,
 * builders make segments, one more gathers reads over many nodes. Here is what doors and actors call; `reader-pool.ts`, `writer-pool.ts` and `build-run.ts` do
 * it, and `pool-state.ts` decides which reader gets what.
 */

import os from 'node:os';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LeaderTag, LogReach, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import type { DiskRoom } from '../disk/disk-watch.js';
import type { GatherAccess } from '../gather/access.js';
import { type SharedLedger, unlimitedLedger } from '../memory/shared-ledger.js';
import type { CacheUse } from '../reader/cache-uses.js';
import type { SeenScan } from '../reader/seen-scans.js';
import { steadyNowMs } from '../threads/clock.js';
import type {
  BuildReport,
  OwnReadsChange,
  PortionOptions,
  PortionResult,
  RawRequest,
  ReadOperation,
  ReplicaKey,
  ReplicaSpec,
  ReplicaStats,
  ShardKeyMap,
  SplitJob,
  SplitWrite,
  WeighJob,
} from '../threads/messages.js';
import type {
  BucketPoints,
  LogPart,
  LogWritten,
  ReplicaCheckpoint,
  ReplicaDigest,
  ShardLogPort,
  ShardPosition,
} from '../threads/shard-log.js';
import { type BuildOrder, type BuildProgress, BuildRuns } from './build-run.js';
import { DeadlineTimer } from './deadline-timer.js';
import { GatherPool } from './gather-pool.js';
import { type OpenReaderDoor, ReaderPool } from './reader-pool.js';
import { NO_REPLICA_LIMIT, type ReplicaLimit } from './replica-limit.js';
import { ShardLogCalls } from './shard-log-calls.js';
import type { SleepLimits } from './sleep-policy.js';
import { LOOK_EVERY_MS, readerWatchLimits, SILENCE_MS, watchLimits } from './thread-watch.js';
import type { WatchedThread, WorkerDepth, WorkerEvent } from './worker-slots.js';
import { WriterPool } from './writer-pool.js';

export { updateAnswer } from '../answers/update-answer.js';
export type { BuildOrder, BuildProgress, WorkerDepth, WorkerEvent };

export interface PoolOptions {
  /** Default: CPUs - 1, at least 1. */
  readonly readers?: number;
  /** Readers beside those, which start with the first heavy read. Default: half as many, at least 1. */
  readonly readersForHeavy?: number;
  /** How long they stay when there are no heavy reads. Default: a minute. */
  readonly heavyIdleMs?: number;
  /** How long past its deadline a read may hold its reader before that is replaced. Default: ten seconds. */
  readonly stuckGraceMs?: number;
  /** Default: half the CPUs, at least 1. */
  readonly writers?: number;
  /** Reads that may wait beside those the readers hold. Default 1024. */
  readonly waitingReadsMax?: number;
  /** Writes one writer's queue may hold. Default 1024. */
  readonly queuedWritesMax?: number;
  /** Bytes one writer's queue may hold. Default 128 MiB. */
  readonly queuedWriteBytesMax?: number;
  /** Replicas that may be open. Default: any number. */
  readonly replicaLimit?: ReplicaLimit;
  /** Whether reads over many nodes are to be answered, which takes a thread more. Default false. */
  readonly gathers?: boolean;
  /** Counts the memory of requests and threads. Default: one that refuses nothing. */
  readonly ledger?: SharedLedger;
  /** When replicas fall asleep (tests). */
  readonly sleep?: SleepLimits;
  /** How long a thread may give no sign of life before it is ended; a reader half as long. Default: a minute. */
  readonly silenceMs?: number;
  /** What the logs of all replicas may keep of applied operations (`log-budget.ts`). Default: any number of bytes. */
  readonly logBudgetBytes?: number;
  /** Logs are kept for restores to a point in time, too (Kept-K5). */
  readonly isRestorable?: boolean;
  /** Asked before each write that needs room on the disk. Without it the disk alone refuses. */
  readonly disk?: DiskRoom;
  /** Worker entries other than the built ones (tests). */
  readonly entries?: { readonly reader?: URL; readonly writer?: URL; readonly builder?: URL; readonly gather?: URL };
}

export interface PoolDepths {
  /** Reads that wait for a reader. */
  readonly waitingReads: number;
  readonly waitingReadsMax: number;
  readonly workers: readonly WorkerDepth[];
  readonly replicas: ReplicaDepth;
}

/** The replicas of this node, and the limit that its machine sets. */
export interface ReplicaDepth extends ReplicaLimit {
  readonly open: number;
}

export class EnginePool implements ShardLogPort {
  /** Starts all readers and writers; resolves when each is ready. */
  static async start(options: PoolOptions = {}): Promise<EnginePool> {
    const pool = new EnginePool(options);
    await pool.until(Promise.all([pool.readerPool.startAll(), pool.writerPool.startAll(), pool.gatherPool?.startAll()]));
    return pool;
  }

  /**
   * Starts one reader at once; the others and the writers when the first replica is opened, or a read has to wait.
   * expectsReplicas: one will be opened soon. `started` of the answer says when its first threads are ready, and rejects when they do not start.
   */
  static begin(options: PoolOptions, expectsReplicas: boolean): { readonly pool: EnginePool; readonly started: Promise<void> } {
    const pool = new EnginePool(options);
    // What fails is met again when the first replica is opened.
    if (expectsReplicas) pool.writerPool.startAll().catch(() => {});
    const started = pool.until(Promise.all([pool.readerPool.startFirst(), pool.gatherPool?.startAll()]));
    return { pool, started };
  }

  readonly readers: number;
  readonly writers: number;
  /** Readers, and those that start with heavy reads. */
  get readersMax(): number {
    return this.readerPool.slotCount;
  }

  private readonly replicaLimit: ReplicaLimit;
  private readonly readerPool: ReaderPool;
  private readonly writerPool: WriterPool;
  private readonly shardLogs: ShardLogCalls;
  private readonly buildRuns: BuildRuns;
  private readonly gatherPool: GatherPool | null;
  private readonly deadlines: DeadlineTimer;
  private readonly looking: NodeJS.Timeout;
  private readonly statsListeners = new Set<(stats: ReplicaStats) => void>();
  private readonly failedListeners = new Set<(key: ReplicaKey, error: TroupeError) => void>();
  private readonly workerListeners = new Set<(event: WorkerEvent) => void>();
  private readonly closing = new AbortController();
  private readonly otherThreads: WatchedThread[] = [];

  private constructor(options: PoolOptions) {
    const cpus = os.availableParallelism();
    this.readers = options.readers ?? Math.max(1, cpus - 1);
    this.writers = options.writers ?? Math.max(1, Math.floor(cpus / 2));
    this.replicaLimit = options.replicaLimit ?? NO_REPLICA_LIMIT;
    const { waitingReadsMax, queuedWritesMax, queuedWriteBytesMax, entries } = options;
    const closing = this.closing.signal;
    const silenceMs = options.silenceMs ?? SILENCE_MS;
    const watch = watchLimits(silenceMs);
    const readersWatch = readerWatchLimits(silenceMs);
    const ledger = options.ledger ?? unlimitedLedger();
    const watchDeadline = (deadlineMs: number): void => this.deadlines.watch(deadlineMs);
    const tellWorker = (event: WorkerEvent): void => this.tellWorker(event);
    this.readerPool = new ReaderPool(
      {
        count: this.readers,
        countForHeavy: options.readersForHeavy ?? Math.max(1, Math.floor(this.readers / 2)),
        heavyIdleMs: options.heavyIdleMs,
        stuckGraceMs: options.stuckGraceMs,
        waitingReadsMax,
        watch: readersWatch,
        entry: entries?.reader,
        closing,
        ledger,
      },
      {
        retired: (key, generation, freed) => this.writerPool.retired(key, generation, freed),
        wake: (keys) => this.writerPool.wake(keys),
        watchDeadline,
        tellWorker,
        scans: (scans) => this.onScans(scans),
        cacheUses: (reader, uses) => this.onCacheUses(reader, uses),
      },
    );
    this.writerPool = new WriterPool(
      {
        count: this.writers,
        replicaLimit: this.replicaLimit,
        queuedWritesMax,
        queuedWriteBytesMax,
        watch,
        entry: entries?.writer,
        closing,
        ledger,
        sleep: options.sleep,
        logBudgetBytes: options.logBudgetBytes ?? Number.POSITIVE_INFINITY,
        isRestorable: options.isRestorable ?? false,
      },
      this.readerPool,
      {
        watchDeadline,
        scans: (scans) => this.onScans(scans),
        tellStats: (stats) => {
          for (const listener of this.statsListeners) listener(stats);
        },
        tellFailed: (key, error) => {
          for (const listener of this.failedListeners) listener(key, error);
        },
        tellWorker,
      },
    );
    this.shardLogs = new ShardLogCalls(this.writerPool, options.disk);
    this.buildRuns = new BuildRuns(this.writerPool, entries?.builder, ledger.budget, tellWorker, watch);
    this.gatherPool =
      options.gathers === true
        ? new GatherPool({ entry: entries?.gather, closing, ledger, watch: readersWatch }, { watchDeadline, tellWorker })
        : null;
    this.looking = setInterval(() => this.look(), LOOK_EVERY_MS);
    this.looking.unref();
    this.deadlines = new DeadlineTimer((nowMs) =>
      Math.min(this.readerPool.expire(nowMs), this.writerPool.expire(nowMs), this.gatherPool?.expire(nowMs) ?? Number.POSITIVE_INFINITY),
    );
  }

  /**
   * Answers a read: the `result` bytes of the response. The body must not change until then.
   * Errors: `busy` when too many reads wait; `timeout` at the request's deadline, at the latest; `unavailable` when a
   * replica is not here; what the operation itself throws.
   */
  read(operation: ReadOperation, replicas: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> {
    return this.readerPool.read(operation, replicas, request);
  }

  /**
   * A part of a distributed read, on some replicas of its collection, at least one. body: an encoded `Portion` (see `portion/`), which must
   * not change until it is answered. Errors: as `read`.
   */
  portion(replicas: readonly ReplicaKey[], body: Uint8Array, deadlineMs: number, how: PortionOptions = {}): Promise<PortionResult> {
    return this.readerPool.portion(replicas, body, deadlineMs, how);
  }

  /**
   * Answers a read from portions of many nodes, as `read` would if one replica had all points. The body must not change until then.
   * Errors: `busy`, `timeout`; those of `access`, and what the operation itself throws.
   */
  gather(operation: ReadOperation, request: RawRequest, access: GatherAccess): Promise<Uint8Array> {
    if (this.gatherPool === null) return Promise.reject(new TroupeError('internal', 'this node has no thread for reads over many nodes'));
    return this.gatherPool.gather(operation, request, access);
  }

  /** Resolves when the threads that answer reads have done all that they were sent before, such as the sets of replicas that were opened. */
  settled(): Promise<void> {
    return this.readerPool.settled();
  }

  /** Reads that begin from now on find collections by these aliases, too. */
  setAliases(aliases: AliasMap): void {
    this.readerPool.setAliases(aliases);
  }

  /** Reads that begin from now on find shards by these keys, of every collection that has some. */
  setShardKeys(shards: ShardKeyMap): void {
    this.readerPool.setShardKeys(shards);
  }

  /** See `ReaderPool.changeOwnReads`. */
  changeOwnReads(take: () => OwnReadsChange): void {
    this.readerPool.changeOwnReads(take);
  }

  /** See `ReaderPool.openDoors`. */
  openDoors(open: OpenReaderDoor): number {
    return this.readerPool.openDoors(open);
  }

  /** See `ReaderPool.forgetDoors`. */
  forgetDoors(): void {
    this.readerPool.forgetDoors();
  }

  /** Opens a replica on the writer with the fewest. damaged: passed to the writer. Resolves when it takes reads and writes. */
  openReplica(spec: Omit<ReplicaSpec, 'readers'>, damaged: string | null): Promise<ReplicaStats> {
    const opening = this.writerPool.openReplica(spec, damaged);
    // Beside the opening: its writer has begun before.
    this.readerPool.startOthers();
    return opening;
  }

  /**
   * As `openReplica`, of a small replica that was closed in order, while there are enough others: it stays asleep until somebody needs it, and is
   * checked first then. Null: it has to be opened.
   */
  openAsleep(spec: Omit<ReplicaSpec, 'readers'>, check: () => Promise<string | null>): Promise<ReplicaStats | null> {
    return this.writerPool.openAsleep(spec, check);
  }

  /** The process ends once all is closed: from here on replicas are closed without their files, which its end closes more cheaply. */
  prepareExit(): void {
    this.writerPool.prepareExit();
  }

  /** Closes a replica: when it resolves no thread has any file of it open, but before an exit. Writes that were queued are done. */
  closeReplica(key: ReplicaKey): Promise<void> {
    return this.writerPool.closeReplica(key);
  }

  /** Gives a replica a changed configuration. */
  configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    return this.writerPool.configure(key, config);
  }

  /**
   * A write request as the shards of its collection get it: decoded and checked by a reader, as each shard's bytes.
   * Errors: those of the request itself; `busy`, `timeout`, `unavailable` as of a read. Nothing is written.
   */
  split(job: SplitJob): Promise<SplitWrite> {
    return this.readerPool.split(job);
  }

  /** What a request costs where the rate of requests is limited, at least 1. Errors: those of the request itself; as of a read. */
  weigh(job: WeighJob): Promise<number> {
    return this.readerPool.weigh(job);
  }

  /** The first of these points that a replica does not have once all writes before are applied; null: it has all. Errors: as `write`. */
  missing(key: ReplicaKey, ids: readonly PointId[], deadlineMs: number): Promise<PointId | null> {
    return this.writerPool.missing(key, ids, deadlineMs);
  }

  // What follows is documented in `ShardLogPort`.

  write(key: ReplicaKey, as: LeaderTag, write: TimedWrite): Promise<LogWritten> {
    return this.shardLogs.write(key, as, write);
  }

  append(key: ReplicaKey, previous: LogTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<LogTag> {
    return this.shardLogs.append(key, previous, entries, until);
  }

  position(key: ReplicaKey): Promise<ShardPosition> {
    return this.shardLogs.position(key);
  }

  entriesAfter(key: ReplicaKey, after: LogTag, bytesMax: number): Promise<LogPart> {
    return this.shardLogs.entriesAfter(key, after, bytesMax);
  }

  reachOf(key: ReplicaKey, after: LogTag, untilMs: number): Promise<LogReach> {
    return this.shardLogs.reachOf(key, after, untilMs);
  }

  resetLog(key: ReplicaKey, at: LogTag): Promise<void> {
    return this.shardLogs.resetLog(key, at);
  }

  rewindLog(key: ReplicaKey, to: LogTag): Promise<void> {
    return this.shardLogs.rewindLog(key, to);
  }

  digest(key: ReplicaKey, leaders: ReplicaDigest | null): Promise<ReplicaDigest> {
    return this.shardLogs.digest(key, leaders);
  }

  bucketPoints(key: ReplicaKey, buckets: readonly number[]): Promise<BucketPoints> {
    return this.shardLogs.bucketPoints(key, buckets);
  }

  replaceBuckets(key: ReplicaKey, bytes: Uint8Array): Promise<number> {
    return this.shardLogs.replaceBuckets(key, bytes);
  }

  settings(key: ReplicaKey): Promise<readonly Uint8Array[]> {
    return this.shardLogs.settings(key);
  }

  applySettings(key: ReplicaKey, operations: readonly Uint8Array[]): Promise<void> {
    return this.shardLogs.applySettings(key, operations);
  }

  checkpoint(key: ReplicaKey, folder: string, isFollowed: boolean): Promise<ReplicaCheckpoint> {
    return this.shardLogs.checkpoint(key, folder, isFollowed);
  }

  releaseCheckpoint(key: ReplicaKey): Promise<void> {
    return this.shardLogs.releaseCheckpoint(key);
  }

  /** Makes a segment (or index files) as planned and publishes it. Aborting `signal` ends it with `unavailable`, and nothing has changed. */
  build(key: ReplicaKey, plan: BuildOrder, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport> {
    return this.buildRuns.build(key, plan, onProgress, signal);
  }

  /** A replica's state after its last reported commit; null when it is not open. */
  stats(key: ReplicaKey): ReplicaStats | null {
    return this.writerPool.stats(key);
  }

  /** Calls the listener with every new state of a replica; the answer takes it off again. */
  onStats(listener: (stats: ReplicaStats) => void): () => void {
    this.statsListeners.add(listener);
    return () => this.statsListeners.delete(listener);
  }

  /** Calls the listener when a replica cannot go on; the answer takes it off again. */
  onFailed(listener: (key: ReplicaKey, error: TroupeError) => void): () => void {
    this.failedListeners.add(listener);
    return () => this.failedListeners.delete(listener);
  }

  /** Hears of filters for which readers had to read payloads, some time after. */
  onScans: (scans: readonly SeenScan[]) => void = () => {};

  /** Hears what the cache of filters of each reader did, some time after; null: the reader is gone with all that it held. */
  onCacheUses: (reader: number, uses: readonly CacheUse[] | null) => void = () => {};

  /** Calls the listener when a worker starts or is lost; the answer takes it off again. */
  onWorker(listener: (event: WorkerEvent) => void): () => void {
    this.workerListeners.add(listener);
    return () => this.workerListeners.delete(listener);
  }

  /** Has a thread watched that is not the pool's own, and tells of it as of its own ones. */
  watch(thread: WatchedThread): void {
    this.otherThreads.push(thread);
  }

  depths(): PoolDepths {
    const now = steadyNowMs();
    const { count, max } = this.readerPool.waitingReads();
    return {
      waitingReads: count,
      waitingReadsMax: max,
      workers: [
        ...this.readerPool.depths(now),
        ...this.writerPool.depths(now),
        ...this.buildRuns.depths(now),
        ...(this.gatherPool?.depths(now) ?? []),
        ...this.otherThreads.flatMap((thread) => thread.depth(now) ?? []),
      ],
      replicas: { open: this.writerPool.openCount, ...this.replicaLimit },
    };
  }

  /** Ends everything: queued writes are done, waiting reads answered `unavailable`. */
  async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await this.writerPool.closeReplicas();
    this.deadlines.stop();
    // The end of a thread that hangs is waited for, too, and only the watch finds it.
    await Promise.all([this.readerPool.close(), this.writerPool.close(), this.gatherPool?.close(), this.buildRuns.close()]);
    clearInterval(this.looking);
  }

  private look(): void {
    this.readerPool.look();
    this.writerPool.look();
    this.buildRuns.look();
    this.gatherPool?.look();
    for (const thread of this.otherThreads) thread.look((event) => this.tellWorker(event));
  }

  private tellWorker(event: WorkerEvent): void {
    for (const listener of this.workerListeners) listener(event);
  }

  private async until(started: Promise<unknown>): Promise<void> {
    try {
      await started;
    } catch (error) {
      await this.close();
      throw error;
    }
  }
}
