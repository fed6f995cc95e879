/** Decides the place of operations in a shard's log: which of a leader's operations are new, and whether they follow the log's end. */

import { TroupeError } from '../../protocols/errors.js';
import { isSameTag, type LeaderTag, type LogTag, type ShardEntry } from '../../protocols/model/shard-log.js';
import { NO_LEADER } from '../wal/log-tags.js';

/** The part of a log that these decisions need. */
export interface KnownLog {
  readonly last: LogTag;
  readonly base: LogTag;
  /** Tag of an operation after `base`; null if there is none with this index. */
  tagOf(index: number): LogTag | null;
}

/**
 * Tags for `count` operations of a leader after `last`. A node without a cluster continues any log.
 * Errors: `conflict` if the leader's term is over.
 */
export function nextTags(last: LogTag, { indexAfter, peer, term }: LeaderTag, count: number): LogTag[] {
  const isAlone = peer === NO_LEADER.peer && term === NO_LEADER.term;
  if (!isAlone && (term < last.term || (term === last.term && peer !== last.peer)))
    throw new TroupeError('conflict', `${nameOf(last)} has been logged already: term ${term} of peer ${peer} is over`);
  const first = Math.max(last.index, indexAfter) + 1;
  return Array.from({ length: count }, (_, at) => ({ peer, term, index: first + at }));
}

/**
 * The entries that the log does not have yet. previous: tag of the operation before the first of `entries`. Errors: `conflict` if they do
 * not continue the log.
 */
export function newEntries(log: KnownLog, previous: LogTag, entries: readonly ShardEntry[]): readonly ShardEntry[] {
  mustHave(log, previous);
  let before = previous;
  let known = previous;
  const added: ShardEntry[] = [];
  for (const entry of entries) {
    const { tag } = entry;
    if (tag.index <= before.index || tag.term < before.term)
      throw new TroupeError('conflict', `${nameOf(tag)} cannot follow ${nameOf(before)}`);
    before = tag;
    if (tag.index > log.last.index) added.push(entry);
    else {
      mustHave(log, tag);
      known = tag;
    }
  }
  if (added.length > 0 && !isSameTag(known, log.last))
    throw new TroupeError('conflict', `the log ends with ${nameOf(log.last)}, not ${nameOf(known)}`);
  return added;
}

/** Checks that the log has this operation. Operations before the log's base cannot be checked any more. Errors: `conflict`. */
function mustHave(log: KnownLog, tag: LogTag): void {
  if (tag.index < log.base.index) return;
  const own = tag.index === log.base.index ? log.base : log.tagOf(tag.index);
  if (own === null) throw new TroupeError('conflict', `the log ends with ${nameOf(log.last)} and does not have ${nameOf(tag)}`);
  if (!isSameTag(own, tag)) throw new TroupeError('conflict', `the log has ${nameOf(own)}, not ${nameOf(tag)}`);
}

function nameOf({ term, peer, index }: LogTag): string {
  return `operation ${index} (term ${term} of peer ${peer})`;
}
