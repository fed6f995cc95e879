/** Limits of a collection in strict mode on reads. Source: specification, strict mode; contract, scenarios strict-query-limits and strict-filters. */

import type { StrictModeConfig } from '../../protocols/model/collection.js';
import type { RequestLimits } from '../../protocols/model/limits.js';
import type { QueryNode, SearchParams } from '../../protocols/model/query.js';
import type { ReadRequest } from '../requests/read-request.js';
import { checkFilter, checkFormula } from './check-filter.js';
import { checkLongest, checkMost, overLimit } from './exceeded.js';

/** Checks a decoded read. timeoutSeconds: as the client has given it. Errors: `badRequest` for the first limit that it goes beyond. */
export function checkReadLimits(read: ReadRequest, limits: RequestLimits, timeoutSeconds: number | undefined): void {
  const { strict } = limits;
  checkLongest(timeoutSeconds, strict);
  switch (read.kind) {
    case 'queries':
      if (read.answer === 'pointLists' || read.answer === 'queriedLists')
        checkMost('search_max_batchsize', 'search batch size', read.queries.length, strict.search_max_batchsize);
      for (const query of read.queries) checkQuery(query, query.limit, limits);
      return;
    case 'groups':
      checkQuery(read.request, read.request.limit * read.request.groupSize, limits);
      return;
    case 'matrix':
      checkLimit(read.query.sample * read.query.limit, strict);
      break;
    case 'scroll':
      if (read.query.isLimitDefault !== true) checkLimit(read.query.limit, strict);
      break;
    case 'facet':
      checkLimit(read.query.limit, strict);
      checkExact(read.query.exact, strict);
      break;
    case 'count':
      checkExact(read.query.exact, strict);
      break;
    case 'retrieve':
    case 'point':
      return;
    default:
      read satisfies never;
  }
  checkFilter(read.query.filter, limits, 'unindexed_filtering_retrieve');
}

/** limit: of points in the answer. */
function checkQuery(query: QueryNode, limit: number, limits: RequestLimits): void {
  checkLimit(limit, limits.strict);
  checkParams(query.params, limits.strict);
  checkFilter(query.filter, limits, 'unindexed_filtering_retrieve');
  if (query.query?.kind === 'formula') checkFormula(query.query.expression, limits);
  for (const prefetch of query.prefetch) checkQuery(prefetch, prefetch.limit, limits);
}

function checkLimit(limit: number, { max_query_limit: max }: StrictModeConfig): void {
  checkMost('max_query_limit', 'limit', limit, max);
}

function checkParams({ exact, hnswEf, quantization }: SearchParams, strict: StrictModeConfig): void {
  checkExact(exact, strict);
  if (hnswEf !== null) checkMost('search_max_hnsw_ef', 'hnsw_ef', hnswEf, strict.search_max_hnsw_ef);
  const { oversampling } = quantization;
  if (oversampling !== null) checkMost('search_max_oversampling', 'oversampling', oversampling, strict.search_max_oversampling);
}

function checkExact(exact: boolean, { search_allow_exact: isAllowed }: StrictModeConfig): void {
  if (exact && isAllowed === false) throw overLimit('search_allow_exact', 'Exact search disabled!. Help: Set exact=false.');
}
