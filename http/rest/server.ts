/**
 * The REST door: one Fastify route per row of `routes.ts`. Fastify finds the route; bodies and answers pass
 * by it as raw bytes, since every microsecond here is paid by each query and the main thread serves all connections.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ERROR_KINDS, errorFacts, TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import type { ReadConsistency } from '../../protocols/model/cluster.js';
import { pointIdFromText } from '../../protocols/model/point-id.js';
import { checkCollectionName, type QueryParameters, readParameters, updateParameters } from '../../protocols/rest/parameters.js';
import type { RawRequest } from '../../storage/threads/messages.js';
import { clientFacts, envelope, errorBody, errorHeaders, type HttpAnswer, valueEnvelope } from '../context/answer.js';
import type { Endpoint } from '../context/endpoint.js';
import { usageMember } from '../context/hardware.js';
import type { DoorServices } from '../context/services.js';
import { pointsRequest } from '../handlers/points.js';
import { type LaterRoute, type NodeRoute, type ReadRoute, ROUTES, type Route, type WriteRoute } from '../routes.js';
import { readBody } from './body.js';
import { parseQueryString } from './query-string.js';

export interface RestOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly maxBodyBytes: number;
  readonly cors: boolean;
  /** Write a debug line for each request. */
  readonly logRequests: boolean;
}

export interface RestDoor {
  readonly port: number;
  /** Stops taking connections, lets running requests finish and closes those that take longer than `graceMs`. */
  close(graceMs: number): Promise<void>;
}

const KEEP_ALIVE_MS = 75_000;
const CLOSE_IDLE_EVERY_MS = 50;
/** A path segment may be as long as Node lets a request's head be. */
const PATH_SEGMENT_MAX = 65_536;
const JSON_TYPE = 'application/json';
const HTML_TYPE = 'text/html; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';
/** Node copies texts up to this length to the socket without allocating. */
const ONE_WRITE_BYTES_MAX = 15_000;
const EMPTY = Buffer.alloc(0);

type PathParameters = Readonly<Record<string, string>>;

/** Listens for REST requests. Rejects with the system's error when the address cannot be taken. */
export async function startRestDoor(services: DoorServices, options: RestOptions): Promise<RestDoor> {
  const door = new Door(services, options);
  const app = createApp();
  app.setNotFoundHandler((request, reply) => door.unknown(request, reply));
  app.setErrorHandler((error, request, reply) => door.broken(error, request, reply));
  ROUTES.forEach((route, at) => {
    const url = route.path.replace(/\{(\w+)\}/g, ':$1');
    app.route({ method: route.method, url, handler: door.handler(route, at) });
  });
  if (options.cors) app.options('*', (request, reply) => door.preflight(request, reply));
  await app.listen({ host: options.host, port: options.port });
  const server = app.server;
  return {
    port: (server.address() as AddressInfo).port,
    close: (graceMs) => {
      door.closing = true;
      return closeServer(app, server, graceMs);
    },
  };
}

function createApp(): FastifyInstance {
  const app = fastify({
    exposeHeadRoutes: false,
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      maxParamLength: PATH_SEGMENT_MAX,
      querystringParser: parseQueryString as (text: string) => Record<string, unknown>,
    },
    frameworkErrors: (error, _request, reply) => {
      sendBytes(hijacked(reply), 400, JSON_TYPE, errorBody({ code: 'wrongInput', detail: error.message }, 0), []);
    },
    serverFactory: (listener) => {
      const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
        // The content type of a request is not looked at; Fastify would refuse those it cannot read.
        if (request.headers['content-type'] !== undefined) request.headers['content-type'] = undefined;
        listener(request, response);
      });
      return server;
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  return app;
}

/** Answers requests. One per server; its methods hold no state of a request. */
class Door {
  closing = false;

  constructor(
    private readonly services: DoorServices,
    private readonly options: RestOptions,
  ) {}

