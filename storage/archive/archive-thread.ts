/** The main thread's side of the archive's thread, which is started by the first work and ends when there has been none for a while. */

import { lstatSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Worker } from 'node:worker_threads';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import { startThread } from '../pool/early-thread.js';
import { SILENCE_MS, ThreadWatch, watchLimits } from '../pool/thread-watch.js';
import { silenceEvent, type WatchedThread, type WorkerDepth, type WorkerEvent } from '../pool/worker-slots.js';
import { steadyNowMs } from '../threads/clock.js';
import { threadEntry } from '../threads/entries.js';
import { archiveErrorFromFacts } from './archive-error.js';
import type { ArchiveManifest } from './manifest.js';
import type { ArchivePort, ArchiveWorkOptions, PackedArchive, PackedStream, PackOrder, UnpackedArchive, UnpackOrder } from './port.js';
import type { ArchiveWork, FileWork, FromArchiveThread, ToArchiveThread } from './thread-messages.js';

export interface ArchiveThreadSettings {
  /** Worker entry other than the built one. */
  readonly entry?: URL;
  /** The most that the heap of the thread may have; default 512. Manifests are in it, files are not. */
  readonly heapMegabytes?: number;
  /** How long the thread stays without work; default 10 seconds. */
  readonly idleMs?: number;
  /** Told when the thread has ended though it had work. */
  readonly onLost?: (reason: string) => void;
  /** How long the thread may give no sign of life while something waits for it; default a minute. */
  readonly silenceMs?: number;
}

/** Works on files that take turns in the thread; the others wait. A small one does not wait for a large one to end. */
const FILE_WORKS_MAX = 4;
/** Streams are as fast as whoever takes them, so they wait for none, and their number has a bound of its own. */
const STREAMS_MAX = 16;
const BUSY_RETRY_MS = 1000;
const IDLE_MS = 10_000;
const HEAP_MB = 512;
const THREAD_NAME = 'archive';

interface Running {
  readonly work: ArchiveWork;
  readonly onProgress: ArchiveWorkOptions['onProgress'];
  readonly done: (value: unknown) => void;
  readonly fail: (error: unknown) => void;
  readonly stream: TakenStream | null;
  readonly forget: () => void;
}

interface Thread {
  readonly worker: Worker;
  readonly watch: ThreadWatch;
  readonly startedMs: number;
}

export class ArchiveThread implements ArchivePort, WatchedThread {
  private readonly running = new Map<number, Running>();
  private readonly waiting: (() => void)[] = [];
  private thread: Thread | null = null;
  private processed = 0;
  /** Threads that were lost since the start, and why the last one was. */
  private readonly losses: { count: number; last: string | null } = { count: 0, last: null };
  private idle: NodeJS.Timeout | undefined;
  private nextId = 1;
  private isClosed = false;

  constructor(private readonly settings: ArchiveThreadSettings = {}) {}

  async pack(order: PackOrder, file: string, options: ArchiveWorkOptions = {}): Promise<PackedArchive> {
    requireNothing(file);
    return (await this.run({ kind: 'pack', order, file }, options)) as PackedArchive;
  }

  packStream(order: PackOrder, options: ArchiveWorkOptions = {}): Promise<PackedStream> {
    return new Promise((resolve, reject) => {
      if (this.count('packStream') >= STREAMS_MAX) {
        const detail = `${STREAMS_MAX} snapshots are being streamed, which is the most at a time; try again later`;
        throw new TroupeError('busy', detail, { retryAfterMs: BUSY_RETRY_MS });
      }
      const stream = new TakenStream((bytes) => resolve({ bytes, chunks: stream }), reject);
      this.begin(
        { kind: 'packStream', order },
        options,
        () => stream.end(),
        (error) => stream.fail(error),
        stream,
      );
    });
  }

  async unpack(order: UnpackOrder, options: ArchiveWorkOptions = {}): Promise<UnpackedArchive> {
    requireNothing(order.folder);
    return (await this.run({ kind: 'unpack', order }, options)) as UnpackedArchive;
  }

  async manifestOf(file: string, options: ArchiveWorkOptions = {}): Promise<ArchiveManifest> {
    return (await this.run({ kind: 'manifestOf', file }, options)) as ArchiveManifest;
  }

  async hash(file: string, options: ArchiveWorkOptions = {}): Promise<PackedArchive> {
    return (await this.run({ kind: 'hash', file }, options)) as PackedArchive;
  }

