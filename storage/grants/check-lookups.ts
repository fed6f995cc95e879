/** The collections that a read names beside its own, for requests that may name only some. */

import { TroupeError } from '../../protocols/errors.js';
import type { QueryNode } from '../../protocols/model/query.js';
import type { Grants } from '../../protocols/model/scope.js';
import type { ReadRequest } from '../requests/read-request.js';

/** Errors: `forbidden` for the first collection or alias that is not among the grants, whether it exists or not. */
export function checkLookups(read: ReadRequest, grants: Grants): void {
  switch (read.kind) {
    case 'queries':
      for (const query of read.queries) checkQuery(query, grants);
      return;
    case 'groups':
      checkQuery(read.request, grants);
      if (read.request.withLookup !== null) check(read.request.withLookup.collection, grants);
      return;
    case 'retrieve':
    case 'point':
    case 'scroll':
    case 'count':
    case 'facet':
    case 'matrix':
      return;
    default:
      read satisfies never;
  }
}

function checkQuery({ lookupFrom, prefetch }: QueryNode, grants: Grants): void {
  if (lookupFrom !== null) check(lookupFrom.collection, grants);
  for (const inner of prefetch) checkQuery(inner, grants);
}

function check(collection: string, grants: Grants): void {
  if (!grants.has(collection)) throw new TroupeError('forbidden', `Access to collection ${collection} is required`);
}
