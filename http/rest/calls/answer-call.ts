/**
 * Carries out a request that was found in `routes.ts`, whichever of the REST servers has read it. The answer is counted and logged here, so
 * that both servers give the same answers and figures.
 */

import { TroupeError } from '../../../protocols/errors.js';
import { stringifyJson } from '../../../protocols/json.js';
import type { CallTrace, ExplainRequest } from '../../../protocols/model/explanation.js';
import type { UnknownFields } from '../../../protocols/model/unknown-fields.js';
import type { QueryParameters } from '../../../protocols/rest/parameters.js';
import type { HeavyRead, RawRequest } from '../../../storage/threads/messages.js';
import type { Caller } from '../../access/caller.js';
import type { RequestOrigin } from '../../audit/origin.js';
import { acceptedBody, envelopeParts, type HttpAnswer, valueEnvelope } from '../../context/answer.js';
import { writeJson } from '../../context/long-value.js';
import { checkMode } from '../../context/recovery.js';
import type { DoorServices } from '../../context/services.js';
import { requestIdsOf } from '../../context/slow-requests.js';
import { joined } from '../../context/text-bytes.js';
import { noUnknownFields, seeUnknown, unknownHeaders } from '../../context/unknown-fields.js';
import { pointsRequest } from '../../handlers/points.js';
import type { NodeRoute, PlainRoute, ReadRoute, Route, WriteRoute } from '../../routes.js';
import { checkedRead, checkedWrite, checkNodePath, hasBody } from './check-head.js';
import { errorReply, jsonReply, type RestReply, resultReply, textReply } from './reply.js';

type Query = RawRequest['query'];
type Named = Pick<ReadRoute | WriteRoute | NodeRoute, 'name'>;

export interface RestCall {
  readonly route: PlainRoute;
  /** The route's place in `ROUTES`. */
  readonly at: number;
  /** As the client sent it, for the log. */
  readonly url: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: QueryParameters;
  readonly caller: Caller;
  /**
   * The whole body, in a buffer that the call may give away. It is asked for once, and not for methods without a body. Errors:
   * `bodyTooLarge`; those of a client that goes away.
   */
  readonly body: () => Uint8Array | Promise<Uint8Array>;
  /** Whether the client has gone away. */
  readonly isGone: () => boolean;
  /** As in `PointsCall`. */
  readonly heldMs?: number | undefined;
  /** As in `PointsCall`. */
  readonly heavy?: HeavyRead | undefined;
  /** As in `PointsCall`. */
  readonly paid?: number | undefined;
  /** The value of a header by its name in lower case. */
  readonly field: RequestOrigin['field'];
  /** Of a call that is part of a trace. */
  readonly trace?: CallTrace | undefined;
  /** Of a read, once it has begun. */
  explain?: ExplainRequest | undefined;
}

const HTML_TYPE = 'text/html; charset=utf-8';
const EMPTY = new Uint8Array(0);

/** What is counted and logged of a call. */
export type AnsweredCall = Pick<RestCall, 'at' | 'caller' | 'path' | 'url'> & { readonly route: Route };

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
  recordAnswer(services, logRequests, call, answer.status, started);
  const milliseconds = services.monotonicMs() - started;
  if (milliseconds >= services.slow.fromMs) noteSlow(services, call, answer.status, milliseconds);
  return answer;
}

/** Other operations take the time that they take. */
function noteSlow({ slow }: DoorServices, { explain, field, path, route }: RestCall, status: number, milliseconds: number): void {
  if (route.kind === 'node') return;
  const plan = explain?.plan ?? null;
  slow.note({
    door: 'rest',
    operation: route.name,
    collection: path.collection_name ?? null,
    status,
    milliseconds,
    plan,
    ...requestIdsOf(field),
  });
}

/** Counts an answer, and logs it if all are. started: by the monotonic clock. */
export function recordAnswer(services: DoorServices, logRequests: boolean, call: AnsweredCall, status: number, started: number): void {
  const { at, path, route, url } = call;
  const milliseconds = services.monotonicMs() - started;
  services.stats.record(at, status, milliseconds, services.dateMs(), path.collection_name);
  if (logRequests) services.log.debug('answered', { method: route.method, url, status, milliseconds });
}

/** An exception that is no error of the catalogue is a bug (Http-H1). */
export function logBug({ log }: DoorServices, { route, url }: AnsweredCall, error: unknown): void {
  if (error instanceof TroupeError) return;
  const stack = error instanceof Error ? error.stack : String(error);
  log.error('a request met an unexpected error', { method: route.method, url, error: stack });
}

