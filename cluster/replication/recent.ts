/** The leader's newest entries in memory. */

import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import { isSameTag } from '../../protocols/model/shard-log.js';
import { type EntryWindow, entriesFrom, entryAt, withAdded, withoutFirst } from './entry-window.js';
import { RECENT_BYTES } from './figures.js';
import type { Recent } from './state.js';

/**
 * The entries with `added` after them, without those that every follower has (up to `doneIndex`) and without the oldest ones above the size
 * limit.
 */
export function withRecent(recent: Recent, added: readonly ShardEntry[], doneIndex: number): Recent {
  const entries = withAdded(recent.entries, added);
  let bytes = recent.bytes + bytesOf(added);
  let gone = 0;
  let after = recent.after;
  while (gone < entries.length) {
    const { operation, tag } = entryAt(entries, gone) as ShardEntry;
    if (tag.index > doneIndex && bytes <= RECENT_BYTES) break;
    bytes -= operation.byteLength;
    after = tag;
    gone += 1;
  }
  return { after, entries: withoutFirst(entries, gone), bytes };
}

/** Entries after an operation, up to an index; null if they are not in memory, or if the log has another operation at that index. */
export function recentAfter({ after, entries }: Recent, tag: LogTag, upToIndex: number, bytesMax: number): ShardEntry[] | null {
  let at = 0;
  if (!isSameTag(after, tag)) {
    at = firstAfter(entries, tag.index);
    const before = entryAt(entries, at - 1);
    if (before === undefined || !isSameTag(before.tag, tag)) return null;
  }
  return firstOf(entriesFrom(entries, at), upToIndex, bytesMax);
}

/** The first entries up to an index, at most `bytesMax` bytes but at least one entry. */
export function firstOf(entries: Iterable<ShardEntry>, upToIndex: number, bytesMax: number): ShardEntry[] {
  const taken: ShardEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    bytes += entry.operation.byteLength;
    if (entry.tag.index > upToIndex || (taken.length > 0 && bytes > bytesMax)) break;
    taken.push(entry);
  }
  return taken;
}

export function bytesOf(entries: readonly { readonly operation: Uint8Array }[]): number {
  return entries.reduce((sum, { operation }) => sum + operation.byteLength, 0);
}

function firstAfter(entries: EntryWindow, index: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entryAt(entries, middle) as ShardEntry).tag.index <= index) low = middle + 1;
    else high = middle;
  }
  return low;
}
