/**
 * The threads of one kind, in numbered slots: the worker that fills a slot changes when it is lost. Starts them, says
 * when one is ready and when it is lost, and puts a new one in its place.
 */

import type { TransferListItem, Worker } from 'node:worker_threads';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { heapMegabytes } from '../memory/budget.js';
import type { SharedLedger } from '../memory/shared-ledger.js';
import { steadyNowMs } from '../threads/clock.js';
import { startThread, takeThread } from './early-thread.js';
import { withLateMarking } from './late-marking.js';
import { workerDelayMs } from './pool-state.js';
import { LOOK_EVERY_MS, type Silence, ThreadWatch, type WatchLimits } from './thread-watch.js';

/** One worker for telemetry. */
export interface WorkerDepth {
  readonly name: string;
  readonly kind: 'reader' | 'writer' | 'builder' | 'gather' | 'keeper' | 'archive';
  /** False for a thread that nothing has needed yet. */
  readonly begun: boolean;
  /** It runs, and answers as far as is known. */
  readonly up: boolean;
  /** What waits for a thread that gives no sign of life, and for how many looks of a second it has given none. */
  readonly stuck: Silence | null;
  /** Requests it holds. */
  readonly depth: number;
  readonly queuedBytes: number;
  readonly processed: number;
  readonly restarts: number;
  readonly uptimeMs: number;
  readonly lastError: string | null;
}

export interface WorkerEvent {
  readonly name: string;
  readonly kind: 'reader' | 'writer' | 'builder' | 'gather' | 'keeper' | 'archive';
  /** silent: it has not answered for a while. stuck: it cannot be ended either; the process should end. */
  readonly event: 'started' | 'lost' | 'silent' | 'stuck';
  readonly error: string | null;
}

/** A thread that is not the pool's own, and is watched and told of with the pool's. */
export interface WatchedThread {
  /** Looks whether it is alive, if something waits for it; ends it where it is not. */
  look(tell: (event: WorkerEvent) => void): void;
  /** Null: there is no thread now. nowMs: `steadyNowMs()`. */
  depth(nowMs: number): WorkerDepth | null;
}

/** What the threads are. */
export interface SlotsOptions {
  readonly kind: 'reader' | 'writer' | 'gather';
  readonly count: number;
  /** The worker's file. Each starts with its index and its part of the ledger as data: `{ index, memory, pulse }`. */
  readonly entry: URL;
  readonly ledger: SharedLedger;
  readonly watch: WatchLimits;
  /** Further data of each thread. */
  readonly data?: object;
  /** Aborted when the pool closes: from then on a lost thread is not replaced. */
  readonly closing: AbortSignal;
  /** A thread that was asked to end and has not is ended after so long; default 5 seconds. */
  readonly endMs?: number;
}

/** Told of what happens to a thread, by its index. */
export interface SlotEvents<Incoming> {
  /** It accepts messages, as the first thread of its slot or as a replacement. */
  ready(index: number): void;
  /** It is gone, and nothing it held comes back. Its replacement has not started; isWanted: it was asked to end, and there will be none. */
  lost(index: number, reason: string, isWanted: boolean): void;
  message(index: number, message: Incoming): void;
  tellWorker(event: WorkerEvent): void;
}

const RESTART_WINDOW_MS = 60_000;
const END_MS = 5000;

interface Slot {
  readonly index: number;
  readonly name: string;
  worker: Worker | null;
  /** Of the worker. */
  watch: ThreadWatch | null;
  /** Settled when its first worker is ready or lost; null until it is needed. */
  first: Promise<void> | null;
  up: boolean;
  startedMs: number;
  restarts: number;
  recentRestarts: number[];
  lastError: string | null;
  /** It ends because it is not needed any more. */
  isEnding: boolean;
}

export class WorkerSlots<Incoming extends { kind: string }, Outgoing> {
  private readonly slots: readonly Slot[];

  constructor(
    private readonly options: SlotsOptions,
    private readonly on: SlotEvents<Incoming>,
  ) {
    this.slots = Array.from({ length: options.count }, (_, index) => ({
      index,
      name: `${options.kind}-${index}`,
      worker: null,
      watch: null,
      first: null,
      up: false,
      startedMs: 0,
      restarts: 0,
      recentRestarts: [],
      lastError: null,
      isEnding: false,
    }));
  }

