/**
 * The engine's threads as the main thread sees them: readers answer queries, writers own the writes of their replicas,
 * builders make segments. The pool starts them, hands bytes over, bounds what may wait, keeps deadlines, replaces a
 * thread that is lost, and passes each published set of segments from writer to readers. Which reader gets what is
 * decided in `pool-state.ts`.
 */

import os from 'node:os';
import { type TransferListItem, Worker } from 'node:worker_threads';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { collectGarbage } from './collect-garbage.js';
import type {
  BuildJob,
  BuildReport,
  BuildResult,
  BuildSources,
  FromBuilder,
  FromReader,
  FromWriter,
  RawRequest,
  ReaderData,
  ReadOperation,
  ReplicaKey,
  ReplicaSpec,
  ReplicaStats,
  ToReader,
  ToWriter,
  WriteOperation,
} from './messages.js';
import {
  acceptsWrite,
  chooseWriter,
  expireReads,
  finishRead,
  loseReader,
  nextDeadline,
  nextRead,
  offerRead,
  type PendingRead,
  pendingCount,
  type ReadState,
  readState,
  restartDelayMs,
  retryAfterMs,
  stuckReaders,
} from './pool-state.js';

export interface PoolOptions {
  /** Default: CPUs - 1, at least 1. */
  readonly readers?: number;
  /** Default: half the CPUs, at least 1. */
  readonly writers?: number;
  /** Reads that may wait beside those the readers hold. Default 1024. */
  readonly waitingReadsMax?: number;
  /** Writes one writer's queue may hold. Default 1024. */
  readonly queuedWritesMax?: number;
  /** Bytes one writer's queue may hold. Default 128 MiB. */
  readonly queuedWriteBytesMax?: number;
  /** Worker entries other than the built ones (tests). */
  readonly entries?: { readonly reader?: URL; readonly writer?: URL; readonly builder?: URL };
}

/** What to build: see `BuildJob`. */
export interface BuildPlan {
  readonly plan: BuildJob['plan'];
  readonly segments: readonly number[];
  readonly missingFields: readonly string[];
  readonly withGraph: boolean;
  readonly threads: number;
  readonly niceness: number;
}

export interface BuildProgress {
  readonly done: number;
  readonly total: number;
  readonly stage: string;
}

/** One worker for telemetry. */
export interface WorkerDepth {
  readonly name: string;
  readonly kind: 'reader' | 'writer' | 'builder';
  readonly up: boolean;
  /** Requests it holds. */
  readonly depth: number;
  readonly queuedBytes: number;
  readonly processed: number;
  readonly restarts: number;
  readonly uptimeMs: number;
  readonly lastError: string | null;
}

export interface PoolDepths {
  /** Reads that wait for a reader. */
  readonly waitingReads: number;
  readonly waitingReadsMax: number;
  readonly workers: readonly WorkerDepth[];
}

export interface WorkerEvent {
  readonly name: string;
  readonly kind: 'reader' | 'writer' | 'builder';
  readonly event: 'started' | 'lost';
  readonly error: string | null;
}

const WAITING_READS_MAX = 1024;
const WAITING_READ_BYTES_MAX = 256 << 20;
const READS_IN_FLIGHT_MAX = 4;
const QUEUED_WRITES_MAX = 1024;
const QUEUED_WRITE_BYTES_MAX = 128 << 20;
/** How long past its deadline a read may hold its reader before that is replaced. */
const STUCK_GRACE_MS = 10_000;
/** How long a builder may take to give up. */
const CANCEL_GRACE_MS = 5_000;
/** After a retirement: others may follow, and one collection serves them all. */
const COLLECT_DELAY_MS = 1000;
/**
 * Young garbage of readers and writers is small and short-lived; V8's default of 48 MB a thread only fills memory
 * (measured after 60k × 784 and 30,000 searches: 70 MB less with 6 MB a thread, at the same CPU per query).
 */
const SMALL_YOUNG_GENERATION = { maxYoungGenerationSizeMb: 6 };
const RESTART_WINDOW_MS = 60_000;
/** Longest delay `setTimeout` takes. */
const TIMER_MAX_MS = 0x7fff_ffff;

