/** Answers conditions from a sealed field index, straight from its bytes. */

import { TroupeError } from '../../../protocols/errors.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { FieldCondition, GeoArea, Range } from '../../../protocols/model/filter.js';
import { ID_KIND_UUID, readIdWords, writeIdWords } from '../../../protocols/model/point-id.js';
import { countBits, emptyBits, intersect, invert, setBit, unite } from '../../../query/filter/bits.js';
import { type LookupPart, lookupFor, MARKS, type Mark, type TermValue } from '../../../query/filter/lookup.js';
import type { FieldIndex } from '../../../query/filter/source.js';
import { areaTest } from '../../../query/geo/area.js';
import { areaCells } from '../../../query/geo/cells.js';
import { FLAG_ROUNDED, HEAD_WORDS, hasText, INDEX_VERSION, type IndexLayout, indexLayout, isNumeric, TYPE_CODES } from './layout.js';

/** Postings from <= position < to. */
interface Run {
  readonly from: number;
  readonly to: number;
}

/** Runs that answer a part, ascending and apart. `rounded`: rows beside those meant may be among them. */
interface Runs {
  readonly runs: readonly Run[];
  readonly rounded: boolean;
}

const EXACT_MAX = 2 ** 53;
const NO_RUN: Run = { from: 0, to: 0 };

/** An index of a sealed segment. */
export interface SealedIndex extends FieldIndex {
  /** Rows with a value of the index's type. */
  readonly points: number;
  /** Bits of those rows, u32 words; to be read only. */
  indexedRows(): Uint32Array;
}

/**
 * The index in `buffer` (bytes made by `buildFieldIndex` with this schema), without copying it.
 * Errors: `storage` when the bytes are of another version, type, or size.
 */
export function openFieldIndex(schema: FieldSchema, key: string, buffer: SharedArrayBuffer, rows: number): SealedIndex {
  return new SealedFieldIndex(schema, key, buffer, rows);
}

class SealedFieldIndex implements SealedIndex {
  readonly points: number;
  private readonly layout: IndexLayout;
  private readonly flags: number;
  private readonly entries: number;
  private readonly terms: number;
  private readonly postings: Uint32Array;
  private readonly starts: Uint32Array;
  private readonly numbers: Float64Array;
  private readonly textOffsets: Uint32Array;
  private readonly text: Uint8Array;
  private readonly uuids: Uint32Array;
  private readonly places: Float64Array;
  /** Each indexed row has one posting. */
  private readonly isSingle: boolean;
  /** Booleans: the value of the first term. */
  private readonly firstBoolean: number;
  private readonly markCounts = new Map<Mark, number>();

  constructor(
    private readonly schema: FieldSchema,
    readonly key: string,
    private readonly buffer: SharedArrayBuffer,
    private readonly rows: number,
  ) {
    const { type } = schema;
    if (buffer.byteLength < HEAD_WORDS * 4) throw damaged(key, 'too short');
    const head = new Uint32Array(buffer, 0, HEAD_WORDS);
    if (head[0] !== INDEX_VERSION) throw damaged(key, `version ${head[0]} is not ${INDEX_VERSION}`);
    if (head[1] !== TYPE_CODES[type] || head[3] !== rows) throw damaged(key, 'of another type or number of rows');
    this.flags = head[2] as number;
    this.points = head[4] as number;
    this.entries = head[5] as number;
    this.terms = head[6] as number;
    this.firstBoolean = head[8] as number;
    // A text may have no token, and others two.
    this.isSingle = type !== 'text' && this.entries === this.points;
    const textBytes = head[7] as number;
    this.layout = indexLayout({ type, rows, entries: this.entries, terms: this.terms, textBytes });
    if (this.layout.bytes !== buffer.byteLength) throw damaged(key, `${buffer.byteLength} bytes instead of ${this.layout.bytes}`);
    const { layout } = this;
    const numeric = isNumeric(type);
    this.postings = new Uint32Array(buffer, layout.postings, this.entries);
    this.starts = new Uint32Array(buffer, layout.starts, numeric ? 0 : this.terms + 1);
    this.numbers = new Float64Array(buffer, layout.numbers, numeric ? this.entries : 0);
    this.textOffsets = new Uint32Array(buffer, layout.textOffsets, hasText(type) ? this.terms + 1 : 0);
    this.text = new Uint8Array(buffer, layout.text, hasText(type) ? textBytes : 0);
    this.uuids = new Uint32Array(buffer, layout.uuids, type === 'uuid' ? this.terms * 4 : 0);
    this.places = new Float64Array(buffer, layout.places, type === 'geo' ? this.entries * 2 : 0);
  }

