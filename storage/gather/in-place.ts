/** Reads over many nodes that are decoded and merged in the thread that has the request: giving them to another one costs more. */

import type { VectorSelector } from '../../protocols/model/filter.js';
import type { QueryRequest } from '../../protocols/model/query.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import { steadyNowMs } from '../threads/clock.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import type { GatherAccess } from './access.js';
import type { GatherActs } from './context.js';
import { gatherDecoded } from './read.js';

/** Bodies that are larger take longer to decode than to hand over. */
const BODY_BYTES_MAX = 32 << 10;
/** Points of an answer, and of one with vectors: printing a vector takes as long as all else that is shown of a point. */
const POINTS_MAX = 64;
const POINTS_WITH_VECTORS_MAX = 8;

/** The request, decoded, if it is small enough to be answered in this thread; null: it is not. Errors: those of `decodeRead`. */
export function smallRead(operation: ReadOperation, request: RawRequest): ReadRequest | null {
  if ((request.body?.byteLength ?? 0) > BODY_BYTES_MAX) return null;
  const read = decodeRead(operation, request);
  return isSmall(read) ? read : null;
}

/** What the read answers. thread: this one, for explanations. Errors: those of its parts; `timeout`. */
export function gatherInPlace(
  operation: ReadOperation,
  request: RawRequest,
  read: ReadRequest,
  access: GatherAccess,
  thread: string,
): Promise<Uint8Array> {
  const acts: GatherActs = {
    place: access.place,
    isPlain: access.isPlain,
    locate: async (collection) => access.locate(collection),
    scatter: access.scatter,
    expired: () => steadyNowMs() > request.deadlineMs,
    nowMs: () => performance.now(),
    // It asks for one thing at a time.
    later: queueMicrotask,
    random: Math.random,
  };
  return gatherDecoded(operation, request, read, acts, { thread, startedMs: performance.now() });
}

/** Whether nodes are asked once or twice, and answer with few points. Facets are not: nodes answer with all values. */
function isSmall(read: ReadRequest): boolean {
  switch (read.kind) {
    case 'queries':
      return read.queries.length === 1 && isSmallQuery(read.queries[0] as QueryRequest);
    case 'retrieve':
      return fits(read.query.ids.length, read.query.withVector);
    case 'scroll':
      return fits(read.query.limit, read.query.withVector);
    case 'point':
    case 'count':
      return true;
    case 'groups':
    case 'facet':
    case 'matrix':
      return false;
    default:
      return read satisfies never;
  }
}

function isSmallQuery({ limit, offset, prefetch, query, withVector }: QueryRequest): boolean {
  if (prefetch.length > 0 || !fits(offset + limit, withVector)) return false;
  return query === null || query.kind === 'orderBy' || (query.kind === 'nearest' && query.mmr === null);
}

function fits(points: number, { kind }: VectorSelector): boolean {
  return points <= (kind === 'none' ? POINTS_MAX : POINTS_WITH_VECTORS_MAX);
}