  /**
   * Starts those threads that nothing has needed yet. Resolves when every thread is ready; rejects when one is lost before. count: only so
   * many, the first ones.
   */
  startAll(count = this.slots.length): Promise<unknown> {
    return Promise.all(this.slots.slice(0, count).map(({ index }) => this.start(index)));
  }

  /** Starts a thread when nothing has needed it yet. Resolves when it is ready; rejects when its first worker is lost before. */
  start(index: number): Promise<void> {
    const slot = this.slots[index] as Slot;
    if (slot.up) return Promise.resolve();
    if (this.options.closing.aborted) return Promise.reject(shuttingDown());
    slot.first ??= this.fill(slot);
    return slot.first;
  }

  /** Starts a thread that does not run. `ready` or `lost` says what becomes of it. */
  startLater(index: number): void {
    const slot = this.slots[index];
    if (slot === undefined) return;
    slot.first = this.fill(slot);
    slot.first.catch(() => {});
  }

  /** Indices of the threads that were needed so far. */
  indicesBegun(): number[] {
    return this.slots.flatMap(({ first, index }) => (first === null ? [] : [index]));
  }

  isUp(index: number): boolean {
    return this.slots[index]?.up === true;
  }

  /** Indices of the threads that are ready. */
  indicesUp(): Set<number> {
    return new Set(this.slots.filter((slot) => slot.up).map((slot) => slot.index));
  }

  /** Nothing happens when the slot is empty. */
  post(index: number, message: Outgoing, transfer: TransferListItem[] = []): void {
    this.slots[index]?.worker?.postMessage(message, transfer);
  }

  /** To every thread that is ready. */
  postAll(message: Outgoing): void {
    for (const slot of this.slots) if (slot.up) slot.worker?.postMessage(message);
  }

  /**
   * Asks a thread by this message to end; no other one takes its place until `startLater`. `lost` tells of its end too, but nothing else does. Whoever waits
   * for its answer waits for its end, so a thread that something keeps alive is ended after a while.
   */
  endOne(index: number, message: Outgoing): void {
    const slot = this.slots[index];
    if (slot === undefined || slot.worker === null) return;
    const { worker } = slot;
    slot.isEnding = true;
    worker.postMessage(message);
    const late = setTimeout(() => void worker.terminate(), this.options.endMs ?? END_MS);
    late.unref();
    worker.once('exit', () => clearTimeout(late));
  }

  /** Ends a thread; another one takes its place. */
  replace(index: number): void {
    void this.slots[index]?.worker?.terminate();
  }

  /** Looks whether the threads that something waits for are alive. callOf: what has waited longest for the thread of an index; null: nothing. */
  look(callOf: (index: number) => string | null): void {
    for (const slot of this.slots) {
      const { name, watch, worker } = slot;
      if (watch === null || worker === null) continue;
      const finding = watch.look(callOf(slot.index));
      if (finding === 'terminate') void worker.terminate();
      else if (finding !== 'fine') this.on.tellWorker(silenceEvent(name, this.options.kind, finding, watch));
    }
  }

  /** Milliseconds that the thread of an index has waited for a CPU so far; 0 where that is not told. */
  waitedMs(index: number): number {
    return this.slots[index]?.watch?.waitedMs() ?? 0;
  }

  /** Ends every thread, and none is told as lost. */
  endAll(): Promise<unknown> {
    return Promise.allSettled(
      this.slots.map((slot) => {
        const { worker } = slot;
        slot.worker = null;
        slot.up = false;
        return worker?.terminate();
      }),
    );
  }

  /** One row per slot. loadOf: what the thread of an index has to do and has done. */
  depths(nowMs: number, loadOf: (index: number) => Pick<WorkerDepth, 'depth' | 'queuedBytes' | 'processed'>): WorkerDepth[] {
    return this.slots.map((slot) => ({
      name: slot.name,
      kind: this.options.kind,
      begun: slot.first !== null,
      up: slot.up && slot.watch?.silence == null,
      stuck: slot.watch?.silence ?? null,
      restarts: slot.restarts,
      uptimeMs: slot.worker === null ? 0 : nowMs - slot.startedMs,
      lastError: slot.lastError,
      ...loadOf(slot.index),
    }));
  }

