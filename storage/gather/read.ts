/** Answers one read operation from what the shards of many nodes answer: decode, ask, merge, encode. */

import { encodeRead } from '../answers/read-answer.js';
import { decodeRead, type ReadRequest } from '../requests/read-request.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { readWalk } from '../walk/read.js';
import type { GatherContext } from './context.js';
import { walkShards } from './shard-answers.js';

/** As `runRead` of `../reader/operations.ts`. */
export async function gatherRead(operation: ReadOperation, request: RawRequest, context: GatherContext): Promise<Uint8Array> {
  return gatherDecoded(operation, request, decodeRead(operation, request), context);
}

/** The same of a request that was decoded. */
export async function gatherDecoded(
  operation: ReadOperation,
  request: RawRequest,
  read: ReadRequest,
  context: GatherContext,
): Promise<Uint8Array> {
  return encodeRead(operation, request, await walkShards(context, (scope) => readWalk(scope, read)));
}
