/** Carries out one read operation on snapshots: decode, run, encode. */

import { facet } from './facet.js';
import { queryGroups } from './groups.js';
import { distanceMatrix } from './matrix.js';
import type { RawRequest, ReadOperation } from './messages.js';
import { count, retrieve, scroll } from './points.js';
import { runQuery } from './query.js';
import { encodeRead, matrixResult, pointResult, queriedResult } from './read-answer.js';
import { decodeRead, type ReadRequest } from './read-request.js';
import type { ReadResult } from './result.js';
import type { ReplicaSnapshot } from './snapshot-view.js';

/** What a read works on. */
export interface ReadContext {
  /** One of each replica of the collection, at least one. */
  readonly snapshots: readonly ReplicaSnapshot[];
  /** The same of another collection or alias. Errors: `notFound`. */
  readonly lookup: (collection: string) => readonly ReplicaSnapshot[];
  /** 0 <= n < 1. */
  readonly random: () => number;
}

/** JSON of the `result`, or the message of the answer. Errors: what decoding and running throw. */
export function runRead(operation: ReadOperation, request: RawRequest, context: ReadContext): Uint8Array {
  return encodeRead(operation, request, resultOf(decodeRead(operation, request), context));
}

function resultOf(read: ReadRequest, context: ReadContext): ReadResult {
  const { snapshots } = context;
  switch (read.kind) {
    case 'queries':
      return queriedResult(
        read.answer,
        read.queries.map((query) => runQuery(context, query)),
      );
    case 'groups':
      return { kind: 'groups', groups: queryGroups(context, read.request) };
    case 'retrieve':
      return { kind: 'points', points: retrieve(snapshots, read.query) };
    case 'point':
      return pointResult(read.query, retrieve(snapshots, read.query));
    case 'scroll':
      return { kind: 'scrolled', ...scroll(snapshots, read.query) };
    case 'count':
      return { kind: 'count', count: count(snapshots, read.query) };
    case 'facet':
      return { kind: 'facet', hits: facet(snapshots, read.query) };
    case 'matrix':
      return matrixResult(read.answer, distanceMatrix(snapshots, read.query, context.random));
    default:
      return read satisfies never;
  }
}
