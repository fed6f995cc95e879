/**
 * The readers as the main thread sees them. Reads wait in one queue, go to a reader (`pool-state.ts` says which) and are given up at their deadlines.
 * Readers get sets of segments (`handed-sets.ts`).
 */

import type { MessagePort } from 'node:worker_threads';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import { addUnknown } from '../../protocols/model/unknown-fields.js';
import { addUsage } from '../../protocols/model/usage.js';
import { HEAVY_BODY_BYTES, HEAVY_WRITE_BYTES } from '../../query/effort.js';
import { takeTold } from '../explain/told.js';
import type { SharedLedger } from '../memory/shared-ledger.js';
import { memoryEmptier } from '../memory/system-calls.js';
import type { CacheUse } from '../reader/cache-uses.js';
import { lackAsUnavailable } from '../reader/lack.js';
import type { SeenScan } from '../reader/seen-scans.js';
import { steadyNowMs } from '../threads/clock.js';
import { beginCollection, GarbageCollector } from '../threads/collect-garbage.js';
import { threadEntry } from '../threads/entries.js';
import { KnownReads } from '../threads/known-reads.js';
import type {
  FromReader,
  OwnReadsChange,
  PortionOptions,
  PortionResult,
  RawRequest,
  ReadOperation,
  ReplicaKey,
  ShardKeyMap,
  SplitJob,
  SplitWrite,
  ToReader,
  WeighJob,
} from '../threads/messages.js';
import { ReplicaUses } from '../threads/replica-uses.js';
import { ScratchTurns, scratchTurns } from '../threads/scratch-turns.js';
import { MoreTime, STARVED_TIMES_MAX } from './cpu-wait.js';
import { HandedSets } from './handed-sets.js';
import {
  dropRead,
  expireReads,
  finishRead,
  leaveRead,
  loseReader,
  nextDeadline,
  nextRead,
  offerRead,
  pendingCount,
  type QueuedRead,
  type ReaderSlot,
  type ReadState,
  readState,
  retryAfterMs,
  returnRead,
  setAside,
  stuckAlone,
  stuckReaders,
} from './pool-state.js';
import type { WatchLimits } from './thread-watch.js';
import { ownBytes, shuttingDown, type WorkerDepth, type WorkerEvent, WorkerSlots } from './worker-slots.js';

export interface ReaderPoolOptions {
  readonly count: number;
  /** Readers beside those that start with the first heavy read and get nothing else. */
  readonly countForHeavy: number;
  /** How long they stay when there are no heavy reads. Default: a minute. */
  readonly heavyIdleMs: number | undefined;
  /** How long past its deadline a read may hold its reader before that is replaced. Default: ten seconds. */
  readonly stuckGraceMs: number | undefined;
  /** Reads that may wait beside those the readers hold. Default 1024. */
  readonly waitingReadsMax: number | undefined;
  /** Worker entry other than the built one. */
  readonly entry: URL | undefined;
  /** When a thread without a sign of life is given up. */
  readonly watch: WatchLimits;
  readonly closing: AbortSignal;
  readonly ledger: SharedLedger;
}

export interface ReaderPoolEvents {
  /** Every reader has dropped the sets of a replica before `generation`. freed: as in `HandedSetsEvents`. */
  retired(key: ReplicaKey, generation: number, freed: number): void;
  /** Resolves when these replicas are awake. Errors: `unavailable` where one is not open; what its opening throws, as its writer says it. */
  wake(keys: readonly ReplicaKey[]): Promise<void>;
  /** A read has this deadline (`steadyNowMs()`): `expire` should run then. */
  watchDeadline(deadlineMs: number): void;
  tellWorker(event: WorkerEvent): void;
  /** Filters for which payloads were read. */
  scans(scans: readonly SeenScan[]): void;
  /** What a reader's cache of filters did. uses: null if the reader is gone with all that it held. */
  cacheUses(reader: number, uses: readonly CacheUse[] | null): void;
}

/** What the server in a reader's thread starts with: its settings, and the port that leads to its owner. */
export type OpenReaderDoor = (reader: number) => { readonly port: MessagePort; readonly settings: unknown };

