/**
 * What a request costs where the rate of requests is limited: as much as it would if its parts came one by one, so that putting
 * them together does not lead past a limit. Source: contract, scenario strict-rate-limits, which has points of an upsert, searches of a
 * batch and prefetches; all else follows from them.
 */

import type { QueryNode } from '../../protocols/model/query.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import type { ReadOperation, WeighJob, WriteOperation } from '../threads/messages.js';
import { decodeWriteRequest } from './decode-update.js';
import { decodeRead, type ReadRequest } from './read-request.js';

/** Whether requests of an operation cost one token each, or what their body says. */
const COSTS: Readonly<Record<ReadOperation | WriteOperation, 'one' | 'weighed'>> = {
  retrieve: 'weighed',
  getPoint: 'one',
  scroll: 'one',
  count: 'one',
  query: 'weighed',
  queryBatch: 'weighed',
  queryGroups: 'weighed',
  search: 'one',
  searchBatch: 'weighed',
  searchGroups: 'one',
  recommend: 'one',
  recommendBatch: 'weighed',
  recommendGroups: 'one',
  discover: 'one',
  discoverBatch: 'weighed',
  facet: 'one',
  matrixPairs: 'weighed',
  matrixOffsets: 'weighed',
  upsertPoints: 'weighed',
  deletePoints: 'weighed',
  updateVectors: 'weighed',
  deleteVectors: 'weighed',
  setPayload: 'weighed',
  overwritePayload: 'weighed',
  deletePayload: 'weighed',
  clearPayload: 'weighed',
  batchUpdate: 'weighed',
  createFieldIndex: 'one',
  deleteFieldIndex: 'one',
};

/** Whether it takes a look into the body to know what the request costs; otherwise it costs 1. */
export function isWeighed(operation: ReadOperation | WriteOperation): boolean {
  return COSTS[operation] === 'weighed';
}

/** At least 1. Errors: those of decoding. */
export function weightOf(job: WeighJob): number {
  if (job.kind === 'read') return Math.max(1, readWeight(decodeRead(job.operation, job.request)));
  return Math.max(1, sum(decodeWriteRequest(job.operation, job.request, job.params).operations, updateWeight));
}

function readWeight(read: ReadRequest): number {
  switch (read.kind) {
    case 'queries':
      return sum(read.queries, searches);
    case 'groups':
      return searches(read.request);
    case 'retrieve':
    case 'point':
      return read.query.ids.length;
    // A search for each point of the sample.
    case 'matrix':
      return read.query.sample;
    case 'scroll':
    case 'count':
    case 'facet':
      return 1;
    default:
      return read satisfies never;
  }
}

/** What has prefetches looks at nothing but what they find. */
function searches({ prefetch }: QueryNode): number {
  return prefetch.length === 0 ? 1 : sum(prefetch, searches);
}

/** Points that are named; a filter, or an index, counts as one. */
function updateWeight(operation: UpdateOperation): number {
  if ('batch' in operation) return operation.batch.ids.length;
  return 'selector' in operation && operation.selector.kind === 'ids' ? operation.selector.ids.length : 1;
}

function sum<Item>(items: readonly Item[], weight: (item: Item) => number): number {
  return items.reduce((total, item) => total + weight(item), 0);
}
