/**
 * The gRPC door: one method per row of `routes.ts` that has one. Messages pass by as bytes; of a request only
 * what routes it is read here, and an answer gets its last field, the time it took.
 */

import {
  logVerbosity,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  setLogVerbosity,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { TroupeError } from '../../protocols/errors.js';
import { decodeMessage } from '../../protocols/grpc/decode.js';
import { encodeMessage } from '../../protocols/grpc/encode.js';
import { GRPC_METHOD_NAMES } from '../../protocols/grpc/method-names.js';
import { type Routing, RoutingReader } from '../../protocols/grpc/routing.js';
import { type GrpcMethod, type MessageType, schema } from '../../protocols/grpc/schema.js';
import { stringifyJson } from '../../protocols/json.js';
import { checkCollectionName } from '../../protocols/rest/parameters.js';
import type { RawRequest } from '../../storage/threads/messages.js';
import { clientFacts, errorHeaders } from '../context/answer.js';
import { usageField } from '../context/hardware.js';
import { checkSettingsSize } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import { pointsRequest } from '../handlers/points.js';
import { type NodeRoute, type ReadRoute, ROUTES, type Route, type WriteRoute } from '../routes.js';
import { addReflection } from './reflection.js';
import { grpcStatusOf } from './status.js';

export interface GrpcOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly maxMessageBytes: number;
  /** Write a debug line for each request. */
  readonly logRequests: boolean;
}

export interface GrpcDoor {
  readonly port: number;
  /** Stops taking connections, lets running requests finish and cuts those that take longer than `graceMs`. */
  close(graceMs: number): Promise<void>;
}

const HEALTH_CHECK = '/grpc.health.v1.Health/Check';
const SERVING = 1;
const NOT_SERVING = 2;
/** Tag of field 1 as a number. */
const HEALTH_STATUS_HEAD = 8;
const FIXED64 = 1;

type UnaryHandler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void;

/** Listens for gRPC requests. Errors: `GrpcBindError`. */
export async function startGrpcDoor(services: DoorServices, options: GrpcOptions): Promise<GrpcDoor> {
  const server = new Server({
    'grpc.max_receive_message_length': options.maxMessageBytes,
    'grpc.max_send_message_length': -1,
  });
  for (const [definition, implementation] of servicesOf(new Door(services, options))) server.addService(definition, implementation);
  addReflection(server);
  const port = await bind(server, options);
  return { port, close: (graceMs) => closeServer(server, graceMs) };
}

/** Answers requests. One per server; its methods hold no state of a request. */
class Door {
  constructor(
    private readonly services: DoorServices,
    private readonly options: GrpcOptions,
  ) {}

  handler(method: GrpcMethod): UnaryHandler {
    if (method.path === HEALTH_CHECK) return this.healthCheck();
    const name = method.path.slice(1);
    const route = ROUTES.find(({ grpc }) => grpc === name);
    if (route?.grpc == null) throw new Error(`no operation belongs to ${name}`);
    const served: Served = {
      route,
      at: GRPC_METHOD_NAMES.indexOf(route.grpc),
      run: this.runner(route, method),
      time: timeHead(method.response),
    };
    return (call, callback) => void this.answer(served, call, callback);
  }

  private async answer({ at, route, run, time }: Served, call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) {
    const started = this.services.monotonicMs();
    let status = 0;
    try {
      const answer = await run(call.request, this.deadlineOf(call));
      callback(null, withTime(answer, time, this.services.monotonicMs() - started));
    } catch (error) {
      status = this.fail(route, call, callback, error);
    }
    const milliseconds = this.services.monotonicMs() - started;
    this.services.grpcStats.record(at, status, milliseconds, this.services.nowMs());
    if (this.options.logRequests) this.services.log.debug('answered', { method: call.getPath(), status, milliseconds });
  }

