/**
 * The queue of one replica in its home worker. Messages are answered in their order; writes that wait together are
 * committed together. A turn of the event loop takes one group, so that other replicas of the worker get theirs.
 */

import { type ErrorFacts, errorFacts, TroupeError } from '../../protocols/errors.js';
import { BrokenInvariant, rethrowBroken } from '../../protocols/invariant.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import type { Written } from '../../protocols/model/update.js';
import { addUsage, type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import type { LoggedOperation } from '../../protocols/update-codec.js';
import { updateAnswer } from '../answers/update-answer.js';
import { LmdbError } from '../disk/lmdb.js';
import type { AppliedUpdate } from '../replica/operations.js';
import { type ReplicaHooks, ReplicaStore } from '../replica/store.js';
import { decodeEncoded, decodeWriteRequest } from '../requests/decode-update.js';
import { ringsOf } from '../sharding/keys.js';
import { collectGarbage } from '../threads/collect-garbage.js';
import { turnTooLate } from '../threads/deadline.js';
import type { EncodedWrite, FromWriter, OrderedTags, ReplicaStats, ToWriter } from '../threads/messages.js';
import type { BucketPoints, LogPart } from '../threads/shard-log.js';
import { type OrderedMessage, writeOrdered } from './ordered-writes.js';

/** Bytes of request bodies that are committed together. */
const GROUP_BYTES_MAX = 16 * 2 ** 20;
const GROUP_REQUESTS_MAX = 4096;

export interface WriterPort {
  /** gives: memory that goes along uncopied. */
  post(message: FromWriter, gives?: readonly ArrayBuffer[]): void;
  now(): number;
  /** Runs a function in a later turn of the event loop. */
  later(run: () => void): void;
  /** A promise is broken: ends the worker, which is started again with its replicas as they are on disk. */
  end(error: BrokenInvariant): void;
  warn(message: string): void;
}

type WriteMessage = Extract<ToWriter, { kind: 'write' | 'writeEncoded' }>;
type OtherMessage = Exclude<ToWriter, WriteMessage | OrderedMessage>;

/** Calls of an open replica that are carried out at once, each with the value of its answer. */
type StoreCall = Exclude<OtherMessage, { kind: 'retired' | 'checkpoint' | 'open' | 'close' }>;

const STORE_CALLS: Row<StoreCall, ReplicaStore, unknown> = {
  missing: (store, { ids }) => store.missing(ids),
  position: (store) => store.position,
  entriesAfter: (store, { after, bytesMax }) => store.entriesAfter(after, bytesMax),
  resetLog: (store, { at }) => store.resetLog(at),
  rewindLog: (store, { to }) => store.rewindLog(to),
  digest: (store, { leaders }) => store.copies.digest(leaders),
  bucketPoints: (store, { buckets }) => store.copies.bucketPoints(buckets),
  replaceBuckets: (store, { bytes }) => store.copies.replaceBuckets(bytes),
  settings: (store) => store.copies.settings(),
  applySettings: (store, { operations }) => store.copies.applySettings(operations),
  releaseCheckpoint: (store) => store.releaseCheckpoint(),
  configure: (store, { config }) => store.configure(config),
  beginBuild: (store, { segments }) => store.beginBuild(segments),
  publishBuild: (store, { result }) => store.publishBuild(result),
  abandonBuild: (store, { segments }) => store.abandonBuild(segments),
};

/** A write request on its way, or a part of one. */
interface PendingWrite {
  readonly id: number;
  readonly until: EncodedWrite['until'];
  readonly operations: readonly LoggedOperation[];
  /** Why it fails all the same. */
  readonly failure: TroupeError | null;
  readonly answer: (written: Written) => Answer;
  /** What it costs, once it is applied; null: nobody asks. */
  readonly usage: HardwareUsage | null;
}

/** The body that goes to whoever asked, or a value for who carries the request out. */
type Answer = { readonly body: Uint8Array } | { readonly body: null; readonly value: Written | OrderedTags | LogTag };

export class ReplicaWriter {
  private queue: ToWriter[] = [];
  /** Answers of applied writes that wait until no point is deferred. */
  private held: ((status: 'acknowledged' | 'completed') => void)[] = [];
  private store: ReplicaStore | null = null;
  private scheduled = false;
  /** The main thread has been told that nothing can be written any more. */
  private fatalReported = false;
  private purgeNeeded = false;
  /** What measured writes that were answered before they are applied come to, and came to since the replica was opened here. */
  private unanswered: HardwareUsage[] = [];
  private unansweredUsage: HardwareUsage | null = null;

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
    this.port.later(() => {
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
    if (this.queue.length > 0 || this.purgeNeeded) this.schedule();
    else if (this.store === null) this.onClosed();
  }

  private async turn(): Promise<void> {
    const message = this.queue[0];
    if (message === undefined) this.purge();
    else if (isWrite(message)) this.writeGroup(this.takeGroup(isWrite));
    else if (isOrdered(message)) this.orderedGroup(this.takeGroup(isOrdered));
    else {
      this.queue.shift();
      await this.handle(message);
    }
  }

  /** Writes from the front of the queue, as many as are committed together. */
  private takeGroup<M extends WriteMessage | OrderedMessage>(belongs: (message: ToWriter) => message is M): M[] {
    const group: M[] = [];
    let bytes = 0;
    for (const message of this.queue) {
      if (!belongs(message) || group.length === GROUP_REQUESTS_MAX) break;
      bytes += bytesOf(message);
      if (group.length > 0 && bytes > GROUP_BYTES_MAX) break;
      group.push(message);
    }
    this.queue.splice(0, group.length);
    return group;
  }

  // ---------------------------------------------------------------- writes

  private writeGroup(group: readonly WriteMessage[]): void {
    const { store } = this;
    if (store === null) {
      for (const { id } of group) this.fail(id, new TroupeError('unavailable', `replica ${this.key} is not open`));
      return;
    }
    const pending = group.flatMap((message) => this.decode(store, message) ?? []);
    const waiting = pending.filter(({ until }) => until !== 'logged');
    const logged = this.acknowledge(
      store,
      pending.filter(({ until }) => until === 'logged'),
    );
    if (!logged && waiting.length === 0) return;
    const outcomes = store.apply(waiting.flatMap(({ operations }) => operations));
    this.complete(store, waiting, outcomes);
  }

  /** Null when the request was refused, which is answered at once. */
  private decode(store: ReplicaStore, message: WriteMessage): PendingWrite | null {
    const { deadlineMs, usage: measured } = message.kind === 'write' ? message.request : message.write;
    try {
      if (deadlineMs <= this.port.now()) throw turnTooLate();
      const usage = measured === undefined ? null : noUsage();
      const { params } = store.config;
      const decoded = message.kind === 'write' ? decodeWrite(message, params) : decodeEncodedWrite(message, params);
      if (usage === null) return { ...decoded, usage };
      return { ...decoded, usage, operations: decoded.operations.map((operation) => ({ ...operation, usage })) };
    } catch (error) {
      rethrowBroken(error);
      this.fail(message.id, error);
      return null;
    }
  }

  /** Logs and acknowledges the requests that don't wait. Whether there is something to apply. */
  private acknowledge(store: ReplicaStore, requests: readonly PendingWrite[]): boolean {
    if (requests.length === 0) return false;
    try {
      const numbers = store.log(requests.flatMap(({ operations }) => operations));
      let at = 0;
      for (const request of requests) {
        const { failure, id, operations, usage } = request;
        if (usage !== null) this.unanswered.push(usage);
        if (failure !== null) this.fail(id, failure);
        else this.acknowledged(request, numbers.slice(at, at + operations.length));
        at += operations.length;
      }
      return true;
    } catch (error) {
      rethrowBroken(error);
      for (const { id } of requests) this.fail(id, error);
      this.reportFatal(error);
      return false;
    }
  }

  /** It costs nothing yet. */
  private acknowledged({ answer, id, usage }: PendingWrite, numbers: readonly number[]): void {
    this.answer(id, answer({ numbers, status: 'acknowledged' }), null, usage === null ? null : noUsage());
  }

  private complete(store: ReplicaStore, requests: readonly PendingWrite[], outcomes: readonly AppliedUpdate[]): void {
    const stats = this.statsOf(store);
    let at = 0;
    requests.forEach(({ answer: answerOf, failure, id, operations, until, usage }, index) => {
      const own = outcomes.slice(at, at + operations.length);
      at += operations.length;
      const reported = index === requests.length - 1 ? stats : null;
      const error = own.find((outcome) => outcome.error instanceof TroupeError)?.error ?? failure;
      if (error === null) {
        const numbers = own.map(({ operation }) => operation);
        const answer = (status: Written['status'], last: ReplicaStats | null): void =>
          this.answer(id, answerOf({ numbers, status }), last, usage);
        if (store.deferredPoints === 0 || until === 'applied') answer('completed', reported);
        else this.held.push((status) => answer(status, null));
      } else {
        this.fail(id, error, reported);
        this.reportFatal(error);
      }
    });
    if (requests.length === 0 || this.held.length > 0) this.port.post({ kind: 'stats', stats });
    this.releaseHeld();
  }

  /** Answers what waited for deferred points, if there are none left. */
  private releaseHeld(): void {
    if (this.store?.deferredPoints !== 0) return;
    for (const answer of this.held.splice(0)) answer('completed');
  }

  private orderedGroup(group: readonly OrderedMessage[]): void {
    const { store } = this;
    if (store === null) {
      for (const { id } of group) this.fail(id, new TroupeError('unavailable', `replica ${this.key} is not open`));
      return;
    }
    writeOrdered(store, group, this.port.now(), {
      answer: (id, value, usage) => this.answer(id, { body: null, value }, null, usage),
      fail: (id, error) => {
        this.fail(id, error);
        this.reportFatal(error);
      },
      applied: () => this.port.post({ kind: 'stats', stats: this.statsOf(store) }),
      unanswered: (usage) => this.unanswered.push(usage),
    });
    this.releaseHeld();
  }

  // ---------------------------------------------------------------- everything else

  private async handle(message: OtherMessage): Promise<void> {
    if (message.kind === 'retired') {
      this.store?.retired(message.generation);
      // The memories of the segments that went are freed with their last object here.
      collectGarbage();
      this.purgeNeeded = this.store !== null;
      return;
    }
    if (message.kind === 'checkpoint') {
      void this.checkpoint(message.id, message.folder);
      return;
    }
    try {
      const value = await this.perform(message);
      this.port.post({ kind: 'answer', id: message.id, body: null, value, stats: this.statsOf(this.store) }, memoryOf(message.kind, value));
      this.releaseHeld();
    } catch (error) {
      rethrowBroken(error);
      this.fail(message.id, error, this.statsOf(this.store));
      this.reportFatal(error);
    }
  }

  /** Returns the answer's value. */
  private async perform(message: Exclude<OtherMessage, { kind: 'retired' | 'checkpoint' }>): Promise<unknown> {
    if (message.kind === 'open') return this.openStore(message);
    if (message.kind === 'close') return this.closeStore();
    if (this.store === null) throw new TroupeError('unavailable', `replica ${this.key} is not open`);
    return decideInRow(STORE_CALLS, this.store, message);
  }

  private async openStore(message: Extract<OtherMessage, { kind: 'open' }>): Promise<void> {
    if (this.store !== null) throw new TroupeError('conflict', `replica ${this.key} is open already`);
    this.store = await ReplicaStore.open(message.spec, message.damaged, this.hooks());
    this.fatalReported = false;
    this.purgeNeeded = true;
  }

  private async closeStore(): Promise<void> {
    const { store } = this;
    this.store = null;
    // What they wrote is kept; its points are shown after the next opening.
    for (const answer of this.held.splice(0)) answer('acknowledged');
    await store?.close();
  }

  /** Answers when the copy is made; the messages behind are carried out meanwhile. */
  private async checkpoint(id: number, folder: string): Promise<void> {
    try {
      const { store } = this;
      if (store === null) throw new TroupeError('unavailable', `replica ${this.key} is not open`);
      const value = await store.checkpoint(folder);
      this.port.post({ kind: 'answer', id, body: null, value, stats: this.statsOf(this.store) });
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

  /** Removes some of what retired segments left; goes on in later turns. */
  private purge(): void {
    this.purgeNeeded = false;
    try {
      this.purgeNeeded = this.store?.purge() ?? false;
    } catch (error) {
      rethrowBroken(error);
      // The disk refuses; the next retirement or the next start tries again.
      this.port.warn(`replica ${this.key}: cannot remove records of retired segments: ${String(error)}`);
    }
  }

  private hooks(): ReplicaHooks {
    const { port, key } = this;
    return {
      publish: (spec, openCommit, fields, set) => port.post({ kind: 'publish', spec, openCommit, fields, set }),
      published: (generation) => port.post({ kind: 'published', key, generation }),
      warn: (text) => port.warn(`replica ${key}: ${text}`),
      now: () => port.now(),
    };
  }

  private answer(id: number, answer: Answer, stats: ReplicaStats | null, usage: HardwareUsage | null): void {
    this.port.post({ kind: 'answer', id, ...answer, stats, usage });
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
    if (facts.code === 'internal') this.port.warn(`replica ${this.key}: ${error instanceof Error ? error.stack : String(error)}`);
    this.port.post({ kind: 'error', id, error: facts, stats });
  }

  /** LMDB has shut the environment: nothing can be written until the replica is opened again. */
  private reportFatal(error: unknown): void {
    if (this.fatalReported || !(error instanceof LmdbError) || !error.fatal) return;
    this.fatalReported = true;
    this.port.post({ kind: 'failed', key: this.key, error: errorFacts(error) });
  }
}

function isWrite(message: ToWriter): message is WriteMessage {
  return message.kind === 'write' || message.kind === 'writeEncoded';
}

/** Memory of an answer that nobody else uses. */
function memoryOf(kind: ToWriter['kind'], value: unknown): ArrayBuffer[] {
  if (kind === 'bucketPoints') return [(value as BucketPoints).bytes.buffer as ArrayBuffer];
  if (kind !== 'entriesAfter') return [];
  const part = value as LogPart;
  return part.kind === 'entries' ? part.entries.map(({ operation }) => operation.buffer as ArrayBuffer) : [];
}

function isOrdered(message: ToWriter): message is OrderedMessage {
  return message.kind === 'writeOrdered' || message.kind === 'append';
}

function bytesOf(message: WriteMessage | OrderedMessage): number {
  if (message.kind === 'append') return message.entries.reduce((sum, { operation }) => sum + operation.length, 0);
  if (message.kind === 'write') return message.request.body?.length ?? 0;
  return message.write.operations.reduce((sum, bytes) => sum + bytes.length, 0);
}

const UNKEYED = [{ id: 0, key: null }];

/** A request; its answer is the one that its sender gets. */
function decodeWrite(
  { id, operation, request, wait }: Extract<WriteMessage, { kind: 'write' }>,
  params: CollectionParams,
): Omit<PendingWrite, 'usage'> {
  const update = decodeWriteRequest(operation, request, params);
  // Requests for shards with keys come in parts: here is none that has one.
  update.operations.forEach((one, at) => {
    ringsOf(UNKEYED, params.sharding_method === 'custom', one, update.shardKeys[at] ?? null);
  });
  return {
    id,
    until: wait ? 'shown' : 'logged',
    operations: update.operations.map((one, index) => ({ operation: one, chained: index > 0 })),
    failure: update.failure,
    answer: ({ numbers, status }) => ({ body: updateAnswer(request, update, numbers, status) }),
  };
}

/** A part of a request. */
function decodeEncodedWrite(
  { id, write }: Extract<WriteMessage, { kind: 'writeEncoded' }>,
  params: CollectionParams,
): Omit<PendingWrite, 'usage'> {
  const { operations, until } = write;
  return { id, until, operations: decodeEncoded(operations, params), failure: null, answer: (value) => ({ body: null, value }) };
}
