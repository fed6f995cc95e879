/**
 * The writers as the main thread sees them: which replica is on which, the calls each has to answer and how many may
 * wait, and what becomes of both when a writer is lost. Sets of segments that a writer publishes go on to the readers.
 */

import type { TransferListItem } from 'node:worker_threads';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { lacking } from '../disk/machine.js';
import type { SharedLedger } from '../memory/shared-ledger.js';
import { threadEntry } from '../threads/entries.js';
import type { FromWriter, ReplicaKey, ReplicaSpec, ReplicaStats, ToWriter } from '../threads/messages.js';
import { FreedMemory } from './freed-memory.js';
import { acceptsWrite, chooseWriter } from './pool-state.js';
import type { ReaderPool } from './reader-pool.js';
import { beyondLimit, type ReplicaLimit } from './replica-limit.js';
import { shuttingDown, type WorkerDepth, type WorkerEvent, WorkerSlots } from './worker-slots.js';

export interface WriterPoolOptions {
  readonly count: number;
  readonly replicaLimit: ReplicaLimit;
  /** Writes one writer's queue may hold. Default 1024. */
  readonly queuedWritesMax: number | undefined;
  /** Bytes one writer's queue may hold. Default 128 MiB. */
  readonly queuedWriteBytesMax: number | undefined;
  /** Worker entry other than the built one. */
  readonly entry: URL | undefined;
  readonly closing: AbortSignal;
  readonly ledger: SharedLedger;
}

export interface WriterPoolEvents {
  /** A write has this deadline (`steadyNowMs()`): `expire` should run then. */
  watchDeadline(deadlineMs: number): void;
  tellStats(stats: ReplicaStats): void;
  /** The replica cannot go on. */
  tellFailed(key: ReplicaKey, error: TroupeError): void;
  tellWorker(event: WorkerEvent): void;
}

/** A replica and its writer. */
export interface Replica {
  spec: ReplicaSpec;
  readonly writer: number;
  stats: ReplicaStats | null;
  /** Its writer has it open. */
  open: boolean;
  /** Settled when no reader has anything of an earlier opening. */
  readersFree: Promise<void>;
}

/** What a writer answers to a message. */
export interface CallAnswer {
  readonly value: unknown;
  readonly stats: ReplicaStats | null;
  /** What a measured write has cost. */
  readonly usage: HardwareUsage | null;
}

const WRITES: ReadonlySet<ToWriter['kind']> = new Set(['write', 'append']);

const QUEUED_WRITES_MAX = 1024;
const QUEUED_WRITE_BYTES_MAX = 128 << 20;

interface PendingCall {
  readonly isWrite: boolean;
  readonly bytes: number;
  readonly deadlineMs: number;
  readonly resolve: (answer: CallAnswer) => void;
  readonly reject: (error: TroupeError) => void;
  settled: boolean;
}

/** What one writer has to do. */
interface WriterQueue {
  /** Those that timed out stay until they are answered, as the writer is still to do them. */
  readonly calls: Map<number, PendingCall>;
  queuedBytes: number;
  queuedWrites: number;
  processed: number;
}

export class WriterPool {
  private readonly slots: WorkerSlots<FromWriter, ToWriter>;
  private readonly queues: readonly WriterQueue[];
  private readonly replicas = new Map<ReplicaKey, Replica>();
  private readonly freed = new FreedMemory();
  private readonly closing: AbortSignal;
  private readonly replicaLimit: ReplicaLimit;
  private readonly limits: { readonly queuedMax: number; readonly queuedBytesMax: number };
  private nextId = 1;

