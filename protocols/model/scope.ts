/** The part of a node's collections that a token is limited to. */

import type { MatchValue } from './filter.js';

/** Binds a token to the points whose payload has this value at this key: it sees no other point, and writes none. */
export interface Tenant {
  /** A top-level key of the payload. */
  readonly key: string;
  readonly value: MatchValue;
}

/** What a token may do with one collection. */
export interface Grant {
  readonly access: 'r' | 'rw';
  /** Null: all its points. */
  readonly tenant: Tenant | null;
}

/** By the names that requests may use, of collections or aliases: whoever may use an alias may not use the collection's own name for it. */
export type Grants = ReadonlyMap<string, Grant>;
