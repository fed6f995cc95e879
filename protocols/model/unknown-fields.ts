/** Fields of a request's body that the API does not have. */

export interface UnknownField {
  /** Its path in the body: `params.hnsw_eff`, `points[].vectr`. */
  readonly name: string;
  /** The known field that is most likely meant; null: none is near. */
  readonly meant: string | null;
}

/** What becomes of unknown fields, and those that were met. */
export interface UnknownFields {
  /** A request with unknown fields is an error. */
  readonly refuse: boolean;
  /** Each once, and no more than `UNKNOWN_FIELDS_MAX`. */
  readonly found: UnknownField[];
}

export const UNKNOWN_FIELDS_MAX = 8;
/** Longer names are shown by their first characters. */
export const UNKNOWN_NAME_LENGTH_MAX = 64;

/** What an answer tells of the unknown fields of its request: nothing, where there are none. */
export function foundUnknown(fields: UnknownFields | undefined): { readonly unknownFields?: readonly UnknownField[] } {
  return fields === undefined || fields.found.length === 0 ? {} : { unknownFields: fields.found };
}

/** Adds fields to those that were met. */
export function addUnknown(fields: UnknownFields | undefined, more: readonly UnknownField[] | undefined): void {
  if (fields === undefined || more === undefined) return;
  const { found } = fields;
  for (const field of more) {
    if (found.length < UNKNOWN_FIELDS_MAX && !found.some(({ name }) => name === field.name)) found.push(field);
  }
}
