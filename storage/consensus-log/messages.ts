/** Between the thread that keeps a consensus log and the one that asks it to. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { StoredConsensus } from '../../protocols/model/consensus.js';

export type ToKeeper =
  | { readonly kind: 'load' }
  /** Packed changes (`changes.ts`) of one or more writes: one transaction. */
  | { readonly kind: 'write'; readonly changes: readonly Uint8Array[] }
  /** The last message: the thread ends. */
  | { readonly kind: 'close' };

/** One for each message, in their order. */
export type FromKeeper =
  | { readonly kind: 'loaded'; readonly stored: StoredConsensus }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: ErrorFacts };
