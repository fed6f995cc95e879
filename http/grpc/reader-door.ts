/**
 * The gRPC server of a reader's thread. Readers share one port, and the system spreads connections over them. A read of points is answered
 * in this thread if the reader may answer it alone, and what is beyond its collection's rate is refused here; any other call goes to the main
 * thread as one message and comes back as bytes.
 */

import type { MessagePort } from 'node:worker_threads';
import { type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import { RoutingReader } from '../../protocols/grpc/routing.js';
import { type GrpcMethod, schema } from '../../protocols/grpc/schema.js';
import { type CallTrace, takeTrace } from '../../protocols/model/explanation.js';
import { checkCollectionName } from '../../protocols/rest/parameters.js';
import type { AloneAnswer, Reader } from '../../storage/reader/reader.js';
import { steadyNowMs } from '../../storage/threads/clock.js';
import type { HeavyRead, RawRequest, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import { isInDoubt } from '../access/caller.js';
import { checkAccess } from '../access/decide.js';
import type { KnownCallers } from '../access/known-callers.js';
import { clientFacts, errorHeaders, toldFacts } from '../context/answer.js';
import type { CallLog } from '../context/call-log.js';
import { ClientGate } from '../context/client-gate.js';
import { CollectionStats, TELL_COUNTS_MS } from '../context/collection-stats.js';
import { explainFields } from '../context/explain.js';
import { heavyRead, tellGone } from '../context/heavy-read.js';
import { paidFor } from '../context/paying.js';
import { isGood } from '../context/request-stats.js';
import { SharedCounts } from '../context/shared-counts.js';
import { idFields, requestIdsOf } from '../context/slow-requests.js';
import { type PointsServices, pointsRequest } from '../handlers/points.js';
import { timeField, timeTag } from './answer-time.js';
import { GrpcListener } from './listener.js';
import { LoggedCalls } from './logged-calls.js';
import type { CallContext, Served, ServedOutcome } from './methods.js';
import { noRoomOutcome } from './no-room.js';
import type { FromGrpcDoor, GrpcReaderSettings, GrpcRow, ToGrpcDoor } from './reader-messages.js';
import { grpcStatusOf } from './status.js';
import { strangerRefusal } from './strangers.js';

/** What comes of a read that this thread tries to answer. */
type Outcome = ServedOutcome | 'heavy' | null;

/** The main thread measures what requests cost only where no reader has a server. */
const SERVICES = { hardwareReporting: false, nowMs: steadyNowMs } as const;

export class GrpcReaderDoor {
  private readonly listener: GrpcListener;
  private readonly counts: SharedCounts;
  private readonly byCollection = new CollectionStats();
  private readonly services: PointsServices;
  /** Calls that the main thread has not answered. */
  private readonly calls = new Map<number, (outcome: ServedOutcome, trace: CallTrace | null) => void>();
  private nextId = 1;

  constructor(
    private readonly reader: Pick<Reader, 'memory' | 'readAlone' | 'refusalOf' | 'payWrite'>,
    private readonly port: MessagePort,
    private readonly settings: GrpcReaderSettings,
    /** By `settings.access`. */
    private readonly callers: KnownCallers | null,
    /** By `settings.audit` and `settings.traces`. */
    private readonly callLog: CallLog | null,
  ) {
    const { clients, counts, messageBytesMax, rows, tls } = settings;
    this.counts = new SharedCounts(counts);
    this.services = { ...SERVICES, slow: { fromMs: settings.slowFromMs } };
    const methods = new Map(rows.map((row) => [row.path, this.served(row)]));
    const calls = callLog === null ? null : new LoggedCalls(callLog, rows);
    const outcomes = new Map(rows.map((row) => [row.path, noRoomOutcome(row)]));
    const noRoom = (path: string) => outcomes.get(path) as ReturnType<typeof noRoomOutcome>;
    const { memory: ledger } = reader;
    const context = {
      methods: calls?.recorded(methods) ?? methods,
      calls,
      callers,
      refuse: strangerRefusal(rows, ({ at }, status) => this.counts.record(at, status, 0, Date.now())),
      messageBytesMax,
      ledger,
      noRoom,
      clients: clients === null ? null : new ClientGate(clients),
      nowMs: steadyNowMs,
      monotonicMs: () => performance.now(),
    };
    this.listener = new GrpcListener(context, tls);
    port.on('message', (message: ToGrpcDoor) => this.receive(message));
  }

  /** Tells the main thread when clients can connect, or why they cannot. */
  async listen(): Promise<void> {
    const { host, port } = this.settings;
    try {
      await this.listener.listen({ host, port, reusePort: true });
      this.post({ kind: 'listening' });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.post({ kind: 'failed', code, message });
    }
  }

  private receive(message: ToGrpcDoor): void {
    switch (message.kind) {
      case 'outcome':
        this.calls.get(message.id)?.(message.outcome, message.trace);
        this.calls.delete(message.id);
        return;
      case 'certificates':
        this.listener.renew(message.tls);
        return;
      case 'close':
        void this.listener.close().then(async () => {
          await this.callLog?.close();
          this.post({ kind: 'closed' });
          this.port.close();
        });
        return;
      case 'cut':
        this.listener.cut();
        return;
      default:
        message satisfies never;
    }
  }

  private served(row: GrpcRow): Served {
    const { engine, path, write } = row;
    if (write !== null) return this.write(row, write);
    if (engine === null) return (message, deadlineMs, context) => this.ask(path, message, deadlineMs, context);
    let read: ReturnType<GrpcReaderDoor['read']> | undefined;
    return async (message, deadlineMs, context) => {
      // The schema is made with the first call: clients should not wait for it to connect.
      read ??= this.read(row, engine, schema().methods.get(path) as GrpcMethod);
      const outcome = isInDoubt(context.caller) ? null : await read(message, deadlineMs, context);
      if (outcome === 'heavy') return this.askHeavy(path, message, deadlineMs, context);
      return outcome === null ? this.ask(path, message, deadlineMs, context) : outcome;
    };
  }

  /** Hands a write on, if it is not refused for its collection's rate. */
  private write(row: GrpcRow, operation: WriteOperation): Served {
    const { path } = row;
    let pay: ReturnType<GrpcReaderDoor['paying']> | undefined;
    return async (message, deadlineMs, context) => {
      pay ??= this.paying(row, operation, schema().methods.get(path) as GrpcMethod);
      const paid = pay(message, deadlineMs, context);
      return typeof paid === 'number' ? this.ask(path, message, deadlineMs, context, undefined, paid) : paid;
    };
  }

  /** The tokens that were taken for a write, or its refusal. 0: the main thread decides, or says what is wrong with it. */
  private paying(
    row: GrpcRow,
    operation: WriteOperation,
    method: GrpcMethod,
  ): (message: Buffer, deadlineMs: number, context: CallContext) => number | ServedOutcome {
    const reader = routingReader(method);
    const message = `qdrant.${method.request.name}`;
    return (body, deadlineMs, { caller }) => {
      const startedMs = performance.now();
      let asked: string | undefined;
      const paid = paidFor(this.reader, caller, operation, () => {
        const routing = reader.read(body);
        const name = routing.path.collection_name as string;
        asked = name;
        if (this.callers !== null) checkAccess(caller, row, name);
        checkCollectionName(name);
        const raw = (): RawRequest => pointsRequest(this.services, { ...routing, query: {}, body, message, caller, deadlineMs });
        return { name, request: raw };
      });
      return typeof paid === 'number' ? paid : this.failed(row, asked, toldFacts(paid, row), performance.now() - startedMs);
    };
  }

  /** Answers a read, or as `readAlone`; null also for bugs, which the main thread meets again and logs. */
  private read(
    row: GrpcRow,
    engine: ReadOperation,
    method: GrpcMethod,
  ): (message: Buffer, deadlineMs: number, context: CallContext) => Outcome | Promise<Outcome> {
    const reader = routingReader(method);
    const message = `qdrant.${method.request.name}`;
    const tag = timeTag(method.response);
    const answered = (answer: AloneAnswer, name: string, { explain }: RawRequest, startedMs: number, context: CallContext): Outcome => {
      if (answer === null || answer === 'heavy') return answer;
      const milliseconds = performance.now() - startedMs;
      if (milliseconds >= this.settings.slowFromMs) this.noteSlow(row, name, milliseconds, explain?.plan ?? null, context);
      this.record(row, name, 0, milliseconds);
      const explained = explainFields(method.response, explain);
      return { kind: 'message', parts: [answer, ...(tag === null ? [] : [timeField(tag, milliseconds)]), ...explained] };
    };
    return (body, deadlineMs, context) => {
      const { caller, trace } = context;
      const startedMs = performance.now();
      let asked: string | undefined;
      try {
        const routing = reader.read(body);
        const name = routing.path.collection_name as string;
        asked = name;
        if (this.callers !== null) checkAccess(caller, row, name);
        checkCollectionName(name);
        const refusal = this.reader.refusalOf(name);
        if (refusal !== null) return this.failed(row, asked, toldFacts(refusal, row), performance.now() - startedMs);
        const request = pointsRequest(this.services, { ...routing, query: {}, body, message, caller, deadlineMs, trace });
        const answer = this.reader.readAlone(name, engine, request);
        return answer instanceof Promise
          ? answer.then((later) => answered(later, name, request, startedMs, context))
          : answered(answer, name, request, startedMs, context);
      } catch (error) {
        return error instanceof TroupeError ? this.failed(row, asked, clientFacts(error, row), performance.now() - startedMs) : null;
      }
    };
  }

  /** facts: as the client is told them. */
  private failed(row: GrpcRow, name: string | undefined, facts: ErrorFacts, milliseconds: number): ServedOutcome {
    const status = grpcStatusOf(facts);
    this.record(row, name, status.code, milliseconds);
    return { kind: 'failed', ...status, metadata: errorHeaders(facts) };
  }

  private record({ at }: GrpcRow, collection: string | undefined, status: number, milliseconds: number): void {
    const dateMs = Date.now();
    this.counts.record(at, status, milliseconds, dateMs);
    if (collection === undefined) return;
    const isFirst = this.byCollection.isEmpty;
    this.byCollection.record(collection, at, status, milliseconds, dateMs, isGood(status));
    if (!isFirst || this.byCollection.isEmpty) return;
    setTimeout(() => this.post({ kind: 'counted', counts: this.byCollection.take() }), TELL_COUNTS_MS).unref();
  }

  private noteSlow(
    { name: operation }: GrpcRow,
    collection: string,
    milliseconds: number,
    plan: string | null,
    { origin }: CallContext,
  ): void {
    const ids = requestIdsOf((name) => origin?.field(name));
    this.post({ kind: 'slow', request: { door: 'grpc', operation, collection, status: 0, milliseconds, plan, ...ids } });
  }

  /** The read ends when the client gives up. */
  private askHeavy(path: string, body: Buffer, deadlineMs: number, context: CallContext): Promise<ServedOutcome> {
    const heavy = heavyRead();
    context.onGone?.(() => tellGone(heavy));
    return this.ask(path, body, deadlineMs, context, heavy);
  }

  private ask(
    path: string,
    body: Buffer,
    deadlineMs: number,
    { credential, origin, trace }: CallContext,
    heavy?: HeavyRead,
    paid = 0,
  ): Promise<ServedOutcome> {
    const id = this.nextId++;
    // A message that has its memory for itself goes along uncopied.
    const isWhole = body.length > 0 && body.length === body.buffer.byteLength;
    const message = isWhole ? body : new Uint8Array(body);
    const fields = idFields((name) => origin?.field(name));
    this.post({ kind: 'call', id, path, credential, message, deadlineMs, fields, heavy, paid, isTraced: trace !== undefined }, [
      message.buffer as ArrayBuffer,
    ]);
    return new Promise((resolve) => {
      this.calls.set(id, (outcome, told) => {
        if (trace !== undefined) takeTrace(trace, told);
        resolve(outcome);
      });
    });
  }

  private post(message: FromGrpcDoor, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }
}

function routingReader({ request }: GrpcMethod): RoutingReader {
  return new RoutingReader(request, ['collection_name']);
}