interface ReadWork {
  readonly operation: ReadOperation;
  readonly replicas: readonly ReplicaKey[];
  readonly request: RawRequest;
  readonly resolve: (body: Uint8Array) => void;
  readonly reject: (error: TroupeError) => void;
}

/** A thread slot: the worker that fills it changes when it is lost. */
interface Slot {
  readonly kind: 'reader' | 'writer';
  readonly index: number;
  worker: Worker | null;
  up: boolean;
  startedMs: number;
  restarts: number;
  recentRestarts: number[];
  lastError: string | null;
}

interface PendingCall {
  readonly isWrite: boolean;
  readonly bytes: number;
  readonly deadlineMs: number;
  readonly resolve: (answer: { body: Uint8Array | null; value: unknown; stats: ReplicaStats | null }) => void;
  readonly reject: (error: TroupeError) => void;
  settled: boolean;
}

interface WriterSlot extends Slot {
  readonly calls: Map<number, PendingCall>;
  queuedBytes: number;
  queuedWrites: number;
  processed: number;
}

type Attach = Extract<ToReader, { kind: 'attach' }>;

interface Replica {
  spec: ReplicaSpec;
  readonly writer: number;
  /** Sets that readers may need, by generation, oldest first. */
  attaches: Attach[];
  stats: ReplicaStats | null;
  /** Its writer has it open. */
  open: boolean;
  /** Settled when no reader has anything of an earlier opening. */
  readersFree: Promise<void>;
  /** Readers that have not answered the retirement below this generation. */
  readonly retiring: Map<number, Set<number>>;
}

interface Detaching {
  readonly readers: Set<number>;
  readonly done: () => void;
}

export class EnginePool {
  /** Starts all readers and writers; resolves when each is ready. */
  static async start(options: PoolOptions = {}): Promise<EnginePool> {
    const pool = new EnginePool(options);
    await pool.startAll();
    return pool;
  }

  readonly readers: number;
  readonly writers: number;
  private readonly options: PoolOptions;
  private readonly reads: ReadState<ReadWork>;
  private readonly readerSlots: Slot[];
  private readonly writerSlots: WriterSlot[];
  private readonly builders = new Map<string, { startedMs: number; processed: number }>();
  private readonly replicas = new Map<ReplicaKey, Replica>();
  private readonly detaching = new Map<ReplicaKey, Detaching>();
  private readonly statsListeners = new Set<(stats: ReplicaStats) => void>();
  private readonly failedListeners = new Set<(key: ReplicaKey, error: TroupeError) => void>();
  private readonly workerListeners = new Set<(event: WorkerEvent) => void>();
  private nextId = 1;
  private nextBuilder = 1;
  private closing = false;
  private timer: NodeJS.Timeout | null = null;
  private collecting: NodeJS.Timeout | null = null;
  private timerAtMs = Number.POSITIVE_INFINITY;
  /** Mean time between two answers while reads wait, smoothed: for Retry-After. */
  private answerMs = 1;
  private lastAnswerMs = 0;

  private constructor(options: PoolOptions) {
    const cpus = os.availableParallelism();
    this.options = options;
    this.readers = options.readers ?? Math.max(1, cpus - 1);
    this.writers = options.writers ?? Math.max(1, Math.floor(cpus / 2));
    this.reads = readState(this.readers, {
      waitingMax: options.waitingReadsMax ?? WAITING_READS_MAX,
      waitingBytesMax: WAITING_READ_BYTES_MAX,
      inFlightMax: READS_IN_FLIGHT_MAX,
    });
    this.readerSlots = Array.from({ length: this.readers }, (_, index) => newSlot('reader', index));
    this.writerSlots = Array.from({ length: this.writers }, (_, index) => ({
      ...newSlot('writer', index),
      calls: new Map(),
      queuedBytes: 0,
      queuedWrites: 0,
      processed: 0,
    }));
  }

