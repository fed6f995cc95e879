/** The collections of a node as snapshots find them. */

import type { CollectionRecord } from '../../cluster/state/state.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { CollectionEntry } from '../context/view.js';

export interface NamedCollection {
  /** Its own name. */
  readonly name: string;
  /** Null while this node is making it. */
  readonly entry: CollectionEntry | null;
  /** Null outside of a cluster. */
  readonly record: CollectionRecord | null;
}

/** Finds collections by name or alias. Errors: `notFound`; `unavailable` while this node does not know them or makes one. */
export interface CollectionFinder {
  list(): string[];
  aliases(): AliasMap;
  known(name: string): NamedCollection | null;
  find(name: string): NamedCollection;
  entry(name: string): CollectionEntry;
}