  async beginLogAfter(folder: string, at: LogTag, timeMs: number): Promise<void> {
    await this.run({ kind: 'beginLogAfter', folder, at, timeMs }, {});
  }

  async addToLog(folder: string, entries: readonly ShardEntry[], params: CollectionParams): Promise<void> {
    await this.run({ kind: 'addToLog', folder, entries, params }, {});
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.idle);
    for (const wait of this.waiting.splice(0)) wait();
    const { thread } = this;
    if (thread !== null) await this.lose(thread, 'the node is ending');
  }

  /** Whether there is a thread now. */
  get isUp(): boolean {
    return this.thread !== null;
  }

  /** A thread that does not answer is ended: its works fail, and the next one begins another thread. */
  look(tell: (event: WorkerEvent) => void): void {
    if (this.thread === null) return;
    const { watch, worker } = this.thread;
    const [first] = this.running.values();
    const finding = watch.look(first === undefined ? null : `${first.work.kind} of an archive`);
    if (finding === 'terminate') void worker.terminate();
    else if (finding !== 'fine') tell(silenceEvent(THREAD_NAME, 'archive', finding, watch));
  }

  depth(nowMs: number): WorkerDepth | null {
    if (this.thread === null) return null;
    const { startedMs, watch } = this.thread;
    const stuck = watch.silence;
    return {
      name: THREAD_NAME,
      kind: 'archive',
      begun: true,
      up: stuck === null,
      stuck,
      depth: this.running.size + this.waiting.length,
      queuedBytes: 0,
      processed: this.processed,
      restarts: this.losses.count,
      uptimeMs: nowMs - startedMs,
      lastError: this.losses.last,
    };
  }

  private async run(work: FileWork, options: ArchiveWorkOptions): Promise<unknown> {
    while (this.count('file') >= FILE_WORKS_MAX) await this.turn(options.signal);
    return new Promise((resolve, reject) => this.begin(work, options, resolve, reject, null));
  }

  /** Waits until a work has ended. Errors: `unavailable` when cancelled. */
  private turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw cancelledByCaller();
      const wait = (): void => {
        signal?.removeEventListener('abort', cancel);
        resolve();
      };
      const cancel = (): void => {
        this.waiting.splice(this.waiting.indexOf(wait), 1);
        reject(cancelledByCaller());
      };
      this.waiting.push(wait);
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Errors: `unavailable` when cancelled or closed; nothing has begun. */
  private begin(
    work: ArchiveWork,
    { onProgress, signal }: ArchiveWorkOptions,
    done: (value: unknown) => void,
    fail: (error: unknown) => void,
    stream: TakenStream | null,
  ): void {
    if (this.isClosed) throw new TroupeError('unavailable', 'the node is ending');
    if (signal?.aborted) throw cancelledByCaller();
    clearTimeout(this.idle);
    const { worker } = this.thread ?? this.start();
    const id = this.nextId++;
    const tell = (message: ToArchiveThread): void => worker.postMessage(message, givenWith(message));
    const cancel = (): void => tell({ kind: 'cancel', id });
    signal?.addEventListener('abort', cancel, { once: true });
    stream?.connect({ more: () => tell({ kind: 'more', id }), cancel });
    worker.ref();
    tell({ kind: 'work', id, work });
    this.running.set(id, { work, onProgress, done, fail, stream, forget: () => signal?.removeEventListener('abort', cancel) });
  }

  private count(kind: 'packStream' | 'file'): number {
    let count = 0;
    for (const { work } of this.running.values()) if ((work.kind === 'packStream') === (kind === 'packStream')) count++;
    return count;
  }

  private start(): Thread {
    const { entry, heapMegabytes, silenceMs } = this.settings;
    const watch = new ThreadWatch(watchLimits(silenceMs ?? SILENCE_MS));
    const data = { pulse: watch.data };
    const worker = startThread(entry ?? threadEntry('archive'), THREAD_NAME, data, heapMegabytes ?? HEAP_MB, [watch.data.port]);
    const thread = { worker, watch, startedMs: steadyNowMs() };
    this.thread = thread;
    worker.on('message', (message: FromArchiveThread) => this.take(message));
    worker.on('error', (error) => void this.lose(thread, error instanceof Error ? error.message : String(error)));
    worker.on('exit', (code) => {
      watch.close();
      void this.lose(thread, `it ended with code ${code}`);
    });
    return thread;
  }

  private take(message: FromArchiveThread): void {
    const running = this.running.get(message.id);
    if (running === undefined) return;
    switch (message.kind) {
      case 'progress':
        running.onProgress?.(message.done, message.total);
        return;
      case 'streaming':
        running.stream?.begin(message.bytes);
        return;
      case 'chunk':
        running.stream?.add(message.chunk);
        return;
      case 'done':
        this.end(message.id, running);
        running.done(message.value);
        return;
      case 'failed':
        this.end(message.id, running);
        running.fail(archiveErrorFromFacts(message.error));
        return;
      default:
        message satisfies never;
    }
  }

  private end(id: number, { forget }: Running): void {
    forget();
    this.running.delete(id);
    this.processed++;
    this.waiting.shift()?.();
    const { thread } = this;
    if (this.running.size > 0 || thread === null) return;
    // Idle it keeps no process alive.
    thread.worker.unref();
    this.idle = setTimeout(() => {
      if (this.running.size === 0) void this.lose(thread, 'idle');
    }, this.settings.idleMs ?? IDLE_MS);
    this.idle.unref();
  }

  /** Ends a thread, if it has not ended. What it had begun is removed, its callers are told, and the next work starts another one. */
  private async lose(thread: Thread, reason: string): Promise<void> {
    if (this.thread !== thread) return;
    this.thread = null;
    const lost = [...this.running.values()];
    this.running.clear();
    if (lost.length > 0 && !this.isClosed) {
      this.losses.count++;
      this.losses.last = reason;
      this.settings.onLost?.(reason);
    }
    await thread.worker.terminate();
    for (const { fail, forget, work } of lost) {
      forget();
      await removeBegun(work);
      fail(new TroupeError('unavailable', `the thread that works on snapshots has ended: ${reason}`, { outcome: 'none' }));
    }
    for (const wait of this.waiting.splice(0)) wait();
  }
}

