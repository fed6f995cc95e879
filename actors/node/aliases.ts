/** Decides changes of aliases on the aliases and collections that exist. */

import { aliasesAfter } from '../../cluster/apply/aliases.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { CollectionPhase, Phases } from './state.js';

export type AliasChange =
  /** Makes all actions or none. */
  | { readonly kind: 'actions'; readonly actions: readonly AliasAction[]; readonly replyTo: ReplyTo<boolean> }
  /** Removes the aliases of a collection that is about to be deleted, so that no crash leaves an alias that names nothing. */
  | { readonly kind: 'forget'; readonly folder: string; readonly replyTo: ReplyTo<boolean> }
  /** Replaces all aliases by those that the cluster has agreed on. */
  | { readonly kind: 'replace'; readonly aliases: AliasMap; readonly replyTo: ReplyTo<boolean> };

export interface Aliases {
  /** The aliases that are on disk and in use. */
  readonly known: AliasMap;
  /** The aliases that are being saved for the first of `changes`; null if none are. */
  readonly saving: AliasMap | null;
  /** Changes in order: the first is being saved, the others wait for it. */
  readonly changes: readonly AliasChange[];
}

export const NO_ALIASES: Aliases = { known: new Map(), saving: null, changes: [] };

/** The aliases after a change, `known` itself if it changes nothing, or the error if it cannot be made. */
export function changedAliases(known: AliasMap, change: AliasChange, collections: Phases): AliasMap | { readonly error: ErrorFacts } {
  if (change.kind === 'actions') {
    return aliasesAfter(known, change.actions, {
      isThere: (name) => isThere(collections.get(folderName(name))),
      isTaken: (name) => collections.has(folderName(name)),
    });
  }
  if (change.kind === 'replace') return change.aliases;
  const next = new Map(known);
  for (const alias of aliasesOfFolder(known, change.folder)) next.delete(alias);
  return next.size === known.size ? known : next;
}

/** Aliases of the collection in `folder`. */
export function aliasesOfFolder(known: AliasMap, folder: string): string[] {
  return [...known].filter(([, collection]) => folderName(collection) === folder).map(([alias]) => alias);
}

/** Whether callers see the collection: not while it is being made or deleted. */
function isThere(phase: CollectionPhase | undefined): boolean {
  return phase !== undefined && phase.kind !== 'Creating' && phase.kind !== 'Deleting';
}