  constructor(
    options: WriterPoolOptions,
    private readonly readers: ReaderPool,
    private readonly on: WriterPoolEvents,
  ) {
    const { count, closing } = options;
    this.closing = closing;
    this.replicaLimit = options.replicaLimit;
    this.limits = {
      queuedMax: options.queuedWritesMax ?? QUEUED_WRITES_MAX,
      queuedBytesMax: options.queuedWriteBytesMax ?? QUEUED_WRITE_BYTES_MAX,
    };
    this.queues = Array.from({ length: count }, () => ({ calls: new Map(), queuedBytes: 0, queuedWrites: 0, processed: 0 }));
    const entry = options.entry ?? threadEntry('writer');
    this.slots = new WorkerSlots(
      { kind: 'writer', count, entry, closing, ledger: options.ledger },
      {
        ready: (index) => this.writerReady(index),
        lost: (index, reason) => this.writerLost(index, reason),
        message: (index, message) => this.onWriter(index, message),
        tellWorker: (event) => on.tellWorker(event),
      },
    );
  }

  /** Resolves when every writer is ready; rejects when one is lost before. */
  startAll(): Promise<unknown> {
    return this.slots.startAll();
  }

  /** Closes every replica: writes that were queued are done. */
  closeReplicas(): Promise<unknown> {
    return Promise.allSettled([...this.replicas.keys()].map((key) => this.closeReplica(key)));
  }

  /** Every writer ends. */
  close(): Promise<unknown> {
    return this.slots.endAll();
  }

  /** See `EnginePool.openReplica`. */
  async openReplica(spec: Omit<ReplicaSpec, 'readers'>, damaged: string | null): Promise<ReplicaStats> {
    const { key } = spec;
    if (this.replicas.has(key)) throw new TroupeError('conflict', `replica ${key} is open`);
    // One that is there already is opened if anyhow possible: its points are nowhere else.
    const beyond = isMarkedMade(spec.folder) ? null : beyondLimit(this.replicaLimit, this.replicas.size, 1);
    if (beyond !== null) throw lacking(`replica ${key} is not made: ${beyond}`);
    const replica: Replica = {
      spec: { ...spec, readers: this.readers.slotCount },
      writer: chooseWriter(this.queues.map((_, index) => this.replicasOf(index).length)),
      stats: null,
      open: false,
      readersFree: Promise.resolve(),
    };
    this.replicas.set(key, replica);
    this.readers.addReplica(key);
    try {
      if (!this.slots.isUp(replica.writer)) await this.startWriterOf(replica);
      return await this.openOnWriter(replica, damaged);
    } catch (error) {
      if (this.replicas.get(key) === replica) {
        await this.readers.detach(key, true);
        this.remove(key);
      }
      throw error;
    }
  }

  get replicaCount(): number {
    return this.replicas.size;
  }

  /** See `EnginePool.closeReplica`. */
  async closeReplica(key: ReplicaKey): Promise<void> {
    const replica = this.replicas.get(key);
    if (replica === undefined) return;
    replica.open = false;
    // The process ends, and all memory with it.
    const frees = !this.closing.aborted && this.freed.isWorthCollecting(replica.stats);
    try {
      await this.readers.detach(key, frees);
      // A writer that is lost has closed everything.
      if (this.slots.isUp(replica.writer)) await this.call(replica, { kind: 'close', id: 0, key, frees });
    } finally {
      this.remove(key);
    }
  }

