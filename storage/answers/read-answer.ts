/** What a read answers once its parts are known, and its bytes. */

import { TroupeError } from '../../protocols/errors.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { RetrieveQuery } from '../../protocols/model/query.js';
import type { ReadRequest } from '../requests/read-request.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { encodeResult } from './encode.js';
import { encodeGrpcResult } from './encode-grpc.js';
import type { PointView, ReadResult } from './result.js';

/** Similarities within a sample. */
export interface DistanceMatrix {
  /** The sample in id order; empty when there are not two points. */
  readonly ids: readonly PointId[];
  /** For each of them, its nearest in the sample, best first: positions in `ids`. */
  readonly neighbours: readonly (readonly { readonly at: number; readonly score: number }[])[];
}

/** JSON of the `result`, or the message of the answer. */
export function encodeRead(operation: ReadOperation, { message }: RawRequest, result: ReadResult): Uint8Array {
  return message === undefined ? encodeResult(result) : encodeGrpcResult(result, operation === 'retrieve' || operation === 'scroll');
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

export function matrixResult(answer: 'pairs' | 'offsets', { ids, neighbours }: DistanceMatrix): ReadResult {
  if (answer === 'pairs') {
    const pairs = neighbours.flatMap((list, from) =>
      list.map(({ at, score }) => ({ a: ids[from] as PointId, b: ids[at] as PointId, score })),
    );
    return { kind: 'matrixPairs', pairs };
  }
  const rows = neighbours.flatMap((list, from) => list.map(() => from));
  const flat = neighbours.flat();
  return { kind: 'matrixOffsets', rows, columns: flat.map(({ at }) => at), scores: flat.map(({ score }) => score), ids };
}
