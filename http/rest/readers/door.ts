/**
 * The REST server of a reader's thread. Readers share one port, and the system spreads connections over them. A plain read of points is
 * answered in this thread if the reader may answer it alone, and so is a request whose answer is fixed; any other plain request goes to the
 * main thread as one message and comes back as bytes; a connection with a request that is not plain is piped to the HTTP server of the main
 * thread.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import { TroupeError } from '../../../protocols/errors.js';
import { type CallTrace, takeTrace } from '../../../protocols/model/explanation.js';
import type { UnknownField } from '../../../protocols/model/unknown-fields.js';
import type { AloneAnswer, Reader } from '../../../storage/reader/reader.js';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import type { HeavyRead, RawRequest } from '../../../storage/threads/messages.js';
import { isInDoubt } from '../../access/caller.js';
import { decideAccess, denialError } from '../../access/decide.js';
import type { KnownCallers } from '../../access/known-callers.js';
import { noRoomFor } from '../../context/answer.js';
import type { CallLog } from '../../context/call-log.js';
import { ClientGate } from '../../context/client-gate.js';
import { CollectionStats, TELL_COUNTS_MS } from '../../context/collection-stats.js';
import { heavyRead, tellGone } from '../../context/heavy-read.js';
import { listenAt } from '../../context/listen-at.js';
import { paidFor } from '../../context/paying.js';
import { isGood } from '../../context/request-stats.js';
import { SharedCounts } from '../../context/shared-counts.js';
import { idFields, requestIdsOf } from '../../context/slow-requests.js';
import { TlsSockets } from '../../context/tls-sockets.js';
import { noUnknownFields, UnknownFieldBatch } from '../../context/unknown-fields.js';
import { type PointsServices, pointsRequest } from '../../handlers/points.js';
import { checkedRead, checkedWrite, hasBody } from '../calls/check-head.js';
import { AnswerEncoder } from '../calls/encode-answer.js';
import { TOO_MANY_REST, WITHOUT_TLS_REST } from '../calls/last-words.js';
import { errorReply, type RestReply, refusalReply, resultReply } from '../calls/reply.js';
import type { FastRequest } from '../fast/connection.js';
import { requestFinder } from '../fast/find-request.js';
import { FastFront } from '../fast/front.js';
import { headField } from '../fast/head.js';
import { loggedReply } from '../fast/logged-reply.js';
import type { DoorRow, FromDoor, ReaderDoorSettings, ToDoor } from './messages.js';
import { PipedConnections } from './piped.js';

/** The part of a reader that answers without the main thread. */
export type LoneReader = Pick<Reader, 'memory' | 'readAlone' | 'refusalOf' | 'payWrite'>;

/** What comes of a read that this thread tries to answer. */
type ReadReply = RestReply | 'heavy' | null;

/** The main thread measures what requests cost only where no reader has a server. */
const SERVICES = { hardwareReporting: false, nowMs: steadyNowMs } as const;

/** How long a fixed answer of the main thread is given again without asking it: so soon a client learns that the main thread is stuck. */
const FIXED_ANSWER_MS = 500;
/** Unknown fields are told together, so that a client that always sends some costs the main thread nothing. */
const TELL_UNKNOWN_MS = 500;
const CHECK_EVERY_MS = 5000;

export class ReaderDoor {
  readonly #front: FastFront;
  readonly #server: Server;
  /** Null: connections are plain. */
  readonly #tls: TlsSockets | null;
  readonly #counts: SharedCounts;
  /** Calls that the main thread has not answered. */
  readonly #calls = new Map<number, (reply: RestReply | null, trace: CallTrace | null) => void>();
  /** Fixed answers of the main thread by their row's place, and when it was asked for them. */
  readonly #fixed = new Map<number, { readonly reply: RestReply; readonly askedMs: number }>();
  readonly #piped: PipedConnections;
  readonly #checking: NodeJS.Timeout;
  readonly #unknown = new UnknownFieldBatch();
  readonly #services: PointsServices;
  readonly #byCollection = new CollectionStats();
  #nextId = 1;