  /** See `EnginePool.configure`. */
  async configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    const replica = this.openReplicaOf(key);
    // Readers learn of it by the set that the writer publishes with it.
    await this.call(replica, { kind: 'configure', id: 0, key, config });
    replica.spec = { ...replica.spec, config };
  }

  /** See `EnginePool.missing`. */
  async missing(key: ReplicaKey, ids: readonly PointId[], deadlineMs: number): Promise<PointId | null> {
    const { value } = await this.call(this.openReplicaOf(key), { kind: 'missing', id: 0, key, ids }, { deadlineMs });
    return value as PointId | null;
  }

  /** Errors: `busy`. */
  checkRoom(replica: Replica, bytes: number): void {
    const { queuedWrites, queuedBytes } = this.queueOf(replica);
    if (acceptsWrite(queuedWrites, queuedBytes, bytes, this.limits)) return;
    const options = { retryAfterMs: 1000 };
    throw new TroupeError('busy', `${queuedWrites} writes of ${queuedBytes} bytes are queued already: retry later`, options);
  }

  /** The replica, when it takes reads and writes. Errors: `unavailable` when it does not, or the pool closes. */
  openReplicaOf(key: ReplicaKey): Replica {
    if (this.closing.aborted) throw shuttingDown();
    const replica = this.replicas.get(key);
    if (replica?.open !== true) throw new TroupeError('unavailable', `replica ${key} is not open here`, { retryAfterMs: 1000 });
    return replica;
  }

  /**
   * Sends a message that is answered. Its `id` is given here.
   * Errors: `unavailable` when the writer is or gets lost; `timeout` at the deadline, if it has one; what the writer answers.
   */
  call(
    replica: Replica,
    message: Extract<ToWriter, { id: number }>,
    options: { bytes?: number; deadlineMs?: number; transfer?: TransferListItem[] } = {},
  ): Promise<CallAnswer> {
    const queue = this.queueOf(replica);
    return new Promise((resolve, reject) => {
      if (!this.slots.isUp(replica.writer)) {
        return reject(
          new TroupeError('unavailable', `the writer of replica ${replica.spec.key} is starting again`, { retryAfterMs: 1000 }),
        );
      }
      const id = this.nextId++;
      const bytes = options.bytes ?? 0;
      const deadlineMs = options.deadlineMs ?? Number.POSITIVE_INFINITY;
      const isWrite = WRITES.has(message.kind);
      queue.calls.set(id, { isWrite, bytes, deadlineMs, resolve, reject, settled: false });
      queue.queuedBytes += bytes;
      if (isWrite) queue.queuedWrites++;
      this.slots.post(replica.writer, { ...message, id }, options.transfer);
      this.on.watchDeadline(deadlineMs);
    });
  }

  /** Every reader has dropped the replica's sets before `generation`: its writer may free what only they used (View-V4). */
  retired(key: ReplicaKey, generation: number, frees: boolean): void {
    const replica = this.replicas.get(key);
    if (replica !== undefined) this.slots.post(replica.writer, { kind: 'retired', key, generation, frees });
  }

  /** Answers `timeout` to calls whose deadline has come, and returns the next deadline. */
  expire(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { calls } of this.queues) {
      for (const call of calls.values()) {
        if (call.settled) continue;
        if (call.deadlineMs > nowMs) {
          next = Math.min(next, call.deadlineMs);
          continue;
        }
        call.settled = true;
        call.reject(new TroupeError('timeout', 'the write did not finish within its timeout', { outcome: 'unknown' }));
      }
    }
    return next;
  }

  stats(key: ReplicaKey): ReplicaStats | null {
    return this.replicas.get(key)?.stats ?? null;
  }

  depths(nowMs: number): WorkerDepth[] {
    return this.slots.depths(nowMs, (index) => {
      const { calls, queuedBytes, processed } = this.queues[index] as WriterQueue;
      return { depth: calls.size, queuedBytes, processed };
    });
  }

  // ---------------------------------------------------------------- threads

  private writerReady(index: number): void {
    // After a loss: its replicas recover from what is on disk.
    for (const replica of this.replicasOf(index)) {
      if (!replica.open) continue;
      replica.open = false;
      replica.readersFree
        .then(() => this.openOnWriter(replica, null))
        .catch((error: unknown) => this.on.tellFailed(replica.spec.key, asTroupeError(error)));
    }
  }

  private writerLost(index: number, reason: string): void {
    const queue = this.queues[index] as WriterQueue;
    const calls = [...queue.calls.values()];
    queue.calls.clear();
    queue.queuedBytes = 0;
    queue.queuedWrites = 0;
    for (const call of calls) {
      if (call.settled) continue;
      call.settled = true;
      call.reject(
        new TroupeError('unavailable', `the writer of the replica was lost (${reason})`, { retryAfterMs: 1000, outcome: 'unknown' }),
      );
    }
    // Readers let go of its replicas: the sets it announced may never be committed, and the next writer may give their
    // numbers to others (View-V5).
    for (const replica of this.replicasOf(index)) {
      const { key } = replica.spec;
      this.readers.forgetRetiring(key);
      if (replica.open) replica.readersFree = this.readers.detach(key, true);
    }
  }

  private onWriter(index: number, message: FromWriter): void {
    switch (message.kind) {
      case 'answer': {
        if (message.stats !== null) this.takeStats(message.stats);
        const call = this.finishCall(index, message.id);
        call?.resolve({ value: message.value, stats: message.stats, usage: message.usage ?? null });
        return;
      }
      case 'error': {
        if (message.stats !== null) this.takeStats(message.stats);
        this.finishCall(index, message.id)?.reject(errorFromFacts(message.error));
        return;
      }
      case 'publish':
        this.takePublished(message);
        return;
      case 'published':
        this.readers.retireBefore(message.key, message.generation);
        return;
      case 'stats':
        this.takeStats(message.stats);
        return;
      case 'failed': {
        const replica = this.replicas.get(message.key);
        if (replica !== undefined) replica.open = false;
        this.on.tellFailed(message.key, errorFromFacts(message.error));
        return;
      }
      case 'ready':
        return;
      default:
        assertNever(message);
    }
  }

  private takePublished(message: Extract<FromWriter, { kind: 'publish' }>): void {
    const replica = this.replicas.get(message.spec.key);
    if (replica === undefined || this.readers.isDetaching(message.spec.key)) return;
    replica.spec = message.spec;
    this.readers.attach({
      kind: 'attach',
      spec: message.spec,
      openCommit: message.openCommit,
      fields: message.fields,
      set: message.set,
    });
  }

  private takeStats(stats: ReplicaStats): void {
    const replica = this.replicas.get(stats.key);
    if (replica === undefined) return;
    replica.stats = stats;
    this.on.tellStats(stats);
  }

  private finishCall(index: number, id: number): PendingCall | undefined {
    const queue = this.queues[index] as WriterQueue;
    const call = queue.calls.get(id);
    if (call === undefined) return undefined;
    queue.calls.delete(id);
    queue.processed++;
    queue.queuedBytes -= call.bytes;
    if (call.isWrite) queue.queuedWrites--;
    if (call.settled) return undefined;
    call.settled = true;
    return call;
  }

  // ---------------------------------------------------------------- replicas

  /** The first replica of a writer waits for its thread. Errors: `unavailable`, also when the replica is closed meanwhile. */
  private async startWriterOf({ spec, writer }: Replica): Promise<void> {
    const { key } = spec;
    await this.slots.start(writer);
    if (this.replicas.get(key)?.spec !== spec) throw new TroupeError('unavailable', `replica ${key} was closed before it was open`);
  }

  private async openOnWriter(replica: Replica, damaged: string | null): Promise<ReplicaStats> {
    const { stats } = await this.call(replica, { kind: 'open', id: 0, spec: replica.spec, damaged });
    replica.open = true;
    if (stats === null) throw new TroupeError('internal', `replica ${replica.spec.key} opened without telling its state`);
    return stats;
  }

  private remove(key: ReplicaKey): void {
    this.replicas.delete(key);
    this.readers.removeReplica(key);
  }

  private replicasOf(writer: number): Replica[] {
    return [...this.replicas.values()].filter((replica) => replica.writer === writer);
  }

  private queueOf(replica: Replica): WriterQueue {
    return this.queues[replica.writer] as WriterQueue;
  }
}

function asTroupeError(error: unknown): TroupeError {
  return error instanceof TroupeError ? error : errorFromFacts(errorFacts(error));
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}
