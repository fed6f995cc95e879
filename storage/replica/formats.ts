/** Formats of a replica's files. */

export const FORMAT = 6;
/** The format before: records of its log have no time. A copy without a log is of this format, so that earlier releases take it. */
export const FORMAT_OF_COPIES = 5;
/** Its indexes of appendable segments have other records; they are made anew. */
const OLDER_FORMAT = 4;

export const READABLE_FORMATS = [OLDER_FORMAT, FORMAT_OF_COPIES, FORMAT] as const;

/** Whether indexes of appendable segments have the form that this release reads. format: of a replica; null: of one that is not made yet. */
export function hasNewestIndexes(format: number | null): boolean {
  return format !== OLDER_FORMAT;
}
