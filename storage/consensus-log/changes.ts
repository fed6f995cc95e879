/** From a `ConsensusWrite` to changes of records, and these as bytes for the thread that makes them. */

import { checkHardState } from '../../protocols/hard-state.js';
import { invariant } from '../../protocols/invariant.js';
import { type ConsensusWrite, type HardState, NOTHING_STORED } from '../../protocols/model/consensus.js';
import {
  APPLIED_KEY,
  CONSENSUS_DATABASES,
  type ConsensusDatabase,
  type EntryRange,
  encodeApplied,
  encodeEntry,
  encodeHardState,
  encodeIdentity,
  encodeRange,
  encodeSnapshot,
  entryKey,
  HARD_STATE_KEY,
  IDENTITY_KEY,
  NO_ENTRIES,
  RANGE_KEY,
  SNAPSHOT_KEY,
} from './records.js';

/** What is stored after the writes so far, as far as the next one depends on it. */
export interface Held {
  readonly range: EntryRange;
  /** 0: there is no snapshot. */
  readonly snapshotIndex: number;
  readonly hardState: HardState;
}

export type LogChange =
  | { readonly kind: 'put'; readonly database: ConsensusDatabase; readonly key: Uint8Array; readonly value: Uint8Array }
  /** Entries with `from <= index < to`. */
  | { readonly kind: 'removeEntries'; readonly from: number; readonly to: number }
  | { readonly kind: 'removeSnapshot' };

/**
 * The changes that carry out a write, in order, and what is held after it.
 * Errors: `BrokenInvariant` for a write that would leave a gap in the log, or take back a term or a vote (ConsLog-C4).
 */
export function changesOf(write: ConsensusWrite, held: Held): { readonly changes: readonly LogChange[]; readonly held: Held } {
  const changes: LogChange[] = [];
  const before = write.reset ? forget(changes, held) : held;
  const snapshotIndex = write.snapshot?.index ?? before.snapshotIndex;
  let range = before.range;
  if (write.clearEntries) range = cut(changes, range, 0, range.last + 1);
  range = append(changes, range, write, snapshotIndex);
  if (write.firstIndex !== null) range = cut(changes, range, 0, write.firstIndex);
  invariant(
    range === NO_ENTRIES || (range.first <= snapshotIndex + 1 && range.last >= snapshotIndex),
    'ConsLog-C4',
    () => `entries ${range.first} to ${range.last} leave a gap beside the snapshot at ${snapshotIndex}`,
  );
  const put = (database: ConsensusDatabase, key: Uint8Array, value: Uint8Array) => changes.push({ kind: 'put', database, key, value });
  const hardState = write.hardState ?? (write.reset ? NOTHING_STORED.hardState : null);
  const applied = write.applied ?? (write.reset ? 0 : null);
  if (hardState !== null) checkHardState(before.hardState, hardState);
  if (write.snapshot !== null) put('snapshot', SNAPSHOT_KEY, encodeSnapshot(write.snapshot));
  if (hardState !== null) put('meta', HARD_STATE_KEY, encodeHardState(hardState));
  if (applied !== null) put('meta', APPLIED_KEY, encodeApplied(applied));
  if (write.identity !== null || write.reset) put('meta', IDENTITY_KEY, encodeIdentity(write.identity));
  if (range.first !== held.range.first || range.last !== held.range.last) put('meta', RANGE_KEY, encodeRange(range));
  return { changes, held: { range, snapshotIndex, hardState: hardState ?? before.hardState } };
}

function forget(changes: LogChange[], { range }: Held): Held {
  cut(changes, range, 0, range.last + 1);
  changes.push({ kind: 'removeSnapshot' });
  return { range: NO_ENTRIES, snapshotIndex: 0, hardState: NOTHING_STORED.hardState };
}

function append(changes: LogChange[], range: EntryRange, { entries }: ConsensusWrite, snapshotIndex: number): EntryRange {
  const first = entries[0]?.index;
  if (first === undefined) return range;
  const next = range === NO_ENTRIES ? snapshotIndex + 1 : range.last + 1;
  invariant(first <= next && first >= 1, 'ConsLog-C4', () => `entry ${first} does not follow: the next one is ${next}`);
  const kept = range === NO_ENTRIES ? range : cut(changes, range, first, range.last + 1);
  let index = first;
  for (const entry of entries) {
    invariant(entry.index === index, 'ConsLog-C4', () => `entry ${entry.index} in the place of ${index}`);
    changes.push({ kind: 'put', database: 'entries', key: entryKey(index), value: encodeEntry(entry) });
    index++;
  }
  return { first: kept === NO_ENTRIES ? first : kept.first, last: index - 1 };
}

/** Removes `from <= index < to`, which reaches an end of the range. */
function cut(changes: LogChange[], range: EntryRange, from: number, to: number): EntryRange {
  if (range === NO_ENTRIES || from > range.last || to <= range.first) return range;
  changes.push({ kind: 'removeEntries', from: Math.max(from, range.first), to: Math.min(to, range.last + 1) });
  if (from <= range.first) return to > range.last ? NO_ENTRIES : { first: to, last: range.last };
  return { first: range.first, last: from - 1 };
}

// ------------------------------------------------------------------ bytes

const PUT = 1;
const REMOVE_ENTRIES = 2;
const REMOVE_SNAPSHOT = 3;
const PUT_HEAD_BYTES = 8;
const REMOVE_BYTES = 24;

/** One buffer of its own, which can be handed to another thread: a view on a message's memory would take all of that along. */
export function packChanges(changes: readonly LogChange[]): Uint8Array {
  const total = changes.reduce((sum, change) => sum + packedBytes(change), 0);
  const bytes = new Uint8Array(total);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const change of changes) {
    if (change.kind === 'put') {
      view.setUint8(at, PUT);
      view.setUint8(at + 1, CONSENSUS_DATABASES.indexOf(change.database));
      view.setUint16(at + 2, change.key.length, true);
      view.setUint32(at + 4, change.value.length, true);
      bytes.set(change.key, at + PUT_HEAD_BYTES);
      bytes.set(change.value, at + PUT_HEAD_BYTES + change.key.length);
    } else if (change.kind === 'removeSnapshot') {
      view.setUint8(at, REMOVE_SNAPSHOT);
    } else {
      view.setUint8(at, REMOVE_ENTRIES);
      view.setFloat64(at + 8, change.from, true);
      view.setFloat64(at + 16, change.to, true);
    }
    at += packedBytes(change);
  }
  return bytes;
}

/** What `packChanges` packed; keys and values are views. */
export function* unpackChanges(bytes: Uint8Array): Generator<LogChange> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; ) {
    const kind = view.getUint8(at);
    if (kind !== PUT) {
      if (kind === REMOVE_SNAPSHOT) yield { kind: 'removeSnapshot' };
      else yield { kind: 'removeEntries', from: view.getFloat64(at + 8, true), to: view.getFloat64(at + 16, true) };
      at += REMOVE_BYTES;
      continue;
    }
    const database = CONSENSUS_DATABASES[view.getUint8(at + 1)] as ConsensusDatabase;
    const valueAt = at + PUT_HEAD_BYTES + view.getUint16(at + 2, true);
    const end = valueAt + view.getUint32(at + 4, true);
    yield { kind: 'put', database, key: bytes.subarray(at + PUT_HEAD_BYTES, valueAt), value: bytes.subarray(valueAt, end) };
    at = end;
  }
}

function packedBytes(change: LogChange): number {
  return change.kind === 'put' ? PUT_HEAD_BYTES + change.key.length + change.value.length : REMOVE_BYTES;
}
