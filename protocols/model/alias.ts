/** Aliases: second names of collections. */

/** One step of a change of aliases. Source: API reference, `POST /collections/aliases`. */
export type AliasAction =
  /** An alias that is there already is pointed at `collection`. */
  | { readonly kind: 'create'; readonly alias: string; readonly collection: string }
  /** Nothing happens when it is not there. */
  | { readonly kind: 'delete'; readonly alias: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string };

/** Collection names by alias. */
export type AliasMap = ReadonlyMap<string, string>;
