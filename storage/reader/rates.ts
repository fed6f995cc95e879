/** What a thread with connections decides by itself where a collection limits the rate of its requests. */

import { type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import { effortNs, HEAVY_NS } from '../../query/effort.js';
import { giveBackTokens, lackOf, type SharedTokens, takeOrLack, takeTokens } from '../limits/tokens.js';
import { isWeighed, weightOf } from '../requests/weigh.js';
import { steadyNowMs } from '../threads/clock.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../threads/messages.js';

/** Takes the tokens of a read; what comes back gives them back. Errors: `rateLimited`; those of decoding. */
export function paid(tokens: SharedTokens | null, operation: ReadOperation, request: RawRequest): () => void {
  if (tokens === null) return () => {};
  const cost = isWeighed(operation) ? weightOf({ kind: 'read', operation, request }) : 1;
  takeTokens(tokens, cost, steadyNowMs());
  return () => giveBackTokens(tokens, cost);
}

interface AskedWrite {
  readonly operation: WriteOperation;
  /** Its body is not changed. */
  readonly request: () => RawRequest;
  readonly params: CollectionParams;
}

/**
 * Takes the tokens of a write, and returns how many; or why there are too few (`rateLimited`). 0: the main thread decides. Only the taking itself
 * says for sure whether a bucket has enough: a token that comes back is seen by all threads, and each would hand a write on for it.
 */
export function payWrite(tokens: SharedTokens, { operation, params, request }: AskedWrite, nowMs: number): number | ErrorFacts {
  const lack = lackOf(tokens, nowMs);
  if (lack !== null) return lack;
  const cost = isWeighed(operation) ? weightHere(operation, request(), params) : 1;
  return cost === 0 ? 0 : (takeOrLack(tokens, cost, nowMs) ?? cost);
}

/** 0 for a write whose body takes long to decode, since others are not heard meanwhile, or is wrong, which is told as without limits. */
function weightHere(operation: WriteOperation, request: RawRequest, params: CollectionParams): number {
  if (effortNs({ kind: 'decode', bytes: request.body?.byteLength ?? 0 }) > HEAVY_NS) return 0;
  try {
    return weightOf({ kind: 'write', operation, request, params });
  } catch (error) {
    if (error instanceof TroupeError) return 0;
    throw error;
  }
}
