/** Answers conditions from a sealed field index, straight from its bytes. */

import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { FieldCondition, GeoArea } from '../../../protocols/model/filter.js';
import { ID_KIND_UUID, readIdWords } from '../../../protocols/model/point-id.js';
import { emptyBits, intersect, invert, setBit, unite } from '../../../query/filter/bits.js';
import { type LookupPart, lookupFor, type TermValue } from '../../../query/filter/lookup.js';
import type { FieldIndex } from '../../../query/filter/source.js';
import { areaTest } from '../../../query/geo/area.js';
import { spend } from '../../disk/meter.js';
import type { FieldIndexHandle, SegmentHandle } from '../handle.js';
import { isNumeric } from '../index-layout.js';
import { readPart } from '../vector-file.js';
import type { ReadIndex } from './column.js';
import { IndexParts } from './parts.js';
import { cellRuns, EXACT_MAX, firstNumber, gaps, type Run, runsOf, termRun } from './runs.js';

/** An index of a sealed segment. */
export interface SealedIndex extends FieldIndex {
  /** Rows with a value of the index's type. */
  readonly points: number;
  /** Bits of those rows, u32 words; to be read only. */
  indexedRows(): Uint32Array;
}

/**
 * The index in `buffer` (bytes made by `buildFieldIndex` with this schema), without copying it. read: gives the bytes that
 * are not resident; null when all are in `buffer`.
 * Errors: `storage` when the bytes are of another version, type, or size.
 */
export function openFieldIndex(
  schema: FieldSchema,
  key: string,
  buffer: SharedArrayBuffer,
  rows: number,
  read: ReadIndex | null = null,
): SealedIndex {
  return new SealedFieldIndex(new IndexParts(schema, key, buffer, rows, read));
}

/** An index of the segment, for this thread. Errors: as `openFieldIndex`. */
export function openIndexOf(segment: SegmentHandle, index: FieldIndexHandle): SealedIndex {
  const { file } = index;
  const read: ReadIndex | null =
    file === undefined
      ? null
      : (position, target) => {
          readPart(segment, file.name, file.inode, file.start + position, target);
          spend('payload_index_io_read', target.length);
        };
  return openFieldIndex(index, index.field, index.buffer, segment.rows, read);
}

class SealedFieldIndex implements SealedIndex {
  constructor(private readonly parts: IndexParts) {}

  get points(): number {
    return this.parts.points;
  }

  indexedRows(): Uint32Array {
    return this.parts.mark('indexed');
  }

  match(condition: FieldCondition, bits: Uint32Array): 'exact' | 'superset' | 'unable' {
    const { parts } = this;
    const lookup = lookupFor(parts.schema, condition);
    if (lookup === null) return 'unable';
    let rounded = false;
    for (const part of lookup.parts) {
      switch (part.kind) {
        case 'mark':
          unite(bits, parts.mark(part.mark));
          break;
        case 'every':
          this.setEvery(part.values, bits);
          break;
        case 'area':
          this.setPlaces(part.area, bits);
          break;
        default: {
          const found = runsOf(parts, part);
          rounded ||= found.rounded;
          this.setRuns(found.runs, bits);
        }
      }
    }
    if (lookup.complement) invert(bits, parts.rows);
    return lookup.exact && !rounded ? 'exact' : 'superset';
  }

  cardinality(condition: FieldCondition): { readonly min: number; readonly max: number } | null {
    const { schema, rows } = this.parts;
    const lookup = lookupFor(schema, condition);
    if (lookup === null) return null;
    const bounds = lookup.parts.map((part) => this.partCardinality(part));
    const max = Math.min(
      rows,
      bounds.reduce((sum, bound) => sum + bound.max, 0),
    );
    const least = lookup.exact ? bounds.reduce((most, bound) => Math.max(most, bound.min), 0) : 0;
    return lookup.complement ? { min: rows - max, max: rows - least } : { min: least, max };
  }

  private partCardinality(part: LookupPart): { min: number; max: number } {
    const { parts } = this;
    if (part.kind === 'mark') {
      const count = parts.markCount(part.mark);
      return { min: count, max: count };
    }
    if (part.kind === 'every') {
      const counts = part.values.map((value) => lengthOf([termRun(parts, value)]));
      return { min: counts.length === 1 ? (counts[0] as number) : 0, max: Math.min(...counts) };
    }
    if (part.kind === 'area') return { min: 0, max: Math.min(lengthOf(cellRuns(parts, part.area)), parts.points) };
    const { runs, rounded } = runsOf(parts, part);
    const total = lengthOf(runs);
    if (rounded) return { min: 0, max: total };
    // With one value per row each posting is another row.
    if (parts.isSingle) return { min: total, max: total };
    return { min: total > 0 ? 1 : 0, max: Math.min(total, parts.points) };
  }

  // ---------------------------------------------------------------- rows

  /** Sets the rows that have every one of the values: the rarest first, and none looked at once no row is left. */
  private setEvery(values: readonly TermValue[], bits: Uint32Array): void {
    const runs = values.map((value) => termRun(this.parts, value)).sort((a, b) => a.to - a.from - (b.to - b.from));
    let left: Uint32Array | undefined;
    for (const run of runs) {
      if (run.from === run.to) return;
      const rows = emptyBits(this.parts.rows);
      for (const row of this.parts.postings.slice(run.from, run.to)) setBit(rows, row);
      if (left === undefined) left = rows;
      else intersect(left, rows);
    }
    if (left !== undefined) unite(bits, left);
  }

