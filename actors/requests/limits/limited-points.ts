/** Applies the limits of collections and of the node to requests about points. */

import { TroupeError } from '../../../protocols/errors.js';
import type { RequestLimits } from '../../../protocols/model/limits.js';
import { checkToken, giveBackTokens, takeTokens } from '../../../storage/limits/tokens.js';
import { isWeighed } from '../../../storage/requests/weigh.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import type { MemoryRoom } from '../../context/memory-room.js';
import type { Clock, EnginePort, Timers } from '../../runtime/ports.js';
import type { Found } from '../collection-names.js';
import type { NodeApi } from '../node-api.js';
import type { CollectionLimits } from './collection-limits.js';
import { openGate } from './gate.js';
import { checkGrowth } from './growth.js';

type PointsApi = Pick<NodeApi, 'read' | 'write'>;

export interface LimitedParts {
  readonly limits: CollectionLimits;
  /** Finds a collection by name or alias. Errors: `notFound`. */
  readonly find: (name: string) => Found;
  readonly engine: Pick<EnginePort, 'weigh'>;
  /** `storage.performance.update_rate_limit`, the number of updates that run at a time; null for any number. */
  readonly updates: number | null;
  readonly room: MemoryRoom;
  readonly clock: Clock;
  readonly timers: Timers;
}

/**
 * Points with limits. What a limit says of a request's body is checked by whoever decodes it; here the request gets the limits, and the
 * tokens that it costs are taken. Errors: `rateLimited`, `busy`; those of `points`.
 */
export function limitedPoints(points: PointsApi, { clock, engine, find, limits, room, timers, updates }: LimitedParts): PointsApi {
  const gate = openGate(updates, clock, timers);

  async function limitedRead(found: Found, operation: ReadOperation, request: RawRequest, own: RequestLimits): Promise<RawRequest> {
    const limited = { ...request, limits: own };
    const tokens = limits.tokensOf(found, 'read');
    if (tokens === null) return limited;
    const cost = isWeighed(operation) ? await engine.weigh({ kind: 'read', operation, request: limited }) : 1;
    takeTokens(tokens, cost, clock.nowMs());
    return limited;
  }

  async function limitedWrite(found: Found, operation: WriteOperation, request: RawRequest, own: RequestLimits): Promise<RawRequest> {
    const limited = { ...request, limits: own };
    const tokens = limits.tokensOf(found, 'write');
    const params = (found.record?.config ?? found.entry?.config)?.params;
    if (tokens === null || params === undefined || request.paid !== undefined) return limited;
    const cost = isWeighed(operation) ? await engine.weigh({ kind: 'write', operation, request: limited, params }) : 1;
    takeTokens(tokens, cost, clock.nowMs());
    return limited;
  }

  /** Refuses what has not even the token of the smallest request: nobody looks into its body. */
  function checkRate(found: Found, kind: 'read' | 'write'): void {
    const tokens = limits.tokensOf(found, kind);
    if (tokens !== null) checkToken(tokens, clock.nowMs());
  }

  /** What is refused costs no tokens, also where they were taken before anybody knew. */
  function giveBack(found: Found, { paid }: RawRequest, error: unknown): void {
    const tokens = limits.tokensOf(found, 'write');
    const isRefused = error instanceof TroupeError && error.outcome === 'none';
    if (paid !== undefined && tokens !== null && isRefused) giveBackTokens(tokens, paid);
  }

  return {
    read: async (name, operation, request) => {
      const found = find(name);
      checkRate(found, 'read');
      const own = limits.ofRead(found);
      if (own === null) return points.read(name, operation, request);
      return points.read(name, operation, await limitedRead(found, operation, request, await own));
    },
    write: async (name, operation, wait, request) => {
      checkGrowth(room, operation, request.body?.byteLength ?? 0);
      const found = find(name);
      if (request.paid === undefined) checkRate(found, 'write');
      try {
        const own = limits.ofWrite(found, operation);
        const limited = own === null ? request : await limitedWrite(found, operation, request, await own);
        return await gate.enter(request.deadlineMs, () => points.write(name, operation, wait, limited));
      } catch (error) {
        giveBack(found, request, error);
        throw error;
      }
    },
  };
}
