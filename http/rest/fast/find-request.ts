/**
 * Finds the row that a plain head asks for. Node's HTTP server answers a request that is refused for its head before its body has come, so
 * such a request, if it has a body, is not for the plain path. Nor is one whose body or answer passes as a stream.
 */

import { TroupeError } from '../../../protocols/errors.js';
import type { QueryParameters } from '../../../protocols/rest/parameters.js';
import { checkHead, type HeadRow } from '../calls/check-head.js';
import { parseQueryString } from '../calls/query-string.js';
import { type FoundRoute, routeFinder } from './find-route.js';
import type { RequestHead } from './head.js';

export interface FoundRequest extends FoundRoute {
  readonly query: QueryParameters;
}

/** The row of the request and its parameters; null for a request that is handed on. */
export type FindRequest = (head: RequestHead) => FoundRequest | null;

export function requestFinder(rows: readonly HeadRow[]): FindRequest {
  const findRoute = routeFinder(rows);
  return (head) => {
    const found = findRoute(head.method, head.path);
    if (found === null) return null;
    const { at, path } = found;
    const row = rows[at] as HeadRow;
    if (row.kind === 'upload' || row.kind === 'download') return null;
    const query = parseQueryString(head.query);
    return head.bodyBytes > 0 && isRefused(row, path, query) ? null : { at, path, query };
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
