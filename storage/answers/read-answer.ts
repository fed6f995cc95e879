/** What a read answers once its parts are known, and its bytes. */

import { TroupeError } from '../../protocols/errors.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { RetrieveQuery } from '../../protocols/model/query.js';
import type { ReadRequest } from '../requests/read-request.js';
import { NO_LIMITS } from '../threads/deadline.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { encodeResult } from './encode.js';
import { encodeGrpcResult } from './encode-grpc.js';
import type { PointView, ReadResult } from './result.js';

/** Similarities within a sample. */
export interface DistanceMatrix {
  /** The sample in id order; empty when there are not two points. */
  readonly ids: readonly PointId[];
  /** For each of them, its nearest in the sample, best first. Columns, as there may be as many as the sample has pairs. */
  readonly neighbours: readonly MatrixRow[];
}

/** The nearest of one point of a sample. at: positions in the sample. Both have one length. */
export interface MatrixRow {
  readonly at: Uint32Array;
  readonly scores: Float32Array;
}

/** JSON of the `result`, or the message of the answer. Errors: those of the limits. */
export function encodeRead(operation: ReadOperation, { message }: RawRequest, result: ReadResult, limits = NO_LIMITS): Uint8Array {
  if (message === undefined) return encodeResult(result, limits);
  return encodeGrpcResult(result, operation === 'retrieve' || operation === 'scroll', limits);
}

/** lists: of each query, in their order. */
export function queriedResult(answer: Extract<ReadRequest, { kind: 'queries' }>['answer'], lists: readonly PointView[][]): ReadResult {
  switch (answer) {
    case 'points':
    case 'queried':
      return { kind: answer, points: lists[0] as PointView[] };
    case 'pointLists':
    case 'queriedLists':
      return { kind: answer, lists };
    default:
      return answer satisfies never;
  }
}

/** Errors: `notFound`. */
export function pointResult(query: RetrieveQuery, points: readonly PointView[]): ReadResult {
  const [point] = points;
  if (point === undefined) throw new TroupeError('notFound', `Point with id ${query.ids[0]} does not exists!`);
  return { kind: 'point', point };
}