function carryOut(services: DoorServices, call: RestCall, started: number): Promise<RestReply> {
  const { caller, path, route } = call;
  const admitting = services.access === null ? null : services.access.admit(caller, route, path.collection_name);
  return admitting === null ? perform(services, call, started) : admitting.then(() => perform(services, call, started));
}

function perform(services: DoorServices, call: RestCall, started: number): Promise<RestReply> {
  const { route } = call;
  checkMode(services.recoveryMode, route);
  switch (route.kind) {
    case 'read':
      return read(services, route, call, started);
    case 'write':
      return write(services, route, call, started);
    case 'node':
      return node(services, route, call, started);
    default:
      return route satisfies never;
  }
}

async function read(services: DoorServices, route: ReadRoute, call: RestCall, started: number): Promise<RestReply> {
  const { caller, heavy, heldMs, path, query, trace } = call;
  const parameters = checkedRead(route.engine, path, query);
  const body = await bodyOf(call);
  const unknownFields = noUnknownFields(services.unknownFields.refuse);
  const own = { path, query: query as Query, body, caller, heavy, heldMs, trace, unknownFields };
  const raw = pointsRequest(services, { ...own, ...parameters });
  call.explain = raw.explain;
  const result = await services.node.read(path.collection_name as string, route.engine, raw);
  noteUnknown(services, route, unknownFields);
  return resultReply(result, services.monotonicMs() - started, raw);
}

async function write(services: DoorServices, route: WriteRoute, call: RestCall, started: number): Promise<RestReply> {
  const { caller, heldMs, paid, path, query, trace } = call;
  const { wait, timeoutSeconds } = checkedWrite(path, query);
  const body = await bodyOf(call);
  const unknownFields = noUnknownFields(services.unknownFields.refuse);
  const own = { path, query: query as Query, body, caller, consistency: undefined, timeoutSeconds, trace, unknownFields };
  const raw = pointsRequest(services, { ...own, heldMs, paid });
  const result = await services.node.write(path.collection_name as string, route.engine, wait, raw);
  noteUnknown(services, route, unknownFields);
  return resultReply(result, services.monotonicMs() - started, raw);
}

async function node(services: DoorServices, route: NodeRoute, call: RestCall, started: number): Promise<RestReply> {
  const { caller, path, query } = call;
  checkNodePath(path);
  const body = hasBody(route) ? await call.body() : EMPTY;
  const unknownFields = noUnknownFields(services.unknownFields.refuse);
  const see = seeUnknown(route.name, unknownFields);
  const answer = await route.run(services, { path, query, body, caller, ...(see && { see }) });
  noteUnknown(services, route, unknownFields);
  return nodeAnswer(services, answer, started, unknownFields);
}

function noteUnknown({ unknownFields }: DoorServices, { name }: Named, { found }: UnknownFields): void {
  for (const field of found) unknownFields.note({ operation: name, field, requests: 1 });
}

async function nodeAnswer(
  { monotonicMs, reports }: DoorServices,
  answer: HttpAnswer,
  started: number,
  unknownFields: UnknownFields,
): Promise<RestReply> {
  switch (answer.kind) {
    case 'result':
      return jsonReply(200, valueEnvelope(answer.value, monotonicMs() - started), unknownHeaders(unknownFields));
    case 'accepted':
      return jsonReply(202, acceptedBody(monotonicMs() - started), unknownHeaders(unknownFields));
    case 'long': {
      const result = await reports.text(answer.key, (out) => writeJson(out, answer.value()));
      const body = await reports.works.run(joined(envelopeParts(result, monotonicMs() - started)));
      return { ...jsonReply(200, body, unknownHeaders(unknownFields)), isLong: true };
    }
    case 'longText': {
      const text = await reports.text(answer.key, answer.write);
      return { ...textReply(200, await reports.works.run(joined(text))), isLong: true };
    }
    case 'json':
      return jsonReply(200, Buffer.from(stringifyJson(answer.value)));
    case 'page': {
      const headers = ['content-security-policy', answer.policy, 'x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
      return { status: 200, type: HTML_TYPE, headers, body: Buffer.from(answer.html), isBodyRefused: false };
    }
    case 'text':
      return textReply(answer.status, answer.text);
    default:
      return answer satisfies never;
  }
}

/** Null for methods without a body. */
function bodyOf({ body, route }: RestCall): Uint8Array | null | Promise<Uint8Array> {
  return hasBody(route) ? body() : null;
}

function failure(services: DoorServices, call: RestCall, started: number, error: unknown): RestReply {
  logBug(services, call, error);
  return errorReply(error, call.route, services.monotonicMs() - started);
}
