/** Sums of products, row by row, of a window of rows, by a kernel that gets the postings as copies in its memory. */

import { kernelModule } from '../kernels.js';

/** Rows of the largest window: their sums stay in the second cache. */
export const WINDOW_ROWS = 16_384;

/** Postings that are added here: copying them for the kernel takes longer. */
const FEW_POSTINGS = 24;
/** Behind the last place, as the kernel writes what it may not count. */
const SPARE_BYTES = 64;

interface Exports {
  addPostings(rows: number, values: number, count: number, first: number, weight: number, sums: number): void;
  collectSums(sums: number, count: number, least: number, places: number, scores: number): number;
}

const SUMS = 1024;
const ROWS = SUMS + WINDOW_ROWS * 8;
const VALUES = ROWS + WINDOW_ROWS * 4;
const PLACES = VALUES + WINDOW_ROWS * 4;
const SCORES = PLACES + WINDOW_ROWS * 4 + SPARE_BYTES;
/** Of the memory. */
export const WINDOW_SUMS_BYTES = SCORES + WINDOW_ROWS * 4 + SPARE_BYTES;

export class WindowSums {
  /** Rows that `collect` found, from the first of the window, and their sums as single floats. */
  readonly places: Uint32Array;
  readonly scores: Float32Array;
  /** All 0 between windows. */
  private readonly sums: Float64Array;
  private readonly rows: Uint32Array;
  private readonly values: Float32Array;
  private readonly exports: Exports;

  /** memory: shared, of WINDOW_SUMS_BYTES at least, all zero and of nobody else. */
  constructor(memory: WebAssembly.Memory) {
    this.exports = new WebAssembly.Instance(kernelModule(), { env: { memory, expired: () => 0 } }).exports as unknown as Exports;
    this.sums = new Float64Array(memory.buffer, SUMS, WINDOW_ROWS);
    this.rows = new Uint32Array(memory.buffer, ROWS, WINDOW_ROWS);
    this.values = new Float32Array(memory.buffer, VALUES, WINDOW_ROWS);
    this.places = new Uint32Array(memory.buffer, PLACES, WINDOW_ROWS);
    this.scores = new Float32Array(memory.buffer, SCORES, WINDOW_ROWS);
  }

  /** Adds the products of the postings at..end of a term, all of rows of the window that begins with the row `first`. */
  add(
    { rows, values }: { readonly rows: Uint32Array; readonly values: Float32Array },
    at: number,
    end: number,
    weight: number,
    first: number,
  ): void {
    if (end - at <= FEW_POSTINGS) {
      const { sums } = this;
      for (let posting = at; posting < end; posting++) {
        const place = (rows[posting] as number) - first;
        sums[place] = (sums[place] as number) + weight * (values[posting] as number);
      }
      return;
    }
    this.rows.set(rows.subarray(at, end));
    this.values.set(values.subarray(at, end));
    this.exports.addPostings(ROWS, VALUES, end - at, first, weight, SUMS);
  }

  /** Finds the sums of a window of `rows` rows that are `least` at least and not 0, and sets all to 0. How many there are. */
  collect(rows: number, least: number): number {
    return this.exports.collectSums(SUMS, (rows + 3) & ~3, least, PLACES, SCORES);
  }
}
