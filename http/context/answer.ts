/** Bytes of answers: the envelope around a result, and errors by the catalogue. */

import { ERROR_KINDS, type ErrorFacts } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';

/** What an operation answers. */
export type HttpAnswer =
  /** Goes into the envelope. */
  | { readonly kind: 'result'; readonly value: unknown }
  /** JSON without an envelope. */
  | { readonly kind: 'json'; readonly value: unknown }
  /** For browsers, with its content security policy. */
  | { readonly kind: 'page'; readonly html: string; readonly policy: string }
  | { readonly kind: 'text'; readonly status: number; readonly text: string };

/** An answer that goes into the envelope. */
export function result(value: unknown): HttpAnswer {
  return { kind: 'result', value };
}

const HEAD = Buffer.from('{"result":');
const TAIL_START = ',"status":"ok","time":';

/**
 * `{"result":<result>,"status":"ok","time":<seconds>}`; result is JSON already and is copied unread.
 * more: further members, each with a comma before it.
 */
export function envelope(result: Uint8Array, milliseconds: number, more = ''): Buffer {
  const tail = `${TAIL_START}${seconds(milliseconds)}${more}}`;
  const bytes = Buffer.allocUnsafe(HEAD.length + result.length + tail.length);
  bytes.set(HEAD, 0);
  bytes.set(result, HEAD.length);
  bytes.write(tail, HEAD.length + result.length, 'latin1');
  return bytes;
}

/** As `envelope`, for a value. */
export function valueEnvelope(value: unknown, milliseconds: number): Buffer {
  return Buffer.from(`{"result":${stringifyJson(value)}${TAIL_START}${seconds(milliseconds)}}`);
}

/** `{"status":{"error":…},"time":<seconds>}` */
export function errorBody(error: ErrorFacts, milliseconds: number): Buffer {
  const message = ERROR_KINDS[error.code].prefix + error.detail;
  return Buffer.from(`{"status":{"error":${JSON.stringify(message)}},"time":${seconds(milliseconds)}}`);
}

/** Value of the Retry-After header in whole seconds; undefined when the error has none. */
export function retryAfter(error: ErrorFacts): string | undefined {
  if (error.retryAfterMs !== undefined) return String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  return error.code === 'busy' || error.code === 'unavailable' ? '1' : undefined;
}

/** Seconds as a JSON number, to the microsecond. */
function seconds(milliseconds: number): string {
  return String(Math.round(milliseconds * 1000) / 1e6);
}
