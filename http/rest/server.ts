/**
 * The REST door. Plain requests are read from the bytes of the socket (`fast/`); a connection with any other request goes to Node's HTTP
 * server and Fastify, with one Fastify route per row of `routes.ts`. Bodies and answers pass as raw bytes, since every microsecond here is
 * paid by each query and the main thread serves all connections.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import type { QueryParameters } from '../../protocols/rest/parameters.js';
import { ANYONE, type Caller } from '../access/caller.js';
import { credentialOf } from '../access/credentials.js';
import { decideAccess, denialError } from '../access/decide.js';
import { errorBody, noRoomFor, shownFacts } from '../context/answer.js';
import type { CallOperation, EndCall } from '../context/call-log.js';
import type { ClientGate } from '../context/client-gate.js';
import type { DoorServices } from '../context/services.js';
import { TlsSockets } from '../context/tls-sockets.js';
import { UnsentBytes } from '../context/unsent-bytes.js';
import { type DownloadRoute, type PlainRoute, ROUTES, type Route, type UploadRoute } from '../routes.js';
import { RequestBody } from './body.js';
import { answerCall, type RestCall } from './calls/answer-call.js';
import { AnswerEncoder } from './calls/encode-answer.js';
import { TOO_MANY_REST, WITHOUT_TLS_REST } from './calls/last-words.js';
import { ended, originOf } from './calls/logged-end.js';
import { parseQueryString } from './calls/query-string.js';
import { emptyReply, errorReply, jsonReply, type RestReply, textReply } from './calls/reply.js';
import { wrongFields } from './check-fields.js';
import { ConnectionEnds } from './ends.js';
import { type FastRequest, KEEP_ALIVE_MS } from './fast/connection.js';
import { requestFinder } from './fast/find-request.js';
import { FastFront } from './fast/front.js';
import { headField } from './fast/head.js';
import { loggedReply } from './fast/logged-reply.js';
import { misdirection } from './misdirected.js';
import { PAGES_PATH, Pages, pageHeaders } from './pages.js';
import { HEADERS_MS, RequestTimes } from './request-times.js';
import type { RestDoor, RestOptions } from './start.js';
import { answerTransfer } from './transfers/answer-transfer.js';
import { type StreamReply, sendStream } from './transfers/download.js';

/** What listens on an address, and takes connections that came elsewhere. */
export interface RestServer extends RestDoor {
  take(socket: Socket): void;
}

type Address = { readonly host: string; readonly port: number } | { readonly path: string };

const CLOSE_IDLE_EVERY_MS = 50;
const CHECK_UNSENT_EVERY_MS = 5000;
/** A path segment may be as long as Node lets a request's head be. */
const PATH_SEGMENT_MAX = 65_536;
/** Node copies texts up to this length to the socket without allocating. */
const ONE_WRITE_BYTES_MAX = 15_000;
/** The rest of the body of a refused upload is dropped for so long, so that the client gets to see the answer. */
const DROP_MS = 30_000;
const SILENCE_MS = 60_000;
/** What is asked of the caller of a path that there is not. */
const UNKNOWN_PATH = { access: 'known', name: 'unknown' } as const;
const READING = { access: 'known', method: 'GET' } as const;
/** Headers that pages of other origins may read. */
const EXPOSED = 'content-disposition, content-range, etag, retry-after, troupe-limit, troupe-outcome, troupe-unknown-fields';
const PREFLIGHT_SECONDS = 3600;

