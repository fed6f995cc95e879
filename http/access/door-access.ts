/** Access to a node that has keys, as its main thread's doors ask for it. */

import { ANYONE, type Caller, isInDoubt } from './caller.js';
import { type AccessRow, checkAccess } from './decide.js';
import type { KnownCallers } from './known-callers.js';
import type { ExistingValues } from './value-exists.js';

export class DoorAccess {
  constructor(
    readonly callers: KnownCallers,
    private readonly values: ExistingValues,
  ) {}

  /**
   * Lets a caller carry an operation out; collection: as in `decideAccess`. Null, or a promise where it has to be looked up first. Errors, also
   * thrown: `unauthorized`, `tokenRefused`, `forbidden`; those of looking it up.
   */
  admit(caller: Caller, operation: AccessRow, collection: string | undefined): Promise<void> | null {
    checkAccess(caller, operation, collection ?? null);
    return isInDoubt(caller) && operation.access !== 'open' ? this.values.confirm(caller) : null;
  }
}

/** callers: null where there are no keys. */
export function callerFrom(callers: KnownCallers | null | undefined, credential: string | null): Caller {
  return callers == null ? ANYONE : callers.callerOf(credential);
}
