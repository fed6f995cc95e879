/**
 * What the methods of gRPC do: one per row of `routes.ts` that has one. Messages pass by as bytes; of a request only what routes it is
 * read here, and an answer gets its last field, the time it took.
 */

import { TroupeError } from '../../protocols/errors.js';
import { decodeMessage } from '../../protocols/grpc/decode.js';
import { encodeMessage } from '../../protocols/grpc/encode.js';
import { GRPC_METHOD_NAMES } from '../../protocols/grpc/method-names.js';
import { type Routing, RoutingReader } from '../../protocols/grpc/routing.js';
import { type GrpcMethod, type MessageType, schema } from '../../protocols/grpc/schema.js';
import { stringifyJson } from '../../protocols/json.js';
import type { CallTrace, ExplainRequest } from '../../protocols/model/explanation.js';
import { checkCollectionName } from '../../protocols/rest/parameters.js';
import type { HeavyRead, RawRequest } from '../../storage/threads/messages.js';
import type { Caller } from '../access/caller.js';
import type { RequestOrigin } from '../audit/origin.js';
import { clientFacts, errorHeaders } from '../context/answer.js';
import { explainFields } from '../context/explain.js';
import { usageField } from '../context/hardware.js';
import { checkSettingsSize } from '../context/node-request.js';
import { checkMode } from '../context/recovery.js';
import type { DoorServices } from '../context/services.js';
import { requestIdsOf } from '../context/slow-requests.js';
import { pointsRequest } from '../handlers/points.js';
import { type NodeRoute, type ReadRoute, ROUTES, type Route, type WriteRoute } from '../routes.js';
import { timeField, timeTag } from './answer-time.js';
import { longMessage } from './long-message.js';
import { grpcStatusOf } from './status.js';

/** A method as it is served: the parts of the answer's message, or why there is none. */
export type Served = (message: Buffer, deadlineMs: number, context: CallContext) => Promise<ServedOutcome>;

/** What is known of a call beside its message. */
export interface CallContext {
  readonly caller: Caller;
  /** As it came, for a thread that finds the caller itself. */
  readonly credential: string | null;
  /** Undefined where another thread has the connection, and makes the records. */
  readonly origin?: RequestOrigin | undefined;
  /** As in `PointsCall`. */
  readonly heavy?: HeavyRead | undefined;
  /** As in `PointsCall`. */
  readonly paid?: number | undefined;
  /** Of a call that is part of a trace. */
  readonly trace?: CallTrace | undefined;
  /** Calls the listener if the client gives up before the answer. */
  onGone?(listener: () => void): void;
}

/** How a call ended. */
export type ServedOutcome =
  | { readonly kind: 'message'; readonly parts: readonly Uint8Array[] }
  | {
      readonly kind: 'failed';
      readonly code: number;
      readonly details: string;
      readonly metadata: readonly (readonly [name: string, value: string])[];
    };

/** The answer's message without its time. */
/** asked: gets the collection or alias that the message names. */
/** What is known of a call once it is under way. */
interface AskedCall {
  collection?: string | undefined;
  explain?: ExplainRequest | undefined;
}

type Run = (bytes: Buffer, deadlineMs: number, context: CallContext, asked: AskedCall) => Promise<Uint8Array[]>;

const HEALTH_CHECK = '/grpc.health.v1.Health/Check';
const METHOD_PATHS: readonly string[] = [...GRPC_METHOD_NAMES.map((name) => `/${name}`), HEALTH_CHECK];
const SERVING = 1;
const NOT_SERVING = 2;
/** Tag of field 1 as a number. */
const HEALTH_STATUS_HEAD = 8;

/**
 * All methods by path. The schema is read, and a method made, with the first call: readers answer most calls, and a start should wait for
 * neither. logRequests: write a debug line for each call.
 */
export function servedMethods(services: DoorServices, logRequests: boolean): ReadonlyMap<string, Served> {
  const methods = new Methods(services, logRequests);
  return new Map(METHOD_PATHS.map((path) => [path, servedLate(() => methods.served(schema().methods.get(path) as GrpcMethod))]));
}

function servedLate(make: () => Served): Served {
  let served: Served | undefined;
  return (message, deadlineMs, context) => {
    served ??= make();
    return served(message, deadlineMs, context);
  };
}

/** Holds no state of a call. */
class Methods {
  constructor(
    private readonly services: DoorServices,
    private readonly logRequests: boolean,
  ) {}