/** A server of the main thread, for all requests or for those that readers hand on. Rejects with the system's error when it cannot listen. */
export async function listenForRest(services: DoorServices, options: RestOptions, address: Address): Promise<RestServer> {
  const door = new Door(services, options);
  const { maxBodyBytes } = options;
  const front = new FastFront({
    maxBodyBytes,
    findRequest: requestFinder(ROUTES, services.access?.callers ?? null),
    ledger: services.memory.ledger,
    encoder: door.encoder,
    refuse: ({ at }) => door.refuse(at),
    answer: (request) => door.plain(request),
    handOn: (socket) => standard(socket),
  });
  let standard: (socket: Socket) => void = () => {};
  let tls: TlsSockets | null = null;
  const app = createApp(door, (server) => {
    if (options.fastPath !== false) standard = putInFront(server, (socket) => front.take(socket));
    if (options.tls != null) {
      const inside = putInFront(server, (socket) => tls?.take(socket));
      tls = new TlsSockets({ protocol: 'http/1.1', lastWords: WITHOUT_TLS_REST, take: inside }, options.tls);
    }
    // Readers have looked at those that they hand on.
    if (services.clients !== null && 'host' in address) guard(server, services.clients, options.tls == null ? TOO_MANY_REST : null);
  });
  app.setNotFoundHandler((request, reply) => door.unknown(request, reply));
  app.setErrorHandler((error, request, reply) => door.broken(error, request, reply));
  if (options.pages) servePages(app, door, new Pages(options.pages, services.exposure));
  ROUTES.forEach((route, at) => {
    const url = route.path.replace(/\{(\w+)\}/g, ':$1');
    const isTransfer = route.kind === 'upload' || route.kind === 'download';
    const leadsToPages = route.name === 'root' && Boolean(options.pages);
    const answer = (request: FastifyRequest, response: ServerResponse): Promise<void> | void =>
      leadsToPages && wantsPage(request.raw)
        ? door.redirect(request, response, PAGES_PATH)
        : isTransfer
          ? door.transfer(route, at, request, response)
          : door.answer(route, at, request, response);
    const method = route.method === 'GET' ? ['GET', 'HEAD'] : route.method;
    app.route({ method, url, handler: (request, reply) => void answer(request, hijacked(reply)) });
  });
  app.options('*', (request, reply) => door.options(request, reply));
  await setImmediate();
  await app.listen(address);
  const server = app.server;
  return {
    port: (server.address() as Partial<AddressInfo>).port ?? 0,
    take: (socket) => {
      server.emit('connection', socket);
    },
    renew: (renewed) => tls?.renew(renewed),
    close: (graceMs) => {
      door.closing = true;
      services.live.close();
      tls?.close();
      return closeServer(app, server, front, tls, graceMs);
    },
  };
}

/** The dashboard. */
function servePages(app: FastifyInstance, door: Door, pages: Pages): void {
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    void door.page(pages, request, hijacked(reply));
  };
  for (const url of [PAGES_PATH, `${PAGES_PATH}/*`]) app.route({ method: ['GET', 'HEAD'], url, handler: answer });
}

/** Whether a browser opens the address, as against a client that reads the answer. */
function wantsPage({ headers: { accept } }: IncomingMessage): boolean {
  return accept?.includes('text/html') ?? false;
}

/** Has only clients that may connect come to the server. */
function guard(server: Server, clients: ClientGate, tooMany: Buffer | null): void {
  const standard = putInFront(server, (socket) => {
    if (clients.admits(socket, tooMany)) standard(socket);
  });
}

/** Has another one take each new connection; the answer is what the server did with them. */
function putInFront(server: Server, take: (socket: Socket) => void): (socket: Socket) => void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', take);
  return (socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
}

function fastCall({ body, found, head, heldMs, isGone, trace }: FastRequest): RestCall {
  const field = (name: string): string | undefined => headField(head, name);
  return { ...found, route: ROUTES[found.at] as PlainRoute, url: head.url, body: () => body, heldMs, isGone, field, trace };
}