  handler(route: Route, at: number): (request: FastifyRequest, reply: FastifyReply) => void {
    switch (route.kind) {
      case 'read':
        return (request, reply) => void this.read(route, at, request, hijacked(reply));
      case 'write':
        return (request, reply) => void this.write(route, at, request, hijacked(reply));
      case 'node':
        return (request, reply) => void this.node(route, at, request, hijacked(reply));
      case 'later':
        return (request, reply) => this.refuse(route, at, request, hijacked(reply));
      default:
        return route satisfies never;
    }
  }

  private async read(route: ReadRoute, at: number, request: FastifyRequest, response: ServerResponse): Promise<void> {
    const started = this.services.monotonicMs();
    try {
      const path = request.params as PathParameters;
      const query = request.query as QueryParameters;
      const { consistency, timeoutSeconds } = readParameters(query);
      if (route.engine === 'getPoint') checkPointId(path.id as string);
      const raw = await this.pointsRequest(request, path, query, consistency, timeoutSeconds);
      const result = await this.services.node.read(path.collection_name as string, route.engine, raw);
      this.answer(at, request, response, started, envelope(result, this.services.monotonicMs() - started, usageOf(raw)));
    } catch (error) {
      this.fail(route, at, request, response, started, error);
    }
  }

  private async write(route: WriteRoute, at: number, request: FastifyRequest, response: ServerResponse): Promise<void> {
    const started = this.services.monotonicMs();
    try {
      const path = request.params as PathParameters;
      const query = request.query as QueryParameters;
      const { wait, timeoutSeconds } = updateParameters(query);
      const raw = await this.pointsRequest(request, path, query, undefined, timeoutSeconds);
      const result = await this.services.node.write(path.collection_name as string, route.engine, wait, raw);
      this.answer(at, request, response, started, envelope(result, this.services.monotonicMs() - started, usageOf(raw)));
    } catch (error) {
      this.fail(route, at, request, response, started, error);
    }
  }

  private async node(route: NodeRoute, at: number, request: FastifyRequest, response: ServerResponse): Promise<void> {
    const started = this.services.monotonicMs();
    try {
      const path = request.params as PathParameters;
      if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
      const body = hasBody(route) ? await readBody(request.raw, this.options.maxBodyBytes) : EMPTY;
      const answer = await route.run(this.services, { path, query: request.query as QueryParameters, body });
      this.answerNode(at, request, response, started, answer);
    } catch (error) {
      this.fail(route, at, request, response, started, error);
    }
  }

  private refuse(route: LaterRoute, at: number, request: FastifyRequest, response: ServerResponse): void {
    const error = new TroupeError('unsupported', `${route.name} is not available in this release`);
    this.fail(route, at, request, response, this.services.monotonicMs(), error);
  }

  /** A path or method that the API doesn't have: 404 with an empty body. */
  unknown(request: FastifyRequest, reply: FastifyReply): void {
    this.send(request.raw, hijacked(reply), 404, undefined, EMPTY);
  }

  /** An error that Fastify itself met. */
  broken(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    this.services.log.error('the REST door failed', { url: request.url, error: String(error) });
    this.send(request.raw, hijacked(reply), 500, JSON_TYPE, errorBody(errorFacts(error), 0));
  }

  /** Answers the question of a browser whether it may send a request from another origin. */
  preflight(request: FastifyRequest, reply: FastifyReply): void {
    const headers = request.raw.headers;
    const asked = headers['access-control-request-method'];
    if (headers.origin === undefined || asked === undefined) {
      this.unknown(request, reply);
      return;
    }
    const allowed = ['access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE', 'access-control-max-age', '3600'];
    const wanted = headers['access-control-request-headers'];
    if (wanted !== undefined) allowed.push('access-control-allow-headers', wanted);
    this.send(request.raw, hijacked(reply), 200, undefined, EMPTY, allowed);
  }

  private async pointsRequest(
    request: FastifyRequest,
    path: PathParameters,
    query: QueryParameters,
    consistency: ReadConsistency | undefined,
    timeoutSeconds: number | undefined,
  ): Promise<RawRequest> {
    checkCollectionName(path.collection_name as string);
    const { method } = request;
    const body = method === 'GET' || method === 'DELETE' ? null : await readBody(request.raw, this.options.maxBodyBytes);
    return pointsRequest(this.services, { path, query: query as Record<string, string>, body, consistency, timeoutSeconds });
  }

