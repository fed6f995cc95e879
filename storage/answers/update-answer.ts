/** The answer to a write request. */

import { stringifyJson } from '../../protocols/json.js';
import type { Written } from '../../protocols/model/update.js';
import type { RawRequest, SplitWrite } from '../threads/messages.js';
import { encodeGrpcUpdates } from './encode-grpc.js';

/**
 * The `result` of an answer: one object, or a list of one per part; or the message of the answer.
 * operations: the number of each operation of the request.
 */
export function updateAnswer(
  { message }: Pick<RawRequest, 'message'>,
  { listed, parts }: Pick<SplitWrite, 'parts' | 'listed'>,
  operations: readonly number[],
  status: Written['status'],
): Uint8Array {
  let at = 0;
  const last = parts.map((count) => {
    at += count;
    return operations[at - 1] ?? 0;
  });
  if (message !== undefined) return encodeGrpcUpdates(last, status);
  // What no shard has taken has no number.
  const results = last.map((operation) => (operation === 0 ? { status } : { operation_id: operation, status }));
  return Buffer.from(stringifyJson(listed ? results : results[0]), 'utf8');
}