  /** Fills a slot. Resolves when its worker is ready; rejects when it is lost before. */
  private fill(slot: Slot): Promise<void> {
    const { kind, entry, ledger } = this.options;
    const { index, name } = slot;
    const watch = new ThreadWatch(this.options.watch);
    const data = { ...this.options.data, index, memory: ledger.shareOf(name), pulse: watch.data };
    const transfer = [watch.data.port];
    const heap = heapMegabytes(ledger.budget, kind);
    const early = takeThread(entry, name, data, heap, transfer);
    slot.startedMs = steadyNowMs();
    slot.isEnding = false;
    let worker: Worker;
    try {
      const start = (): Worker => startThread(entry, name, data, heap, transfer);
      worker = early?.worker ?? (kind === 'writer' ? withLateMarking(start) : start());
    } catch (error) {
      watch.close();
      ledger.forget(name);
      return this.loseBeforeStart(slot, errorFacts(error).detail);
    }
    slot.worker = worker;
    slot.watch = watch;
    return new Promise((resolve, reject) => {
      let error = early?.error ?? null;
      let wasReady = false;
      const becomeReady = (): void => {
        slot.up = true;
        wasReady = true;
        this.on.tellWorker({ name, kind, event: 'started', error: null });
        this.on.ready(index);
        resolve();
      };
      worker.on('error', (cause) => {
        error = cause instanceof Error ? cause : new Error(String(cause));
      });
      worker.on('message', (message: Incoming) => {
        if (message.kind === 'ready') becomeReady();
        else this.on.message(index, message);
      });
      worker.on('exit', (code) => {
        watch.close();
        if (slot.worker !== worker) {
          reject(shuttingDown());
          return;
        }
        slot.worker = null;
        slot.watch = null;
        slot.up = false;
        ledger.forget(name);
        const reason = error?.message ?? `ended with code ${code}`;
        if (slot.isEnding) {
          this.on.lost(index, reason, true);
          return;
        }
        slot.lastError = reason;
        this.on.tellWorker({ name, kind, event: 'lost', error: reason });
        this.on.lost(index, reason, false);
        if (!wasReady) reject(new TroupeError('unavailable', `${kind} ${index} did not start: ${reason}`));
        this.restartLater(slot);
      });
    });
  }

  /** No thread is to be had now. Those who wait hear of it in a later turn, as of a thread that ends. */
  private loseBeforeStart(slot: Slot, reason: string): Promise<void> {
    const { index, name } = slot;
    const { kind } = this.options;
    slot.lastError = reason;
    return new Promise((_, reject) => {
      setImmediate(() => {
        this.on.tellWorker({ name, kind, event: 'lost', error: reason });
        this.on.lost(index, reason, false);
        reject(new TroupeError('unavailable', `${kind} ${index} did not start: ${reason}`));
        this.restartLater(slot);
      });
    });
  }

  private restartLater(slot: Slot): void {
    const { closing } = this.options;
    if (closing.aborted) return;
    const now = steadyNowMs();
    slot.recentRestarts = slot.recentRestarts.filter((time) => time > now - RESTART_WINDOW_MS);
    const delay = workerDelayMs(slot.recentRestarts.length);
    slot.recentRestarts.push(now);
    slot.restarts++;
    setTimeout(() => {
      // A worker that does not start comes back here by its `exit`.
      if (!closing.aborted) this.fill(slot).catch(() => {});
    }, delay);
  }
}

/** What is told of a thread that gives no sign of life. */
export function silenceEvent(name: string, kind: WorkerEvent['kind'], finding: 'silent' | 'end', { silence }: ThreadWatch): WorkerEvent {
  const error = `no sign of life for ${((silence?.looks ?? 0) * LOOK_EVERY_MS) / 1000} s; ${silence?.call ?? 'nothing'} waits for it`;
  return { name, kind, event: finding === 'silent' ? 'silent' : 'stuck', error };
}

/** Bytes around a view that may go along with it, such as the head of a gRPC message: posting a view takes its whole buffer. */
const SPARE_BYTES_MAX = 64;

/** Bytes whose buffer holds nothing else that matters, so that it may be given away. Large ones are only copied out of larger buffers. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  const spare = bytes.buffer.byteLength - bytes.byteLength;
  // Small buffers come out of a pool that others share.
  return spare === 0 || (spare <= SPARE_BYTES_MAX && bytes.byteLength > Buffer.poolSize) ? bytes : new Uint8Array(bytes);
}

/** What a request gets that comes, or still waits, when the pool closes. */
export function shuttingDown(): TroupeError {
  return new TroupeError('unavailable', 'the node is shutting down');
}
