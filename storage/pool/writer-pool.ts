/**
 * The writers as the main thread sees them: which replica is on which, the calls each has to answer and how many may
 * wait, and what becomes of both when a writer is lost. Sets of segments that a writer publishes go on to the readers.
 */

import type { TransferListItem } from 'node:worker_threads';
import { asTroupeError, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { lacking } from '../disk/machine.js';
import type { MemoryBudget } from '../memory/budget.js';
import type { SharedLedger } from '../memory/shared-ledger.js';
import type { SeenScan } from '../reader/seen-scans.js';
import { readSleepRecord } from '../replica/sleep-record.js';
import { unkeyedShards } from '../sharding/keys.js';
import { threadEntry } from '../threads/entries.js';
import type { FromWriter, ReplicaKey, ReplicaSpec, ReplicaStats, Sleeping, ToWriter } from '../threads/messages.js';
import { SentSets } from '../threads/sent-sets.js';
import type { LogShare } from '../wal/log-budget.js';
import { FreedMemory } from './freed-memory.js';
import { acceptsWrite, chooseWriter } from './pool-state.js';
import type { ReaderPool } from './reader-pool.js';
import { beyondLimit, type ReplicaLimit } from './replica-limit.js';
import { isSmallAndQuiet, SLEEP_LIMITS, type SleepLimits } from './sleep-policy.js';
import { type HeldUntilAwake, type Sleeper, Sleepers } from './sleepers.js';
import type { WatchLimits } from './thread-watch.js';
import { shuttingDown, type WorkerDepth, type WorkerEvent, WorkerSlots } from './worker-slots.js';

export interface WriterPoolOptions {
  readonly count: number;
  readonly replicaLimit: ReplicaLimit;
  /** Writes one writer's queue may hold. Default 1024. */
  readonly queuedWritesMax: number | undefined;
  /** Bytes one writer's queue may hold beside one write. Default: `queuedWriteBytesMax`. */
  readonly queuedWriteBytesMax: number | undefined;
  /** Worker entry other than the built one. */
  readonly entry: URL | undefined;
  /** When a thread without a sign of life is given up. */
  readonly watch: WatchLimits;
  readonly closing: AbortSignal;
  readonly ledger: SharedLedger;
  /** Default: `SLEEP_LIMITS`. */
  readonly sleep: SleepLimits | undefined;
  /** For the logs of all replicas (Kept-K1). */
  readonly logBudgetBytes: number;
  /** See `LogShare`. */
  readonly isRestorable: boolean;
}

export interface WriterPoolEvents {
  /** A write has this deadline (`steadyNowMs()`): `expire` should run then. */
  watchDeadline(deadlineMs: number): void;
  tellStats(stats: ReplicaStats): void;
  /** See `EnginePool.onScans`. */
  scans(scans: readonly SeenScan[]): void;
  /** The replica cannot go on. */
  tellFailed(key: ReplicaKey, error: TroupeError): void;
  tellWorker(event: WorkerEvent): void;
}

/** A replica and its writer. */
export interface Replica extends Sleeper {
  spec: ReplicaSpec;
  readonly writer: number;
  stats: ReplicaStats | null;
  /** It takes reads and writes: its writer has it open, or it is asleep. */
  open: boolean;
  /** Settled when no reader has anything of an earlier opening. */
  readersFree: Promise<void>;
}

interface CallOptions {
  readonly bytes?: number;
  readonly deadlineMs?: number;
  readonly transfer?: TransferListItem[];
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
/** Writes that are answered before they are applied are in no account, so those of one writer have this part of the memory for requests. */
const QUEUED_WRITES_SHARE = 0.5;

/** Bytes that the queue of one writer may hold beside one write. */
export function queuedWriteBytesMax({ requestBytes }: MemoryBudget): number {
  return Math.min(QUEUED_WRITE_BYTES_MAX, Math.floor(requestBytes * QUEUED_WRITES_SHARE));
}

interface PendingCall {
  readonly replica: Replica;
  readonly kind: ToWriter['kind'];
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
  /** Of the port on which its sets come. */
  sent: SentSets;
}

export class WriterPool {
  private readonly slots: WorkerSlots<FromWriter, ToWriter>;
  private readonly queues: readonly WriterQueue[];
  private readonly replicas = new Map<ReplicaKey, Replica>();
  /** How many replicas each writer has. */
  private readonly counts: number[];
  private readonly sleepers: Sleepers<Replica>;
  private readonly freed = new FreedMemory();
  private readonly closing: AbortSignal;
  private readonly replicaLimit: ReplicaLimit;
  private readonly limits: { readonly queuedMax: number; readonly queuedBytesMax: number };
  private nextId = 1;
  private openings = 0;
  private exits = false;

  constructor(
    options: WriterPoolOptions,
    private readonly readers: ReaderPool,
    private readonly on: WriterPoolEvents,
  ) {
    const { count, closing } = options;
    this.closing = closing;
    this.replicaLimit = options.replicaLimit;
    this.counts = Array.from({ length: count }, () => 0);
    this.sleepers = new Sleepers(options.sleep ?? SLEEP_LIMITS, readers.uses, {
      open: (replica, damaged) => this.openOnWriter(replica, damaged),
      close: (replica) => this.closeAsleep(replica),
      fail: (replica, error) => this.fail(replica, error),
    });
    const { isRestorable, logBudgetBytes: budgetBytes } = options;
    const logs: LogShare = { budgetBytes, writers: count, asleep: this.sleepers.logKilobytes, isRestorable };
    this.limits = {
      queuedMax: options.queuedWritesMax ?? QUEUED_WRITES_MAX,
      queuedBytesMax: options.queuedWriteBytesMax ?? queuedWriteBytesMax(options.ledger.budget),
    };
    this.queues = Array.from({ length: count }, () => ({
      calls: new Map(),
      queuedBytes: 0,
      queuedWrites: 0,
      processed: 0,
      sent: new SentSets(),
    }));
    const entry = options.entry ?? threadEntry('writer');
    this.slots = new WorkerSlots(
      { kind: 'writer', count, entry, watch: options.watch, closing, ledger: options.ledger, data: { logs } },
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
    this.sleepers.stop();
    return this.slots.endAll();
  }

  /** See `EnginePool.openReplica`. */
  async openReplica(spec: Omit<ReplicaSpec, 'readers'>, damaged: string | null): Promise<ReplicaStats> {
    const { key } = spec;
    if (this.replicas.has(key)) throw new TroupeError('conflict', `replica ${key} is open`);
    // One that is there already is opened if anyhow possible: its points are nowhere else.
    const beyond = isMarkedMade(spec.folder) ? null : beyondLimit(this.replicaLimit, this.openCount, 1);
    if (beyond !== null) throw lacking(`replica ${key} is not made: ${beyond}`);
    const replica = this.newReplica(spec);
    this.readers.sets.add(key);
    try {
      const stats = await this.openOnWriter(replica, damaged);
      replica.open = true;
      this.sleepers.noteAwake(replica);
      return stats;
    } catch (error) {
      if (this.replicas.get(key) === replica) {
        await this.readers.sets.detach(key, true);
        this.remove(key);
      }
      throw error;
    } finally {
      this.sleepers.noteOpening();
    }
  }

  /** Replicas that take descriptors and addresses: those that are not asleep. */
  get openCount(): number {
    return this.replicas.size - this.sleepers.asleepCount;
  }

  /** See `EnginePool.openAsleep`. */
  async openAsleep(spec: Omit<ReplicaSpec, 'readers'>, check: () => Promise<string | null>): Promise<ReplicaStats | null> {
    const { folder, key } = spec;
    if (this.sleepers.opensNext()) return null;
    const stats = await readSleepRecord(folder, key);
    if (stats === null || !isSmallAndQuiet(stats) || this.replicas.has(key)) return null;
    const replica = this.newReplica(spec);
    Object.assign(replica, { stats, check, open: true });
    this.sleepers.noteAsleep(replica);
    this.readers.sets.addSleeping(sleepingOf(replica));
    return stats;
  }

  private newReplica(spec: Omit<ReplicaSpec, 'readers'>): Replica {
    const replica: Replica = {
      spec: { ...spec, readers: this.readers.slotCount },
      writer: chooseWriter(this.counts),
      stats: null,
      open: false,
      readersFree: Promise.resolve(),
      life: 'awake',
      held: [],
      moving: Promise.resolve(),
      check: null,
      place: this.sleepers.newPlace(),
      calls: 0,
      keepsLog: false,
    };
    this.replicas.set(spec.key, replica);
    (this.counts[replica.writer] as number) += 1;
    return replica;
  }

  /** Resolves when these replicas are awake. Errors: `unavailable` where one is not open; what its opening throws. */
  async wake(keys: readonly ReplicaKey[]): Promise<void> {
    await Promise.all(
      keys.map(async (key) => {
        const replica = this.openReplicaOf(key);
        if (replica.life !== 'awake') await new Promise<void>((go, fail) => this.sleepers.hold(replica, { go, fail }));
      }),
    );
  }

  /** See `EnginePool.prepareExit`. */
  prepareExit(): void {
    this.exits = true;
    this.sleepers.stop();
  }

  /** See `EnginePool.closeReplica`. */
  async closeReplica(key: ReplicaKey): Promise<void> {
    const replica = this.replicas.get(key);
    if (replica === undefined) return;
    replica.open = false;
    await this.sleepers.settled(replica);
    if (replica.life === 'asleep') {
      this.readers.sets.forget(key);
      this.remove(key);
      return;
    }
    // Where the process ends, all memory and files go with it.
    const frees = !this.closing.aborted && !this.exits && this.freed.isWorthCollecting(replica.stats);
    try {
      if (!this.exits) await this.readers.sets.detach(key, frees);
      const why = this.exits ? 'exit' : 'asked';
      // A writer that is lost has closed everything.
      if (this.slots.isUp(replica.writer)) await this.call(replica, { kind: 'close', id: 0, key, frees, why });
    } finally {
      this.remove(key);
    }
  }

  /** Closes a replica that goes on being there. */
  private async closeAsleep(replica: Replica): Promise<void> {
    const { key } = replica.spec;
    const frees = this.freed.isWorthCollecting(replica.stats);
    await this.readers.sets.detach(key, frees, sleepingOf(replica));
    await this.send(replica, { kind: 'close', id: 0, key, frees, why: 'sleeps' }, {});
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
  call(replica: Replica, message: Extract<ToWriter, { id: number }>, options: CallOptions = {}): Promise<CallAnswer> {
    const { life, stats } = replica;
    if (life === 'awake') this.sleepers.uses.note(replica.place);
    // Asked of every replica at the start of a node of a cluster, and known.
    if (message.kind === 'position' && life === 'asleep' && stats !== null)
      return Promise.resolve({ value: stats.position, stats, usage: null });
    return this.send(replica, message, options);
  }

  /** As `call`; `open` and `close` are what moves a replica between awake and asleep, all others are held meanwhile. */
  private send(replica: Replica, message: Extract<ToWriter, { id: number }>, options: CallOptions): Promise<CallAnswer> {
    const queue = this.queueOf(replica);
    const waits = replica.life !== 'awake' && message.kind !== 'open' && message.kind !== 'close';
    return new Promise((resolve, reject) => {
      if (!waits && !this.slots.isUp(replica.writer)) {
        return reject(
          new TroupeError('unavailable', `the writer of replica ${replica.spec.key} is starting again`, { retryAfterMs: 1000 }),
        );
      }
      const id = this.nextId++;
      const bytes = options.bytes ?? 0;
      const deadlineMs = options.deadlineMs ?? Number.POSITIVE_INFINITY;
      const isWrite = WRITES.has(message.kind);
      queue.calls.set(id, {
        replica,
        kind: message.kind,
        isWrite,
        bytes,
        deadlineMs,
        resolve,
        reject,
        settled: false,
      });
      replica.calls++;
      if (message.kind === 'checkpoint') replica.keepsLog = true;
      if (message.kind === 'releaseCheckpoint') replica.keepsLog = false;
      queue.queuedBytes += bytes;
      if (isWrite) queue.queuedWrites++;
      const post = (): void => this.slots.post(replica.writer, { ...message, id }, options.transfer);
      if (waits) this.sleepers.hold(replica, this.heldCall(replica.writer, id, post));
      else post();
      this.on.watchDeadline(deadlineMs);
    });
  }

  private heldCall(writer: number, id: number, post: () => void): HeldUntilAwake {
    const isThere = (): boolean => this.queues[writer]?.calls.has(id) === true;
    return {
      go: () => {
        if (isThere()) post();
      },
      fail: (error) => this.finishCall(writer, id)?.reject(error),
    };
  }

  /** Every reader has dropped the replica's sets before `generation`: its writer may free what only they used (View-V4). */
  retired(key: ReplicaKey, generation: number, freed: number): void {
    const replica = this.replicas.get(key);
    if (replica !== undefined) this.slots.post(replica.writer, { kind: 'retired', key, generation, freed });
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

  /** Looks whether writers that calls wait for are alive. */
  look(): void {
    this.slots.look((index) => {
      const call = this.queues[index]?.calls.values().next().value;
      return call === undefined ? null : `${call.kind} of ${call.replica.spec.key}`;
    });
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
      if (!replica.open || replica.life !== 'awake') continue;
      replica.open = false;
      replica.readersFree
        .then(() => this.openOnWriter(replica, null))
        .then(() => {
          replica.open = true;
        })
        .catch((error: unknown) => this.on.tellFailed(replica.spec.key, asTroupeError(error)));
    }
  }

  private writerLost(index: number, reason: string): void {
    const queue = this.queues[index] as WriterQueue;
    const calls = [...queue.calls.values()];
    queue.calls.clear();
    for (const { replica } of calls) replica.calls = 0;
    queue.queuedBytes = 0;
    queue.queuedWrites = 0;
    queue.sent = new SentSets();
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
      this.readers.sets.forgetRetiring(key);
      replica.keepsLog = false;
      if (replica.open && replica.life === 'awake') replica.readersFree = this.readers.sets.detach(key, true);
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
        this.takePublished(index, message);
        return;
      case 'published':
        this.readers.sets.retireBefore(message.key, message.generation);
        return;
      case 'stats':
        this.takeStats(message.stats);
        return;
      case 'scans':
        this.on.scans(message.scans);
        return;
      case 'failed': {
        const replica = this.replicas.get(message.key);
        if (replica !== undefined) this.fail(replica, errorFromFacts(message.error));
        return;
      }
      case 'ready':
        return;
      default:
        assertNever(message);
    }
  }

  private takePublished(index: number, message: Extract<FromWriter, { kind: 'publish' }>): void {
    const { key } = message.spec;
    // Also of a replica that is gone: a later message may name the memory.
    const set = (this.queues[index] as WriterQueue).sent.unpack({ key, opening: message.opening }, message.set);
    const replica = this.replicas.get(key);
    if (replica === undefined || this.readers.sets.isDetaching(key)) return;
    if (set === null) throw new Error(`replica ${key}: a set names segments that it does not bring`);
    replica.spec = message.spec;
    this.readers.sets.attach({
      kind: 'attach',
      place: replica.place,
      spec: message.spec,
      opening: message.opening,
      openCommit: message.openCommit,
      commits: message.commits,
      fields: message.fields,
      set,
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
    call.replica.calls = Math.max(0, call.replica.calls - 1);
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
    if (!this.slots.isUp(replica.writer)) await this.startWriterOf(replica);
    const { stats } = await this.send(replica, { kind: 'open', id: 0, spec: replica.spec, damaged, opening: ++this.openings }, {});
    if (stats === null) throw new TroupeError('internal', `replica ${replica.spec.key} opened without telling its state`);
    return stats;
  }

  /** It takes no reads and writes until it is opened anew. */
  private fail(replica: Replica, error: TroupeError): void {
    replica.open = false;
    this.on.tellFailed(replica.spec.key, error);
  }

  private remove(key: ReplicaKey): void {
    const replica = this.replicas.get(key);
    if (replica === undefined) return;
    this.sleepers.forget(replica);
    (this.counts[replica.writer] as number) -= 1;
    this.replicas.delete(key);
    this.readers.sets.remove(key);
  }

  private replicasOf(writer: number): Replica[] {
    return [...this.replicas.values()].filter((replica) => replica.writer === writer);
  }

  private queueOf(replica: Replica): WriterQueue {
    return this.queues[replica.writer] as WriterQueue;
  }
}

function sleepingOf({ spec }: Replica): Sleeping {
  return { key: spec.key, shards: unkeyedShards(spec.config) };
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}