  constructor(
    private readonly reader: LoneReader,
    private readonly port: MessagePort,
    private readonly settings: ReaderDoorSettings,
    /** By `settings.access`. */
    private readonly callers: KnownCallers | null,
    /** By `settings.audit` and `settings.traces`. */
    private readonly calls: CallLog | null,
  ) {
    const { clients, counts, handOnPath, maxBodyBytes, packFromBytes, rows, tls } = settings;
    this.#services = { ...SERVICES, slow: { fromMs: settings.slowFromMs } };
    const gate = clients === null ? null : new ClientGate(clients);
    this.#counts = new SharedCounts(counts);
    this.#piped = new PipedConnections(handOnPath);
    this.#checking = setInterval(() => this.#piped.checkTimes(steadyNowMs()), CHECK_EVERY_MS);
    this.#checking.unref();
    this.#front = new FastFront({
      maxBodyBytes,
      findRequest: requestFinder(rows, callers),
      ledger: reader.memory,
      encoder: new AnswerEncoder({ minBytes: packFromBytes, ledger: reader.memory, isMain: false }),
      refuse: ({ at }) => this.#refuse(at),
      answer: (request) => (calls === null ? this.#answer(request) : this.#logged(calls, request)),
      handOn: (socket) => this.#piped.take(socket, steadyNowMs()),
    });
    const take = (socket: Socket): void => this.#front.take(socket);
    // Whoever has not proven to speak TLS cannot be told within it.
    const tooMany = tls === null ? TOO_MANY_REST : null;
    const door = tls === null ? null : new TlsSockets({ protocol: 'http/1.1', lastWords: WITHOUT_TLS_REST, take }, tls);
    this.#tls = door;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (gate !== null && !gate.admits(socket, tooMany)) return;
      if (door === null) take(socket);
      else door.take(socket);
    });
    port.on('message', (message: ToDoor) => this.#receive(message));
  }

  /** Tells the main thread when clients can connect, or why they cannot. */
  listen(): void {
    const { host, port } = this.settings;
    const failed = ({ code, message }: NodeJS.ErrnoException): void => this.#post({ kind: 'failed', code, message });
    this.#server.once('error', failed);
    this.#server.once('listening', () => {
      this.#server.off('error', failed);
      this.#post({ kind: 'listening' });
    });
    listenAt(this.#server, { host, port, reusePort: true });
  }

  #receive(message: ToDoor): void {
    switch (message.kind) {
      case 'reply': {
        const { id, reply, trace } = message;
        const done = this.#calls.get(id);
        this.#calls.delete(id);
        done?.(reply === null ? null : { ...reply, body: bufferOf(reply.body) }, trace);
        return;
      }
      case 'certificates':
        this.#tls?.renew(message.tls);
        return;
      case 'close':
        this.#front.close();
        this.#tls?.close();
        this.#server.close(() => void this.#end());
        return;
      case 'cut':
        this.#front.cut();
        this.#tls?.cut();
        this.#piped.cut();
        return;
      default:
        message satisfies never;
    }
  }

  async #end(): Promise<void> {
    clearInterval(this.#checking);
    await this.calls?.close();
    this.#post({ kind: 'closed' });
    this.port.close();
  }

  #logged(calls: CallLog, request: FastRequest): RestReply | null | Promise<RestReply | null> {
    return loggedReply(calls, this.settings.rows[request.found.at] as DoorRow, request, () => this.#answer(request));
  }

  #answer(request: FastRequest): RestReply | Promise<RestReply | null> {
    const { at } = request.found;
    const row = this.settings.rows[at] as DoorRow;
    const startedMs = performance.now();
    const refused = this.callers === null ? null : this.#refusal(request, row);
    if (refused !== null) return this.#counted(request, refused, startedMs);
    if (row.kind === 'write') return this.#write(request, row, startedMs);
    const reply = row.isFixed ? this.#fixedReply(at, startedMs) : this.#read(request, row, startedMs);
    if (reply instanceof Promise) return reply.then((later) => this.#counted(request, later, startedMs));
    if (reply === null && row.isFixed) return this.#askFixed(request, startedMs);
    return this.#counted(request, reply, startedMs);
  }

  /** The answer to a caller that may not do this; null: it may, as far as this thread can tell. */
  #refusal({ found: { caller, path } }: FastRequest, row: DoorRow): RestReply | null {
    const denial = decideAccess(caller, row, path.collection_name ?? null);
    return denial === null ? null : errorReply(denialError(denial), row, 0);
  }

  #refuse(at: number): RestReply {
    const row = this.settings.rows[at] as DoorRow;
    const reply = errorReply(noRoomFor(row), row, 0);
    this.#counts.record(at, reply.status, 0, Date.now());
    return reply;
  }

  #counted(request: FastRequest, reply: ReadReply, startedMs: number): RestReply | Promise<RestReply | null> {
    if (reply === null) return this.#ask(request);
    if (reply === 'heavy') return this.#askHeavy(request);
    this.#record(request.found.at, request.found.path.collection_name, reply.status, performance.now() - startedMs);
    return reply;
  }

  #record(at: number, collection: string | undefined, status: number, milliseconds: number): void {
    const dateMs = Date.now();
    this.#counts.record(at, status, milliseconds, dateMs);
    if (collection === undefined) return;
    const isFirst = this.#byCollection.isEmpty;
    // An error may be about a collection that is not there: who asks for many of those should not be remembered.
    this.#byCollection.record(collection, at, status, milliseconds, dateMs, isGood(status));
    if (!isFirst || this.#byCollection.isEmpty) return;
    setTimeout(() => this.#post({ kind: 'counted', counts: this.#byCollection.take() }), TELL_COUNTS_MS).unref();
  }

  /** Hands a write on, if it is not refused for its rate. */
  #write(request: FastRequest, row: DoorRow & { kind: 'write' }, startedMs: number): RestReply | Promise<RestReply | null> {
    const { body, found, heldMs } = request;
    const { caller, path, query } = found;
    const paid = paidFor(this.reader, caller, row.engine, () => {
      const { timeoutSeconds } = checkedWrite(path, query);
      const own = { path, query: query as Record<string, string>, body: hasBody(row) ? body : null, caller };
      const raw = (): RawRequest => pointsRequest(this.#services, { ...own, consistency: undefined, timeoutSeconds, heldMs });
      return { name: path.collection_name as string, request: raw };
    });
    if (typeof paid === 'number') return this.#ask(request, undefined, paid);
    return this.#counted(request, refusalReply(paid, row, performance.now() - startedMs), startedMs) as RestReply;
  }

  /** The reply to a read, or as `readAlone`. */
  #read(request: FastRequest, row: DoorRow, startedMs: number): ReadReply | Promise<ReadReply> {
    const { body, found, heldMs, trace } = request;
    const { caller, path, query } = found;
    try {
      if (isInDoubt(caller)) return null;
      const name = path.collection_name as string;
      if (row.kind !== 'read') return null;
      const parameters = checkedRead(row.engine, path, query);
      const refused = this.reader.refusalOf(name);
      if (refused !== null) return refusalReply(refused, row, performance.now() - startedMs);
      const unknownFields = noUnknownFields(this.settings.refuseUnknown);
      const own = { path, query: query as Record<string, string>, body: hasBody(row) ? body : null, caller };
      const raw = pointsRequest(this.#services, { ...own, ...parameters, heldMs, trace, unknownFields });
      const result = this.reader.readAlone(name, row.engine, raw);
      const reply = (answer: AloneAnswer): ReadReply => {
        if (answer === null || answer === 'heavy') return answer;
        if (unknownFields.found.length > 0) this.#noteUnknown(row, unknownFields.found);
        const milliseconds = performance.now() - startedMs;
        if (milliseconds >= this.settings.slowFromMs) this.#noteSlow(request, row, milliseconds, raw.explain?.plan ?? null);
        return resultReply(answer, milliseconds, raw);
      };
      return result instanceof Promise ? result.then(reply) : reply(result);
    } catch (error) {
      // A bug: the main thread meets it again, and logs it.
      return error instanceof TroupeError ? errorReply(error, row, performance.now() - startedMs) : null;
    }
  }

  #noteSlow({ found, head }: FastRequest, { name: operation }: DoorRow, milliseconds: number, plan: string | null): void {
    const ids = requestIdsOf((name) => headField(head, name));
    const slow = {
      door: 'rest',
      operation,
      collection: found.path.collection_name ?? null,
      status: 200,
      milliseconds,
      plan,
      ...ids,
    } as const;
    this.#post({ kind: 'slow', request: slow });
  }

  #noteUnknown({ name }: DoorRow, found: readonly UnknownField[]): void {
    if (!this.#unknown.note(name, found)) return;
    setTimeout(() => this.#post({ kind: 'unknownFields', counts: this.#unknown.take() }), TELL_UNKNOWN_MS).unref();
  }

  #fixedReply(at: number, nowMs: number): RestReply | null {
    const fixed = this.#fixed.get(at);
    return fixed === undefined || nowMs - fixed.askedMs > FIXED_ANSWER_MS ? null : fixed.reply;
  }

  async #askFixed(request: FastRequest, askedMs: number): Promise<RestReply | null> {
    const reply = await this.#ask(request);
    if (reply?.status === 200) this.#fixed.set(request.found.at, { reply, askedMs });
    return reply;
  }

  /** The read ends when the client goes away. */
  #askHeavy(request: FastRequest): Promise<RestReply | null> {
    const heavy = heavyRead();
    request.onGone(() => tellGone(heavy));
    return this.#ask(request, heavy);
  }

  #ask({ body, found, head, heldMs, trace }: FastRequest, heavy?: HeavyRead, paid = 0): Promise<RestReply | null> {
    const id = this.#nextId++;
    const { at, path } = found;
    const transfer = body.length > 0 ? [body.buffer as ArrayBuffer] : [];
    const { credential, query, url } = head;
    const fields = idFields((name) => headField(head, name));
    const times = { heldMs, postedMs: steadyNowMs(), isTraced: trace !== undefined };
    this.#post({ kind: 'call', id, at, url, path, query, credential, body, fields, heavy, paid, ...times }, transfer);
    return new Promise((resolve) => {
      this.#calls.set(id, (reply, told) => {
        if (trace !== undefined) takeTrace(trace, told);
        resolve(reply);
      });
    });
  }

  #post(message: FromDoor, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }
}

/** Bytes that came in a message are no `Buffer` any more. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