const WAITING_READS_MAX = 1024;
const WAITING_READ_BYTES_MAX = 256 << 20;
const READS_IN_FLIGHT_MAX = 4;
const STUCK_GRACE_MS = 10_000;
const HEAVY_IDLE_MS = 60_000;
/** Bodies that are larger are decoded by readers for heavy reads. What a peer asks for says itself whether it is heavy. */
const HEAVY_BYTES: Readonly<Record<ReadWork['kind'], number>> = {
  read: HEAVY_BODY_BYTES,
  weigh: HEAVY_BODY_BYTES,
  split: HEAVY_WRITE_BYTES,
  portion: Number.POSITIVE_INFINITY,
};

type ReadWork = {
  request: RawRequest;
  readonly reject: (error: TroupeError) => void;
} & (
  | {
      readonly kind: 'read';
      readonly operation: ReadOperation;
      readonly replicas: readonly ReplicaKey[];
      readonly resolve: (body: Uint8Array) => void;
    }
  | { readonly kind: 'portion'; readonly replicas: readonly ReplicaKey[]; readonly resolve: (result: PortionResult) => void }
  | { readonly kind: 'split'; readonly job: SplitJob; readonly resolve: (write: SplitWrite) => void }
  | { readonly kind: 'weigh'; readonly job: WeighJob; readonly resolve: (weight: number) => void }
);

interface Settling {
  readonly readers: Set<number>;
  readonly done: () => void;
}

export class ReaderPool {
  /** All that may ever run: each has scratch in every segment. */
  readonly slotCount: number;
  private readonly count: number;
  /** Readers for heavy reads that run or are started again when they are lost. */
  private readonly startedForHeavy = new Set<number>();
  private endingIdle: NodeJS.Timeout | null = null;
  private lastHeavyMs = 0;
  private readonly heavyIdleMs: number;
  private readonly stuckGraceMs: number;
  /** What readers without a CPU get besides, for their reads and those that they answer by themselves. */
  private readonly moreForReads: MoreTime;
  private readonly moreForAlone: MoreTime;
  private readonly aloneDeadlines: Float64Array;
  private readonly scratchTurns: Int32Array;
  /** Of replicas, as readers note them. */
  readonly uses = new ReplicaUses();
  private readonly slots: WorkerSlots<FromReader, ToReader>;
  private readonly reads: ReadState<ReadWork>;
  /** Sets of segments that readers have. */
  readonly sets: HandedSets;
  private readonly closing: AbortSignal;
  private aliases: AliasMap = new Map();
  private shardKeys: ShardKeyMap = new Map();
  private readonly ownReads = new KnownReads();
  /** The version that readers were told last. */
  private ownReadsTold = 0;
  private readonly ownReadsVersion = new Int32Array(new SharedArrayBuffer(4));
  private showingOwnReads: NodeJS.Immediate | null = null;
  private openers: OpenReaderDoor[] = [];
  /** Every reader is there or starts. */
  private hasBegun = false;
  private nextId = 1;
  /** Calls of `settled`, oldest first: a reader's answers are to those that wait for it, in this order. */
  private settling: Settling[] = [];
  private readonly garbage = new GarbageCollector(beginCollection);
  /** Mean time between two answers while reads wait, smoothed: for Retry-After. */
  private answerMs = 1;
  private lastAnswerMs = 0;