function createApp(door: Door, onServer: (server: Server) => void): FastifyInstance {
  const app = fastify({
    exposeHeadRoutes: false,
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      maxParamLength: PATH_SEGMENT_MAX,
      querystringParser: parseQueryString as (text: string) => Record<string, unknown>,
    },
    frameworkErrors: (error, request, reply) => door.malformed(error, request, reply),
    serverFactory: (listener) => {
      const limits = { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_MS, requestTimeout: 0, requireHostHeader: false };
      const server = createServer(limits, (request, response) => {
        if (door.refuses(request, response)) {
          request.resume();
          return;
        }
        door.times.limit(server, request);
        // The content type of a request is not looked at; Fastify would refuse those it cannot read.
        if (request.headers['content-type'] !== undefined) request.headers['content-type'] = undefined;
        listener(request, response);
      });
      door.ends.watch(server);
      onServer(server);
      return server;
    },
    clientErrorHandler: (error, socket) => door.ends.broken(error, socket),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  return app;
}

/** Answers requests. One per server; its methods hold no state of a request. */
class Door {
  closing = false;
  readonly times = new RequestTimes();
  readonly encoder: AnswerEncoder;
  readonly ends = new ConnectionEnds();
  private readonly misdirected = misdirection(ROUTES);

  constructor(
    private readonly services: DoorServices,
    private readonly settings: RestOptions,
  ) {
    this.encoder = new AnswerEncoder({ minBytes: settings.packFromBytes, ledger: services.memory.ledger, isMain: true });
  }

  /** The answer to a request of the plain path. */
  plain(request: FastRequest): RestReply | null | Promise<RestReply | null> {
    const { services, settings } = this;
    const answer = (): Promise<RestReply | null> => answerCall(services, settings.logRequests, fastCall(request));
    const { calls } = services;
    return calls === null ? answer() : loggedReply(calls, ROUTES[request.found.at] as Route, request, answer);
  }

  /** Whether the request gets no other answer: what is wrong with its head ends the connection. */
  refuses(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.ends.isOver(request.socket)) return true;
    const wrong = wrongFields(request.rawHeaders, request.httpVersion);
    if (wrong === null) return false;
    this.ends.takeNoMore(request.socket);
    const { detail, status } = wrong;
    this.send(request, response, jsonReply(status, errorBody({ code: 'wrongInput', detail }, 0), ['connection', 'close']));
    return true;
  }

  /** Answers a request of the table. */
  async answer(route: PlainRoute, at: number, request: FastifyRequest, response: ServerResponse): Promise<void> {
    const caller = this.callerOf(request.raw);
    const path = request.params as Readonly<Record<string, string>>;
    const end = this.logged(route, caller, path, request.raw);
    const body = new RequestBody(request.raw, route, this.services.memory.ledger, this.settings.maxBodyBytes);
    this.ends.reads(request.raw.socket, body);
    const answer = await answerCall(this.services, this.settings.logRequests, {
      route,
      at,
      url: request.url,
      path,
      query: request.query as QueryParameters,
      caller,
      body: () => body.read(),
      // Of a body that is broken the error comes before the end of the connection.
      isGone: () => response.destroyed || body.isBroken || request.raw.errored !== null,
      field: originOf(request.raw).field,
      trace: end?.trace,
    });
    body.release();
    ended(end, answer);
    if (answer === null || body.isBroken) return;
    // What a client still sends of a body that is refused is dropped for a while, and then it is cut off.
    const isLast = answer.isBodyRefused && !request.raw.complete;
    if (isLast) this.ends.takeNoMore(request.raw.socket);
    const cut = isLast ? ['connection', 'close'] : [];
    this.send(request.raw, response, await this.encoder.encode(answer, request.raw.headers['accept-encoding']), cut);
  }

  /** Answers a request whose body or answer is an archive. */
  async transfer(
    route: DownloadRoute | UploadRoute,
    at: number,
    { params, query, raw, url }: FastifyRequest,
    response: ServerResponse,
  ): Promise<void> {
    const { logRequests, silenceMs = SILENCE_MS } = this.settings;
    if (route.kind === 'upload') this.times.limitSilence(raw, response, silenceMs);
    const path = params as Readonly<Record<string, string>>;
    const contentType = contentTypeOf(raw);
    const caller = this.callerOf(raw);
    const end = this.logged(route, caller, path, raw);
    const call = { route, at, url, path, query: query as QueryParameters, caller, request: raw, response, contentType };
    const answer = await answerTransfer(this.services, logRequests, call);
    ended(end, answer as Pick<RestReply, 'denied' | 'status'> | null);
    if (answer === null) return;
    if (Buffer.isBuffer(answer.body)) this.send(raw, response, answer as RestReply);
    else await this.stream(raw, response, answer as StreamReply, silenceMs);
    if (!raw.complete) dropRest(raw);
  }

  /** The answer to a plain request for whose body there is no memory. */
  refuse(at: number): RestReply {
    const route = ROUTES[at] as PlainRoute;
    const reply = errorReply(noRoomFor(route), route, 0);
    this.services.stats.record(at, reply.status, 0, this.services.dateMs());
    return reply;
  }

  /** A file of the dashboard, or 404. */
  async page(pages: Pages, request: FastifyRequest, response: ServerResponse): Promise<void> {
    const { '*': path = '' } = request.params as Readonly<Record<string, string | undefined>>;
    try {
      const file = await pages.find(path);
      if (file === null) this.send(request.raw, response, textReply(404, `The dashboard has no file ${JSON.stringify(path)}.`));
      else if (request.headers['if-none-match'] === file.etag) this.send(request.raw, response, emptyReply(304, pageHeaders(file)));
      else {
        const whole = { ...emptyReply(200, pageHeaders(file)), type: file.type, body: file.bytes };
        this.send(request.raw, response, await this.encoder.encode(whole, request.headers['accept-encoding']));
      }
    } catch (error) {
      this.services.log.error('the files of the dashboard could not be read', { error: String(error) });
      this.send(request.raw, response, textReply(503, 'The files of the dashboard cannot be read: npm run build makes them.'));
    }
  }

  redirect(request: FastifyRequest, response: ServerResponse, to: string): void {
    this.send(request.raw, response, emptyReply(302, ['location', to]));
  }

  /** A path or method that the API doesn't have. Nobody unknown learns which ones there are. */
  unknown(request: FastifyRequest, reply: FastifyReply): void {
    this.send(request.raw, hijacked(reply), this.refusalOfUnknown(request.raw) ?? this.notFound(request));
  }

  private notFound({ method, url }: FastifyRequest): RestReply {
    const wrong = this.misdirected(method, url);
    // Fastify's router and ours differ only in paths that it cannot decode.
    const error = wrong?.error ?? new TroupeError('notFound', 'no operation at this path');
    const allow = wrong?.allow ?? null;
    const { body, status } = errorReply(error, READING, 0);
    return jsonReply(status, body, allow === null ? [] : ['allow', allow]);
  }

  private refusalOfUnknown(request: IncomingMessage): RestReply | null {
    const caller = this.callerOf(request);
    const denial = decideAccess(caller, UNKNOWN_PATH, null);
    if (denial === null) return null;
    return ended(this.logged(UNKNOWN_PATH, caller, {}, request), errorReply(denialError(denial), READING, 0));
  }

  private logged(operation: CallOperation, caller: Caller, path: RestCall['path'], request: IncomingMessage): EndCall | null {
    const { calls } = this.services;
    return calls === null ? null : calls.begin('rest', operation, caller, path.collection_name ?? null, originOf(request));
  }

  private callerOf({ rawHeaders }: IncomingMessage): Caller {
    const { access } = this.services;
    return access === null ? ANYONE : access.callers.callerOf(credentialOf(rawHeaders));
  }

  /** A path that cannot be decoded. */
  malformed(error: Error, request: FastifyRequest, reply: FastifyReply): void {
    this.send(request.raw, hijacked(reply), errorReply(new TroupeError('wrongInput', error.message), READING, 0));
  }

  /** An error that Fastify itself met. */
  broken(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    this.services.log.error('the REST door failed', { url: request.url, error: String(error) });
    this.send(request.raw, hijacked(reply), jsonReply(500, errorBody(shownFacts(errorFacts(error)), 0)));
  }

  /** Says what a path takes, or answers the question of a browser whether it may send a request from another origin. */
  options(request: FastifyRequest, reply: FastifyReply): void {
    const { headers } = request.raw;
    if (this.settings.cors && headers.origin !== undefined && headers['access-control-request-method'] !== undefined) {
      const wanted = headers['access-control-request-headers'];
      const allowed = ['access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE', 'access-control-max-age', `${PREFLIGHT_SECONDS}`];
      if (wanted !== undefined) allowed.push('access-control-allow-headers', wanted);
      this.send(request.raw, hijacked(reply), emptyReply(200, allowed));
      return;
    }
    const allow = this.misdirected(request.method, request.url)?.allow ?? null;
    if (allow === null || this.refusalOfUnknown(request.raw) !== null) this.unknown(request, reply);
    else this.send(request.raw, hijacked(reply), emptyReply(200, ['allow', allow]));
  }

  private send(request: IncomingMessage, response: ServerResponse, answer: RestReply, extra: readonly string[] = []): void {
    sendBytes(response, answer, this.headers(request, [...answer.headers, ...extra]));
    this.watchUnsent(response);
  }

  private async stream(request: IncomingMessage, response: ServerResponse, answer: StreamReply, silenceMs: number): Promise<void> {
    response.writeHead(answer.status, this.headers(request, answer.headers));
    if (answer.body === null) {
      response.end();
      return;
    }
    // Only a client that does not take what is there is silent: the archive may take its time.
    response.setTimeout(silenceMs, () => {
      if (response.writableLength > 0) response.destroy();
    });
    try {
      await sendStream(answer.body, response);
    } catch (error) {
      this.services.log.error('an archive could not be read to its end, so its download was cut', {
        url: request.url,
        error: String(error),
      });
    }
  }

  private headers(request: IncomingMessage, own: readonly string[]): string[] {
    const headers = [...own];
    const origin = request.headers.origin;
    if (origin !== undefined && this.settings.cors)
      headers.push('access-control-allow-origin', origin, 'access-control-expose-headers', EXPOSED, 'vary', 'Origin');
    if (this.closing) headers.push('connection', 'close');
    return headers;
  }

  /** Ends the connection of a client that does not take its answer. */
  private watchUnsent(response: ServerResponse): void {
    const { memory, monotonicMs } = this.services;
    if (response.writableLength === 0) return;
    const unsent = new UnsentBytes(memory.ledger);
    if (!unsent.set(response.writableLength, monotonicMs())) response.destroy();
    const check = setInterval(() => {
      if (unsent.isLate(monotonicMs())) response.destroy();
    }, CHECK_UNSENT_EVERY_MS);
    check.unref();
    response.once('close', () => {
      clearInterval(check);
      unsent.set(0, 0);
    });
  }
}

