/**
 * The record of an operation that is applied in slices, of which some are on disk and some are not yet. It is written with each slice and
 * removed with the last one. Meanwhile the state record says what readers see, which is the replica before the operation; this record says
 * what is there.
 *
 * The rules are Slice-S1 to Slice-S6 in storage/README.md.
 */

import { parseStored, stringifyJson } from '../../protocols/json.js';
import { type StateRecord, sealBody, unseal } from '../wal/records.js';

/** Key in `meta`; a replica without an unfinished operation has no such record. */
export const UNFINISHED_KEY = Buffer.from('unfinished');

/** The first place that the slices so far have not reached: a row of a segment, or a point of the operation's batch. */
export type Cursor = { readonly segment: number; readonly row: number } | { readonly point: number };

export interface Unfinished {
  readonly operation: number;
  /** Commit that readers see. */
  readonly shownCommit: number;
  /** Ids of the segments that had rows when the operation began. They take no rows until it ends. */
  readonly closed: ReadonlySet<number>;
  readonly next: Cursor;
}

/** The counts of the state record as they are, besides what readers see. */
export type RealCounts = Pick<StateRecord, 'appendable' | 'commit'>;

const FORMAT = 1;

interface StoredUnfinished {
  readonly format: number;
  readonly operation: number;
  readonly shownCommit: number;
  readonly closed: readonly number[];
  readonly next: Cursor;
  readonly commit: number;
  readonly appendable: readonly (readonly [number, number])[];
}

export function encodeUnfinished({ closed, next, operation, shownCommit }: Unfinished, { appendable, commit }: RealCounts): Uint8Array {
  const stored: StoredUnfinished = {
    format: FORMAT,
    operation,
    shownCommit,
    closed: [...closed],
    next,
    commit,
    appendable: [...appendable],
  };
  return sealBody(Buffer.from(stringifyJson(stored), 'utf8'));
}

/** Decodes the record; null for a replica without one. Errors: `storage`. */
export function decodeUnfinished(record: Uint8Array | undefined): { readonly unfinished: Unfinished; readonly real: RealCounts } | null {
  if (record === undefined) return null;
  const stored = parseStored(unseal(record, 'meta/unfinished')) as unknown as StoredUnfinished;
  const { appendable, closed, commit, format, next, operation, shownCommit } = stored;
  if (format !== FORMAT) throw new Error(`unfinished operation in format ${format}, this release reads ${FORMAT}`);
  return { unfinished: { operation, shownCommit, closed: new Set(closed), next }, real: { commit, appendable: new Map(appendable) } };
}
