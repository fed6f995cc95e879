/**
 * The queue of one replica in its home worker. Messages are answered in their order; writes that wait together are
 * committed together. A turn of the event loop takes one group, or one slice of an operation that touches many points, so that other
 * replicas of the worker get theirs.
 */

import { type ErrorFacts, errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import { BrokenInvariant, rethrowBroken } from '../../protocols/invariant.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import { addUsage, type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import { LmdbError } from '../disk/lmdb-tables.js';
import type { HeldValues } from '../memory/held-memory.js';
import type { FilePages, FilePart } from '../memory/system-calls.js';
import type { SeenScans } from '../reader/seen-scans.js';
import { FILE_LOOK_EVERY_MS } from '../replica/database-file.js';
import type { LogRetention } from '../replica/log-retention.js';
import { type Pause, pauseOver } from '../replica/operations.js';
import type { IsOver } from '../replica/slices.js';
import { type ReplicaHooks, ReplicaStore } from '../replica/store.js';
import type { SegmentSet } from '../segment/handle.js';
import type { ClosingReason, FromWriter, ReplicaStats, ToWriter } from '../threads/messages.js';
import type { SentSet, SetOwner } from '../threads/sent-sets.js';
import type { BucketPoints, LogPart } from '../threads/shard-log.js';
import type { KeptLog, LogKeeping } from './log-keeping.js';
import { Originals, type OriginalsHost } from './originals.js';
import { type WriteMessage, writeGroup } from './write-group.js';

/** Bytes of request bodies that are committed together. */
const GROUP_BYTES_MAX = 16 * 2 ** 20;
const GROUP_REQUESTS_MAX = 4096;

export interface WriterPort {
  /** gives: memory that goes along uncopied. */
  post(message: FromWriter, gives?: readonly ArrayBuffer[]): void;
  /** A set in the form of a message that is posted next. */
  pack(owner: SetOwner, set: SegmentSet): SentSet;
  now(): number;
  /** The date, in milliseconds. */
  dateMs(): number;
  /** Runs a function in a later turn of the event loop. */
  later(run: () => void): void;
  /** As `later`, for a part of a long work: behind others that ask for a turn before it has its own, once (`Turns`). */
  between(run: () => void): void;
  /** Begin a slice of a replica's work, and a portion of it, after which others have their turn. Each returns a function that says when its time is over. */
  beginSlice(): IsOver;
  beginPortion(): IsOver;
  /** Runs a function after a pause. */
  after(ms: number, run: () => void): void;
  /** A promise is broken: ends the worker, which is started again with its replicas as they are on disk. */
  end(error: BrokenInvariant): void;
  warn(message: string): void;
  /** The memories of segments that went are freed with their last object in this thread. freed: bytes that stay until then. Default: many. */
  collectGarbageSoon(freed?: number): void;
  /** Much of a database was removed: pages of its file that are mapped may go. */
  unmapPages(file: string): void;
  /** See `memoryEmptier`. */
  readonly emptyMemory: ((part: FilePart) => void) | null;
  /** Null where files cannot take the place of memory. */
  readonly pages: FilePages | null;
  /** Writes of so many bytes are done, and nothing of them is needed any more. */
  left(bytes: number): void;
  /** For writes that are carried out together. */
  heldValues(): HeldValues;
  /** A log is open from now on, or not any more. */
  logs: LogKeeping;
  /** Of all replicas of this thread. */
  scans: SeenScans;
}

/** Pauses between tries to apply what is logged: each twice the one before it, up to the longest. After about a minute it is given up. */
const FIRST_PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
const TRIES_MAX = 16;

type OtherMessage = Exclude<ToWriter, WriteMessage>;

/** Calls of an open replica that are carried out at once, each with the value of its answer. */
type StoreCall = Exclude<OtherMessage, { kind: 'retired' | 'checkpoint' | 'open' | 'close' | 'publishBuild' }>;

type PublishBuild = Extract<OtherMessage, { kind: 'publishBuild' }>;

const STORE_CALLS: Row<StoreCall, ReplicaStore, unknown> = {
  missing: (store, { ids }) => store.missing(ids),
  position: (store) => store.log.position,
  entriesAfter: (store, { after, bytesMax }) => store.entriesAfter(after, bytesMax),
  reachOf: (store, { after, untilMs }) => store.reachOf(after, untilMs),
  resetLog: (store, { at }) => store.log.reset(at),
  rewindLog: (store, { to }) => store.log.rewind(to),
  digest: (store, { leaders }) => store.copies.digest(leaders),
  bucketPoints: (store, { buckets }) => store.copies.bucketPoints(buckets),
  replaceBuckets: (store, { bytes }) => store.copies.replaceBuckets(bytes),
  settings: (store) => store.copies.settings(),
  applySettings: (store, { operations }) => store.copies.applySettings(operations),
  releaseCheckpoint: (store) => store.releaseCheckpoint(),
  configure: (store, { config }) => store.configure(config),
  beginBuild: (store, { results, segments }) => store.builds.begin(segments, results),
  abandonBuild: (store, { segments }) => store.builds.abandon(segments),
};

/** Messages at the front of the queue that need no points: they are carried out between the slices of an operation. */
const BETWEEN_SLICES: ReadonlySet<ToWriter['kind']> = new Set(['position', 'entriesAfter', 'reachOf', 'retired', 'releaseCheckpoint']);

/** Writes, or the publication of a build, that have begun. */
interface Running {
  readonly work: Generator<Pause, void>;
  /** Messages that wait for it. */
  readonly waiting: Set<number>;
  /** Of its writes. */
  readonly bytes: number;
  /** What they are decoded to. */
  readonly values?: HeldValues;
}

export class ReplicaWriter implements KeptLog {
  private queue: ToWriter[] = [];
  private running: Running | null = null;
  private store: ReplicaStore | null = null;
  private scheduled = false;
  /** Of the open store. */
  private originals: Originals | null = null;
  /** The main thread has been told that nothing can be written any more. */
  private fatalReported = false;
  private purgeNeeded = false;
  /** The file of the database is looked at after a while (`DatabaseFile`). */
  private willLook = false;
  /** There is a smaller one, to be taken between two transactions. */
  private hasSmallerFile = false;
  /** What measured writes that were answered before they are applied come to, and came to since the replica was opened here. */
  private unanswered: HardwareUsage[] = [];
  private unansweredUsage: HardwareUsage | null = null;
  /** How often operations that are logged could not be applied, in a row and by the clock; null: none wait. */
  private failedTries: number | null = null;

  constructor(
    private readonly key: string,
    private readonly port: WriterPort,
    /** Called when the replica is closed or could not be opened, and nothing is queued. */
    private readonly onClosed: () => void,
  ) {}

  push(message: ToWriter): void {
    this.queue.push(message);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const goesOn = this.running !== null && !this.isAskedBetween;
    this.port[goesOn ? 'between' : 'later'](() => {
      this.turn().then(
        () => this.endTurn(),
        (error: unknown) => {
          if (error instanceof BrokenInvariant) {
            this.port.end(error);
            return;
          }
          this.port.warn(`writer of ${this.key}: ${String(error)}`);
          this.endTurn();
        },
      );
    });
  }

  private endTurn(): void {
    this.scheduled = false;
    this.watchBacklog();
    if (this.queue.length > 0 || this.purgeNeeded || this.hasSmallerFile || this.running !== null) this.schedule();
    else if (this.store === null) this.onClosed();
    else this.lookLater(this.store);
  }

  private lookLater(store: ReplicaStore): void {
    if (this.willLook || !store.file.wantsLook) return;
    this.willLook = true;
    this.port.after(FILE_LOOK_EVERY_MS, () => {
      if (this.store === store) void this.look(store);
      else this.willLook = false;
    });
  }

  private async look(store: ReplicaStore): Promise<void> {
    try {
      this.hasSmallerFile = await store.file.look();
    } catch (error) {
      this.port.end(error as BrokenInvariant);
      return;
    }
    this.willLook = false;
    // Another opening has its own looks.
    if (this.store === null) this.hasSmallerFile = false;
    else if (this.hasSmallerFile) this.schedule();
    else this.lookLater(this.store);
  }

  private async takeSmallerFile(): Promise<void> {
    this.hasSmallerFile = false;
    const { store } = this;
    if (store === null) return;
    try {
      await store.takeSmallerFile();
    } catch (error) {
      rethrowBroken(error);
      this.port.warn(`replica ${this.key}: ${String(error)}`);
      this.reportFatal(error);
    }
    this.port.post({ kind: 'stats', stats: this.statsOf(store) });
  }

  /** What is logged and could not be applied is tried again, also when nobody writes (Op-O5). */
  private watchBacklog(): void {
    const { store } = this;
    if (this.running !== null) return;
    if (store === null || store.operations.waiting === 0) this.failedTries = null;
    else if (this.failedTries === null) {
      this.failedTries = 0;
      this.tryLater(store, 0);
    }
  }

  private tryLater(store: ReplicaStore, tries: number): void {
    this.port.after(Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** tries), () => {
      // Another replica, or one that has been opened anew, has a watch of its own.
      if (this.store !== store || this.failedTries !== tries) return;
      // A group of writes that has begun tries it first.
      if (this.running !== null) {
        this.tryLater(store, tries);
        return;
      }
      this.running = { work: this.tryAgain(store, tries), waiting: new Set(), bytes: 0 };
      this.schedule();
    });
  }

  private *tryAgain(store: ReplicaStore, tries: number): Generator<Pause, void> {
    try {
      yield* store.operations.applying();
      this.port.post({ kind: 'stats', stats: this.statsOf(store) });
      this.failedTries = null;
    } catch (error) {
      rethrowBroken(error);
      this.failTry(store, tries + 1, error);
    }
  }

  private failTry(store: ReplicaStore, tries: number, error: unknown): void {
    this.failedTries = tries;
    this.reportFatal(error);
    if (this.fatalReported) return;
    if (tries < TRIES_MAX) this.tryLater(store, tries);
    else this.giveUp(error);
  }

  /** The replica serves nothing until it is opened anew, which tries again. */
  private giveUp(error: unknown): void {
    this.fatalReported = true;
    this.port.post({ kind: 'failed', key: this.key, error: errorFacts(error) });
  }

  private async turn(): Promise<void> {
    const { running } = this;
    const message = this.queue[0];
    if (running !== null && !this.isAskedBetween) {
      if (this.store?.operations.isSlicing === true && this.queue.some(({ kind }) => kind === 'close')) this.breakOff(running);
      else await this.goOn(running);
    } else if (running === null && this.hasSmallerFile) await this.takeSmallerFile();
    else if (message === undefined) this.purge();
    else if (isWrite(message)) await this.beginGroup(this.takeGroup());
    else {
      this.queue.shift();
      await this.handle(message);
    }
  }

  /** Whether the next message can be carried out between the slices of an operation. */
  private get isAskedBetween(): boolean {
    const [message] = this.queue;
    return message !== undefined && BETWEEN_SLICES.has(message.kind);
  }

  /** Goes on with writes up to their next pause. */
  private async goOn(running: Running): Promise<void> {
    let step: IteratorResult<Pause, void>;
    try {
      step = running.work.next();
    } catch (error) {
      this.isDone(running);
      throw error;
    }
    if (step.done) this.isDone(running);
    else await pauseOver(step.value);
  }

  private isDone({ bytes, values }: Running): void {
    this.running = null;
    this.port.left(bytes + (values?.release() ?? 0));
  }

  /** The replica is to be closed: the operation that is applied in slices goes on when it is opened again, and what waits is not begun. */
  private breakOff(running: Running): void {
    const { waiting, work } = running;
    work.return();
    this.isDone(running);
    const closing = `replica ${this.key} is being closed`;
    for (const id of waiting) this.fail(id, new TroupeError('unavailable', closing, { outcome: 'unknown', retryAfterMs: 1000 }));
    const close = this.queue.findIndex(({ kind }) => kind === 'close');
    for (const message of this.queue.splice(0, close))
      if ('id' in message) this.fail(message.id, new TroupeError('unavailable', closing, { outcome: 'none', retryAfterMs: 1000 }));
  }

  /** Writes from the front of the queue, as many as are committed together. */
  private takeGroup(): WriteMessage[] {
    const group: WriteMessage[] = [];
    let bytes = 0;
    for (const message of this.queue) {
      if (!isWrite(message) || group.length === GROUP_REQUESTS_MAX) break;
      bytes += bytesOf(message);
      if (group.length > 0 && bytes > GROUP_BYTES_MAX) break;
      group.push(message);
    }
    this.queue.splice(0, group.length);
    return group;
  }

  private async beginGroup(group: readonly WriteMessage[]): Promise<void> {
    const { store } = this;
    if (store === null) {
      for (const { id } of group) this.fail(id, new TroupeError('unavailable', `replica ${this.key} is not open`));
      return;
    }
    const waiting = new Set(group.map(({ id }) => id));
    const bytes = group.reduce((sum, message) => sum + bytesOf(message), 0);
    const values = this.port.heldValues();
    const work = writeGroup(store, group, this.port, values, {
      answer: (id, value, usage) => {
        waiting.delete(id);
        this.port.post({ kind: 'answer', id, value, stats: null, usage });
      },
      fail: (id, error) => {
        waiting.delete(id);
        this.fail(id, error);
        this.reportFatal(error);
      },
      applied: () => this.port.post({ kind: 'stats', stats: this.statsOf(store) }),
      unanswered: (usage) => this.unanswered.push(usage),
    });
    await this.begin({ work, waiting, bytes, values });
  }

  private async begin(running: Running): Promise<void> {
    this.running = running;
    await this.goOn(running);
  }

  private *publishing(store: ReplicaStore, { id, result }: PublishBuild): Generator<Pause, void> {
    try {
      yield* store.builds.publishing(result);
      this.originals?.tend();
      this.port.post({ kind: 'answer', id, value: undefined, stats: this.statsOf(store) });
    } catch (error) {
      rethrowBroken(error);
      this.fail(id, error, this.statsOf(store));
      this.reportFatal(error);
    }
  }

  // ---------------------------------------------------------------- everything else

  private async handle(message: OtherMessage): Promise<void> {
    if (message.kind === 'retired') {
      this.store?.retired(message.generation, this.port.emptyMemory);
      if (message.freed > 0) this.port.collectGarbageSoon(message.freed);
      this.purgeNeeded = this.store !== null;
      return;
    }
    if (message.kind === 'checkpoint') {
      void this.checkpoint(message);
      return;
    }
    if (message.kind === 'publishBuild' && this.store !== null) {
      await this.begin({ work: this.publishing(this.store, message), waiting: new Set(), bytes: 0 });
      return;
    }
    try {
      const value = await this.perform(message);
      this.port.post({ kind: 'answer', id: message.id, value, stats: this.statsOf(this.store) }, memoryOf(message.kind, value));
    } catch (error) {
      rethrowBroken(error);
      this.fail(message.id, error, this.statsOf(this.store));
      this.reportFatal(error);
    }
  }

  /** Returns the answer's value. */
  private async perform(message: Exclude<OtherMessage, { kind: 'retired' | 'checkpoint' }>): Promise<unknown> {
    if (message.kind === 'open') return this.openStore(message);
    if (message.kind === 'close') return this.closeStore(message.frees, message.why);
    if (this.store === null || message.kind === 'publishBuild') throw new TroupeError('unavailable', `replica ${this.key} is not open`);
    const answer = decideInRow(STORE_CALLS, this.store, message);
    // What an upload has read and written is mapped until then, and the build needs the most memory of all.
    if (message.kind === 'beginBuild') this.leavePages(this.store);
    return answer;
  }

  /** Lets go of the pages of the database, which stay in the system's cache. */
  private leavePages({ environment }: ReplicaStore): void {
    try {
      this.port.unmapPages(environment.file);
    } catch (error) {
      this.port.warn(`replica ${this.key}: cannot let go of pages of ${environment.file}: ${String(error)}`);
    }
  }

  private async openStore(message: Extract<OtherMessage, { kind: 'open' }>): Promise<void> {
    if (this.store !== null) throw new TroupeError('conflict', `replica ${this.key} is open already`);
    try {
      this.store = await ReplicaStore.open(message.spec, message.damaged, this.hooks(message.opening));
    } catch (error) {
      // It may have loaded segments: V8 does not hurry to free them, and the next try loads them again.
      this.port.collectGarbageSoon();
      throw error;
    }
    this.fatalReported = false;
    this.purgeNeeded = true;
    this.port.logs.begin(this);
    this.originals = new Originals(this.store, this.originalsHost());
    this.originals.begin();
  }

  private originalsHost(): OriginalsHost {
    const { key, port } = this;
    return {
      key,
      get pages() {
        return port.pages;
      },
      after: (ms, run) => port.after(ms, run),
      warn: (message) => port.warn(message),
      tellStats: () => {
        if (this.store !== null) port.post({ kind: 'stats', stats: this.statsOf(this.store) });
      },
      fail: (error) => this.reportFatal(error),
    };
  }

  private async closeStore(frees: boolean, why: ClosingReason): Promise<void> {
    const { originals, store } = this;
    const sleeps = why === 'sleeps';
    this.port.logs.end(this);
    if (sleeps && store !== null) this.shortenForSleep(store);
    this.store = null;
    this.originals = null;
    await originals?.end();
    const stats = await store?.close(why, !this.fatalReported);
    if (sleeps && stats !== undefined) this.port.post({ kind: 'stats', stats });
    if (frees) this.port.collectGarbageSoon();
  }

  /** Kept-K3. What the disk refuses to remove counts as it is. */
  private shortenForSleep(store: ReplicaStore): void {
    store.retention.limit(this.port.logs.sleepingBytesMax);
    if (!store.retention.isTooLong) return;
    try {
      while (store.shortenLog());
    } catch (error) {
      rethrowBroken(error);
      this.port.warn(`replica ${this.key}: its log cannot be shortened: ${String(error)}`);
    }
  }

  // ---------------------------------------------------------------- what the log keeps

  get retention(): LogRetention | null {
    return this.store?.retention ?? null;
  }

  limitLog(bytesMax: number): void {
    const { retention } = this;
    if (retention === null) return;
    retention.limit(bytesMax);
    if (!retention.isTooLong) return;
    this.purgeNeeded = true;
    this.schedule();
  }

  /** Answers when the copy is made; the messages behind are carried out meanwhile. */
  private async checkpoint({ folder, id, isFollowed }: Extract<OtherMessage, { kind: 'checkpoint' }>): Promise<void> {
    try {
      const { store } = this;
      if (store === null) throw new TroupeError('unavailable', `replica ${this.key} is not open`);
      const made = store.checkpoint(folder, isFollowed);
      // The log may keep more from now on.
      this.port.logs.plan();
      const value = await made;
      this.port.post({ kind: 'answer', id, value, stats: this.statsOf(this.store) });
    } catch (error) {
      if (error instanceof BrokenInvariant) {
        this.port.end(error);
        return;
      }
      this.fail(id, error, this.statsOf(this.store));
      this.reportFatal(error);
    }
    // What was retired while it was made.
    this.purgeNeeded = this.store !== null;
    this.schedule();
  }

  /** Removes some of what retired segments left, and of what the log may not keep; goes on in later turns. */
  private purge(): void {
    const { store } = this;
    this.purgeNeeded = false;
    try {
      if (store?.retention.isTooLong === true) {
        this.purgeNeeded = store.shortenLog();
        this.port.post({ kind: 'stats', stats: this.statsOf(store) });
      }
      const isMore = store?.purge() ?? null;
      this.purgeNeeded = isMore === true || this.purgeNeeded;
      if (store !== null && isMore === false) this.leavePages(store);
    } catch (error) {
      rethrowBroken(error);
      // The disk refuses; the next retirement, the next plan or the next start tries again.
      this.port.warn(`replica ${this.key}: cannot remove records of retired segments or of the log: ${String(error)}`);
    }
  }

  private hooks(opening: number): ReplicaHooks {
    const { port, key } = this;
    return {
      publish: (facts, fields, set) => port.post({ kind: 'publish', ...facts, opening, fields, set: port.pack({ key, opening }, set) }),
      published: (generation) => port.post({ kind: 'published', key, generation }),
      warn: (text) => port.warn(`replica ${key}: ${text}`),
      now: () => port.now(),
      beginSlice: () => port.beginSlice(),
      beginPortion: () => port.beginPortion(),
      pause: () => this.pauseOpening(),
      isRestorable: port.logs.isRestorable,
      scans: {
        next: () => port.scans.nextRead(),
        begin: (conditions, schemaOf, rows) => port.scans.begin(key.slice(0, key.lastIndexOf('/')), conditions, schemaOf, rows),
      },
    };
  }

  private async pauseOpening(): Promise<void> {
    await new Promise<void>((resolve) => this.port.between(resolve));
    if (this.queue.some(({ kind }) => kind === 'close'))
      throw new TroupeError('unavailable', `replica ${this.key} is being closed`, { retryAfterMs: 1000 });
  }

  private statsOf(store: ReplicaStore): ReplicaStats;
  private statsOf(store: ReplicaStore | null): ReplicaStats | null;
  private statsOf(store: ReplicaStore | null): ReplicaStats | null {
    if (store === null) return null;
    const stats = store.stats();
    if (stats.queuedOperations === 0) {
      for (const usage of this.unanswered) {
        this.unansweredUsage ??= noUsage();
        addUsage(this.unansweredUsage, usage);
      }
      this.unanswered = [];
    }
    return this.unansweredUsage === null ? stats : { ...stats, unansweredUsage: this.unansweredUsage };
  }

  private fail(id: number, error: unknown, stats: ReplicaStats | null = null): void {
    const facts: ErrorFacts = errorFacts(error);
    const cause = error instanceof TroupeError ? (error.cause ?? error) : error;
    if (facts.code === 'internal') this.port.warn(`replica ${this.key}: ${cause instanceof Error ? cause.stack : String(cause)}`);
    this.port.post({ kind: 'error', id, error: facts, stats });
  }

  /**
   * Gives up where no further try can succeed: LMDB has shut the environment, which takes no write until the replica is opened again, or
   * what has to be read is damaged (Op-O5).
   */
  private reportFatal(error: unknown): void {
    const reason = error instanceof TroupeError && error.cause instanceof LmdbError ? error.cause : error;
    const isFatal = reason instanceof LmdbError ? reason.fatal : this.store !== null && reasonOf(reason) === 'damaged';
    if (!this.fatalReported && isFatal) this.giveUp(reason);
  }
}

/** Memory of an answer that nobody else uses. */
function memoryOf(kind: ToWriter['kind'], value: unknown): ArrayBuffer[] {
  if (kind === 'bucketPoints') return [(value as BucketPoints).bytes.buffer as ArrayBuffer];
  if (kind !== 'entriesAfter') return [];
  const part = value as LogPart;
  return part.kind === 'entries' ? part.entries.map(({ operation }) => operation.buffer as ArrayBuffer) : [];
}

function isWrite(message: ToWriter): message is WriteMessage {
  return message.kind === 'write' || message.kind === 'append';
}

function bytesOf(message: WriteMessage): number {
  if (message.kind === 'append') return message.entries.reduce((sum, { operation }) => sum + operation.length, 0);
  return message.write.operations.reduce((sum, bytes) => sum + bytes.length, 0);
}
