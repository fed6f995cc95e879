/**
 * The gather thread as the main thread sees it: hands it reads, carries out what it asks for, and gives reads up at their deadlines. Small reads
 * stay in this thread.
 */

import { asTroupeError, errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { addUnknown } from '../../protocols/model/unknown-fields.js';
import { takeTold } from '../explain/told.js';
import type { GatherAccess } from '../gather/access.js';
import type { SharedLedger } from '../memory/shared-ledger.js';
import type { ReadRequest } from '../requests/read-request.js';
import { threadEntry } from '../threads/entries.js';
import type { FromGather, ToGather } from '../threads/gather.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import type { WatchLimits } from './thread-watch.js';
import { ownBytes, shuttingDown, type WorkerDepth, type WorkerEvent, WorkerSlots } from './worker-slots.js';

export interface GatherPoolOptions {
  /** Worker entry other than the built one. */
  readonly entry: URL | undefined;
  /** When a thread without a sign of life is given up. */
  readonly watch: WatchLimits;
  readonly closing: AbortSignal;
  readonly ledger: SharedLedger;
}

export interface GatherPoolEvents {
  /** A read has this deadline (`steadyNowMs()`): `expire` should run then. */
  watchDeadline(deadlineMs: number): void;
  tellWorker(event: WorkerEvent): void;
}

/** Reads at once, and bytes of their bodies. */
const READS_MAX = 1024;
const READ_BYTES_MAX = 256 << 20;
const RETRY_MS = 200;

/** One read on its way. */
interface Gathering {
  readonly operation: ReadOperation;
  readonly request: RawRequest;
  readonly access: GatherAccess;
  readonly resolve: (body: Uint8Array) => void;
  readonly reject: (error: TroupeError) => void;
  /** How many threads it was given to. */
  attempts: number;
}

/** One read that is answered in this thread. */
interface InPlace {
  readonly deadlineMs: number;
  readonly reject: (error: TroupeError) => void;
}

type Call = Extract<FromGather, { kind: 'scatter' | 'locate' }>;

export class GatherPool {
  private readonly slots: WorkerSlots<FromGather, ToGather>;
  /** By the number it was last given to the thread with. */
  private readonly reads = new Map<number, Gathering>();
  private readonly closing: AbortSignal;
  private readonly isOwnEntry: boolean;
  private readonly inPlace = new Set<InPlace>();
  /** Loaded with the thread: a node without a cluster needs none of it. */
  private module: typeof import('../gather/in-place.js') | null = null;
  private bytes = 0;
  private nextId = 1;
  private processed = 0;

  constructor(
    options: GatherPoolOptions,
    private readonly on: GatherPoolEvents,
  ) {
    const { closing } = options;
    this.closing = closing;
    this.isOwnEntry = options.entry === undefined;
    const entry = options.entry ?? threadEntry('gather');
    this.slots = new WorkerSlots(
      { kind: 'gather', count: 1, entry, watch: options.watch, closing, ledger: options.ledger },
      {
        ready: () => this.ready(),
        lost: (_, reason) => this.lost(reason),
        message: (_, message) => this.onThread(message),
        tellWorker: (event) => on.tellWorker(event),
      },
    );
  }

  async startAll(): Promise<void> {
    // Another entry is to see all reads.
    if (this.isOwnEntry) this.module = await import('../gather/in-place.js');
    await this.slots.startAll();
  }

  /** Reads are answered `unavailable`, and the thread ends. */
  close(): Promise<unknown> {
    for (const id of [...this.reads.keys()]) this.take(id)?.reject(shuttingDown());
    for (const read of this.inPlace) read.reject(shuttingDown());
    return this.slots.endAll();
  }

  /** See `EnginePool.gather`. */
  gather(operation: ReadOperation, request: RawRequest, access: GatherAccess): Promise<Uint8Array> {
    if (this.closing.aborted) return Promise.reject(shuttingDown());
    const bytes = bytesOf(request);
    const underWay = this.reads.size + this.inPlace.size;
    if (underWay >= READS_MAX || (this.reads.size > 0 && this.bytes + bytes > READ_BYTES_MAX)) {
      const detail = `${underWay} reads over several nodes are under way already; try again later`;
      return Promise.reject(new TroupeError('busy', detail, { retryAfterMs: RETRY_MS }));
    }
    let small: ReadRequest | null = null;
    try {
      small = this.module?.smallRead(operation, request) ?? null;
    } catch (error) {
      if (!isTooDeep(error)) {
        this.processed++;
        return Promise.reject(reported(error));
      }
    }
    if (small !== null) return this.gatherHere(operation, request, small, access);
    return this.gatherThere(operation, request, access);
  }

  private gatherThere(operation: ReadOperation, request: RawRequest, access: GatherAccess): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.put({ operation, request, access, resolve, reject, attempts: 0 });
      this.on.watchDeadline(request.deadlineMs);
    });
  }

  private gatherHere(operation: ReadOperation, request: RawRequest, small: ReadRequest, access: GatherAccess): Promise<Uint8Array> {
    const { gatherInPlace } = this.module as NonNullable<typeof this.module>;
    return new Promise((resolve, reject) => {
      const read: InPlace = { deadlineMs: request.deadlineMs, reject };
      this.inPlace.add(read);
      this.on.watchDeadline(request.deadlineMs);
      const end = (settle: () => void): void => {
        this.inPlace.delete(read);
        this.processed++;
        settle();
      };
      gatherInPlace(operation, request, small, access, 'main').then(
        (body) => end(() => resolve(body)),
        (error: unknown) => {
          if (isTooDeep(error)) end(() => resolve(this.gatherThere(operation, request, access)));
          else end(() => reject(reported(error)));
        },
      );
    });
  }

  /** Answers `timeout` to reads whose deadline has come, and returns when to look again. */
  expire(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [id, { request }] of [...this.reads]) {
      if (request.deadlineMs > nowMs) {
        next = Math.min(next, request.deadlineMs);
        continue;
      }
      this.take(id)?.reject(new TroupeError('timeout', 'the read did not finish within its timeout: retry, or raise `timeout`'));
      this.slots.post(0, { kind: 'forget', id });
    }
    for (const read of [...this.inPlace]) {
      if (read.deadlineMs > nowMs) {
        next = Math.min(next, read.deadlineMs);
        continue;
      }
      this.inPlace.delete(read);
      read.reject(new TroupeError('timeout', 'the read did not finish within its timeout: retry, or raise `timeout`'));
    }
    return next;
  }

  /** Looks whether the thread is alive while it has reads. */
  look(): void {
    const read = this.reads.values().next().value;
    this.slots.look(() => (read === undefined ? null : `${read.operation} over several nodes`));
  }

  depths(nowMs: number): WorkerDepth[] {
    return this.slots.depths(nowMs, () => ({
      depth: this.reads.size + this.inPlace.size,
      queuedBytes: this.bytes,
      processed: this.processed,
    }));
  }

  private put(read: Gathering): void {
    const id = this.nextId++;
    this.reads.set(id, read);
    this.bytes += bytesOf(read.request);
    if (this.slots.isUp(0)) this.post(id, read);
  }

  private take(id: number): Gathering | undefined {
    const read = this.reads.get(id);
    if (read === undefined) return undefined;
    this.reads.delete(id);
    this.bytes -= bytesOf(read.request);
    return read;
  }

  private post(id: number, read: Gathering): void {
    const { operation, access } = read;
    read.attempts++;
    const { path, query, body, explain, grants, limits, message, deadlineMs, timeoutSeconds, unknownFields } = read.request;
    const request: RawRequest = {
      path,
      query,
      body: body === null ? null : ownBytes(body),
      deadlineMs,
      ...(message && { message }),
      ...(explain && { explain }),
      ...(unknownFields && { unknownFields }),
      ...(timeoutSeconds !== undefined && { timeoutSeconds }),
      ...(limits && { limits }),
      ...(grants && { grants }),
    };
    this.slots.post(0, { kind: 'gather', id, operation, request, place: access.place });
  }

  private ready(): void {
    for (const [id, read] of this.reads) this.post(id, read);
  }

  /** Reads begin anew with the next thread, under other numbers, so that what comes for the lost one is told from what they ask now. */
  private lost(reason: string): void {
    for (const id of [...this.reads.keys()]) {
      const read = this.take(id) as Gathering;
      if (read.attempts < 2) this.put(read);
      else read.reject(new TroupeError('internal', `the query ended two engine workers (${reason}) and was given up`));
    }
  }

  private onThread(message: FromGather): void {
    switch (message.kind) {
      case 'scatter':
        this.scatter(message);
        return;
      case 'locate':
        this.locate(message);
        return;
      case 'answer':
        this.processed++;
        this.answered(message);
        return;
      case 'error':
        this.processed++;
        this.take(message.id)?.reject(errorFromFacts(message.error));
        return;
      case 'ready':
        return;
      default:
        message satisfies never;
    }
  }

  private answered({ body, id, unknownFields, ...told }: Extract<FromGather, { kind: 'answer' }>): void {
    const read = this.take(id);
    takeTold(read?.request.explain, told);
    addUnknown(read?.request.unknownFields, unknownFields);
    read?.resolve(body);
  }

  private scatter(asked: Extract<Call, { kind: 'scatter' }>): void {
    const { id, call, ask } = asked;
    const access = this.reads.get(id)?.access;
    if (access === undefined) return;
    access.scatter(ask).then(
      (given) => {
        const answers = given.map(ownBytes);
        const memories = new Set(answers.map(({ buffer }) => buffer as ArrayBuffer));
        this.answer({ kind: 'scattered', id, call, answers }, [...memories]);
      },
      (error: unknown) => this.refuse(asked, error),
    );
  }

  private locate(asked: Extract<Call, { kind: 'locate' }>): void {
    const { id, call, collection } = asked;
    const access = this.reads.get(id)?.access;
    if (access === undefined) return;
    try {
      this.answer({ kind: 'located', id, call, place: access.locate(collection) });
    } catch (error) {
      this.refuse(asked, error);
    }
  }

  private refuse({ id, call }: Call, error: unknown): void {
    this.answer({ kind: 'refused', id, call, error: errorFacts(error) });
  }

  /** To a thread that still knows of the read. */
  private answer(message: Exclude<ToGather, { kind: 'gather' | 'forget' }>, transfer: ArrayBuffer[] = []): void {
    if (this.reads.has(message.id)) this.slots.post(0, message, transfer);
  }
}

/** The error of a read in this thread. What is none of the catalogue is a mistake of ours: standard error gets its place. */
function reported(error: unknown): TroupeError {
  if (!(error instanceof TroupeError))
    process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error), 'TroupeGather');
  return asTroupeError(error);
}

function bytesOf({ body }: RawRequest): number {
  return body?.byteLength ?? 0;
}

/** Whether a request is nested too deeply for the stack of this thread. The main thread has 1 MB, the gather thread four times as much. */
function isTooDeep(error: unknown): boolean {
  return error instanceof RangeError;
}
