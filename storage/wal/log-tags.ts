/**
 * Whose operations a log holds, in runs: a leader gives many operations one after the other, so their tags are told by where
 * each leader's begin. Part of the commit that writes the operations; a replica that never had a leader has no record of it.
 */

import { parseJson, stringifyJson } from '../../protocols/json.js';
import { type ClockTag, isSameTag, NO_TAG } from '../../protocols/model/shard-log.js';
import { SEAL_BYTES, seal, unseal } from './records.js';

/** Who gives operations their ticks. */
export type Leader = Pick<ClockTag, 'peer' | 'clock'>;

/** Of operations outside of a cluster. */
export const NO_LEADER: Leader = { peer: 0, clock: 0 };

export interface LogTags {
  /** Of the operation before the oldest one in the log; counts where there are runs, else ticks have no gaps. */
  readonly base: ClockTag;
  /** Operations from each `tick` on are that leader's, ascending; those before the first are nobody's. */
  readonly runs: readonly ClockTag[];
  /** Tick of the newest operation that failed or was passed over, 0 for none: what hangs on it is not applied. */
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

/** The tag of the operation with this tick. */
export function tagOf({ runs }: LogTags, tick: number): ClockTag {
  if (tick === 0) return NO_TAG;
  const { peer, clock } = runs.findLast((run) => run.tick <= tick) ?? NO_LEADER;
  return { peer, clock, tick };
}

/** As it is when the leader gives an operation this tick, the newest. */
export function withOperation(tags: LogTags, { peer, clock }: Leader, tick: number): LogTags {
  const last = tags.runs.at(-1) ?? NO_LEADER;
  if (last.peer === peer && last.clock === clock) return tags;
  return { ...tags, runs: [...tags.runs, { peer, clock, tick }] };
}

/** As it is when the log begins behind `base`: runs that have ended before are forgotten. */
export function behind(tags: LogTags, base: ClockTag): LogTags {
  if (tags.runs.length === 0 || isSameTag(tags.base, base)) return tags;
  const first = tags.runs.findLastIndex((run) => run.tick <= base.tick);
  return { ...tags, base, runs: first <= 0 ? tags.runs : tags.runs.slice(first) };
}

/** As it is when the log ends with this operation. */
export function upTo(tags: LogTags, operation: number): LogTags {
  return { ...tags, runs: tags.runs.filter((run) => run.tick <= operation), failed: tags.failed > operation ? 0 : tags.failed };
}

/** Of a log that begins behind an operation and holds nothing yet. */
export function logBehind(at: ClockTag, failed = 0): LogTags {
  return { ...withOperation(NO_TAGS, at, at.tick), base: at, failed };
}
