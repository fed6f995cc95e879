/** How a thread with connections has a write pay for its rate, whichever way the write came. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { Reader } from '../../storage/reader/reader.js';
import type { RawRequest, WriteOperation } from '../../storage/threads/messages.js';
import { type Caller, isInDoubt } from '../access/caller.js';

/** A write that its way has checked. */
export interface PayingWrite {
  /** Of the collection, or an alias. */
  readonly name: string;
  readonly request: () => RawRequest;
}

/**
 * The tokens that were taken for a write, or why it is refused (`rateLimited`). 0: the main thread decides. write: what it throws, the main thread
 * meets again, and tells it.
 */
export function paidFor(
  reader: Pick<Reader, 'payWrite'>,
  caller: Caller,
  operation: WriteOperation,
  write: () => PayingWrite,
): number | ErrorFacts {
  if (isInDoubt(caller)) return 0;
  try {
    const { name, request } = write();
    return reader.payWrite(name, operation, request);
  } catch {
    return 0;
  }
}
