/**
 * Carries out a request that was found in `routes.ts`, whichever of the REST servers has read it. The answer is counted and logged here, so
 * that both servers give the same answers and figures.
 */

import { ERROR_KINDS, TroupeError } from '../../protocols/errors.js';
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
import type { NodeRoute, ReadRoute, Route, WriteRoute } from '../routes.js';

export interface RestCall {
  readonly route: Route;
  /** The route's place in `ROUTES`. */
  readonly at: number;
  /** As the client sent it, for the log. */
  readonly url: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: QueryParameters;
  /**
   * The whole body, in a buffer that the call may give away. It is asked for once, and not for methods without a body. Errors:
   * `bodyTooLarge`; those of a client that goes away.
   */
  readonly body: () => Uint8Array | Promise<Uint8Array>;
  /** Whether the client has gone away. */
  readonly isGone: () => boolean;
}

export interface RestReply {
  readonly status: number;
  /** Undefined where there is no body. */
  readonly type: string | undefined;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The request's body was longer than allowed, so the rest of it may still be on its way. */
  readonly isBodyTooLarge: boolean;
}

const JSON_TYPE = 'application/json';
const HTML_TYPE = 'text/html; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';
const NO_HEADERS: readonly string[] = [];
const EMPTY = new Uint8Array(0);

/** The answer to a call; null if the client is gone. Never rejects. logRequests: write a debug line for each. */
export async function answerCall(services: DoorServices, logRequests: boolean, call: RestCall): Promise<RestReply | null> {
  const started = services.monotonicMs();
  let answer: RestReply;
  try {
    answer = await carryOut(services, call, started);
  } catch (error) {
    if (call.isGone()) return null;
    answer = failure(services, call, started, error);
  }
  const { at, route, url } = call;
  const { status } = answer;
  const milliseconds = services.monotonicMs() - started;
  services.stats.record(at, status, milliseconds, services.nowMs());
  if (logRequests) services.log.debug('answered', { method: route.method, url, status, milliseconds });
  return answer;
}

/** Whether requests of this method have a body. */
export function hasBody({ method }: Pick<Endpoint, 'method'>): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

/** An answer in JSON. */
export function jsonAnswer(status: number, body: Buffer, headers: readonly string[] = NO_HEADERS): RestReply {
  return { status, type: JSON_TYPE, headers, body, isBodyTooLarge: false };
}

function carryOut(services: DoorServices, call: RestCall, started: number): Promise<RestReply> {
  const { route } = call;
  switch (route.kind) {
    case 'read':
      return read(services, route, call, started);
    case 'write':
      return write(services, route, call, started);
    case 'node':
      return node(services, route, call, started);
    case 'later':
      return Promise.reject(new TroupeError('unsupported', `${route.name} is not available in this release`));
    default:
      return route satisfies never;
  }
}

async function read(services: DoorServices, route: ReadRoute, call: RestCall, started: number): Promise<RestReply> {
  const { consistency, timeoutSeconds } = readParameters(call.query);
  if (route.engine === 'getPoint') checkPointId(call.path.id as string);
  const raw = await requestOf(services, call, consistency, timeoutSeconds);
  const result = await services.node.read(call.path.collection_name as string, route.engine, raw);
  return jsonAnswer(200, envelope(result, services.monotonicMs() - started, usageOf(raw)));
}

async function write(services: DoorServices, route: WriteRoute, call: RestCall, started: number): Promise<RestReply> {
  const { wait, timeoutSeconds } = updateParameters(call.query);
  const raw = await requestOf(services, call, undefined, timeoutSeconds);
  const result = await services.node.write(call.path.collection_name as string, route.engine, wait, raw);
  return jsonAnswer(200, envelope(result, services.monotonicMs() - started, usageOf(raw)));
}

async function node(services: DoorServices, route: NodeRoute, call: RestCall, started: number): Promise<RestReply> {
  const { path, query } = call;
  if (path.collection_name !== undefined) checkCollectionName(path.collection_name);
  const body = hasBody(route) ? await call.body() : EMPTY;
  return nodeAnswer(await route.run(services, { path, query, body }), services.monotonicMs() - started);
}

function nodeAnswer(answer: HttpAnswer, milliseconds: number): RestReply {
  switch (answer.kind) {
    case 'result':
      return jsonAnswer(200, valueEnvelope(answer.value, milliseconds));
    case 'json':
      return jsonAnswer(200, Buffer.from(stringifyJson(answer.value)));
    case 'page': {
      const headers = ['content-security-policy', answer.policy, 'x-content-type-options', 'nosniff'];
      return { status: 200, type: HTML_TYPE, headers, body: Buffer.from(answer.html), isBodyTooLarge: false };
    }
    case 'text':
      return { status: answer.status, type: TEXT_TYPE, headers: NO_HEADERS, body: Buffer.from(answer.text), isBodyTooLarge: false };
    default:
      return answer satisfies never;
  }
}

function failure(services: DoorServices, { route, url }: RestCall, started: number, error: unknown): RestReply {
  if (!(error instanceof TroupeError)) {
    const stack = error instanceof Error ? error.stack : String(error);
    services.log.error('a request met an unexpected error', { method: route.method, url, error: stack });
  }
  const facts = clientFacts(error, route);
  const body = errorBody(facts, services.monotonicMs() - started);
  return {
    ...jsonAnswer(ERROR_KINDS[facts.code].restStatus, body, errorHeaders(facts).flat()),
    isBodyTooLarge: facts.code === 'bodyTooLarge',
  };
}

async function requestOf(
  services: DoorServices,
  { body, path, query, route }: RestCall,
  consistency: ReadConsistency | undefined,
  timeoutSeconds: number | undefined,
): Promise<RawRequest> {
  checkCollectionName(path.collection_name as string);
  const bytes = hasBody(route) ? await body() : null;
  return pointsRequest(services, { path, query: query as Record<string, string>, body: bytes, consistency, timeoutSeconds });
}

function checkPointId(text: string): void {
  if (pointIdFromText(text) === undefined)
    throw new TroupeError('wrongInput', `${JSON.stringify(text)} is not a point id: expected an unsigned integer or a UUID`);
}

/** Member of the envelope that says what a measured request has cost. */
function usageOf({ usage }: RawRequest): string {
  return usage === undefined ? '' : usageMember(usage);
}