  /**
   * Answers a read: the `result` bytes of the response. The body must not change until then.
   * Errors: `busy` when too many reads wait; `timeout` at the request's deadline, at the latest; `unavailable` when a
   * replica is not here; what the operation itself throws.
   */
  read(operation: ReadOperation, replicas: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.closing) return reject(shuttingDown());
      const work: ReadWork = { operation, replicas, request, resolve, reject };
      const read: PendingRead<ReadWork> = {
        id: this.nextId++,
        deadlineMs: request.deadlineMs,
        bytes: request.body?.byteLength ?? 0,
        work,
        attempts: 0,
        settled: false,
      };
      const decision = offerRead(this.reads, read);
      if (decision === 'busy') {
        const { waitingCount } = this.reads;
        const options = { retryAfterMs: retryAfterMs(waitingCount, this.answerMs) };
        return reject(new TroupeError('busy', `${waitingCount} reads wait already; try again later`, options));
      }
      if (decision !== 'wait') this.postRead(decision, read);
      this.watchDeadline(request.deadlineMs);
    });
  }

  /** Opens a replica on the writer with the fewest. damaged: passed to the writer. Resolves when it takes reads and writes. */
  async openReplica(spec: Omit<ReplicaSpec, 'readers'>, damaged: string | null): Promise<ReplicaStats> {
    if (this.replicas.has(spec.key)) throw new TroupeError('conflict', `replica ${spec.key} is open`);
    const counts = this.writerSlots.map((slot) => [...this.replicas.values()].filter((replica) => replica.writer === slot.index).length);
    const replica: Replica = {
      spec: { ...spec, readers: this.readers },
      writer: chooseWriter(counts),
      attaches: [],
      stats: null,
      open: false,
      readersFree: Promise.resolve(),
      retiring: new Map(),
    };
    this.replicas.set(spec.key, replica);
    try {
      return await this.openOnWriter(replica, damaged);
    } catch (error) {
      await this.detachReaders(spec.key);
      this.replicas.delete(spec.key);
      throw error;
    }
  }

  /** Closes a replica: when it resolves no thread has any file of it open. Writes that were queued are done. */
  async closeReplica(key: ReplicaKey): Promise<void> {
    const replica = this.replicas.get(key);
    if (replica === undefined) return;
    replica.open = false;
    try {
      await this.detachReaders(key);
      // A writer that is lost has closed everything.
      if (this.writerOf(replica).up) await this.call(replica, { kind: 'close', id: 0, key });
    } finally {
      this.replicas.delete(key);
    }
  }

  /** Gives a replica a changed configuration. */
  async configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    const replica = this.openReplicaOf(key);
    // Readers learn of it by the set that the writer publishes with it.
    await this.call(replica, { kind: 'configure', id: 0, key, config });
    replica.spec = { ...replica.spec, config };
  }

  /**
   * Carries out a write. wait: answer when it is applied, else when it is safe in the WAL. The body is given away.
   * Errors: `busy` when the writer's queue is full; `timeout` at the deadline (the write may still be done);
   * `unavailable` when the replica is not open or its writer was lost; what the operation itself throws.
   */
  async write(operation: WriteOperation, key: ReplicaKey, wait: boolean, request: RawRequest): Promise<{ body: Uint8Array }> {
    const replica = this.openReplicaOf(key);
    const slot = this.writerOf(replica);
    const bytes = request.body?.byteLength ?? 0;
    const limits = {
      queuedMax: this.options.queuedWritesMax ?? QUEUED_WRITES_MAX,
      queuedBytesMax: this.options.queuedWriteBytesMax ?? QUEUED_WRITE_BYTES_MAX,
    };
    if (!acceptsWrite(slot.queuedWrites, slot.queuedBytes, bytes, limits)) {
      const options = { retryAfterMs: 1000 };
      throw new TroupeError('busy', `${slot.queuedWrites} writes of ${slot.queuedBytes} bytes wait already; try again later`, options);
    }
    const body = request.body === null ? null : ownBytes(request.body);
    const message: ToWriter = { kind: 'write', id: 0, operation, key, wait, request: { ...request, body } };
    const { body: answer } = await this.call(replica, message, {
      bytes,
      deadlineMs: request.deadlineMs,
      transfer: body === null ? [] : [body.buffer as ArrayBuffer],
    });
    return { body: answer as Uint8Array };
  }

  /** Makes a segment (or index files) as planned and publishes it. Aborting `signal` ends it with `unavailable`, and nothing has changed. */
  async build(key: ReplicaKey, plan: BuildPlan, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport> {
    const replica = this.openReplicaOf(key);
    if (signal.aborted) throw cancelled();
    const { value } = await this.call(replica, { kind: 'beginBuild', id: 0, key, segments: plan.segments });
    const sources = value as BuildSources;
    try {
      const job: BuildJob = {
        ...sources,
        plan: plan.plan,
        missingFields: plan.missingFields,
        withGraph: plan.withGraph,
        threads: plan.threads,
        niceness: plan.niceness,
      };
      const result = await this.runBuilder(job, onProgress, signal);
      await this.call(replica, { kind: 'publishBuild', id: 0, key, result });
      return result.report;
    } catch (error) {
      // The sources must take part in later builds again. Where the writer is gone too there is nothing to give up.
      await this.call(replica, { kind: 'abandonBuild', id: 0, key, segments: plan.segments }).catch(() => {});
      throw error;
    }
  }

  /** A replica's state after its last reported commit; null when it is not open. */
  stats(key: ReplicaKey): ReplicaStats | null {
    return this.replicas.get(key)?.stats ?? null;
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

  /** Calls the listener when a worker starts or is lost; the answer takes it off again. */
  onWorker(listener: (event: WorkerEvent) => void): () => void {
    this.workerListeners.add(listener);
    return () => this.workerListeners.delete(listener);
  }

  depths(): PoolDepths {
    const now = Date.now();
    const shared = (slot: Slot) => ({
      name: `${slot.kind}-${slot.index}`,
      kind: slot.kind,
      up: slot.up,
      restarts: slot.restarts,
      uptimeMs: slot.worker === null ? 0 : now - slot.startedMs,
      lastError: slot.lastError,
    });
    const readers = this.readerSlots.map((slot): WorkerDepth => {
      const state = this.reads.readers[slot.index];
      return { ...shared(slot), depth: state?.inFlight.size ?? 0, queuedBytes: 0, processed: state?.processed ?? 0 };
    });
    const writers = this.writerSlots.map(
      (slot): WorkerDepth => ({ ...shared(slot), depth: slot.calls.size, queuedBytes: slot.queuedBytes, processed: slot.processed }),
    );
    const builders = [...this.builders].map(
      ([name, builder]): WorkerDepth => ({
        name,
        kind: 'builder',
        up: true,
        depth: 1,
        queuedBytes: 0,
        processed: 0,
        restarts: 0,
        uptimeMs: now - builder.startedMs,
        lastError: null,
      }),
    );
    return {
      waitingReads: this.reads.waitingCount,
      waitingReadsMax: this.reads.limits.waitingMax,
      workers: [...readers, ...writers, ...builders],
    };
  }

  /** Ends everything: queued writes are done, waiting reads answered `unavailable`. */
  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    await Promise.allSettled([...this.replicas.keys()].map((key) => this.closeReplica(key)));
    for (const read of expireReads(this.reads, Number.POSITIVE_INFINITY)) read.work.reject(shuttingDown());
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.collecting !== null) clearTimeout(this.collecting);
    const slots = [...this.readerSlots, ...this.writerSlots];
    await Promise.allSettled(
      slots.map((slot) => {
        const { worker } = slot;
        slot.worker = null;
        slot.up = false;
        return worker?.terminate();
      }),
    );
  }

  // ---------------------------------------------------------------- threads

  private async startAll(): Promise<void> {
    try {
      await Promise.all([
        ...this.readerSlots.map((slot) => this.startReader(slot)),
        ...this.writerSlots.map((slot) => this.startWriter(slot)),
      ]);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  private startReader(slot: Slot): Promise<void> {
    const data: ReaderData = { index: slot.index };
    const worker = new Worker(this.options.entries?.reader ?? new URL('./reader.js', import.meta.url), {
      workerData: data,
      name: `reader-${slot.index}`,
      resourceLimits: SMALL_YOUNG_GENERATION,
    });
    return this.runSlot(slot, worker, (message: FromReader) => this.onReader(slot, message), {
      ready: () => this.readerReady(slot),
      lost: () => this.readerLost(slot),
      restart: () => this.startReader(slot),
    });
  }

  private startWriter(slot: WriterSlot): Promise<void> {
    const worker = new Worker(this.options.entries?.writer ?? new URL('./writer.js', import.meta.url), {
      workerData: { index: slot.index },
      name: `writer-${slot.index}`,
      resourceLimits: SMALL_YOUNG_GENERATION,
    });
    return this.runSlot(slot, worker, (message: FromWriter) => this.onWriter(slot, message), {
      ready: () => this.writerReady(slot),
      lost: () => this.writerLost(slot),
      restart: () => this.startWriter(slot),
    });
  }

  /** Wires a worker into its slot. Resolves when it is ready; rejects when it is lost before. */
  private runSlot<Message extends { kind: string }>(
    slot: Slot,
    worker: Worker,
    onMessage: (message: Message) => void,
    on: { ready: () => void; lost: () => void; restart: () => Promise<void> },
  ): Promise<void> {
    slot.worker = worker;
    slot.startedMs = Date.now();
    return new Promise((resolve, reject) => {
      let error: Error | null = null;
      let wasReady = false;
      worker.on('error', (cause) => {
        error = cause instanceof Error ? cause : new Error(String(cause));
      });
      worker.on('message', (message: Message) => {
        if (message.kind !== 'ready') return onMessage(message);
        slot.up = true;
        wasReady = true;
        this.tellWorker({ name: `${slot.kind}-${slot.index}`, kind: slot.kind, event: 'started', error: null });
        on.ready();
        resolve();
      });
      worker.on('exit', (code) => {
        if (slot.worker !== worker) return;
        slot.worker = null;
        slot.up = false;
        const reason = error?.message ?? `ended with code ${code}`;
        slot.lastError = reason;
        this.tellWorker({ name: `${slot.kind}-${slot.index}`, kind: slot.kind, event: 'lost', error: reason });
        on.lost();
        if (!wasReady) reject(new TroupeError('unavailable', `${slot.kind} ${slot.index} did not start: ${reason}`));
        this.restartLater(slot, on.restart);
      });
    });
  }

  private restartLater(slot: Slot, restart: () => Promise<void>): void {
    if (this.closing) return;
    const now = Date.now();
    slot.recentRestarts = slot.recentRestarts.filter((time) => time > now - RESTART_WINDOW_MS);
    const delay = restartDelayMs(slot.recentRestarts.length);
    slot.recentRestarts.push(now);
    slot.restarts++;
    setTimeout(() => {
      // A worker that does not start comes back here by its `exit`.
      if (!this.closing) restart().catch(() => {});
    }, delay);
  }

  private tellWorker(event: WorkerEvent): void {
    for (const listener of this.workerListeners) listener(event);
  }

  // ---------------------------------------------------------------- readers

  private readerReady(slot: Slot): void {
    for (const replica of this.replicas.values()) for (const attach of replica.attaches) slot.worker?.postMessage(attach);
    (this.reads.readers[slot.index] as { up: boolean }).up = true;
    this.pump();
  }

  private readerLost(slot: Slot): void {
    for (const read of loseReader(this.reads, slot.index)) {
      read.work.reject(new TroupeError('internal', `the query ended two engine workers (${slot.lastError}) and was given up`));
    }
    // Its replacement starts with the newest sets only, so it has retired and detached everything.
    for (const [key, replica] of this.replicas)
      for (const generation of [...replica.retiring.keys()]) this.readerRetired(slot.index, key, generation);
    for (const key of [...this.detaching.keys()]) this.readerDetached(slot.index, key);
    this.pump();
  }

  private onReader(slot: Slot, message: FromReader): void {
    switch (message.kind) {
      case 'answer': {
        const read = this.finishRead(slot.index, message.id);
        read?.work.resolve(message.body);
        return;
      }
      case 'error': {
        const read = this.finishRead(slot.index, message.id);
        read?.work.reject(errorFromFacts(message.error));
        return;
      }
      case 'retired':
        this.readerRetired(slot.index, message.key, message.generation);
        return;
      case 'detached':
        this.readerDetached(slot.index, message.key);
        return;
      case 'ready':
        return;
      default:
        assertNever(message);
    }
  }

  /** The reader gets its next read before the answer is looked at, so that it does not wait for the main thread. */
  private finishRead(reader: number, id: number): PendingRead<ReadWork> | undefined {
    const read = finishRead(this.reads, reader, id);
    if (this.reads.waitingCount > 0) {
      const now = performance.now();
      if (this.lastAnswerMs > 0) this.answerMs += 0.05 * (now - this.lastAnswerMs - this.answerMs);
      this.lastAnswerMs = now;
      this.pump();
    } else this.lastAnswerMs = 0;
    return read;
  }

  private pump(): void {
    for (let next = nextRead(this.reads); next !== undefined; next = nextRead(this.reads)) this.postRead(next.reader, next.read);
  }

  private postRead(reader: number, read: PendingRead<ReadWork>): void {
    const { operation, replicas, request } = read.work;
    const body = request.body === null ? null : ownBytes(request.body);
    const message: ToReader = {
      kind: 'read',
      id: read.id,
      operation,
      replicas,
      request: { path: request.path, query: request.query, body, deadlineMs: request.deadlineMs },
    };
    (this.readerSlots[reader] as Slot).worker?.postMessage(message);
  }

  private postReaders(message: ToReader): void {
    for (const slot of this.readerSlots) if (slot.up) slot.worker?.postMessage(message);
  }

  /** One timer for all deadlines: most reads are answered long before theirs. */
  private watchDeadline(deadlineMs: number): void {
    if (deadlineMs >= this.timerAtMs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerAtMs = deadlineMs;
    this.timer = setTimeout(() => this.onDeadline(), Math.min(TIMER_MAX_MS, Math.max(0, deadlineMs - Date.now())));
    this.timer.unref();
  }

  private onDeadline(): void {
    this.timer = null;
    this.timerAtMs = Number.POSITIVE_INFINITY;
    const now = Date.now();
    for (const read of expireReads(this.reads, now)) read.work.reject(new TroupeError('timeout', 'the read reached its time limit'));
    let next = nextDeadline(this.reads);
    for (const slot of this.writerSlots) {
      for (const call of slot.calls.values()) {
        if (call.settled) continue;
        if (call.deadlineMs > now) {
          next = Math.min(next, call.deadlineMs);
          continue;
        }
        call.settled = true;
        call.reject(new TroupeError('timeout', 'the write reached its time limit; it may still be carried out'));
      }
    }
    for (const index of stuckReaders(this.reads, now, STUCK_GRACE_MS)) void this.readerSlots[index]?.worker?.terminate();
    // Readers that hold reads past their deadline are looked at again when their grace is over.
    if (pendingCount(this.reads) > this.reads.waitingCount) next = Math.min(next, now + STUCK_GRACE_MS);
    if (next < Number.POSITIVE_INFINITY) this.watchDeadline(next);
  }

  private readerRetired(reader: number, key: ReplicaKey, generation: number): void {
    const replica = this.replicas.get(key);
    const waiting = replica?.retiring.get(generation);
    if (replica === undefined || waiting === undefined) return;
    waiting.delete(reader);
    if (waiting.size > 0) return;
    replica.retiring.delete(generation);
    this.postWriter(replica, { kind: 'retired', key, generation });
    this.collectSoon();
  }

  /** Messages that passed through here referred to the memories of segments that are gone now. */
  private collectSoon(): void {
    if (this.collecting !== null) return;
    this.collecting = setTimeout(() => {
      this.collecting = null;
      collectGarbage();
    }, COLLECT_DELAY_MS);
    this.collecting.unref();
  }

  private detachReaders(key: ReplicaKey): Promise<void> {
    const readers = new Set(this.readerSlots.filter((slot) => slot.up).map((slot) => slot.index));
    if (readers.size === 0) return Promise.resolve();
    const replica = this.replicas.get(key);
    // A reader that starts now must not get what is being detached.
    if (replica !== undefined) replica.attaches = [];
    return new Promise((resolve) => {
      this.detaching.set(key, { readers, done: resolve });
      this.postReaders({ kind: 'detach', key });
    });
  }

  private readerDetached(reader: number, key: ReplicaKey): void {
    const detaching = this.detaching.get(key);
    if (detaching === undefined) return;
    detaching.readers.delete(reader);
    if (detaching.readers.size > 0) return;
    this.detaching.delete(key);
    detaching.done();
  }

  // ---------------------------------------------------------------- writers

  private writerReady(slot: WriterSlot): void {
    // After a loss: its replicas recover from what is on disk.
    for (const [key, replica] of this.replicas) {
      if (replica.writer !== slot.index || !replica.open) continue;
      replica.open = false;
      replica.readersFree
        .then(() => this.openOnWriter(replica, null))
        .catch((error: unknown) => this.tellFailed(key, asTroupeError(error)));
    }
  }

  private writerLost(slot: WriterSlot): void {
    const calls = [...slot.calls.values()];
    slot.calls.clear();
    slot.queuedBytes = 0;
    slot.queuedWrites = 0;
    for (const call of calls) {
      if (call.settled) continue;
      call.settled = true;
      call.reject(
        new TroupeError('unavailable', `the writer of the replica was lost (${slot.lastError}); whether this was carried out is unknown`, {
          retryAfterMs: 1000,
        }),
      );
    }
    // Readers let go of its replicas: the sets it announced may never be committed, and the next writer may give their
    // numbers to others.
    for (const [key, replica] of this.replicas) {
      if (replica.writer !== slot.index) continue;
      replica.retiring.clear();
      if (replica.open) replica.readersFree = this.detachReaders(key);
    }
  }

  private onWriter(slot: WriterSlot, message: FromWriter): void {
    switch (message.kind) {
      case 'answer': {
        if (message.stats !== null) this.takeStats(message.stats);
        const call = this.finishCall(slot, message.id);
        call?.resolve({ body: message.body, value: message.value, stats: message.stats });
        return;
      }
      case 'error': {
        if (message.stats !== null) this.takeStats(message.stats);
        this.finishCall(slot, message.id)?.reject(errorFromFacts(message.error));
        return;
      }
      case 'publish':
        this.takePublished(message);
        return;
      case 'published':
        this.retireBefore(message.key, message.generation);
        return;
      case 'stats':
        this.takeStats(message.stats);
        return;
      case 'failed': {
        const replica = this.replicas.get(message.key);
        if (replica !== undefined) replica.open = false;
        this.tellFailed(message.key, errorFromFacts(message.error));
        return;
      }
      case 'ready':
        return;
      default:
        assertNever(message);
    }
  }

  private async openOnWriter(replica: Replica, damaged: string | null): Promise<ReplicaStats> {
    const { stats } = await this.call(replica, { kind: 'open', id: 0, spec: replica.spec, damaged });
    replica.open = true;
    if (stats === null) throw new TroupeError('internal', `replica ${replica.spec.key} opened without telling its state`);
    return stats;
  }

  private takePublished(message: Extract<FromWriter, { kind: 'publish' }>): void {
    const replica = this.replicas.get(message.spec.key);
    if (replica === undefined || this.detaching.has(message.spec.key)) return;
    replica.spec = message.spec;
    const attach: Attach = { kind: 'attach', spec: message.spec, openCommit: message.openCommit, fields: message.fields, set: message.set };
    // Sets of an earlier opening have other memories: readers drop them as they get this one.
    replica.attaches = replica.attaches.filter(
      (known) => known.openCommit === attach.openCommit && known.set.generation !== attach.set.generation,
    );
    replica.attaches.push(attach);
    this.postReaders(attach);
  }

  private retireBefore(key: ReplicaKey, generation: number): void {
    const replica = this.replicas.get(key);
    if (replica === undefined) return;
    replica.attaches = replica.attaches.filter((attach) => attach.set.generation >= generation);
    const readers = new Set(this.readerSlots.filter((slot) => slot.up).map((slot) => slot.index));
    if (readers.size === 0) {
      this.postWriter(replica, { kind: 'retired', key, generation });
      return;
    }
    replica.retiring.set(generation, readers);
    this.postReaders({ kind: 'retire', key, generation });
  }

  private takeStats(stats: ReplicaStats): void {
    const replica = this.replicas.get(stats.key);
    if (replica === undefined) return;
    replica.stats = stats;
    for (const listener of this.statsListeners) listener(stats);
  }

  private tellFailed(key: ReplicaKey, error: TroupeError): void {
    for (const listener of this.failedListeners) listener(key, error);
  }

  private openReplicaOf(key: ReplicaKey): Replica {
    if (this.closing) throw shuttingDown();
    const replica = this.replicas.get(key);
    if (replica?.open !== true) throw new TroupeError('unavailable', `replica ${key} is not open here`, { retryAfterMs: 1000 });
    return replica;
  }

  private writerOf(replica: Replica): WriterSlot {
    return this.writerSlots[replica.writer] as WriterSlot;
  }

  private postWriter(replica: Replica, message: ToWriter): void {
    this.writerOf(replica).worker?.postMessage(message);
  }

  /** Sends a message that is answered. Its `id` is given here. */
  private call(
    replica: Replica,
    message: Extract<ToWriter, { id: number }>,
    options: { bytes?: number; deadlineMs?: number; transfer?: TransferListItem[] } = {},
  ): Promise<{ body: Uint8Array | null; value: unknown; stats: ReplicaStats | null }> {
    const slot = this.writerOf(replica);
    return new Promise((resolve, reject) => {
      if (!slot.up) {
        return reject(
          new TroupeError('unavailable', `the writer of replica ${replica.spec.key} is starting again`, { retryAfterMs: 1000 }),
        );
      }
      const id = this.nextId++;
      const bytes = options.bytes ?? 0;
      const deadlineMs = options.deadlineMs ?? Number.POSITIVE_INFINITY;
      const isWrite = message.kind === 'write';
      slot.calls.set(id, { isWrite, bytes, deadlineMs, resolve, reject, settled: false });
      slot.queuedBytes += bytes;
      if (isWrite) slot.queuedWrites++;
      slot.worker?.postMessage({ ...message, id }, options.transfer ?? []);
      this.watchDeadline(deadlineMs);
    });
  }

  private finishCall(slot: WriterSlot, id: number): PendingCall | undefined {
    const call = slot.calls.get(id);
    if (call === undefined) return undefined;
    slot.calls.delete(id);
    slot.processed++;
    slot.queuedBytes -= call.bytes;
    if (call.isWrite) slot.queuedWrites--;
    if (call.settled) return undefined;
    call.settled = true;
    return call;
  }

  // ---------------------------------------------------------------- builders

  private runBuilder(job: BuildJob, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildResult> {
    if (signal.aborted) return Promise.reject(cancelled());
    const name = `builder-${this.nextBuilder++}`;
    const worker = new Worker(this.options.entries?.builder ?? new URL('../build/builder.js', import.meta.url), { name });
    this.builders.set(name, { startedMs: Date.now(), processed: 0 });
    this.tellWorker({ name, kind: 'builder', event: 'started', error: null });
    let grace: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      worker.postMessage({ kind: 'cancel' });
      grace = setTimeout(() => void worker.terminate(), CANCEL_GRACE_MS);
    };
    const run = new Promise<BuildResult>((resolve, reject) => {
      worker.on('message', (message: FromBuilder) => {
        switch (message.kind) {
          case 'progress':
            return onProgress({ done: message.done, total: message.total, stage: message.stage });
          case 'result':
            return resolve(message.result);
          case 'cancelled':
            return reject(cancelled());
          case 'error':
            return reject(errorFromFacts(message.error));
          default:
            assertNever(message);
        }
      });
      worker.on('error', (error) =>
        reject(
          new TroupeError('internal', `the builder failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error }),
        ),
      );
      worker.on('exit', (code) =>
        reject(signal.aborted ? cancelled() : new TroupeError('internal', `the builder ended with code ${code}`)),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      worker.postMessage({ kind: 'build', job });
    });
    return run.finally(() => {
      signal.removeEventListener('abort', onAbort);
      clearTimeout(grace);
      this.builders.delete(name);
      return worker.terminate();
    });
  }
}

function newSlot<Kind extends 'reader' | 'writer'>(kind: Kind, index: number): Slot & { kind: Kind } {
  return { kind, index, worker: null, up: false, startedMs: 0, restarts: 0, recentRestarts: [], lastError: null };
}

/** Bytes whose buffer holds nothing else: posting a view would copy the whole buffer behind it. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function asTroupeError(error: unknown): TroupeError {
  return error instanceof TroupeError ? error : errorFromFacts(errorFacts(error));
}

function shuttingDown(): TroupeError {
  return new TroupeError('unavailable', 'the node is shutting down');
}

function cancelled(): TroupeError {
  return new TroupeError('unavailable', 'the build was cancelled');
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}