  served(method: GrpcMethod): Served {
    if (method.path === HEALTH_CHECK) return this.healthCheck();
    const name = method.path.slice(1);
    const route = ROUTES.find(({ grpc }) => grpc === name);
    if (route?.grpc == null) throw new Error(`no operation belongs to ${name}`);
    const at = GRPC_METHOD_NAMES.indexOf(route.grpc);
    const run = this.runner(route, method);
    const time = timeTag(method.response);
    return async (message, deadlineMs, context) => {
      const started = this.services.monotonicMs();
      let outcome: ServedOutcome;
      const asked: AskedCall = {};
      try {
        const parts = await run(message, deadlineMs, context, asked);
        if (time !== null) parts.push(timeField(time, this.services.monotonicMs() - started));
        outcome = { kind: 'message', parts };
      } catch (error) {
        outcome = this.failed(route, method, error);
      }
      const status = outcome.kind === 'message' ? 0 : outcome.code;
      const milliseconds = this.services.monotonicMs() - started;
      this.services.grpcStats.record(at, status, milliseconds, this.services.dateMs(), asked.collection);
      if (this.logRequests) this.services.log.debug('answered', { method: method.path, status, milliseconds });
      if (milliseconds >= this.services.slow.fromMs) this.noteSlow(route, asked, context, status, milliseconds);
      return outcome;
    };
  }

  private noteSlow(
    { kind, name }: Route,
    { collection, explain }: AskedCall,
    { origin }: CallContext,
    status: number,
    milliseconds: number,
  ): void {
    if (kind !== 'read' && kind !== 'write') return;
    const ids = requestIdsOf((field) => origin?.field(field));
    const about = { operation: name, collection: collection ?? null, plan: explain?.plan ?? null };
    this.services.slow.note({ door: 'grpc', ...about, status, milliseconds, ...ids });
  }

  private failed(route: Route, method: GrpcMethod, error: unknown): ServedOutcome {
    if (!(error instanceof TroupeError)) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.services.log.error('a request met an unexpected error', { method: method.path, error: stack });
    }
    const facts = clientFacts(error, route);
    return { kind: 'failed', ...grpcStatusOf(facts), metadata: errorHeaders(facts) };
  }

  private runner(route: Route, method: GrpcMethod): Run {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
    const routing = new RoutingReader(method.request, names);
    switch (route.kind) {
      case 'read':
      case 'write':
        return this.points(route, method, routing);
      case 'node':
        return this.node(route, method, routing);
      case 'upload':
      case 'download':
        throw new Error(`${route.name} has no method of gRPC`);
      default:
        return route satisfies never;
    }
  }

  private points(route: ReadRoute | WriteRoute, { request, response }: GrpcMethod, reader: RoutingReader): Run {
    const { node } = this.services;
    const message = `qdrant.${request.name}`;
    return async (body, deadlineMs, { caller, heavy, paid, trace }, asked) => {
      const routing = reader.read(body);
      asked.collection = routing.path.collection_name;
      await this.admit(caller, route, routing);
      const name = collectionOf(routing);
      const raw = pointsRequest(this.services, { ...routing, query: {}, body, message, caller, deadlineMs, heavy, paid, trace });
      asked.explain = raw.explain;
      const answer = await (route.kind === 'read' ? node.read(name, route.engine, raw) : node.write(name, route.engine, routing.wait, raw));
      return withUsage(answer, response, raw);
    };
  }

  /** The request becomes the one that REST would have, and goes to the same handler. */
  private node(route: NodeRoute, { request, response }: GrpcMethod, reader: RoutingReader): Run {
    const { name, run } = route;
    return async (bytes, _, { caller }, asked) => {
      checkSettingsSize(bytes);
      const routing = reader.read(bytes);
      asked.collection = routing.path.collection_name;
      await this.admit(caller, route, routing);
      const { path, wait, timeoutSeconds } = routing;
      if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
      const query = { ...(wait ? { wait: 'true' } : {}), ...(timeoutSeconds === undefined ? {} : { timeout: String(timeoutSeconds) }) };
      const body = Buffer.from(stringifyJson(decodeMessage(request, bytes).value));
      const answer = await run(this.services, { path, query, body, caller });
      switch (answer.kind) {
        case 'result':
        case 'json':
          return [encodeMessage(response, answer.value)];
        case 'long':
          return this.services.reports.works.run(longMessage(response, answer.value()));
        default:
          throw new Error(`${name} answers with a text`);
      }
    };
  }

  /** Errors: as `DoorAccess.admit`; `unavailable` in recovery mode. */
  private async admit(caller: Caller, route: Route, { path }: Routing): Promise<void> {
    const { access, recoveryMode } = this.services;
    const admitting = access === null ? null : access.admit(caller, route, path.collection_name);
    if (admitting !== null) await admitting;
    checkMode(recoveryMode, route);
  }

  /** Whatever service it is asked for: they all run in this process. */
  private healthCheck(): Served {
    return () => {
      const status = this.services.notReady() === null ? SERVING : NOT_SERVING;
      return Promise.resolve({ kind: 'message', parts: [Uint8Array.of(HEALTH_STATUS_HEAD, status)] });
    };
  }
}

/** Errors: `invalidPath`. */
function collectionOf({ path }: Routing): string {
  const name = path.collection_name as string;
  checkCollectionName(name);
  return name;
}

/** The answer, what a measured request has cost, and how one came about that asks for it. */
function withUsage(answer: Uint8Array, type: MessageType, { explain, usage }: RawRequest): Uint8Array[] {
  return [answer, ...(usage === undefined ? [] : [usageField(type, usage)]), ...explainFields(type, explain)];
}
