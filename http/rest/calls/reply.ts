/** Replies of the REST server. */

import { ERROR_KINDS, type ErrorCode, type ErrorFacts } from '../../../protocols/errors.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { clientFacts, envelope, errorBody, errorHeaders, errorText, toldFacts } from '../../context/answer.js';
import type { Endpoint } from '../../context/endpoint.js';
import { explainMember } from '../../context/explain.js';
import { usageMember } from '../../context/hardware.js';
import { unknownHeaders } from '../../context/unknown-fields.js';

export interface RestReply {
  readonly status: number;
  /** Undefined where there is no body. */
  readonly type: string | undefined;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The request's body was longer than allowed, or found no memory, so the rest of it may still be on its way. */
  readonly isBodyRefused: boolean;
  /** Why the caller may not do this; left out: that is not why it failed. */
  readonly denied?: string;
  /** The body has a buffer of its own, which may be given away. */
  readonly isLong?: true;
}

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';
const EMPTY = Buffer.alloc(0);
const NO_HEADERS: readonly string[] = [];
const REFUSED_BODIES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['bodyTooLarge', 'busy', 'outOfMemory']);

/** What a client without a valid credential is told. Source: contract, scenarios `security-*`. */
const PLAIN_TEXTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['unauthorized', 'tokenRefused']);

const DENIALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([...PLAIN_TEXTS, 'forbidden']);

/** headers: names and values in turn. */
export function jsonReply(status: number, body: Buffer, headers: readonly string[] = NO_HEADERS): RestReply {
  return { status, type: JSON_TYPE, headers, body, isBodyRefused: false };
}

/** Plain text; headers: as in `jsonReply`. */
export function textReply(status: number, text: string | Buffer, headers: readonly string[] = NO_HEADERS): RestReply {
  return { status, type: TEXT_TYPE, headers, body: typeof text === 'string' ? Buffer.from(text) : text, isBodyRefused: false };
}

/** Without a body; headers: as in `jsonReply`. */
export function emptyReply(status: number, headers: readonly string[]): RestReply {
  return { status, type: undefined, headers, body: EMPTY, isBodyRefused: false };
}

/** An error as clients of downloads know it. */
export function textErrorReply(error: unknown, endpoint: Pick<Endpoint, 'access' | 'method'>): RestReply {
  return textOf(clientFacts(error, endpoint));
}

function textOf(facts: ErrorFacts): RestReply {
  const reply = textReply(ERROR_KINDS[facts.code].restStatus, errorText(facts), errorHeaders(facts).flat());
  return DENIALS.has(facts.code) ? { ...reply, denied: facts.detail } : reply;
}

/** What the engine has answered to a request, with what it cost where that is measured, how it came about where that is asked for, and the fields that were ignored. */
export function resultReply(result: Uint8Array, milliseconds: number, { explain, unknownFields, usage }: RawRequest): RestReply {
  const explained = explain === undefined || explain.explanation === null ? '' : explainMember(explain.explanation);
  const members = usage === undefined ? explained : `${usageMember(usage)}${explained}`;
  return jsonReply(200, envelope(result, milliseconds, members), unknownHeaders(unknownFields));
}

/** The reply to a request that is refused whatever it asks for. No error was thrown: to make one costs more than all of the reply. */
export function refusalReply(facts: ErrorFacts, endpoint: Pick<Endpoint, 'access' | 'method'>, milliseconds: number): RestReply {
  const told = toldFacts(facts, endpoint);
  const headers: string[] = [];
  for (const [name, value] of errorHeaders(told)) headers.push(name, value);
  return jsonReply(ERROR_KINDS[told.code].restStatus, errorBody(told, milliseconds), headers);
}

export function errorReply(error: unknown, endpoint: Pick<Endpoint, 'access' | 'method'>, milliseconds: number): RestReply {
  const facts = clientFacts(error, endpoint);
  if (PLAIN_TEXTS.has(facts.code)) return textOf(facts);
  return {
    status: ERROR_KINDS[facts.code].restStatus,
    type: JSON_TYPE,
    headers: errorHeaders(facts).flat(),
    body: errorBody(facts, milliseconds),
    isBodyRefused: REFUSED_BODIES.has(facts.code),
    ...(DENIALS.has(facts.code) ? { denied: facts.detail } : {}),
  };
}