function sendBytes(response: ServerResponse, { body, status, type }: RestReply, headers: string[]): void {
  if (type !== undefined) headers.push('content-type', type);
  headers.push('content-length', String(body.length));
  response.writeHead(status, headers);
  // As one text, Node sends head and body in a single write, without a list of buffers; latin1 keeps every byte.
  if (body.length <= ONE_WRITE_BYTES_MAX) response.end(body.toString('latin1'), 'latin1');
  else response.end(body);
}

/** Of the request as it came: Fastify sees none. */
function contentTypeOf({ rawHeaders }: IncomingMessage): string | undefined {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  return at === -1 ? undefined : rawHeaders[at + 1];
}

/** Reads and drops what still comes of an answered request; the connection of a client that goes on for too long is closed. */
function dropRest(request: IncomingMessage): void {
  request.on('error', () => {}).resume();
  const timer = setTimeout(() => request.destroy(), DROP_MS);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}

/** Takes the answer out of Fastify's hands. */
function hijacked(reply: FastifyReply): ServerResponse {
  reply.hijack();
  return reply.raw;
}

/** Closes connections as they fall idle; those that still work after `graceMs` are cut. */
async function closeServer(app: FastifyInstance, server: Server, front: FastFront, tls: TlsSockets | null, graceMs: number): Promise<void> {
  front.close();
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const cut = setTimeout(() => {
    front.cut();
    tls?.cut();
    server.closeAllConnections();
  }, graceMs);
  try {
    await app.close();
  } finally {
    clearInterval(idle);
    clearTimeout(cut);
  }
}
