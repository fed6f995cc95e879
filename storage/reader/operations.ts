/** Carries out one read operation on snapshots: decode, run, encode. */

import type { KeyedShard, ShardKeySelector } from '../../protocols/model/cluster.js';
import { encodeRead, matrixResult, pointResult, queriedResult } from '../answers/read-answer.js';
import type { ReadResult } from '../answers/result.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { facet } from './query/facet.js';
import { queryGroups } from './query/groups.js';
import { distanceMatrix } from './query/matrix.js';
import { count, retrieve, scroll } from './query/points.js';
import { runQuery } from './query/query.js';
import { chosenSnapshots } from './snapshot/chosen-shards.js';
import type { ReplicaSnapshot } from './snapshot/snapshot-view.js';

/** What a read works on. */
export interface ReadContext {
  /** One of each replica of the collection, at least one. */
  readonly snapshots: readonly ReplicaSnapshot[];
  /** Shards of the collection with their keys; absent: it has none. */
  readonly keyed?: readonly KeyedShard[] | undefined;
  /** The same of another collection or alias, of all its shards or those chosen. Errors: `notFound`; those of `chosenSnapshots`. */
  readonly lookup: (collection: string, shardKey?: ShardKeySelector) => readonly ReplicaSnapshot[];
  /** 0 <= n < 1. */
  readonly random: () => number;
}

/** JSON of the `result`, or the message of the answer. Errors: what decoding and running throw. */
export function runRead(operation: ReadOperation, request: RawRequest, context: ReadContext): Uint8Array {
  return encodeRead(operation, request, resultOf(decodeRead(operation, request), context));
}

function resultOf(read: ReadRequest, context: ReadContext): ReadResult {
  const within = (shardKey: ShardKeySelector | undefined): ReadContext => chosenOf(context, shardKey);
  switch (read.kind) {
    case 'queries':
      return queriedResult(
        read.answer,
        read.queries.map((query) => runQuery(within(query.shardKey), query)),
      );
    case 'groups':
      return { kind: 'groups', groups: queryGroups(within(read.request.shardKey), read.request) };
    case 'retrieve':
      return { kind: 'points', points: retrieve(within(read.query.shardKey).snapshots, read.query) };
    case 'point':
      return pointResult(read.query, retrieve(context.snapshots, read.query));
    case 'scroll':
      return { kind: 'scrolled', ...scroll(within(read.query.shardKey).snapshots, read.query) };
    case 'count':
      return { kind: 'count', count: count(within(read.query.shardKey).snapshots, read.query) };
    case 'facet':
      return { kind: 'facet', hits: facet(within(read.query.shardKey).snapshots, read.query) };
    case 'matrix':
      return matrixResult(read.answer, distanceMatrix(within(read.query.shardKey).snapshots, read.query, context.random));
    default:
      return read satisfies never;
  }
}

function chosenOf(context: ReadContext, shardKey: ShardKeySelector | undefined): ReadContext {
  return shardKey === undefined ? context : { ...context, snapshots: chosenSnapshots(context.snapshots, context.keyed, shardKey) };
}