  /** Sets the rows with a place in the area. */
  private setPlaces(area: GeoArea, bits: Uint32Array): void {
    const isWithin = areaTest(area);
    for (const { from, to } of cellRuns(this.parts, area)) {
      const places = this.parts.places.slice(from * 2, to * 2);
      const postings = this.parts.postings.slice(from, to);
      for (let at = 0; at < postings.length; at++) {
        if (isWithin(places[at * 2] as number, places[at * 2 + 1] as number)) setBit(bits, postings[at] as number);
      }
    }
  }

  /** Sets the rows of the runs. Where most rows are meant and each has one value, the others are cleared instead. */
  private setRuns(runs: readonly Run[], bits: Uint32Array): void {
    const { parts } = this;
    if (!parts.isSingle || lengthOf(runs) * 2 <= parts.entries) {
      for (const run of runs) {
        const postings = parts.postings.slice(run.from, run.to);
        for (let at = 0; at < postings.length; at++) {
          const row = postings[at] as number;
          (bits[row >>> 5] as number) |= 1 << (row & 31);
        }
      }
      return;
    }
    const most = parts.mark('indexed').slice();
    for (const run of gaps(runs, parts.entries)) {
      const postings = parts.postings.slice(run.from, run.to);
      for (let at = 0; at < postings.length; at++) {
        const row = postings[at] as number;
        (most[row >>> 5] as number) &= ~(1 << (row & 31));
      }
    }
    unite(bits, most);
  }

  // ---------------------------------------------------------------- values

  countValues(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): boolean {
    const { type } = this.parts.schema;
    if (type === 'geo' || type === 'text') return false;
    if (!isNumeric(type)) {
      this.countTerms(bits, add);
      return true;
    }
    if (!this.hasExactNumbers()) return false;
    this.countNumbers(bits, add);
    return true;
  }

  visitInOrder(direction: 'asc' | 'desc', start: number | null, visit: (value: number, row: number) => boolean): boolean {
    const { schema, numbers, postings, entries } = this.parts;
    if (!isNumeric(schema.type) || schema.type === 'geo' || !this.hasExactNumbers()) return false;
    if (direction === 'asc') {
      for (let at = start === null ? 0 : firstNumber(this.parts, start, false); at < entries; at++) {
        if (!visit(numbers.at(at), postings.at(at))) break;
      }
    } else {
      for (let at = (start === null ? entries : firstNumber(this.parts, start, true)) - 1; at >= 0; at--) {
        if (!visit(numbers.at(at), postings.at(at))) break;
      }
    }
    return true;
  }

  /** Whether no integer was rounded to one of the numbers. */
  private hasExactNumbers(): boolean {
    const { schema, numbers, entries } = this.parts;
    return schema.type === 'float' || entries === 0 || Math.max(-numbers.at(0), numbers.at(entries - 1)) < EXACT_MAX;
  }

  private countNumbers(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): void {
    const { entries } = this.parts;
    const numbers = this.parts.numbers.slice(0, entries);
    const postings = bits === null ? EMPTY : this.parts.postings.slice(0, entries);
    for (let from = 0; from < entries; ) {
      const number = numbers[from] as number;
      const to = endOfEqual(numbers, from);
      const count = countRun(postings, { from, to }, bits);
      if (count > 0) add(number, count);
      from = to;
    }
  }

  private countTerms(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): void {
    const { terms, starts, postings, entries } = this.parts;
    // A whole run is as long as its rows are many.
    const all = bits === null ? EMPTY : postings.slice(0, entries);
    for (let term = 0; term < terms; term++) {
      const count = countRun(all, { from: starts.at(term), to: starts.at(term + 1) }, bits);
      if (count > 0) add(this.termValue(term), count);
    }
  }

  private termValue(term: number): TermValue {
    const { parts } = this;
    switch (parts.schema.type) {
      case 'bool':
        return term + parts.firstBoolean === 1;
      case 'uuid':
        return readIdWords(ID_KIND_UUID, parts.uuids.slice(term * 4, term * 4 + 4), 0) as string;
      default:
        return parts.keywordOf(term);
    }
  }
}

const EMPTY = new Uint32Array(0);

function lengthOf(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + run.to - run.from, 0);
}

/** Where the numbers that equal the one at `from` end. numbers: ascending. Long runs are not gone through. */
function endOfEqual(numbers: Float64Array, from: number): number {
  const number = numbers[from] as number;
  let step = 1;
  while (from + step < numbers.length && numbers[from + step] === number) step *= 2;
  let low = from + (step >> 1) + 1;
  let high = Math.min(from + step, numbers.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle] === number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Postings of the run whose row is among `bits`. */
function countRun(postings: Uint32Array, { from, to }: Run, bits: Uint32Array | null): number {
  if (bits === null) return to - from;
  let count = 0;
  for (let at = from; at < to; at++) {
    const row = postings[at] as number;
    count += ((bits[row >>> 5] as number) >>> (row & 31)) & 1;
  }
  return count;
}
