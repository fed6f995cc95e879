/**
 * Finds the row that a plain head asks for. Node's HTTP server answers a request that is refused for its head before its body has come, so
 * such a request, if it has a body, is not for the plain path. Nor is one whose body or answer passes as a stream, or whose caller may not
 * send the large body that it has.
 */

import { TroupeError } from '../../../protocols/errors.js';
import type { QueryParameters } from '../../../protocols/rest/parameters.js';
import type { Caller } from '../../access/caller.js';
import { decideAccess } from '../../access/decide.js';
import { callerFrom } from '../../access/door-access.js';
import type { KnownCallers } from '../../access/known-callers.js';
import type { HttpMethod } from '../../context/endpoint.js';
import { checkHead, type HeadRow } from '../calls/check-head.js';
import { parseQueryString } from '../calls/query-string.js';
import { type FoundRoute, routeFinder } from './find-route.js';
import type { RequestHead } from './head.js';
import { Latest } from './latest.js';

export interface FoundRequest extends FoundRoute {
  readonly query: QueryParameters;
  readonly caller: Caller;
}

/** Bodies up to this size are taken, also of a caller that may not send one: the connection can go on, and it costs little. */
const DENIED_BYTES_MAX = 16_384;

/** The row of the request and its parameters; null for a request that is handed on. */
export type FindRequest = (head: RequestHead) => FoundRequest | null;

/** What the line of a request asks for, whoever sends it. */
interface AskedLine {
  readonly method: HttpMethod;
  readonly url: string;
  readonly found: FoundRoute;
  readonly row: HeadRow;
  readonly query: QueryParameters;
  /** A request with a body is refused for its head. */
  readonly isRefused: boolean;
}

/** callers: null where there are no keys. */
export function requestFinder(rows: readonly HeadRow[], callers: KnownCallers | null): FindRequest {
  const lineOf = lineFinder(rows);
  return (head) => {
    const line = lineOf(head);
    if (line === null) return null;
    const { found, isRefused, query, row } = line;
    const caller = callerFrom(callers, head.credential);
    if (head.bodyBytes > 0 && isRefused) return null;
    const { at, path } = found;
    const isDenied = callers !== null && decideAccess(caller, row, path.collection_name ?? null) !== null;
    return isDenied && head.bodyBytes > DENIED_BYTES_MAX ? null : { at, path, query, caller };
  };
}

/** Finds what a line asks for; null: it is handed on. The latest lines are known, but for those that name a point: of these there are too many. */
function lineFinder(rows: readonly HeadRow[]): (head: RequestHead) => AskedLine | null {
  const findRoute = routeFinder(rows);
  const latest = new Latest<AskedLine>();
  return ({ method, path, query: text, url }) => {
    for (const line of latest.items) if (line.url === url && line.method === method) return line;
    const found = findRoute(method, path);
    if (found === null) return null;
    const row = rows[found.at] as HeadRow;
    if (row.kind === 'upload' || row.kind === 'download') return null;
    const query = parseQueryString(text);
    const line: AskedLine = { method, url, found, row, query, isRefused: isRefused(row, found.path, query) };
    if (found.path.id === undefined) latest.add(line);
    return line;
  };
}

function isRefused(row: HeadRow, path: FoundRoute['path'], query: QueryParameters): boolean {
  try {
    checkHead(row, path, query);
    return false;
  } catch (error) {
    if (error instanceof TroupeError) return true;
    throw error;
  }
}
