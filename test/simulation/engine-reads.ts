/** Answers of the simulation's engine to reads that find points by id. */

import { compareIds, pointIdFrom } from '../../protocols/model/point-id.js';
import type { RawRequest, ReadOperation } from '../../storage/engine/messages.js';
import { pointsOf, type ShownPoint, type StoredReplica } from './replica-files.js';

interface ReadBody {
  readonly ids?: readonly unknown[];
  readonly limit?: number;
  readonly offset?: unknown;
}

/** JSON of the result. */
export function answerRead(operation: ReadOperation, request: RawRequest, replicas: readonly StoredReplica[]): Uint8Array {
  const body = request.body === null ? {} : (JSON.parse(Buffer.from(request.body).toString('utf8')) as ReadBody);
  return Buffer.from(JSON.stringify(resultOf(operation, body, replicas)), 'utf8');
}

function resultOf(operation: ReadOperation, { ids = [], limit = 10, offset }: ReadBody, replicas: readonly StoredReplica[]): unknown {
  switch (operation) {
    case 'retrieve': {
      const points = new Map(pointsOf(replicas).map((point) => [point.id, point]));
      return ids.flatMap((id) => shown(points.get(pointIdFrom(id) ?? -1)));
    }
    case 'scroll': {
      const from = offset == null ? undefined : pointIdFrom(offset);
      const behind = pointsOf(replicas).filter(({ id }) => from === undefined || compareIds(id, from) >= 0);
      return { points: behind.slice(0, limit).flatMap(shown), next_page_offset: behind[limit]?.id ?? null };
    }
    case 'count':
      return { count: pointsOf(replicas).length };
    default:
      throw new Error(`the simulation's engine knows no ${operation}`);
  }
}

function shown(point: ShownPoint | undefined): unknown[] {
  return point === undefined ? [] : [{ id: point.id, payload: point.payload }];
}
