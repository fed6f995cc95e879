/**
 * Inverted index of the sparse vectors of a sealed segment: for each index that occurs, which rows have it and with what
 * value. Its bytes are the same in the file and in memory.
 *
 * | part        | type                | of                                                             |
 * |-------------|---------------------|----------------------------------------------------------------|
 * | head        | u32 [16]            | version, rows, terms, postings, blocks, rows that are not empty |
 * | terms       | u32 [terms]         | indices that occur, ascending                                   |
 * | starts      | u32 [terms + 1]     | first posting of each                                           |
 * | blockStarts | u32 [terms + 1]     | first block of each                                             |
 * | rows        | u32 [postings]      | rows, ascending within a term                                   |
 * | values      | f32 [postings]      | their values                                                    |
 * | blockMax    | f32 [blocks]        | largest and smallest value of each 128 postings of a term       |
 * | blockMin    | f32 [blocks]        |                                                                 |
 * | termMax     | f32 [terms]         | largest and smallest value of each term                         |
 * | termMin     | f32 [terms]         |                                                                 |
 */

import { TroupeError } from '../../protocols/errors.js';
import type { SparseRows } from './dot.js';

export const BLOCK_POSTINGS = 128;

const VERSION = 1;
const HEAD_WORDS = 16;

export interface SparseIndex {
  readonly rowCount: number;
  /** Rows with a vector that is not empty. */
  readonly filled: number;
  readonly terms: Uint32Array;
  readonly starts: Uint32Array;
  readonly blockStarts: Uint32Array;
  readonly rows: Uint32Array;
  readonly values: Float32Array;
  readonly blockMax: Float32Array;
  readonly blockMin: Float32Array;
  readonly termMax: Float32Array;
  readonly termMin: Float32Array;
}

interface Sizes {
  readonly rowCount: number;
  readonly filled: number;
  readonly terms: number;
  readonly postings: number;
  readonly blocks: number;
}

/** The index of the first `rowCount` rows. */
export function buildSparseIndex(source: SparseRows, rowCount: number): SharedArrayBuffer {
  const found = new TermNumbers(source, rowCount);
  const terms = found.terms.slice().sort();
  let blocks = 0;
  for (const count of found.counts) blocks += Math.ceil(count / BLOCK_POSTINGS);
  const sizes = { rowCount, filled: found.filled, terms: terms.length, postings: found.numbers.length, blocks };
  const buffer = new SharedArrayBuffer(bytesOf(sizes));
  new Uint32Array(buffer, 0, HEAD_WORDS).set([VERSION, rowCount, sizes.terms, sizes.postings, blocks, sizes.filled]);
  const index = partsOf(buffer, sizes);
  index.terms.set(terms);
  const places = new Uint32Array(terms.length);
  terms.forEach((term, at) => {
    const number = found.numberOf(term);
    const count = found.counts[number] as number;
    places[number] = at;
    index.starts[at + 1] = (index.starts[at] as number) + count;
    index.blockStarts[at + 1] = (index.blockStarts[at] as number) + Math.ceil(count / BLOCK_POSTINGS);
  });
  fillPostings(index, source, rowCount, found.numbers, places);
  fillBounds(index);
  return buffer;
}

/** The index in `buffer`, without copying it. Errors: `storage` when the bytes are of another version or size. */
export function openSparseIndex(buffer: SharedArrayBuffer, name: string, rowCount: number): SparseIndex {
  if (buffer.byteLength < HEAD_WORDS * 4) throw damaged(name, 'too short');
  const [version, rows, terms, postings, blocks, filled] = new Uint32Array(buffer, 0, HEAD_WORDS) as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (version !== VERSION) throw damaged(name, `version ${version} is not ${VERSION}`);
  if (rows !== rowCount) throw damaged(name, `of ${rows} rows instead of ${rowCount}`);
  const sizes = { rowCount, filled, terms, postings, blocks };
  if (buffer.byteLength !== bytesOf(sizes)) throw damaged(name, `${buffer.byteLength} bytes instead of ${bytesOf(sizes)}`);
  return partsOf(buffer, sizes);
}

/** Place of an index among the terms; undefined where no row has it. */
export function findTerm({ terms }: SparseIndex, index: number): number | undefined {
  let low = 0;
  let high = terms.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((terms[middle] as number) < index) low = middle + 1;
    else high = middle;
  }
  return terms[low] === index ? low : undefined;
}

function bytesOf({ terms, postings, blocks }: Sizes): number {
  return 4 * (HEAD_WORDS + terms + 2 * (terms + 1) + 2 * postings + 2 * blocks + 2 * terms);
}