  constructor(
    options: ReaderPoolOptions,
    private readonly on: ReaderPoolEvents,
  ) {
    const { count, countForHeavy, closing } = options;
    this.count = count;
    this.slotCount = count + countForHeavy;
    this.heavyIdleMs = options.heavyIdleMs ?? HEAVY_IDLE_MS;
    this.stuckGraceMs = options.stuckGraceMs ?? STUCK_GRACE_MS;
    this.aloneDeadlines = new Float64Array(new SharedArrayBuffer(this.slotCount * Float64Array.BYTES_PER_ELEMENT));
    this.scratchTurns = scratchTurns(this.slotCount);
    this.closing = closing;
    const limits = {
      waitingMax: options.waitingReadsMax ?? WAITING_READS_MAX,
      waitingBytesMax: WAITING_READ_BYTES_MAX,
      inFlightMax: READS_IN_FLIGHT_MAX,
    };
    this.reads = readState(count, limits, countForHeavy);
    const entry = options.entry ?? threadEntry('reader');
    const quickReads = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const data = { scratchTurns: this.scratchTurns, useTicks: this.uses.ticks, firstForHeavy: count, quickReads };
    this.slots = new WorkerSlots(
      { kind: 'reader', count: this.slotCount, entry, watch: options.watch, closing, ledger: options.ledger, data },
      {
        ready: (index) => this.readerReady(index),
        lost: (index, reason, isWanted) => this.readerLost(index, reason, isWanted),
        message: (index, message) => this.onReader(index, message),
        tellWorker: (event) => on.tellWorker(event),
      },
    );
    this.sets = new HandedSets(this.slots, {
      retired: (key, generation, freed) => on.retired(key, generation, freed),
      collectSoon: (freed) => this.garbage.soon(freed),
      // Asked for when it is needed, as a start has no time for it.
      get empties() {
        return memoryEmptier() !== null;
      },
    });
    const more = () => new MoreTime((index) => this.slots.waitedMs(index), (STARVED_TIMES_MAX - 1) * this.stuckGraceMs);
    this.moreForReads = more();
    this.moreForAlone = more();
  }

  /** Resolves when every reader is ready; rejects when one is lost before. */
  startAll(): Promise<unknown> {
    this.hasBegun = true;
    return this.slots.startAll(this.count);
  }

  /** Starts one reader: enough until there is something to read. Resolves when it is ready; rejects when it is lost before. */
  startFirst(): Promise<void> {
    return this.slots.start(0);
  }

  /** Starts the readers that `startFirst` has left out. One that is lost is replaced as always. */
  startOthers(): void {
    if (this.hasBegun || this.closing.aborted) return;
    this.startAll().catch(() => {});
  }

  /** Resolves when every reader that has been started so far has done all that it was sent before this call; one that is lost is not waited for. */
  async settled(): Promise<void> {
    const begun = this.slots.indicesBegun().map((index) => this.slots.start(index));
    await Promise.allSettled(begun);
    const readers = this.slots.indicesUp();
    if (readers.size === 0) return;
    await new Promise<void>((done) => {
      this.settling.push({ readers, done });
      this.slots.postAll({ kind: 'ping' });
    });
  }

  /** Waiting reads are answered `unavailable`, and every reader ends. */
  close(): Promise<unknown> {
    for (const read of expireReads(this.reads, Number.POSITIVE_INFINITY)) read.work.reject(shuttingDown());
    this.garbage.stop();
    if (this.showingOwnReads !== null) clearImmediate(this.showingOwnReads);
    if (this.endingIdle !== null) clearTimeout(this.endingIdle);
    this.sets.stop();
    for (const { done } of this.settling.splice(0)) done();
    return this.slots.endAll();
  }

