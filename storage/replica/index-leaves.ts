/**
 * The index of a field over the rows of an appendable segment, as sorted leaves of a few kilobytes in LMDB: a leaf has the terms from its bound
 * (inclusive) to the bound of the next leaf. New terms come many at once, in the order of the terms (`recent-filings.ts`), so that each leaf is
 * written once for some of them.
 *
 * Key in `index`: segment u32 BE, field number u16 BE, the bound; that of the first leaf is empty. Value, checked: terms, ascending
 * (`filed-terms.ts`).
 */

import type { Environment } from '../disk/lmdb.js';
import { afterPrefix, type LmdbEntry, type Reading } from '../disk/lmdb-tables.js';
import { spend } from '../disk/meter.js';
import { CHECK_BYTES, checkInPlace, damagedRecord, uncheck } from '../wal/records.js';
import {
  beginFiled,
  compareFiled,
  compareTerm,
  copyRows,
  type FiledRange,
  type FiledTerm,
  filedEnd,
  filedTermAt,
  rowBytesAt,
  visitRanges,
} from './filed-terms.js';
import type { FiledTerms } from './recent-filings.js';
import type { IsOver } from './slices.js';
import { sorting } from './sorting.js';

/** A larger leaf of several terms is split. LMDB gives a value of this size a page. */
const LEAF_BYTES_MAX = 4000;
/** Leaves that are read together to be merged with new terms. */
const LEAVES_AT_ONCE = 64;

/** Start of the keys of a field in a segment. */
export function fieldPrefix(segment: number, fieldNumber: number): Buffer {
  const key = Buffer.allocUnsafe(6);
  key.writeUInt32BE(segment, 0);
  key.writeUInt16BE(fieldNumber, 4);
  return key;
}

/**
 * Merges filed terms into the index of a field, in portions; within a transaction that changes nothing else of the field meanwhile. Errors: `storage`
 * for a damaged leaf.
 */
export function* mergingFiled(
  environment: Environment,
  prefix: Uint8Array,
  { bytes, at }: FiledTerms,
  beginPortion: () => IsOver,
): Generator<null, void> {
  // Sorting keeps the order of those with the same term, so that their rows ascend.
  const sorted = yield* sorting(at, (one, other) => compareFiled(bytes, one, bytes, other), beginPortion);
  let isOver = beginPortion();
  for (let from = 0, to = 0; from < sorted.length; ) {
    const leaves = leavesFrom(environment, prefix, filedTermAt(bytes, sorted[from] as number));
    // One more may have been read, which says where the last one ends.
    const count = Math.max(1, Math.min(leaves.length, LEAVES_AT_ONCE));
    for (let leaf = 0; leaf < count && from < sorted.length; leaf++, from = to) {
      const entry = leaves[leaf];
      const next = leaves[leaf + 1]?.key.subarray(prefix.length);
      while (to < sorted.length && (next === undefined || compareTerm(bytes, sorted[to] as number, next) < 0)) to++;
      if (to === from) continue;
      const known = entry === undefined ? NO_BYTES : bodyOf(entry.value, entry.key);
      const bound = entry === undefined ? NO_BYTES : entry.key.subarray(prefix.length);
      writeLeaves(environment, prefix, bound, mergedTerms(known, bytes, sorted, from, to));
      if (to === sorted.length || !isOver()) continue;
      yield null;
      isOver = beginPortion();
    }
  }
}

/** The leaf that a term belongs to and those behind it, one more than are merged at once at most. */
function leavesFrom(environment: Environment, prefix: Uint8Array, term: Uint8Array): LmdbEntry[] {
  const first = environment.floor('index', prefix, Buffer.concat([prefix, term]));
  const leaves: LmdbEntry[] = [];
  for (const leaf of environment.range('index', first?.key ?? prefix, afterPrefix(prefix))) if (leaves.push(leaf) > LEAVES_AT_ONCE) break;
  return leaves;
}

/**
 * Calls `visit` with what is filed in some ranges, in the order of the terms, until it returns false; each leaf is read once, however many ranges there
 * are. ranges: as for `visitRanges`. Returns whether it came to the end. Errors: `storage` for a damaged leaf.
 */
export function visitLeaves<Range extends FiledRange>(
  reading: Reading,
  prefix: Uint8Array,
  ranges: readonly Range[],
  visit: (filed: FiledTerm, range: Range) => boolean,
): boolean {
  let next = 0;
  const end = Buffer.concat([prefix, (ranges.at(-1) as Range).to]);
  const leafOfNext = (): Uint8Array | undefined =>
    reading.floor('index', prefix, Buffer.concat([prefix, (ranges[next] as Range).from]))?.key;
  for (let from = leafOfNext(); from !== undefined; ) {
    let later: Uint8Array | undefined;
    for (const { key, value } of reading.range('index', from, end)) {
      const body = bodyOf(value, key);
      const last = visitRanges(body, ranges, visit);
      if (last < 0) return false;
      while (next < ranges.length && compareTerm(body, last, (ranges[next] as Range).to) >= 0) next++;
      if (next === ranges.length) return true;
      if (compareTerm(body, last, (ranges[next] as Range).from) >= 0) continue;
      // Leaves that no range is in are passed over. The next range may be behind the last term of this leaf, too.
      const leaf = leafOfNext();
      if (leaf === undefined || Buffer.compare(leaf, key) <= 0) continue;
      later = leaf;
      break;
    }
    from = later;
  }
  return true;
}

