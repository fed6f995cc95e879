/** A read as the grants of its token let it be: the collections that it names, and a tenant's points alone. */

import { TroupeError } from '../../protocols/errors.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { QueryNode } from '../../protocols/model/query.js';
import type { Grants } from '../../protocols/model/scope.js';
import { bothFilters } from '../../query/filter/combine.js';
import type { ReadRequest } from '../requests/read-request.js';
import { ownGrant } from './own-grant.js';
import { tenantFilter } from './tenant-filter.js';

/**
 * The read, for a tenant with its filter on whatever it asks for. collection: the asked one, as the request names it. Errors: `forbidden`
 * for the first collection or alias that is not among the grants, whether it exists or not, and for lookups among the points of a tenant.
 */
export function restrictRead(read: ReadRequest, grants: Grants, collection: string | undefined): ReadRequest {
  const { tenant } = ownGrant(grants, collection);
  checkLookups(read, grants);
  return tenant === null ? read : within(read, tenantFilter(tenant));
}

/** The levels below one inherit its filter. */
function within(read: ReadRequest, filter: Filter): ReadRequest {
  const narrowed = <Query extends { readonly filter: Filter | null }>(query: Query): Query => ({
    ...query,
    filter: bothFilters(query.filter, filter),
  });
  switch (read.kind) {
    case 'queries':
      return { ...read, queries: read.queries.map(narrowed), within: filter };
    case 'groups':
      return { ...read, request: narrowed(read.request), within: filter };
    case 'retrieve':
    case 'point':
      return { ...read, within: filter };
    case 'scroll':
      return { ...read, query: narrowed(read.query) };
    case 'count':
      return { ...read, query: narrowed(read.query) };
    case 'facet':
      return { ...read, query: narrowed(read.query) };
    case 'matrix':
      return { ...read, query: narrowed(read.query) };
    default:
      return read satisfies never;
  }
}

function checkLookups(read: ReadRequest, grants: Grants): void {
  switch (read.kind) {
    case 'queries':
      for (const query of read.queries) checkQuery(query, grants);
      return;
    case 'groups':
      checkQuery(read.request, grants);
      if (read.request.withLookup !== null) checkLookup(read.request.withLookup.collection, grants);
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
  if (lookupFrom !== null) checkLookup(lookupFrom.collection, grants);
  for (const inner of prefetch) checkQuery(inner, grants);
}

function checkLookup(collection: string, grants: Grants): void {
  const grant = grants.get(collection);
  if (grant === undefined) throw new TroupeError('forbidden', `Access to collection ${collection} is required`);
  if (grant.tenant !== null)
    throw new TroupeError('forbidden', `Access to all points of collection ${collection} is required to look points up`);
}
