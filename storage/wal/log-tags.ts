/**
 * Whose operations a log holds, in runs: a leader gives many operations one after the other, so their tags are told by where
 * each leader's begin. Part of the commit that writes the operations; a replica that never had a leader has no record of it.
 */

import { parseJson, stringifyJson } from '../../protocols/json.js';
import { isSameTag, type LogTag, NO_TAG } from '../../protocols/model/shard-log.js';
import { SEAL_BYTES, seal, unseal } from './records.js';

/** Who gives operations their indexes. */
export type Leader = Pick<LogTag, 'peer' | 'term'>;

/** Of operations outside of a cluster. */
export const NO_LEADER: Leader = { peer: 0, term: 0 };

export interface LogTags {
  /** Of the operation before the oldest one in the log; counts where there are runs, else indexes have no gaps. */
  readonly base: LogTag;
  /** Operations from each `index` on are that leader's, ascending; those before the first are nobody's. */
  readonly runs: readonly LogTag[];
  /** Index of the newest operation that failed or was passed over, 0 for none: what hangs on it is not applied. */
  readonly failed: number;
}

export const NO_TAGS: LogTags = { base: NO_TAG, runs: [], failed: 0 };

/** Key in `meta`. */
export const LOG_KEY = Buffer.from('log');

const FORMAT = 1;

export function encodeLogTags(tags: LogTags): Uint8Array {
  const text = Buffer.from(stringifyJson({ format: FORMAT, ...tags }), 'utf8');
  const record = new Uint8Array(SEAL_BYTES + text.length);
  record.set(text, SEAL_BYTES);
  return seal(record);
}

/** Errors: `storage`. */
export function decodeLogTags(record: Uint8Array): LogTags {
  const { format, base, runs, failed } = parseJson(unseal(record, 'meta/log')) as unknown as LogTags & { format: number };
  if (format !== FORMAT) throw new Error(`tags of the log in format ${format}, this release reads ${FORMAT}`);
  return { base, runs, failed };
}

/** The tag of the operation with this index. */
export function tagOf({ runs }: LogTags, index: number): LogTag {
  if (index === 0) return NO_TAG;
  const { peer, term } = runs.findLast((run) => run.index <= index) ?? NO_LEADER;
  return { peer, term, index };
}

/** As it is when the leader gives an operation this index, the newest. */
export function withOperation(tags: LogTags, { peer, term }: Leader, index: number): LogTags {
  const last = tags.runs.at(-1) ?? NO_LEADER;
  if (last.peer === peer && last.term === term) return tags;
  return { ...tags, runs: [...tags.runs, { peer, term, index }] };
}

/** As it is when the log begins behind `base`: runs that have ended before are forgotten. */
export function behind(tags: LogTags, base: LogTag): LogTags {
  if (tags.runs.length === 0 || isSameTag(tags.base, base)) return tags;
  const first = tags.runs.findLastIndex((run) => run.index <= base.index);
  return { ...tags, base, runs: first <= 0 ? tags.runs : tags.runs.slice(first) };
}

/** As it is when the log ends with this operation. */
export function upTo(tags: LogTags, operation: number): LogTags {
  return { ...tags, runs: tags.runs.filter((run) => run.index <= operation), failed: tags.failed > operation ? 0 : tags.failed };
}

/** Of a log that begins behind an operation and holds nothing yet. */
export function logBehind(at: LogTag, failed = 0): LogTags {
  return { ...withOperation(NO_TAGS, at, at.index), base: at, failed };
}