/** The chunks of a stream as they come from the thread, which sends the next one when one is taken. */
class TakenStream implements AsyncIterableIterator<Uint8Array> {
  private readonly chunks: Uint8Array[] = [];
  private thread: { more: () => void; cancel: () => void } | null = null;
  private outcome: { readonly error: unknown } | 'ended' | null = null;
  private hasBegun = false;
  private wake: () => void = () => {};

  constructor(
    private readonly onBegin: (bytes: number) => void,
    private readonly onRefused: (error: unknown) => void,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const chunk = this.chunks.shift();
      if (chunk !== undefined) {
        this.thread?.more();
        return { done: false, value: chunk };
      }
      if (this.outcome === 'ended') return { done: true, value: undefined };
      if (this.outcome !== null) throw this.outcome.error;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.thread?.cancel();
    this.chunks.length = 0;
    this.outcome = 'ended';
    this.wake();
    return { done: true, value: undefined };
  }

  connect(thread: { more: () => void; cancel: () => void }): void {
    this.thread = thread;
  }

  begin(bytes: number): void {
    this.hasBegun = true;
    this.onBegin(bytes);
  }

  add(chunk: Uint8Array): void {
    if (this.outcome !== null) return;
    this.chunks.push(chunk);
    this.wake();
  }

  end(): void {
    this.outcome ??= 'ended';
    this.wake();
  }

  fail(error: unknown): void {
    this.outcome ??= { error };
    if (!this.hasBegun) this.onRefused(error);
    this.wake();
  }
}

/** What a thread has left that could not remove it. */
async function removeBegun(work: ArchiveWork): Promise<void> {
  const begun = work.kind === 'pack' ? work.file : work.kind === 'unpack' ? work.order.folder : null;
  // What cannot be removed now is with the leftovers of the next start.
  if (begun !== null) await rm(begun, { recursive: true, force: true }).catch(() => {});
}

/** Errors: `storage` if something is there: it would be taken for what a lost thread has left. */
function requireNothing(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  throw new TroupeError('storage', `${path} is there already`, { outcome: 'none' });
}

function givenWith(message: ToArchiveThread): ArrayBuffer[] {
  if (message.kind !== 'work' || message.work.kind !== 'addToLog') return [];
  return message.work.entries.map(({ operation }) => operation.buffer as ArrayBuffer);
}

function cancelledByCaller(): TroupeError {
  return new TroupeError('unavailable', 'the work on the archive was cancelled', { outcome: 'none' });
}