  private fail(route: Route, call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>, error: unknown): number {
    if (!(error instanceof TroupeError)) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.services.log.error('a request met an unexpected error', { method: call.getPath(), error: stack });
    }
    const facts = clientFacts(error, route);
    const metadata = new Metadata();
    for (const [name, value] of errorHeaders(facts)) metadata.set(name, value);
    const { code, details } = grpcStatusOf(facts);
    callback({ code, details, metadata });
    return code;
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
      case 'later':
        return () => Promise.reject(new TroupeError('unsupported', `${route.name} is not available in this release`));
      default:
        return route satisfies never;
    }
  }

  private points(route: ReadRoute | WriteRoute, { request, response }: GrpcMethod, reader: RoutingReader): Run {
    const { node } = this.services;
    const message = `qdrant.${request.name}`;
    return async (body, deadlineMs) => {
      const routing = reader.read(body);
      const name = collectionOf(routing);
      const raw = pointsRequest(this.services, { ...routing, query: {}, body, message, deadlineMs });
      const answer = await (route.kind === 'read' ? node.read(name, route.engine, raw) : node.write(name, route.engine, routing.wait, raw));
      return withUsage(answer, response, raw);
    };
  }

  /** The request becomes the one that REST would have, and goes to the same handler. */
  private node({ name, run }: NodeRoute, { request, response }: GrpcMethod, reader: RoutingReader): Run {
    return async (bytes) => {
      checkSettingsSize(bytes);
      const { path, wait, timeoutSeconds } = reader.read(bytes);
      if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
      const query = { ...(wait ? { wait: 'true' } : {}), ...(timeoutSeconds === undefined ? {} : { timeout: String(timeoutSeconds) }) };
      const body = Buffer.from(stringifyJson(decodeMessage(request, bytes).value));
      const answer = await run(this.services, { path, query, body });
      if (answer.kind === 'text' || answer.kind === 'page') throw new Error(`${name} answers with a text`);
      return encodeMessage(response, answer.value);
    };
  }

  /** Whatever service it is asked for: they all run in this process. */
  private healthCheck(): UnaryHandler {
    return (_call, callback) =>
      callback(null, Buffer.from([HEALTH_STATUS_HEAD, this.services.notReady() === null ? SERVING : NOT_SERVING]));
  }

  /** When the client stops waiting, in milliseconds since the epoch; infinite when it said nothing. */
  private deadlineOf(call: ServerUnaryCall<Buffer, Buffer>): number {
    return Number(call.getDeadline());
  }
}

/** A method as it is served. */
interface Served {
  /** Its place in GRPC_METHOD_NAMES. */
  readonly at: number;
  readonly route: Route;
  readonly run: Run;
  /** Tag of the answer's time; null when it has none. */
  readonly time: Buffer | null;
}

/** The answer's message without its time. */
type Run = (bytes: Buffer, deadlineMs: number) => Promise<Uint8Array>;

/** Errors: `invalidPath`. */
function collectionOf({ path }: Routing): string {
  const name = path.collection_name as string;
  checkCollectionName(name);
  return name;
}

/** The answer with what a measured request has cost. */
function withUsage(answer: Uint8Array, type: MessageType, { usage }: RawRequest): Uint8Array {
  return usage === undefined ? answer : Buffer.concat([answer, usageField(type, usage)]);
}

/** The tag of the answer's `time`; null when it has none. */
function timeHead(type: MessageType): Buffer | null {
  const field = type.fields.find(({ name }) => name === 'time');
  return field === undefined ? null : Buffer.from([(field.number << 3) | FIXED64]);
}

/** The answer with its time in seconds as the last field: fields may come in any order. */
function withTime(answer: Uint8Array, head: Buffer | null, milliseconds: number): Buffer {
  if (head === null) return Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  const bytes = Buffer.allocUnsafe(answer.length + head.length + 8);
  bytes.set(answer, 0);
  bytes.set(head, answer.length);
  bytes.writeDoubleLE(milliseconds / 1000, answer.length + head.length);
  return bytes;
}

/** Every method of the schema, by service, with its handler. Messages come and go as bytes. */
function servicesOf(door: Door): [ServiceDefinition, UntypedServiceImplementation][] {
  const services = new Map<string, [Record<string, ServiceDefinition[string]>, UntypedServiceImplementation]>();
  for (const method of schema().methods.values()) {
    const [, service, name] = method.path.split('/') as [string, string, string];
    const [definition, implementation] = services.get(service) ?? [{}, {}];
    services.set(service, [definition, implementation]);
    definition[name] = {
      path: method.path,
      requestStream: false,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
      originalName: name,
    };
    implementation[name] = door.handler(method);
  }
  return [...services.values()];
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

/** The address cannot be taken. */
export class GrpcBindError extends Error {
  /** What the system said; undefined when it was something else. */
  readonly code: string | undefined;

  constructor(message: string) {
    super(message);
    this.code = /\b(EADDRINUSE|EACCES|EADDRNOTAVAIL|ENOTFOUND)\b/.exec(message)?.[1];
  }
}

/** Errors: `GrpcBindError`. */
function bind(server: Server, { host, port }: GrpcOptions): Promise<number> {
  quietGrpc();
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(new GrpcBindError(error.message));
    });
  });
}

function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(cut);
      resolve();
    });
  });
}

/** What the library would print on its own is in its errors, too. Its variable GRPC_VERBOSITY brings it back. */
function quietGrpc(): void {
  if (process.env.GRPC_VERBOSITY === undefined) setLogVerbosity(logVerbosity.NONE);
}
