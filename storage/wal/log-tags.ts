/**
 * Tags of a log's operations, stored as runs: a leader gives many operations in sequence, so only the begin of each leader's run is stored.
 * The record is part of the commit that writes the operations; a replica that never had a leader has no such record.
 */

import { parseStored, stringifyJson } from '../../protocols/json.js';
import { isSameTag, type LogTag, NO_TAG } from '../../protocols/model/shard-log.js';
import { sealBody, unseal } from './records.js';

/** The leader that gives operations their indexes. */
export type Leader = Pick<LogTag, 'peer' | 'term'>;

/** The leader of operations outside of a cluster. */
export const NO_LEADER: Leader = { peer: 0, term: 0 };

export interface LogTags {
  /** Tag of the operation before the oldest one in the log. Used only if there are runs; otherwise indexes have no gaps. */
  readonly base: LogTag;
  /** Ascending. Operations from each run's `index` on have that run's leader; those before the first run have none. */
  readonly runs: readonly LogTag[];
  /** Index of the newest operation that failed or was skipped, 0 if none: operations that depend on it are not applied. */
  readonly failed: number;
  /** When the operation of `base` was acknowledged, if it is the one that the log began after at first; null: not known. */
  readonly origin: TimedIndex | null;
}

export interface TimedIndex {
  readonly index: number;
  /** A date in milliseconds. */
  readonly timeMs: number;
}

export const NO_TAGS: LogTags = { base: NO_TAG, runs: [], failed: 0, origin: null };

/** Key in `meta`. */
export const LOG_KEY = Buffer.from('log');

const FORMAT = 1;

export function encodeLogTags(tags: LogTags): Uint8Array {
  const { base, failed, origin, runs } = tags;
  const timed = origin?.index === base.index ? { ...storedForm(base), timeMs: origin.timeMs } : storedForm(base);
  const text = stringifyJson({ format: FORMAT, base: timed, runs: runs.map(storedForm), failed });
  return sealBody(Buffer.from(text, 'utf8'));
}

/** Decodes the record of tags. Errors: `storage`. */
export function decodeLogTags(record: Uint8Array): LogTags {
  const { format, base, runs, failed } = parseStored(unseal(record, 'meta/log')) as unknown as StoredTags;
  if (format !== FORMAT) throw new Error(`tags of the log in format ${format}, this release reads ${FORMAT}`);
  const origin = base.timeMs === undefined ? null : { index: base.tick, timeMs: base.timeMs };
  return { base: tagFrom(base), runs: runs.map(tagFrom), failed, origin };
}

interface StoredTags {
  readonly format: number;
  readonly base: StoredTag & { readonly timeMs?: number };
  readonly runs: readonly StoredTag[];
  readonly failed: number;
}

type StoredTag = ReturnType<typeof storedForm>;

/** A tag in the words of the record. */
function storedForm({ peer, term, index }: LogTag) {
  return { peer, clock: term, tick: index };
}

function tagFrom({ peer, clock, tick }: StoredTag): LogTag {
  return { peer, term: clock, index: tick };
}

/** The tag of the operation with this index. */
export function tagOf({ runs }: LogTags, index: number): LogTag {
  if (index === 0) return NO_TAG;
  const { peer, term } = runs.findLast((run) => run.index <= index) ?? NO_LEADER;
  return { peer, term, index };
}

/** The tags after the leader has given the newest operation this index. */
export function withOperation(tags: LogTags, { peer, term }: Leader, index: number): LogTags {
  const last = tags.runs.at(-1) ?? NO_LEADER;
  if (last.peer === peer && last.term === term) return tags;
  return { ...tags, runs: [...tags.runs, { peer, term, index }] };
}

/** The tags of a log that begins after `base`: runs that ended before are forgotten. */
export function behind(tags: LogTags, base: LogTag): LogTags {
  if (tags.runs.length === 0 || isSameTag(tags.base, base)) return tags;
  const first = tags.runs.findLastIndex((run) => run.index <= base.index);
  return { ...tags, base, runs: first <= 0 ? tags.runs : tags.runs.slice(first) };
}

/** The tags of a log that ends with this operation. */
export function upTo(tags: LogTags, operation: number): LogTags {
  return { ...tags, runs: tags.runs.filter((run) => run.index <= operation), failed: tags.failed > operation ? 0 : tags.failed };
}

/** The tags of an empty log that begins after an operation. timeMs: when that was acknowledged; null: not known. */
export function logBehind(at: LogTag, failed = 0, timeMs: number | null = null): LogTags {
  const origin = timeMs === null ? null : { index: at.index, timeMs };
  return { ...withOperation(NO_TAGS, at, at.index), base: at, failed, origin };
}
