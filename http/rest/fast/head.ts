/**
 * Reads the head of a plain HTTP/1.1 request. Whatever is unusual about a head makes it «odd», and the connection then goes to Node's HTTP
 * server as it is: that server decides what is an error and answers it, so nothing is refused here.
 */

import { AUTHORIZATION_FIELD, credentialFrom, KEY_FIELD } from '../../access/credentials.js';
import type { HttpMethod } from '../../context/endpoint.js';

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
  /** The request line and the fields, as they came. */
  readonly lines: readonly string[];
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

const CR = 13;
const LF = 10;
const METHODS: ReadonlySet<string> = new Set<HttpMethod>(['GET', 'PUT', 'POST', 'PATCH', 'DELETE']);
/** Path and query string of one form only: no escapes in the path, no slash that is doubled or at the end. */
const REQUEST_LINE = /^([A-Z]+) ((?:\/|(?:\/[\w.~-]+)+))(?:\?([\w.~%&=+,:-]*))? HTTP\/1\.1$/;
/** A name and a value of visible ASCII without spaces around it. */
const HEADER = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;
const LENGTH = /^\d{1,15}$/;
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
  const end = endOfHead(bytes);
  if (end === -1 || end > HEAD_BYTES_MAX) return null;
  // The text has one character for each byte. Of its lines, none may have a CR or LF of its own: the patterns have neither.
  const lines = bytes.toString('latin1', 0, end - 4).split('\r\n');
  const line = REQUEST_LINE.exec(lines[0] as string);
  if (line === null || !METHODS.has(line[1] as string) || lines.length > FIELDS_MAX) return null;
  const fields = readFields(lines);
  if (fields === null) return null;
  const [, method, path, query] = line as unknown as [string, HttpMethod, string, string | undefined];
  const hasBody = method !== 'GET' && method !== 'DELETE';
  if (!hasBody && fields.bodyBytes > 0) return null;
  const url = query === undefined ? path : `${path}?${query}`;
  return { method, url, path, query: query ?? '', bytes: end, lines, ...fields };
}

/** The value of a field by its name in lower case, the first one if there are several; undefined: there is none. */
export function headField({ lines }: RequestHead, name: string): string | undefined {
  const line = lines.find(
    (one) => one.length > name.length && one[name.length] === ':' && one.slice(0, name.length).toLowerCase() === name,
  );
  return line?.slice(name.length + 1).trim();
}

/** The place after the first empty line; -1 if there is none. */
function endOfHead(bytes: Buffer): number {
  for (let at = bytes.indexOf(LF, 3); at !== -1; at = bytes.indexOf(LF, at + 1))
    if (bytes[at - 1] === CR && bytes[at - 2] === LF && bytes[at - 3] === CR) return at + 1;
  return -1;
}

/** What the fields say; null if one of them is odd. */
function readFields(lines: readonly string[]): Pick<RequestHead, 'accepted' | 'bodyBytes' | 'credential' | 'isLast'> | null {
  let accepted: string | undefined;
  let length: string | null = null;
  let connection: string | null = null;
  let key: string | null = null;
  let authorization: string | null = null;
  let hosts = 0;
  for (let at = 1; at < lines.length; at++) {
    const field = HEADER.exec(lines[at] as string);
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
