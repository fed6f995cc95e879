/** Carries out one read operation on snapshots: decode, run, encode. */

import { encodeRead } from '../answers/read-answer.js';
import { decodeRead } from '../requests/read-request.js';
import { limitsOf } from '../threads/deadline.js';
import type { RawRequest, ReadOperation } from '../threads/messages.js';
import { readWalk } from '../walk/read.js';
import { walkRows } from './query/row-answers.js';
import type { ReadContext } from './read-context.js';

/** JSON of the `result`, or the message of the answer. Errors: what decoding and running throw. */
export function runRead(operation: ReadOperation, request: RawRequest, context: ReadContext): Uint8Array {
  const read = decodeRead(operation, request);
  return encodeRead(
    operation,
    request,
    walkRows(context, (scope) => readWalk(scope, read)),
    limitsOf(context.snapshots),
  );
}
