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
  const counts = countTerms(source, rowCount);
  const terms = Uint32Array.from(counts.byTerm.keys()).sort();
  let blocks = 0;
  for (const count of counts.byTerm.values()) blocks += Math.ceil(count / BLOCK_POSTINGS);
  const sizes = { rowCount, filled: counts.filled, terms: terms.length, postings: counts.postings, blocks };
  const buffer = new SharedArrayBuffer(bytesOf(sizes));
  new Uint32Array(buffer, 0, HEAD_WORDS).set([VERSION, rowCount, sizes.terms, sizes.postings, blocks, counts.filled]);
  const index = partsOf(buffer, sizes);
  index.terms.set(terms);
  terms.forEach((term, at) => {
    const count = counts.byTerm.get(term) as number;
    index.starts[at + 1] = (index.starts[at] as number) + count;
    index.blockStarts[at + 1] = (index.blockStarts[at] as number) + Math.ceil(count / BLOCK_POSTINGS);
  });
  fillPostings(index, source, rowCount);
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

function countTerms({ offsets, indices }: SparseRows, rowCount: number): { byTerm: Map<number, number>; postings: number; filled: number } {
  const byTerm = new Map<number, number>();
  let postings = 0;
  let filled = 0;
  for (let row = 0; row < rowCount; row++) {
    const end = offsets[row + 1] as number;
    const start = offsets[row] as number;
    if (end > start) filled++;
    postings += end - start;
    for (let item = start; item < end; item++) {
      const index = indices[item] as number;
      byTerm.set(index, (byTerm.get(index) ?? 0) + 1);
    }
  }
  return { byTerm, postings, filled };
}

function fillPostings(index: SparseIndex, { offsets, indices, values }: SparseRows, rowCount: number): void {
  const next = index.starts.slice();
  const places = new Map<number, number>();
  index.terms.forEach((term, at) => {
    places.set(term, at);
  });
  for (let row = 0; row < rowCount; row++) {
    const end = offsets[row + 1] as number;
    for (let item = offsets[row] as number; item < end; item++) {
      const term = places.get(indices[item] as number) as number;
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
