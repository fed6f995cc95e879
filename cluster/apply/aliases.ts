/** Rules of names: which names collections and aliases may have, and the result of changes of aliases. For one node and for a cluster. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';

/** The collections that decide whether an alias is allowed. */
export interface CollectionNames {
  /** Whether an alias may point at this collection. */
  isThere(name: string): boolean;
  /** Whether no alias may have this name, because a collection has it or is about to have it. */
  isTaken(name: string): boolean;
}

/**
 * The aliases after all `actions`, `known` itself if they change nothing, or the error of the first action that is not possible; then none
 * is made.
 */
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

/** The error for a new collection with the name of an alias. */
export function aliasExists(name: string): ErrorFacts {
  return { code: 'wrongInput', detail: `Can't create collection with name ${name}. Alias with the same name already exists` };
}

/** Makes one action on `aliases`. Returns the error if it is not possible, else null. */
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
      // The contract lets an alias take a collection's name; the collection goes before the alias when names are resolved.
      aliases.delete(action.from);
      aliases.set(action.to, collection);
      return null;
    }
    default:
      return action satisfies never;
  }
}
