/** Rules of names: which names collections and aliases may have, and what changes of aliases come to. For one node and for a cluster. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';

/** The collections that aliases are decided on. */
export interface CollectionNames {
  /** An alias may be pointed at it. */
  isThere(name: string): boolean;
  /** No alias may have this name: a collection has it, or is about to. */
  isTaken(name: string): boolean;
}

/** The aliases after all `actions`, `known` itself when they change nothing, or why one cannot be done: then none is. */
export function aliasesAfter(
  known: AliasMap,
  actions: readonly AliasAction[],
  collections: CollectionNames,
): AliasMap | { readonly error: ErrorFacts } {
  const next = new Map(known);
  for (const action of actions) {
    const error = act(next, action, collections);
    if (error !== null) return { error };
  }
  return sameAliases(known, next) ? known : next;
}

function sameAliases(one: AliasMap, other: AliasMap): boolean {
  return one.size === other.size && [...one].every(([alias, collection]) => other.get(alias) === collection);
}

export function collectionMissing(name: string): ErrorFacts {
  return { code: 'notFound', detail: `Collection \`${name}\` doesn't exist!` };
}

export function collectionExists(name: string): ErrorFacts {
  return { code: 'conflict', detail: `Collection \`${name}\` already exists!` };
}

/** An alias stands in the way of a new collection. */
export function aliasExists(name: string): ErrorFacts {
  return { code: 'wrongInput', detail: `Can't create collection with name ${name}. Alias with the same name already exists` };
}

/** Makes one action on `aliases`, or says why not. */
function act(aliases: Map<string, string>, action: AliasAction, collections: CollectionNames): ErrorFacts | null {
  switch (action.kind) {
    case 'create':
      if (!collections.isThere(action.collection)) return collectionMissing(action.collection);
      if (collections.isTaken(action.alias)) return collectionExists(action.alias);
      aliases.set(action.alias, action.collection);
      return null;
    case 'delete':
      aliases.delete(action.alias);
      return null;
    case 'rename': {
      const collection = aliases.get(action.from);
      if (collection === undefined) return { code: 'notFound', detail: `Alias ${action.from} does not exists!` };
      // The contract lets an alias be renamed to a collection's name; the collection goes before it.
      aliases.delete(action.from);
      aliases.set(action.to, collection);
      return null;
    }
    default:
      return action satisfies never;
  }
}