  private answerNode(at: number, request: FastifyRequest, response: ServerResponse, started: number, answer: HttpAnswer): void {
    switch (answer.kind) {
      case 'result':
        this.answer(at, request, response, started, valueEnvelope(answer.value, this.services.monotonicMs() - started));
        return;
      case 'json':
        this.answer(at, request, response, started, Buffer.from(stringifyJson(answer.value)));
        return;
      case 'page': {
        const guarded = ['content-security-policy', answer.policy, 'x-content-type-options', 'nosniff'];
        this.send(request.raw, response, 200, HTML_TYPE, Buffer.from(answer.html), guarded);
        this.count(at, request, 200, started);
        return;
      }
      case 'text':
        this.send(request.raw, response, answer.status, TEXT_TYPE, Buffer.from(answer.text));
        this.count(at, request, answer.status, started);
        return;
      default:
        answer satisfies never;
    }
  }

  private answer(at: number, request: FastifyRequest, response: ServerResponse, started: number, body: Buffer): void {
    this.send(request.raw, response, 200, JSON_TYPE, body);
    this.count(at, request, 200, started);
  }

  private fail(route: Route, at: number, request: FastifyRequest, response: ServerResponse, started: number, error: unknown): void {
    if (response.destroyed) return;
    if (!(error instanceof TroupeError)) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.services.log.error('a request met an unexpected error', { method: request.method, url: request.url, error: stack });
    }
    const facts = clientFacts(error, route);
    const status = ERROR_KINDS[facts.code].restStatus;
    const extra: string[] = errorHeaders(facts).flat();
    // A client that sends far beyond the limit is cut off once it has its answer.
    if (facts.code === 'bodyTooLarge' && !request.raw.complete) extra.push('connection', 'close');
    this.send(request.raw, response, status, JSON_TYPE, errorBody(facts, this.services.monotonicMs() - started), extra);
    this.count(at, request, status, started);
  }

  private send(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    type: string | undefined,
    body: Buffer,
    extra: readonly string[] = [],
  ): void {
    const headers = [...extra];
    const origin = request.headers.origin;
    if (origin !== undefined && this.options.cors) headers.push('access-control-allow-origin', origin, 'vary', 'Origin');
    if (this.closing) headers.push('connection', 'close');
    sendBytes(response, status, type, body, headers);
  }

  private count(at: number, request: FastifyRequest, status: number, started: number): void {
    const milliseconds = this.services.monotonicMs() - started;
    this.services.stats.record(at, status, milliseconds, this.services.nowMs());
    if (this.options.logRequests) this.services.log.debug('answered', { method: request.method, url: request.url, status, milliseconds });
  }
}

function sendBytes(response: ServerResponse, status: number, type: string | undefined, body: Buffer, extra: string[]): void {
  if (type !== undefined) extra.push('content-type', type);
  extra.push('content-length', String(body.length));
  response.writeHead(status, extra);
  // As one text, Node sends head and body in a single write, without a list of buffers; latin1 keeps every byte.
  if (body.length <= ONE_WRITE_BYTES_MAX) response.end(body.toString('latin1'), 'latin1');
  else response.end(body);
}

/** Takes the answer out of Fastify's hands. */
function hijacked(reply: FastifyReply): ServerResponse {
  reply.hijack();
  return reply.raw;
}

function hasBody({ method }: Endpoint): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

function checkPointId(text: string): void {
  if (pointIdFromText(text) === undefined)
    throw new TroupeError('wrongInput', `${JSON.stringify(text)} is not a point id: expected an unsigned integer or a UUID`);
}

/** Closes connections as they fall idle; those that still work after `graceMs` are cut. */
async function closeServer(app: FastifyInstance, server: Server, graceMs: number): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  try {
    await app.close();
  } finally {
    clearInterval(idle);
    clearTimeout(cut);
  }
}

/** Member of the envelope that says what a measured request has cost. */
function usageOf({ usage }: RawRequest): string {
  return usage === undefined ? '' : usageMember(usage);
}