  indexedRows(): Uint32Array {
    return this.mark('indexed');
  }

  match(condition: FieldCondition, bits: Uint32Array): 'exact' | 'superset' | 'unable' {
    const lookup = lookupFor(this.schema, condition);
    if (lookup === null) return 'unable';
    let rounded = false;
    for (const part of lookup.parts) {
      if (part.kind === 'mark') {
        unite(bits, this.mark(part.mark));
        continue;
      }
      if (part.kind === 'every') {
        this.setEvery(part.values, bits);
        continue;
      }
      if (part.kind === 'area') {
        this.setPlaces(part.area, bits);
        continue;
      }
      const found = this.runsOf(part);
      rounded ||= found.rounded;
      this.setRuns(found.runs, bits);
    }
    if (lookup.complement) invert(bits, this.rows);
    return lookup.exact && !rounded ? 'exact' : 'superset';
  }

  cardinality(condition: FieldCondition): { readonly min: number; readonly max: number } | null {
    const lookup = lookupFor(this.schema, condition);
    if (lookup === null) return null;
    const bounds = lookup.parts.map((part) => this.partCardinality(part));
    const max = Math.min(
      this.rows,
      bounds.reduce((sum, bound) => sum + bound.max, 0),
    );
    const least = lookup.exact ? bounds.reduce((most, bound) => Math.max(most, bound.min), 0) : 0;
    return lookup.complement ? { min: this.rows - max, max: this.rows - least } : { min: least, max };
  }

  countValues(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): boolean {
    const { type } = this.schema;
    if (type === 'geo') return false;
    if (isNumeric(type)) {
      if (!this.hasExactNumbers()) return false;
      this.countNumbers(bits, add);
    } else if (type === 'keyword' || type === 'uuid' || type === 'bool') this.countTerms(bits, add);
    else return false;
    return true;
  }

  visitInOrder(direction: 'asc' | 'desc', start: number | null, visit: (value: number, row: number) => boolean): boolean {
    if (!isNumeric(this.schema.type) || !this.hasExactNumbers()) return false;
    const { numbers, postings, entries } = this;
    if (direction === 'asc') {
      for (let at = start === null ? 0 : this.firstNumber(start, false); at < entries; at++) {
        if (!visit(numbers[at] as number, postings[at] as number)) break;
      }
    } else {
      for (let at = (start === null ? entries : this.firstNumber(start, true)) - 1; at >= 0; at--) {
        if (!visit(numbers[at] as number, postings[at] as number)) break;
      }
    }
    return true;
  }

  /** Whether no integer was rounded to one of the numbers. */
  private hasExactNumbers(): boolean {
    const { numbers, entries } = this;
    if (this.schema.type === 'float' || entries === 0) return true;
    return Math.max(-(numbers[0] as number), numbers[entries - 1] as number) < EXACT_MAX;
  }

  private countNumbers(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): void {
    const { numbers, entries } = this;
    for (let from = 0; from < entries; ) {
      const number = numbers[from] as number;
      let to = from + 1;
      while (to < entries && numbers[to] === number) to++;
      const count = this.countRun({ from, to }, bits);
      if (count > 0) add(number, count);
      from = to;
    }
  }

  private countTerms(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): void {
    for (let term = 0; term < this.terms; term++) {
      const count = this.countRun({ from: this.starts[term] as number, to: this.starts[term + 1] as number }, bits);
      if (count > 0) add(this.termValue(term), count);
    }
  }

  /** Postings of the run whose row is among `bits`. */
  private countRun({ from, to }: Run, bits: Uint32Array | null): number {
    if (bits === null) return to - from;
    const { postings } = this;
    let count = 0;
    for (let at = from; at < to; at++) {
      const row = postings[at] as number;
      count += ((bits[row >>> 5] as number) >>> (row & 31)) & 1;
    }
    return count;
  }

