/** The log of one peer as a value: a snapshot, the entries after it, and a few entries kept from before the snapshot's end. */

import type { Membership } from '../../protocols/model/cluster.js';
import type { Entry, Snapshot } from '../../protocols/model/consensus.js';
import type { RaftLog } from './state.js';

/** Index of the first entry that the log has or, if it has none, of the entry that comes next. */
export function firstIndex(log: RaftLog): number {
  const first = log.entries[0];
  return first === undefined ? (log.snapshot?.index ?? 0) + 1 : first.index;
}

export function lastIndex(log: RaftLog): number {
  return firstIndex(log) + log.entries.length - 1;
}

export function lastTerm(log: RaftLog): number {
  return log.entries.at(-1)?.term ?? log.termBefore;
}

/** Term of an entry; null if the log has no such entry and does not know its term. */
export function termAt(log: RaftLog, index: number): number | null {
  const place = index - firstIndex(log);
  if (place === -1) return log.termBefore;
  return log.entries[place]?.term ?? null;
}

/** Entries `from` to `to`, both inclusive. */
export function between(log: RaftLog, from: number, to: number): readonly Entry[] {
  const first = firstIndex(log);
  return log.entries.slice(from - first, to - first + 1);
}

/** Entries from `from` on with at most `bytesMax` of payload, and at least one if there is one. */
export function batchFrom(log: RaftLog, from: number, bytesMax: number): readonly Entry[] {
  const start = from - firstIndex(log);
  let end = start;
  let bytes = 0;
  for (; end < log.entries.length; end++) {
    bytes += entryBytes(log.entries[end] as Entry);
    if (bytes > bytesMax && end > start) break;
  }
  return log.entries.slice(start, end);
}

/** The log with `entries` in the place of all entries from the first one's index on. */
export function withEntries(log: RaftLog, entries: readonly Entry[]): RaftLog {
  const begin = (entries[0] as Entry).index - firstIndex(log);
  const kept = begin === log.entries.length ? log.entries : log.entries.slice(0, begin);
  return { ...log, entries: kept.concat(entries) };
}

/**
 * The log after a snapshot was installed: entries up to its end are dropped. If the log has another entry or none at that index, all
 * entries are dropped and `contradicts` is true (Raft-R8).
 */
export function withSnapshot(log: RaftLog, snapshot: Snapshot): { readonly log: RaftLog; readonly contradicts: boolean } {
  const contradicts = termAt(log, snapshot.index) !== snapshot.term;
  const entries = contradicts ? [] : between(log, snapshot.index + 1, lastIndex(log));
  return { log: { snapshot, entries, termBefore: snapshot.term }, contradicts };
}

/** The log with `snapshot` in the place of entries that it has; the last `kept` of them stay. */
export function compacted(log: RaftLog, snapshot: Snapshot, kept: number): RaftLog {
  const from = Math.max(firstIndex(log), snapshot.index + 1 - kept);
  return { snapshot, entries: between(log, from, lastIndex(log)), termBefore: termAt(log, from - 1) as number };
}

/** The newest membership as of `index`, and the index of its entry or of the snapshot that has it. */
export function membershipAt(log: RaftLog, index: number): { readonly membership: Membership; readonly index: number } {
  const floor = log.snapshot?.index ?? 0;
  for (let place = index - firstIndex(log); place >= 0; place--) {
    const entry = log.entries[place];
    if (entry === undefined || entry.index <= floor) break;
    if (entry.payload.kind === 'membership') return { membership: entry.payload.membership, index: entry.index };
  }
  return { membership: log.snapshot?.membership ?? [], index: floor };
}

/** The last index up to `from` with a term of at most `term`: the highest index at which another log may agree. */
export function lastOfTerm(log: RaftLog, from: number, term: number): number {
  let index = Math.min(from, lastIndex(log));
  for (let at = termAt(log, index); at !== null && at > term; at = termAt(log, index)) index--;
  return Math.max(index, 0);
}

/**
 * Whether a log that is committed up to `end` has the entry of this index and term, or that entry can never be committed. Terms only grow
 * along a log.
 */
export function isSettled(log: RaftLog, end: number, entry: { readonly lastIndex: number; readonly lastTerm: number }): boolean {
  const term = termAt(log, end);
  return term !== null && (term > entry.lastTerm || (term === entry.lastTerm && end >= entry.lastIndex));
}

/** The approximate size of an entry on the wire, in bytes. */
export function entryBytes(entry: Entry): number {
  switch (entry.payload.kind) {
    case 'empty':
      return 16;
    case 'membership':
      return 16 + 64 * entry.payload.membership.length;
    case 'operation':
      return 16 + entry.payload.bytes.length;
  }
}
