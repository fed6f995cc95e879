/** Bytes of answers: the envelope around a result, and errors by the catalogue. */

import type { LongWork } from '../../actors/runtime/long-works.js';
import { ERROR_KINDS, type ErrorFacts, errorFacts, outcomeOf, type TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import { noRoomForRequest } from '../../storage/memory/ledger.js';
import { unpackingCodings } from './codings.js';
import type { Endpoint } from './endpoint.js';
import type { LongObject } from './long-value.js';
import type { TextBytes } from './text-bytes.js';

/** What an operation answers. */
export type HttpAnswer =
  /** Goes into the envelope. */
  | { readonly kind: 'result'; readonly value: unknown }
  /** What was asked for is being done, and nobody waits for it: status 202. */
  | { readonly kind: 'accepted' }
  /** As `result`, made when it is printed and in portions. key: as `Reports.text` has it. */
  | { readonly kind: 'long'; readonly key: string | null; readonly value: () => LongObject }
  /** As `text` with status 200, made in the same way. */
  | { readonly kind: 'longText'; readonly key: string; readonly write: (out: TextBytes) => LongWork }
  /** JSON without an envelope. */
  | { readonly kind: 'json'; readonly value: unknown }
  /** For browsers, with its content security policy. */
  | { readonly kind: 'page'; readonly html: string; readonly policy: string }
  | { readonly kind: 'text'; readonly status: number; readonly text: string };

/** An answer that goes into the envelope. */
export function result(value: unknown): HttpAnswer {
  return { kind: 'result', value };
}

export const ACCEPTED: HttpAnswer = { kind: 'accepted' };

const HEAD = Buffer.from('{"result":');
const TAIL_START = ',"status":"ok","time":';

/**
 * `{"result":<result>,"status":"ok","time":<seconds>}`; result is JSON already and is copied unread.
 * more: further members, each with a comma before it.
 */
export function envelope(result: Uint8Array, milliseconds: number, more = ''): Buffer {
  const tail = `${TAIL_START}${seconds(milliseconds)}${more}}`;
  // What an explanation says has texts of users in it.
  const encoding = more === '' ? 'latin1' : 'utf8';
  const bytes = Buffer.allocUnsafe(HEAD.length + result.length + Buffer.byteLength(tail, encoding));
  bytes.set(HEAD, 0);
  bytes.set(result, HEAD.length);
  bytes.write(tail, HEAD.length + result.length, encoding);
  return bytes;
}

/** As `envelope`, in parts. */
export function envelopeParts(result: readonly Uint8Array[], milliseconds: number): readonly Uint8Array[] {
  return [HEAD, ...result, Buffer.from(`${TAIL_START}${seconds(milliseconds)}}`, 'latin1')];
}

/** As `envelope`, for a value. */
export function valueEnvelope(value: unknown, milliseconds: number): Buffer {
  return Buffer.from(`{"result":${stringifyJson(value)}${TAIL_START}${seconds(milliseconds)}}`);
}

/** `{"status":"accepted","time":<seconds>}` */
export function acceptedBody(milliseconds: number): Buffer {
  return Buffer.from(`{"status":"accepted","time":${seconds(milliseconds)}}`);
}

/** Header of a REST answer, and key of the metadata that ends a gRPC call. */
const OUTCOME_KEY = 'troupe-outcome';
/** Names the field of `strict_mode_config` that a request goes beyond. */
const LIMIT_KEY = 'troupe-limit';

/**
 * An error as the client of the operation is told it. Only an operation that changes something can leave open whether it was carried out:
 * the message says so, and the outcome is there for programs.
 */
export function clientFacts(error: unknown, endpoint: Pick<Endpoint, 'access' | 'method'>): ErrorFacts {
  return toldFacts(errorFacts(error), endpoint);
}

/** As `clientFacts`, of an error that was never thrown. */
export function toldFacts(thrown: ErrorFacts, endpoint: Pick<Endpoint, 'access' | 'method'>): ErrorFacts {
  const { outcome: _, ...facts } = shownFacts(thrown);
  if (!changesSomething(endpoint)) return facts;
  const outcome = outcomeOf(thrown);
  return outcome === 'none'
    ? { ...facts, outcome }
    : { ...facts, detail: `${facts.detail}; the operation may still be carried out`, outcome };
}

/** Paths of the server: absolute ones that are none of the API. */
const SERVER_PATH =
  /(?:file:\/\/|(?<![\w.:/…]))\/(?!(?:collections|cluster|aliases|issues|points|telemetry|metrics|snapshots)\b)(?:[^\s/:'"`(),;]+\/)+([^\s/:'"`(),;]*)/g;

/** Facts of an error without what is only for the log: stacks, and where the server keeps its files. A fault of the client has none of it. */
export function shownFacts(facts: ErrorFacts): ErrorFacts {
  if (ERROR_KINDS[facts.code].restStatus < 500) return facts;
  const [message = ''] = facts.detail.split(/\n\s+at /);
  return { ...facts, detail: message.replace(SERVER_PATH, '…/$1') };
}

function changesSomething({ access, method }: Pick<Endpoint, 'access' | 'method'>): boolean {
  return method !== 'GET' && (access === 'writePoints' || access === 'w' || access === 'm');
}

/** The error of a request for whose body there is no memory. */
export function noRoomFor(endpoint: Pick<Endpoint, 'access' | 'method'>): TroupeError {
  return noRoomForRequest(changesSomething(endpoint) ? 'outOfMemory' : 'busy');
}

/** Headers of REST, metadata of gRPC, as `clientFacts` has made them: names and values. */
export function errorHeaders(error: ErrorFacts): readonly (readonly [string, string])[] {
  const after = retryAfter(error);
  const headers: (readonly [string, string])[] = [];
  if (after !== undefined) headers.push(['retry-after', after]);
  if (error.outcome !== undefined) headers.push([OUTCOME_KEY, error.outcome]);
  if (error.code === 'unreadableCoding') headers.push(['accept-encoding', unpackingCodings().join(', ')]);
  if (error.limit !== undefined) headers.push([LIMIT_KEY, error.limit]);
  return headers;
}

/** `{"status":{"error":…},"time":<seconds>}` */
export function errorBody(error: ErrorFacts, milliseconds: number): Buffer {
  return Buffer.from(`{"status":{"error":${JSON.stringify(errorText(error))}},"time":${seconds(milliseconds)}}`);
}

/** The message with the catalogue's prefix. */
export function errorText({ code, detail }: ErrorFacts): string {
  return ERROR_KINDS[code].prefix + detail;
}

/** Value of the Retry-After header in whole seconds; undefined when the error has none. */
function retryAfter(error: ErrorFacts): string | undefined {
  if (error.retryAfterMs !== undefined) return String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  return error.code === 'busy' || error.code === 'unavailable' ? '1' : undefined;
}

/** Seconds as a JSON number, to the microsecond. */
function seconds(milliseconds: number): string {
  return String(Math.round(milliseconds * 1000) / 1e6);
}