  /** See `EnginePool.read`. */
  read(operation: ReadOperation, replicas: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> {
    return new Promise((resolve, reject) => this.offer({ kind: 'read', operation, replicas, request, resolve, reject }));
  }

  /** See `EnginePool.portion`. */
  portion(replicas: readonly ReplicaKey[], body: Uint8Array, deadlineMs: number, how: PortionOptions): Promise<PortionResult> {
    const request: RawRequest = { path: {}, query: {}, body, deadlineMs, ...how };
    return new Promise((resolve, reject) => this.offer({ kind: 'portion', replicas, request, resolve, reject }));
  }

  /** See `EnginePool.split`. */
  split(job: SplitJob): Promise<SplitWrite> {
    return new Promise((resolve, reject) => this.offer({ kind: 'split', job, request: job.request, resolve, reject }));
  }

  /** See `EnginePool.weigh`. */
  weigh(job: WeighJob): Promise<number> {
    return new Promise((resolve, reject) => this.offer({ kind: 'weigh', job, request: job.request, resolve, reject }));
  }

  private offer(work: ReadWork): void {
    const { reject, request } = work;
    if (this.closing.aborted) {
      reject(shuttingDown());
      return;
    }
    const read: QueuedRead<ReadWork> = {
      id: this.nextId++,
      deadlineMs: request.deadlineMs,
      bytes: request.body?.byteLength ?? 0,
      // Also from connections that the main thread has: a reader with others would not hear them while it decodes.
      isHeavy: request.heavy !== undefined || (request.body?.byteLength ?? 0) > HEAVY_BYTES[work.kind],
      work,
      attempts: 0,
      settled: false,
    };
    if (read.isHeavy) this.startForHeavy();
    const decision = offerRead(this.reads, read);
    if (decision === 'busy') {
      const { waitingCount } = this.reads;
      const options = { retryAfterMs: retryAfterMs(waitingCount, this.answerMs) };
      reject(new TroupeError('busy', `${waitingCount} reads are queued already: retry later`, options));
      return;
    }
    if (decision === 'wait') this.startOthers();
    else this.postRead(decision, read);
    this.on.watchDeadline(request.deadlineMs);
  }

  /** Starts a reader for heavy reads, if another one can be started and each that runs has something to do. */
  private startForHeavy(): void {
    const { count, slotCount, startedForHeavy } = this;
    this.lastHeavyMs = performance.now();
    if (startedForHeavy.size === slotCount - count) return;
    const isIdle = (index: number): boolean => this.reads.readers[index]?.inFlight.size === 0;
    if ([...startedForHeavy].some(isIdle)) return;
    let free = count;
    while (startedForHeavy.has(free)) free++;
    startedForHeavy.add(free);
    this.slots.startLater(free);
    this.watchIdle();
  }

  /** Looks again and again whether readers for heavy reads may end: when none of them has one, and none has come for a while. */
  private watchIdle(): void {
    this.endingIdle ??= setTimeout(() => {
      this.endingIdle = null;
      const started = [...this.startedForHeavy];
      const isUsed = started.some((index) => !this.slots.isUp(index) || (this.reads.readers[index]?.inFlight.size ?? 0) > 0);
      if (isUsed || performance.now() - this.lastHeavyMs < this.heavyIdleMs) {
        this.watchIdle();
        return;
      }
      for (const index of started) {
        (this.reads.readers[index] as ReaderSlot<ReadWork>).up = false;
        this.slots.endOne(index, { kind: 'end' });
      }
    }, this.heavyIdleMs);
    this.endingIdle.unref();
  }

  /** Answers `timeout` to reads whose deadline has come, replaces readers that are stuck, and returns when to look again. */
  expire(nowMs: number): number {
    for (const { work } of expireReads(this.reads, nowMs)) {
      // A reader may hold the read for long, and its body is not counted any more.
      work.request = { ...work.request, body: null };
      work.reject(new TroupeError('timeout', 'the read did not finish within its timeout: retry, or raise `timeout`'));
    }
    const next = nextDeadline(this.reads);
    const { aloneDeadlines, moreForAlone, moreForReads, reads, stuckGraceMs } = this;
    const stuck = [
      ...stuckReaders(reads, nowMs, stuckGraceMs, (index, deadlineMs) => moreForReads.get(index, deadlineMs, nowMs)),
      ...stuckAlone(aloneDeadlines, nowMs, stuckGraceMs, (index, deadlineMs) => moreForAlone.get(index, deadlineMs, nowMs)),
    ];
    for (const index of new Set(stuck)) this.slots.replace(index);
    // Readers that hold reads past their deadline are looked at again when their grace is over, and those with servers as often.
    const isWatched = this.openers.length > 0 || pendingCount(this.reads) > this.reads.waitingCount;
    return isWatched ? Math.min(next, nowMs + this.stuckGraceMs) : next;
  }

  /** Looks whether readers that something waits for are alive. */
  look(): void {
    this.slots.look((index) => {
      const read = this.reads.readers[index]?.inFlight.values().next().value;
      if (read !== undefined) return callOf(read.work);
      return (this.aloneDeadlines[index] as number) > 0 ? 'a read of a client of its own' : null;
    });
  }

  waitingReads(): { count: number; max: number } {
    return { count: this.reads.waitingCount, max: this.reads.limits.waitingMax };
  }

  /** Readers for heavy reads that do not run are left out. */
  depths(nowMs: number): WorkerDepth[] {
    const depths = this.slots.depths(nowMs, (index) => {
      const state = this.reads.readers[index];
      return { depth: state?.inFlight.size ?? 0, queuedBytes: 0, processed: state?.processed ?? 0 };
    });
    return depths.filter((_, index) => index < this.count || this.startedForHeavy.has(index));
  }

  // ---------------------------------------------------------------- what readers know

  /** For every reader, now and as others start. */
  setAliases(aliases: AliasMap): void {
    this.aliases = aliases;
    this.slots.postAll({ kind: 'aliases', aliases });
  }

  /** As `setAliases`. */
  setShardKeys(shards: ShardKeyMap): void {
    this.shardKeys = shards;
    this.slots.postAll({ kind: 'shardKeys', shards });
  }

  /**
   * From now on readers ask the main thread about each collection, until they have what `take` returns soon after: all that has changed since it
   * was called last. Called in each change.
   */
  changeOwnReads(take: () => OwnReadsChange): void {
    Atomics.add(this.ownReadsVersion, 0, 1);
    this.showingOwnReads ??= setImmediate(() => {
      this.showingOwnReads = null;
      const change = take();
      this.ownReads.apply(change);
      this.ownReadsTold = Atomics.load(this.ownReadsVersion, 0);
      this.slots.postAll(this.ownReadsNews(change));
    });
  }

  /** Opens a server for clients in every reader, now and as others start. Returns how many open one now, or as soon as they are ready. */
  openDoors(open: OpenReaderDoor): number {
    this.openers.push(open);
    this.on.watchDeadline(steadyNowMs() + this.stuckGraceMs);
    for (const index of this.slots.indicesUp()) if (index < this.count) this.postDoor(index, open);
    return this.slots.indicesBegun().filter((index) => index < this.count).length;
  }

  /** Replacements open no server any more. */
  forgetDoors(): void {
    this.openers = [];
  }

  private ownReadsNews(change: OwnReadsChange): ToReader {
    const news = { change, version: this.ownReadsTold, newest: this.ownReadsVersion, deadlines: this.aloneDeadlines };
    return { kind: 'ownReads', news };
  }

  private postDoor(index: number, open: OpenReaderDoor): void {
    const { port, settings } = open(index);
    this.slots.post(index, { kind: 'door', port, settings }, [port]);
  }

  // ---------------------------------------------------------------- threads

  private readerReady(index: number): void {
    this.slots.post(index, { kind: 'aliases', aliases: this.aliases });
    this.slots.post(index, { kind: 'shardKeys', shards: this.shardKeys });
    this.sets.begin(index);
    this.slots.post(index, this.ownReadsNews(this.ownReads.whole()));
    if (index < this.count) for (const open of this.openers) this.postDoor(index, open);
    (this.reads.readers[index] as ReaderSlot<ReadWork>).up = true;
    this.pump();
  }

  private readerLost(index: number, reason: string, isWanted: boolean): void {
    if (isWanted) this.startedForHeavy.delete(index);
    this.aloneDeadlines[index] = 0;
    this.on.cacheUses(index, null);
    new ScratchTurns(this.scratchTurns, index).giveBackAll();
    for (const read of loseReader(this.reads, index)) {
      read.work.reject(new TroupeError('internal', `the query ended two engine workers (${reason}) and was given up`));
    }
    this.sets.lose(index);
    for (const { readers } of [...this.settling]) if (readers.has(index)) this.readerSettled(index);
    this.pump();
  }

  private readerSettled(index: number): void {
    const settling = this.settling.find(({ readers }) => readers.has(index));
    if (settling === undefined) return;
    settling.readers.delete(index);
    if (settling.readers.size > 0) return;
    this.settling = this.settling.filter((known) => known !== settling);
    settling.done();
  }

  private onReader(index: number, message: FromReader): void {
    switch (message.kind) {
      case 'answer': {
        const read = this.finishRead(index, message.id);
        if (read === undefined) return;
        const { work } = read;
        if (message.usage !== null && work.request.usage !== undefined) addUsage(work.request.usage, message.usage);
        addUnknown(work.request.unknownFields, message.unknownFields);
        takeTold(work.request.explain, message);
        if (work.kind === 'read') work.resolve(message.body);
        else if (work.kind === 'portion') work.resolve({ body: message.body, positions: message.positions ?? [] });
        return;
      }
      case 'asleep':
        this.wakeFor(index, message.id, message.keys);
        return;
      case 'tooHeavy':
        leaveRead(this.reads, index, message.id);
        this.startForHeavy();
        this.pump();
        return;
      case 'split': {
        const read = this.finishRead(index, message.id);
        if (read?.work.kind === 'split') read.work.resolve(message.write);
        return;
      }
      case 'weighed': {
        const read = this.finishRead(index, message.id);
        if (read?.work.kind === 'weigh') read.work.resolve(message.weight);
        return;
      }
      case 'error': {
        const read = this.finishRead(index, message.id);
        read?.work.reject(errorFromFacts(message.error));
        return;
      }
      case 'pong':
        this.readerSettled(index);
        return;
      case 'scans':
        this.on.scans(message.scans);
        return;
      case 'cacheUses':
        this.on.cacheUses(index, message.uses);
        return;
      case 'retired':
        this.sets.noteRetired(index, message.key, message.generation);
        return;
      case 'detached':
        this.sets.noteDetached(index, message.key);
        return;
      case 'ready':
        return;
      default:
        assertNever(message);
    }
  }

  /** A read comes back when the replicas that it needs are awake. */
  private wakeFor(index: number, id: number, keys: readonly ReplicaKey[]): void {
    const read = setAside(this.reads, index, id);
    this.pump();
    if (read === undefined) return;
    this.on.wake(keys).then(
      () => {
        returnRead(this.reads, read);
        this.pump();
      },
      (error: TroupeError) => {
        if (dropRead(this.reads, read)) read.work.reject(lackAsUnavailable(error));
      },
    );
  }

  /** The reader gets its next read before the answer is looked at, so that it does not wait for the main thread. */
  private finishRead(reader: number, id: number): QueuedRead<ReadWork> | undefined {
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

  private postRead(reader: number, read: QueuedRead<ReadWork>): void {
    const { id, work } = read;
    const { body, transfer } = bodyToPost(work.request.body);
    const request = { ...work.request, body };
    if (work.kind === 'split') this.slots.post(reader, { kind: 'split', id, job: { ...work.job, request } }, transfer);
    else if (work.kind === 'weigh') this.slots.post(reader, { kind: 'weigh', id, job: { ...work.job, request } }, transfer);
    else {
      const { replicas } = work;
      const mayLeave = !read.isHeavy && this.slotCount > this.count;
      if (work.kind === 'portion') this.slots.post(reader, { kind: 'portion', id, replicas, request, mayLeave }, transfer);
      else this.slots.post(reader, { kind: 'read', id, operation: work.operation, replicas, request, mayLeave }, transfer);
    }
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected message ${JSON.stringify(value)}`);
}

/**
 * A body for a reader, and memory that the message gives it. This thread keeps the body, as another reader may get it. A large one is copied
 * here: in a message it would be copied twice, and be there three times meanwhile.
 */
function bodyToPost(body: Uint8Array | null): { readonly body: Uint8Array | null; readonly transfer: ArrayBuffer[] } {
  if (body === null) return { body, transfer: [] };
  if (body.byteLength <= HEAVY_BODY_BYTES) return { body: ownBytes(body), transfer: [] };
  const copy = new Uint8Array(body);
  return { body: copy, transfer: [copy.buffer] };
}

/** A read in messages. */
function callOf(work: ReadWork): string {
  const replicas = work.kind === 'read' || work.kind === 'portion' ? ` of ${work.replicas.join(', ')}` : '';
  return `${work.kind === 'read' ? work.operation : work.kind}${replicas}`;
}