function partsOf(buffer: SharedArrayBuffer, { rowCount, filled, terms, postings, blocks }: Sizes): SparseIndex {
  let at = HEAD_WORDS * 4;
  const words = (count: number): Uint32Array => new Uint32Array(buffer, take(count), count);
  const floats = (count: number): Float32Array => new Float32Array(buffer, take(count), count);
  const take = (count: number): number => {
    const offset = at;
    at += count * 4;
    return offset;
  };
  return {
    rowCount,
    filled,
    terms: words(terms),
    starts: words(terms + 1),
    blockStarts: words(terms + 1),
    rows: words(postings),
    values: floats(postings),
    blockMax: floats(blocks),
    blockMin: floats(blocks),
    termMax: floats(terms),
    termMin: floats(terms),
  };
}

/** Numbers the indices of rows in the order in which they first occur. A hash table of its own: a Map takes ten times as long. */
class TermNumbers {
  /** Number of each item's index. */
  readonly numbers: Uint32Array;
  /** Rows that are not empty. */
  filled = 0;
  private found = 0;
  /** By number: the index, and how many rows have it. */
  private indices = new Uint32Array(1024);
  private rowsWith = new Uint32Array(1024);
  /** Open addressing: number of an index plus one, 0 for none. Half full at most. */
  private slots = new Uint32Array(4096);

  constructor({ offsets, indices }: SparseRows, rowCount: number) {
    for (let row = 0; row < rowCount; row++) if ((offsets[row + 1] as number) > (offsets[row] as number)) this.filled++;
    const first = offsets[0] as number;
    this.numbers = new Uint32Array((offsets[rowCount] as number) - first);
    for (let item = 0; item < this.numbers.length; item++) {
      const number = this.add(indices[first + item] as number);
      this.numbers[item] = number;
      this.rowsWith[number] = (this.rowsWith[number] as number) + 1;
    }
  }

  get terms(): Uint32Array {
    return this.indices.subarray(0, this.found);
  }

  get counts(): Uint32Array {
    return this.rowsWith.subarray(0, this.found);
  }

  /** Of an index that occurs. */
  numberOf(index: number): number {
    return (this.slots[this.slotOf(index)] as number) - 1;
  }

  private add(index: number): number {
    let slot = this.slotOf(index);
    const known = this.slots[slot] as number;
    if (known !== 0) return known - 1;
    if (this.found === this.indices.length) {
      this.grow();
      slot = this.slotOf(index);
    }
    const number = this.found++;
    this.indices[number] = index;
    this.slots[slot] = number + 1;
    return number;
  }

  private slotOf(index: number): number {
    const { slots, indices } = this;
    const mask = slots.length - 1;
    const mixed = Math.imul(index, 0x9e37_79b1);
    let slot = (mixed ^ (mixed >>> 15)) & mask;
    for (let number = slots[slot] as number; number !== 0 && indices[number - 1] !== index; number = slots[slot] as number)
      slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    const { terms, counts } = this;
    this.indices = new Uint32Array(terms.length * 2);
    this.indices.set(terms);
    this.rowsWith = new Uint32Array(terms.length * 2);
    this.rowsWith.set(counts);
    this.slots = new Uint32Array(this.slots.length * 2);
    terms.forEach((term, number) => {
      this.slots[this.slotOf(term)] = number + 1;
    });
  }
}

/** numbers: of the items of the rows; places: of each number among the terms. */
function fillPostings(
  index: SparseIndex,
  { offsets, values }: SparseRows,
  rowCount: number,
  numbers: Uint32Array,
  places: Uint32Array,
): void {
  const next = index.starts.slice();
  const first = offsets[0] as number;
  for (let row = 0; row < rowCount; row++) {
    const end = offsets[row + 1] as number;
    for (let item = offsets[row] as number; item < end; item++) {
      const term = places[numbers[item - first] as number] as number;
      const posting = next[term] as number;
      next[term] = posting + 1;
      index.rows[posting] = row;
      index.values[posting] = values[item] as number;
    }
  }
}

function fillBounds(index: SparseIndex): void {
  const { values, starts, blockStarts, blockMax, blockMin, termMax, termMin } = index;
  for (let term = 0; term < index.terms.length; term++) {
    const from = starts[term] as number;
    const to = starts[term + 1] as number;
    let most = Number.NEGATIVE_INFINITY;
    let least = Number.POSITIVE_INFINITY;
    for (let block = blockStarts[term] as number, at = from; at < to; block++, at += BLOCK_POSTINGS) {
      let max = Number.NEGATIVE_INFINITY;
      let min = Number.POSITIVE_INFINITY;
      for (let posting = at; posting < Math.min(to, at + BLOCK_POSTINGS); posting++) {
        max = Math.max(max, values[posting] as number);
        min = Math.min(min, values[posting] as number);
      }
      blockMax[block] = max;
      blockMin[block] = min;
      most = Math.max(most, max);
      least = Math.min(least, min);
    }
    termMax[term] = most;
    termMin[term] = least;
  }
}

function damaged(name: string, reason: string): TroupeError {
  return new TroupeError('storage', `index of sparse vector ${name}: ${reason}`);
}
