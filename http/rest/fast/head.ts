/**
 * Reads the head of a plain HTTP/1.1 request. Whatever is unusual about a head makes it «odd», and the connection then goes to Node's HTTP
 * server as it is: that server decides what is an error and answers it, so nothing is refused here.
 */

import { AUTHORIZATION_FIELD, credentialFrom, KEY_FIELD } from '../../access/credentials.js';
import type { HttpMethod } from '../../context/endpoint.js';
import { Latest } from './latest.js';

export interface RequestHead {
  readonly method: HttpMethod;
  /** As in the request: path and query string. */
  readonly url: string;
  readonly path: string;
  /** What follows the `?`; empty if there is none. */
  readonly query: string;
  readonly bodyBytes: number;
  /** Key or token: see `access/credentials.ts`. */
  readonly credential: string | null;
  /** The request line and the fields, as they came, without the empty line at the end. */
  readonly text: string;
  /** The connection ends with the answer. */
  readonly isLast: boolean;
  /** The codings of an answer that the client takes. */
  readonly accepted: string | undefined;
  /** Number of bytes of the head, with the empty line at its end. */
  readonly bytes: number;
}

/** Heads up to this size are read here. Node's HTTP server takes up to 16 KiB. */
export const HEAD_BYTES_MAX = 8192;
/** More fields than any client sends; each costs work. */
export const FIELDS_MAX = 256;

/** After the last field, with the end of its line. */
const EMPTY_LINE = Buffer.from('\r\n\r\n');
const DIGIT_ZERO = 48;
/** Path and query string of one form only: no escapes in the path, no slash that is doubled or at the end. */
const REQUEST_LINE = /^(GET|PUT|POST|PATCH|DELETE) ((?:\/|(?:\/[\w.~-]+)+))(?:\?([\w.~%&=+,:-]*))? HTTP\/1\.1$/;
/** A name and a value of visible ASCII without spaces around it. */
const HEADER = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;
/** Digits of the length of a body. */
const LENGTH_DIGITS_MAX = 15;
const LENGTH = new RegExp(`^\\d{1,${LENGTH_DIGITS_MAX}}$`);
/** Where the length of the body stands among fields that have been read. */
const LENGTH_FIELD = /\r\ncontent-length:[ \t]*(\d+)(?=\r\n|$)/i;
/** Headers that change how a request is read or answered. */
const ODD_HEADERS: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'expect',
  'upgrade',
  'origin',
  'proxy-connection',
  'trailer',
  'content-encoding',
  'te',
  'http2-settings',
  // A browser opens a page.
  'upgrade-insecure-requests',
]);

/** The head at the start of the bytes; null if it is odd, or has not come whole, which is just as unusual. */
export function readHead(bytes: Buffer): RequestHead | null {
  const textBytes = bytes.indexOf(EMPTY_LINE);
  const end = textBytes + EMPTY_LINE.length;
  if (textBytes === -1 || end > HEAD_BYTES_MAX) return null;
  // The text has one character for each byte. Of its lines, none may have a CR or LF of its own: the patterns have neither.
  const text = bytes.toString('latin1', 0, textBytes);
  const lineEnd = text.indexOf('\r\n');
  const line = lineEnd === -1 ? null : REQUEST_LINE.exec(text.slice(0, lineEnd));
  const fields = line === null ? null : fieldsFrom(text, lineEnd);
  if (line === null || fields === null) return null;
  const { accepted, bodyBytes, credential, isLast } = fields;
  const [, method, path, query] = line as unknown as [string, HttpMethod, string, string | undefined];
  const hasBody = method !== 'GET' && method !== 'DELETE';
  if (!hasBody && bodyBytes > 0) return null;
  const url = query === undefined ? path : `${path}?${query}`;
  return { method, url, path, query: query ?? '', bytes: end, text, accepted, bodyBytes, credential, isLast };
}

/** The value of a field by its name in lower case, the first one if there are several; undefined: there is none. */
export function headField({ text }: RequestHead, name: string): string | undefined {
  const line = text
    .split('\r\n')
    .find((one) => one.length > name.length && one[name.length] === ':' && one.slice(0, name.length).toLowerCase() === name);
  return line?.slice(name.length + 1).trim();
}

type Fields = Pick<RequestHead, 'accepted' | 'bodyBytes' | 'credential' | 'isLast'>;

/** Fields that a client has sent before: it sends the same ones again, and only the length of the body is another. */
interface KnownFields {
  /** Their text up to the digits of the length; all of it where they tell none. */
  readonly before: string;
  /** What follows the digits; null: they tell no length. */
  readonly after: string | null;
  readonly fields: Fields;
}

/** Of a thread. */
const latest = new Latest<KnownFields>();

/** What the fields say that begin with the line end at `from`; null if one of them is odd. */
function fieldsFrom(text: string, from: number): Fields | null {
  for (const one of latest.items) {
    const bodyBytes = bodyBytesBy(one, text, from);
    if (bodyBytes !== null) return { ...one.fields, bodyBytes };
  }
  const fields = readFields(text.slice(from + 2).split('\r\n'));
  if (fields !== null) {
    latest.add(knownFields(text.slice(from), fields));
  }
  return fields;
}

function knownFields(text: string, fields: Fields): KnownFields {
  const length = LENGTH_FIELD.exec(text);
  if (length === null) return { before: text, after: null, fields };
  const end = length.index + length[0].length;
  return { before: text.slice(0, end - (length[1] as string).length), after: text.slice(end), fields };
}

/** The length of the body that the fields from `from` on tell if they are the known ones, null if they are not. */
function bodyBytesBy({ after, before }: KnownFields, text: string, from: number): number | null {
  if (after === null) return text.length - from === before.length && text.endsWith(before) ? 0 : null;
  const digits = from + before.length;
  const end = text.length - after.length;
  if (end <= digits || end > digits + LENGTH_DIGITS_MAX || !text.startsWith(before, from) || !text.endsWith(after)) return null;
  let bytes = 0;
  for (let at = digits; at < end; at++) {
    const digit = text.charCodeAt(at) - DIGIT_ZERO;
    if (digit < 0 || digit > 9) return null;
    bytes = bytes * 10 + digit;
  }
  return bytes;
}

/** What the fields say; null if one of them is odd. */
function readFields(lines: readonly string[]): Fields | null {
  if (lines.length >= FIELDS_MAX) return null;
  let accepted: string | undefined;
  let length: string | null = null;
  let connection: string | null = null;
  let key: string | null = null;
  let authorization: string | null = null;
  let hosts = 0;
  for (const line of lines) {
    const field = HEADER.exec(line);
    if (field === null) return null;
    const name = (field[1] as string).toLowerCase();
    const value = field[2] ?? '';
    if (name === 'content-length') {
      if (length !== null || !LENGTH.test(value)) return null;
      length = value;
    } else if (name === 'connection') {
      if (connection !== null) return null;
      connection = value.toLowerCase();
      if (connection !== 'keep-alive' && connection !== 'close') return null;
    } else if (name === KEY_FIELD) {
      if (key !== null) return null;
      key = value;
    } else if (name === AUTHORIZATION_FIELD) {
      if (authorization !== null) return null;
      authorization = value;
    } else if (name === 'accept-encoding') {
      if (accepted !== undefined) return null;
      accepted = value;
    } else if (name === 'host') hosts++;
    else if (ODD_HEADERS.has(name)) return null;
  }
  // Without a host, or with two of them, Node's HTTP server decides.
  if (hosts !== 1) return null;
  const credential = credentialFrom(key, authorization);
  return { bodyBytes: length === null ? 0 : Number(length), credential, isLast: connection === 'close', accepted };
}
