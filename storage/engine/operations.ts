/** Carries out one read operation on snapshots: decode, run, encode. */

import { TroupeError } from '../../protocols/errors.js';
import { decodeMessage } from '../../protocols/grpc/decode.js';
import { schema } from '../../protocols/grpc/schema.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { decodeFacet } from '../../protocols/rest/facet.js';
import { decodeQueryGroups, decodeRecommendGroups, decodeSearchGroups } from '../../protocols/rest/groups.js';
import { decodeMatrix } from '../../protocols/rest/matrix.js';
import {
  decodeCount,
  decodeGetPoint,
  decodeQuery,
  decodeQueryBatch,
  decodeRetrieve,
  decodeScroll,
  decodeSearch,
  decodeSearchBatch,
} from '../../protocols/rest/queries.js';
import { decodeDiscover, decodeDiscoverBatch, decodeRecommend, decodeRecommendBatch } from '../../protocols/rest/recommend.js';
import { plainBody, type RequestValue, scannedBody } from '../../protocols/rest/request-value.js';
import { encodeResult } from './encode.js';
import { encodeGrpcResult } from './encode-grpc.js';
import { facet } from './facet.js';
import { queryGroups } from './groups.js';
import { type DistanceMatrix, distanceMatrix } from './matrix.js';
import type { RawRequest, ReadOperation } from './messages.js';
import { count, retrieve, scroll } from './points.js';
import { runQuery } from './query.js';
import type { PointView, ReadResult } from './result.js';
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
export function runRead(operation: ReadOperation, { body, message, path }: RawRequest, context: ReadContext): Uint8Array {
  if (message === undefined) return encodeResult(resultOf(operation, body, path, context));
  const request = decodeMessage(schema().message(message), body ?? NO_BODY);
  return encodeGrpcResult(resultOf(operation, request, path, context), operation === 'retrieve' || operation === 'scroll');
}

const NO_BODY = new Uint8Array(0);

function resultOf(
  operation: ReadOperation,
  body: Uint8Array | RequestValue | null,
  path: RawRequest['path'],
  context: ReadContext,
): ReadResult {
  const { snapshots } = context;
  switch (operation) {
    case 'query':
      return { kind: 'queried', points: runQuery(context, decodeQuery(scannedBody(body))) };
    case 'search':
      return { kind: 'points', points: runQuery(context, decodeSearch(scannedBody(body))) };
    case 'queryBatch':
      return { kind: 'queriedLists', lists: decodeQueryBatch(scannedBody(body)).map((query) => runQuery(context, query)) };
    case 'searchBatch':
      return { kind: 'pointLists', lists: decodeSearchBatch(scannedBody(body)).map((query) => runQuery(context, query)) };
    case 'recommend':
      return { kind: 'points', points: runQuery(context, decodeRecommend(scannedBody(body))) };
    case 'recommendBatch':
      return { kind: 'pointLists', lists: decodeRecommendBatch(scannedBody(body)).map((query) => runQuery(context, query)) };
    case 'discover':
      return { kind: 'points', points: runQuery(context, decodeDiscover(scannedBody(body))) };
    case 'discoverBatch':
      return { kind: 'pointLists', lists: decodeDiscoverBatch(scannedBody(body)).map((query) => runQuery(context, query)) };
    case 'queryGroups':
      return { kind: 'groups', groups: queryGroups(context, decodeQueryGroups(scannedBody(body))) };
    case 'searchGroups':
      return { kind: 'groups', groups: queryGroups(context, decodeSearchGroups(scannedBody(body))) };
    case 'recommendGroups':
      return { kind: 'groups', groups: queryGroups(context, decodeRecommendGroups(scannedBody(body))) };
    case 'retrieve':
      return { kind: 'points', points: retrieve(snapshots, decodeRetrieve(plainBody(body))) };
    case 'getPoint':
      return { kind: 'point', point: getPoint(snapshots, path.id ?? '') };
    case 'scroll':
      return { kind: 'scrolled', ...scroll(snapshots, decodeScroll(plainBody(body))) };
    case 'count':
      return { kind: 'count', count: count(snapshots, decodeCount(plainBody(body))) };
    case 'facet':
      return { kind: 'facet', hits: facet(snapshots, decodeFacet(plainBody(body))) };
    case 'matrixPairs':
      return pairsOf(distanceMatrix(snapshots, decodeMatrix(plainBody(body)), context.random));
    case 'matrixOffsets':
      return offsetsOf(distanceMatrix(snapshots, decodeMatrix(plainBody(body)), context.random));
    default:
      return operation satisfies never;
  }
}

function getPoint(snapshots: readonly ReplicaSnapshot[], text: string): PointView {
  const query = decodeGetPoint(text);
  const [point] = retrieve(snapshots, query);
  if (point === undefined) throw new TroupeError('notFound', `Point with id ${query.ids[0]} does not exists!`);
  return point;
}

function pairsOf({ ids, neighbours }: DistanceMatrix): ReadResult {
  const pairs = neighbours.flatMap((list, from) =>
    list.map(({ at, score }) => ({ a: ids[from] as PointId, b: ids[at] as PointId, score })),
  );
  return { kind: 'matrixPairs', pairs };
}

function offsetsOf({ ids, neighbours }: DistanceMatrix): ReadResult {
  const rows = neighbours.flatMap((list, from) => list.map(() => from));
  const flat = neighbours.flat();
  return { kind: 'matrixOffsets', rows, columns: flat.map(({ at }) => at), scores: flat.map(({ score }) => score), ids };
}
