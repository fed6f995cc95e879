/** Answers one read operation from what the shards of many nodes answer: decode, ask, merge, encode. */

import { encodeRead, matrixResult, pointResult, queriedResult } from '../answers/read-answer.js';
import type { ReadResult } from '../answers/result.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { allInOrder, type GatherContext, within } from './context.js';
import { queryGroups } from './groups.js';
import { distanceMatrix } from './matrix.js';
import { count, facet, retrieve, scroll } from './points.js';
import { runQuery } from './query.js';

/** As `runRead` of `../operations.ts`. */
export async function gatherRead(operation: ReadOperation, request: RawRequest, context: GatherContext): Promise<Uint8Array> {
  return encodeRead(operation, request, await resultOf(decodeRead(operation, request), context));
}

async function resultOf(read: ReadRequest, context: GatherContext): Promise<ReadResult> {
  switch (read.kind) {
    case 'queries': {
      const lists = read.queries.map(async (query) => runQuery(within(context, query.shardKey), query));
      return queriedResult(read.answer, await allInOrder(lists));
    }
    case 'groups':
      return { kind: 'groups', groups: await queryGroups(within(context, read.request.shardKey), read.request) };
    case 'retrieve':
      return { kind: 'points', points: await retrieve(within(context, read.query.shardKey), read.query) };
    case 'point':
      return pointResult(read.query, await retrieve(context, read.query));
    case 'scroll':
      return { kind: 'scrolled', ...(await scroll(within(context, read.query.shardKey), read.query)) };
    case 'count':
      return { kind: 'count', count: await count(within(context, read.query.shardKey), read.query) };
    case 'facet':
      return { kind: 'facet', hits: await facet(within(context, read.query.shardKey), read.query) };
    case 'matrix':
      return matrixResult(read.answer, await distanceMatrix(within(context, read.query.shardKey), read.query));
    default:
      return read satisfies never;
  }
}