  private termValue(term: number): TermValue {
    switch (this.schema.type) {
      case 'bool':
        return term + this.firstBoolean === 1;
      case 'uuid':
        return readIdWords(ID_KIND_UUID, this.uuids, term * 4) as string;
      default: {
        // A copy: text decoders refuse shared memory.
        const bytes = this.text.slice(this.textOffsets[term], this.textOffsets[term + 1]);
        return Buffer.from(bytes.buffer, 0, bytes.length).toString('utf8');
      }
    }
  }

  private partCardinality(part: LookupPart): { min: number; max: number } {
    if (part.kind === 'mark') {
      const count = this.markCount(part.mark);
      return { min: count, max: count };
    }
    if (part.kind === 'every') {
      const counts = part.values.map((value) => this.countOf(value));
      return { min: counts.length === 1 ? (counts[0] as number) : 0, max: Math.min(...counts) };
    }
    if (part.kind === 'area') {
      const max = this.cellRuns(part.area).reduce((sum, run) => sum + run.to - run.from, 0);
      return { min: 0, max: Math.min(max, this.points) };
    }
    const { runs, rounded } = this.runsOf(part);
    const total = runs.reduce((sum, run) => sum + run.to - run.from, 0);
    if (rounded) return { min: 0, max: total };
    // With one value per row each posting is another row.
    if (this.isSingle) return { min: total, max: total };
    return { min: total > 0 ? 1 : 0, max: Math.min(total, this.points) };
  }

  /** Sets the rows that have every one of the values: the rarest first, and none looked at once no row is left. */
  private setEvery(values: readonly TermValue[], bits: Uint32Array): void {
    const runs = values.map((value) => this.termRun(value).run ?? NO_RUN).sort((a, b) => a.to - a.from - (b.to - b.from));
    let left: Uint32Array | undefined;
    for (const run of runs) {
      if (run.from === run.to) return;
      const rows = emptyBits(this.rows);
      for (let at = run.from; at < run.to; at++) setBit(rows, this.postings[at] as number);
      if (left === undefined) left = rows;
      else intersect(left, rows);
    }
    if (left !== undefined) unite(bits, left);
  }

  private countOf(value: TermValue): number {
    const { run } = this.termRun(value);
    return run === undefined ? 0 : run.to - run.from;
  }

  /** Sets the rows with a place in the area. */
  private setPlaces(area: GeoArea, bits: Uint32Array): void {
    const isWithin = areaTest(area);
    const { places, postings } = this;
    for (const run of this.cellRuns(area)) {
      for (let at = run.from; at < run.to; at++) {
        if (isWithin(places[at * 2] as number, places[at * 2 + 1] as number)) setBit(bits, postings[at] as number);
      }
    }
  }

  private cellRuns(area: GeoArea): Run[] {
    return areaCells(area).flatMap((range) => this.numberRuns(range).runs);
  }

  /** Sets the rows of the runs. Where most rows are meant and each has one value, the others are cleared instead. */
  private setRuns(runs: readonly Run[], bits: Uint32Array): void {
    const total = runs.reduce((sum, run) => sum + run.to - run.from, 0);
    const { postings } = this;
    if (!this.isSingle || total * 2 <= this.entries) {
      for (const run of runs) {
        for (let at = run.from; at < run.to; at++) {
          const row = postings[at] as number;
          (bits[row >>> 5] as number) |= 1 << (row & 31);
        }
      }
      return;
    }
    const most = this.mark('indexed').slice();
    for (const run of this.gaps(runs)) {
      for (let at = run.from; at < run.to; at++) {
        const row = postings[at] as number;
        (most[row >>> 5] as number) &= ~(1 << (row & 31));
      }
    }
    unite(bits, most);
  }

  private runsOf(part: Extract<LookupPart, { kind: 'values' | 'except' | 'range' }>): Runs {
    if (part.kind === 'range') return this.numberRuns(part.range);
    const found = this.valueRuns(part.values);
    if (part.kind === 'values') return found;
    return found.rounded ? { runs: [{ from: 0, to: this.entries }], rounded: true } : { runs: this.gaps(found.runs), rounded: false };
  }

  /** Runs of postings between `runs` (which are ascending and apart). */
  private gaps(runs: readonly Run[]): Run[] {
    const gaps: Run[] = [];
    let from = 0;
    for (const run of runs) {
      if (run.from > from) gaps.push({ from, to: run.from });
      from = run.to;
    }
    if (from < this.entries) gaps.push({ from, to: this.entries });
    return gaps;
  }

