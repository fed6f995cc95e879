/** What changes of aliases come to: decided on the aliases and collections that are there. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';
import { folderName } from '../collection/folder-name.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { CollectionPhase, Phases } from './state.js';

export type AliasChange =
  /** All of them or none. */
  | { readonly kind: 'actions'; readonly actions: readonly AliasAction[]; readonly replyTo: ReplyTo<boolean> }
  /** A collection is about to be deleted: its aliases go first, so that no crash leaves one that names nothing. */
  | { readonly kind: 'forget'; readonly folder: string; readonly replyTo: ReplyTo<boolean> };

export interface Aliases {
  /** What is on disk and serves. */
  readonly known: AliasMap;
  /** What is being saved for the first of `changes`. */
  readonly saving: AliasMap | null;
  /** The first is being saved, the others wait for it. */
  readonly changes: readonly AliasChange[];
}

export const NO_ALIASES: Aliases = { known: new Map(), saving: null, changes: [] };

/** The aliases after a change, `known` itself when it changes nothing, or why it cannot be made. */
export function changedAliases(known: AliasMap, change: AliasChange, collections: Phases): AliasMap | { readonly error: ErrorFacts } {
  const next = new Map(known);
  if (change.kind === 'forget') {
    for (const alias of aliasesOf(known, change.folder)) next.delete(alias);
  } else {
    for (const action of change.actions) {
      const error = act(next, action, collections);
      if (error !== null) return { error };
    }
  }
  return isSame(known, next) ? known : next;
}

/** Aliases of the collection in `folder`. */
export function aliasesOf(known: AliasMap, folder: string): string[] {
  return [...known].filter(([, collection]) => folderName(collection) === folder).map(([alias]) => alias);
}

/** Makes one action on `aliases`, or says why not. */
function act(aliases: Map<string, string>, action: AliasAction, collections: Phases): ErrorFacts | null {
  switch (action.kind) {
    case 'create':
      if (!isThere(collections.get(folderName(action.collection))))
        return { code: 'notFound', detail: `Collection \`${action.collection}\` doesn't exist!` };
      if (collections.has(folderName(action.alias))) return { code: 'conflict', detail: `Collection \`${action.alias}\` already exists!` };
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

/** To callers a collection that is being made or deleted is not there. */
function isThere(phase: CollectionPhase | undefined): boolean {
  return phase !== undefined && phase.kind !== 'Creating' && phase.kind !== 'Deleting';
}

function isSame(one: AliasMap, other: AliasMap): boolean {
  return one.size === other.size && [...one].every(([alias, collection]) => other.get(alias) === collection);
}