/** Reads every leaf of a field. Errors: `storage` for a damaged one, and for one that is not at its place. */
export function verifyLeaves(reading: Reading, prefix: Uint8Array): void {
  let before: Uint8Array | null = null;
  for (const { key, value } of reading.range('index', prefix, afterPrefix(prefix))) {
    const bound = key.subarray(prefix.length);
    if (before === null ? bound.length > 0 : Buffer.compare(bound, before) <= 0) throw damagedRecord(nameOf(key));
    before = bound;
    const body = bodyOf(value, key);
    for (let at = 0; at < body.length; at = filedEnd(body, at)) {
      const order = compareTerm(body, at, before);
      if (at === 0 ? order < 0 : order <= 0) throw damagedRecord(nameOf(key));
      before = filedTermAt(body, at);
    }
  }
}

// ------------------------------------------------------------------ leaves

/** A term of a leaf, with its rows from the leaf and new ones. */
interface MergedTerm {
  /** Where the term and its first rows are. */
  readonly source: Uint8Array;
  readonly at: number;
  /** Where its further rows are filed in `added`. */
  readonly added: Uint8Array;
  readonly further: readonly number[];
  readonly bytes: number;
}

const NO_BYTES = new Uint8Array(0);
const NONE: readonly number[] = [];

/** The terms of a leaf together with the sorted new ones `from` to `to`, ascending. */
function mergedTerms(known: Uint8Array, added: Uint8Array, sorted: readonly number[], from: number, to: number): MergedTerm[] {
  const terms: MergedTerm[] = [];
  let at = 0;
  let next = from;
  while (at < known.length || next < to) {
    const order = at >= known.length ? 1 : next >= to ? -1 : compareFiled(known, at, added, sorted[next] as number);
    const source = order <= 0 ? known : added;
    const start = order <= 0 ? at : (sorted[next++] as number);
    const end = filedEnd(source, start);
    let bytes = end - start;
    let further: number[] | null = null;
    if (order <= 0) at = end;
    // FiledTerms with the same term lie side by side.
    if (order >= 0) {
      for (; next < to && compareFiled(added, sorted[next] as number, source, start) === 0; next++) {
        further ??= [];
        further.push(sorted[next] as number);
        bytes += rowBytesAt(added, sorted[next] as number);
      }
    }
    terms.push({ source, at: start, added, further: further ?? NONE, bytes });
  }
  return terms;
}

/** Writes terms as one leaf, or as several of about the same size: the first one has the bound of the leaf that they come from. */
function writeLeaves(environment: Environment, prefix: Uint8Array, bound: Uint8Array, terms: readonly MergedTerm[]): void {
  const total = terms.reduce((sum, { bytes }) => sum + bytes, 0);
  const share = total / Math.ceil(total / LEAF_BYTES_MAX);
  let first = 0;
  let sum = 0;
  for (let i = 0; i < terms.length; i++) {
    sum += (terms[i] as MergedTerm).bytes;
    const next = terms[i + 1];
    if (next !== undefined && sum < share && sum + next.bytes <= LEAF_BYTES_MAX) continue;
    const { source, at } = terms[first] as MergedTerm;
    writeLeaf(environment, Buffer.concat([prefix, first === 0 ? bound : filedTermAt(source, at)]), terms, first, i + 1, sum);
    first = i + 1;
    sum = 0;
  }
}

/** Where leaves are put together, as LMDB copies what it is given. */
let room = Buffer.alloc(2 * LEAF_BYTES_MAX);

/** Writes terms `first` to `end`, of so many bytes. */
function writeLeaf(
  environment: Environment,
  key: Uint8Array,
  terms: readonly MergedTerm[],
  first: number,
  end: number,
  bytes: number,
): void {
  if (CHECK_BYTES + bytes > room.length) room = Buffer.alloc(2 * bytes);
  let to = CHECK_BYTES;
  for (let i = first; i < end; i++) {
    const { source, at, added, further } = terms[i] as MergedTerm;
    let rowBytes = rowBytesAt(source, at);
    for (const other of further) rowBytes += rowBytesAt(added, other);
    to = copyRows(source, at, room, beginFiled(room, to, source, at, rowBytes));
    for (const other of further) to = copyRows(added, other, room, to);
  }
  environment.put('index', key, checkInPlace(room.subarray(0, to)));
  spend('payload_index_io_write', key.length + to);
}

function bodyOf(value: Uint8Array, key: Uint8Array): Uint8Array {
  spend('payload_index_io_read', value.length);
  return uncheck(value, () => nameOf(key));
}

function nameOf(key: Uint8Array): string {
  return `index/${Buffer.from(key).toString('hex')}`;
}
