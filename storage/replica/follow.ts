/** Where operations go in a shard's log: which of a leader's are new, and whether they follow. Decisions only. */

import { TroupeError } from '../../protocols/errors.js';
import { type ClockTag, isSameTag, type ShardEntry } from '../../protocols/model/shard-log.js';
import type { Leader } from '../wal/log-tags.js';

/** A log as far as it matters here. */
export interface KnownLog {
  readonly last: ClockTag;
  readonly base: ClockTag;
  /** Of an operation behind `base`; null for none of this tick. */
  tagOf(tick: number): ClockTag | null;
}

/** Tags of so many operations that a leader puts behind `last`, with ticks above `tickAfter`. Errors: `conflict` when its term is over. */
export function nextTags(last: ClockTag, { peer, clock }: Leader, tickAfter: number, count: number): ClockTag[] {
  if (clock < last.clock || (clock === last.clock && peer !== last.peer))
    throw new TroupeError('conflict', `${nameOf(last)} has been logged already: term ${clock} of peer ${peer} is over`);
  const first = Math.max(last.tick, tickAfter) + 1;
  return Array.from({ length: count }, (_, at) => ({ peer, clock, tick: first + at }));
}

/** The entries that the log does not have yet. previous: of the operation before the first of `entries`. Errors: `conflict` when they are not its continuation. */
export function newEntries(log: KnownLog, previous: ClockTag, entries: readonly ShardEntry[]): readonly ShardEntry[] {
  mustHave(log, previous);
  let before = previous;
  let known = previous;
  const added: ShardEntry[] = [];
  for (const entry of entries) {
    const { tag } = entry;
    if (tag.tick <= before.tick || tag.clock < before.clock)
      throw new TroupeError('conflict', `${nameOf(tag)} cannot follow ${nameOf(before)}`);
    before = tag;
    if (tag.tick > log.last.tick) added.push(entry);
    else {
      mustHave(log, tag);
      known = tag;
    }
  }
  if (added.length > 0 && !isSameTag(known, log.last))
    throw new TroupeError('conflict', `the log ends with ${nameOf(log.last)}, not ${nameOf(known)}`);
  return added;
}

/** What lies before the log's base cannot be known any more. Errors: `conflict`. */
function mustHave(log: KnownLog, tag: ClockTag): void {
  if (tag.tick < log.base.tick) return;
  const own = tag.tick === log.base.tick ? log.base : log.tagOf(tag.tick);
  if (own === null) throw new TroupeError('conflict', `the log ends with ${nameOf(log.last)} and does not have ${nameOf(tag)}`);
  if (!isSameTag(own, tag)) throw new TroupeError('conflict', `the log has ${nameOf(own)}, not ${nameOf(tag)}`);
}

function nameOf({ clock, peer, tick }: ClockTag): string {
  return `operation ${tick} (term ${clock} of peer ${peer})`;
}
