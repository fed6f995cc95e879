/** Formats of a replica's files. */

export const FORMAT = 7;
/** Up to this one, each payload of an appendable segment has a record of its own. */
const SINGLE_PAYLOADS = 6;
/** Up to this one, records of the log have no time. */
const UNTIMED_LOG = 5;
/** Indexes of appendable segments have other records; they are made anew. */
const OLDER_INDEXES = 4;

export const READABLE_FORMATS = [OLDER_INDEXES, UNTIMED_LOG, SINGLE_PAYLOADS, FORMAT] as const;

/** Whether indexes of appendable segments have the form that this release reads. format: of a replica; null: of one that is not made yet. */
export function hasNewestIndexes(format: number | null): boolean {
  return format !== OLDER_INDEXES;
}