  private valueRuns(values: readonly TermValue[]): Runs {
    const runs: Run[] = [];
    let rounded = false;
    for (const value of values) {
      const found = isNumeric(this.schema.type) ? this.numberRun(value as number | bigint) : this.termRun(value);
      if (found.run !== undefined && found.run.to > found.run.from) {
        runs.push(found.run);
        rounded ||= found.rounded;
      }
    }
    runs.sort((a, b) => a.from - b.from);
    // A value may be listed twice.
    return { runs: runs.filter((run, at) => at === 0 || run.from !== (runs[at - 1] as Run).from), rounded };
  }

  private numberRun(value: number | bigint): { run: Run | undefined; rounded: boolean } {
    const number = Number(value);
    const representable = typeof value === 'number' || BigInt(number) === value;
    const rounded = this.isRounded(number);
    if (!representable && !rounded) return { run: undefined, rounded: false };
    return { run: { from: this.firstNumber(number, false), to: this.firstNumber(number, true) }, rounded };
  }

  /** Whether an integer that was rounded may be filed under this number. */
  private isRounded(number: number): boolean {
    return (this.flags & FLAG_ROUNDED) !== 0 && Math.abs(number) >= EXACT_MAX;
  }

  private numberRuns(range: Range): Runs {
    let from = 0;
    let to = this.entries;
    let rounded = false;
    const bound = (value: number | undefined, isLower: boolean, isOpen: boolean): void => {
      if (value === undefined) return;
      const inclusive = !isOpen || this.isRounded(value);
      rounded ||= this.isRounded(value);
      if (isLower) from = Math.max(from, this.firstNumber(value, !inclusive));
      else to = Math.min(to, this.firstNumber(value, inclusive));
    };
    bound(range.gt, true, true);
    bound(range.gte, true, false);
    bound(range.lt, false, true);
    bound(range.lte, false, false);
    return { runs: from < to ? [{ from, to }] : [], rounded };
  }

  /** Position of the first posting whose number is `value` or more (`behind`: more). */
  private firstNumber(value: number, behind: boolean): number {
    const { numbers } = this;
    let low = 0;
    let high = this.entries;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const number = numbers[middle] as number;
      if (number < value || (behind && number === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private termRun(value: TermValue): { run: Run | undefined; rounded: boolean } {
    const term = this.findTerm(value);
    const run = term === undefined ? undefined : { from: this.starts[term] as number, to: this.starts[term + 1] as number };
    return { run, rounded: false };
  }

  private findTerm(value: TermValue): number | undefined {
    switch (this.schema.type) {
      case 'bool': {
        const term = (value === true ? 1 : 0) - this.firstBoolean;
        return term >= 0 && term < this.terms ? term : undefined;
      }
      case 'uuid': {
        const words = new Uint32Array(4);
        writeIdWords(String(value), words, 0);
        return this.search((term) => compareWords(this.uuids, term * 4, words));
      }
      default: {
        const key = Buffer.from(String(value), 'utf8');
        return this.search((term) => compareText(this.text, this.textOffsets[term] as number, this.textOffsets[term + 1] as number, key));
      }
    }
  }

  /** compare: sign of term - value. */
  private search(compare: (term: number) => number): number | undefined {
    let low = 0;
    let high = this.terms;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = compare(middle);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return undefined;
  }

  private mark(mark: Mark): Uint32Array {
    const { marks, markWords } = this.layout;
    return new Uint32Array(this.buffer, marks + MARKS.indexOf(mark) * markWords * 4, markWords);
  }

  private markCount(mark: Mark): number {
    let count = this.markCounts.get(mark);
    if (count === undefined) {
      count = countBits(this.mark(mark));
      this.markCounts.set(mark, count);
    }
    return count;
  }
}

function compareWords(words: Uint32Array, at: number, other: Uint32Array): number {
  for (let i = 0; i < 4; i++) {
    const a = words[at + i] as number;
    const b = other[i] as number;
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

function compareText(text: Uint8Array, from: number, to: number, key: Uint8Array): number {
  const length = Math.min(to - from, key.length);
  for (let i = 0; i < length; i++) {
    const order = (text[from + i] as number) - (key[i] as number);
    if (order !== 0) return order;
  }
  return to - from - key.length;
}

function damaged(key: string, reason: string): TroupeError {
  return new TroupeError('storage', `index of field ${key}: ${reason}`);
}
