/** Carries out one read operation on snapshots: decode, run, encode. */

import { TroupeError } from '../../protocols/errors.js';
import type { PointsQuery } from '../../protocols/model/query.js';
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
import {
  encodeCount,
  encodePoint,
  encodePointLists,
  encodePoints,
  encodeQueryResult,
  encodeQueryResults,
  encodeScroll,
  type PointView,
} from './encode.js';
import type { RawRequest, ReadOperation } from './messages.js';
import { count, list, retrieve, scroll } from './points.js';
import { searchNearest } from './search.js';
import type { ReplicaSnapshot } from './snapshot-view.js';

/** The `result` bytes. snapshots: one of each replica, at least one. Errors: what decoding and running throw. */
export function runRead(operation: ReadOperation, request: RawRequest, snapshots: readonly ReplicaSnapshot[]): Uint8Array {
  const { body } = request;
  switch (operation) {
    case 'query':
      return encodeQueryResult(runQuery(snapshots, decodeQuery(body)));
    case 'search':
      return encodePoints(searchNearest(snapshots, decodeSearch(body)));
    case 'queryBatch':
      return encodeQueryResults(decodeQueryBatch(body).map((query) => runQuery(snapshots, query)));
    case 'searchBatch':
      return encodePointLists(decodeSearchBatch(body).map((query) => searchNearest(snapshots, query)));
    case 'retrieve':
      return encodePoints(retrieve(snapshots, decodeRetrieve(body)));
    case 'getPoint':
      return encodePoint(getPoint(snapshots, request.path.id ?? ''));
    case 'scroll': {
      const { points, next } = scroll(snapshots, decodeScroll(body));
      return encodeScroll(points, next);
    }
    case 'count':
      return encodeCount(count(snapshots, decodeCount(body)));
    default:
      return assertNever(operation);
  }
}

function runQuery(snapshots: readonly ReplicaSnapshot[], query: PointsQuery): PointView[] {
  return query.kind === 'list' ? list(snapshots, query.query) : searchNearest(snapshots, query.query);
}

function getPoint(snapshots: readonly ReplicaSnapshot[], text: string): PointView {
  const query = decodeGetPoint(text);
  const [point] = retrieve(snapshots, query);
  if (point === undefined) throw new TroupeError('notFound', `Point with id ${query.ids[0]} does not exists!`);
  return point;
}

function assertNever(value: never): never {
  throw new Error(`unknown operation ${JSON.stringify(value)}`);
}
